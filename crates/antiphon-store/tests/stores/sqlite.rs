//! The SQLite store: the contract on one file with two connections, two processes, and a file that cannot be used.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use antiphon_store::contract::{Subject, check_all, check_changes, check_random_orders};
use antiphon_store::{
    CallKey, CallStore, ChangeChannel, Claim, ClaimRequest, Fingerprint, Micros, Owner, RunnerId,
    SqliteOptions, SqliteStore, StoreClock, StoreErrorKind, StoreReach, Written,
};

use futures_util::FutureExt as _;

use crate::folder::Folder;

const START: Micros = Micros::new(1_800_000_000_000_000);

fn request(call: u8, runner: u8) -> ClaimRequest {
    let (answers, owner) = (Fingerprint::from_bytes([1; 16]), Owner::from_bytes([1; 16]));
    ClaimRequest::new(CallKey::from_bytes([call; 16]), 1, answers, RunnerId::from_bytes([runner; 16]), owner)
}

async fn open(folder: &Folder, options: SqliteOptions) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(folder.path("calls.db"), options).await.unwrap())
}

#[tokio::test]
async fn the_contract() {
    let folder = Folder::new("sqlite-contract");
    let (clock, hand) = StoreClock::manual(START);
    let options = SqliteOptions::default().timeout(Duration::from_secs(60)).clock(clock);
    let (first, second) = (open(&folder, options.clone()).await, open(&folder, options).await);
    let subject = Subject::new(first.clone(), second.clone(), hand);
    check_all(&subject).await;
    check_random_orders(&subject, 1_000..1_030, 60).await;
    assert_eq!(first.reach(), StoreReach::Host);
}

/// The clock of the rows never goes back, not even for a process that opens the file later.
#[tokio::test]
async fn a_clock_that_went_back_expires_nothing_twice() {
    let folder = Folder::new("sqlite-clock");
    let (clock, hand) = StoreClock::manual(START);
    let options = SqliteOptions::default().clock(clock);
    let store = open(&folder, options.clone()).await;
    assert!(matches!(store.claim(&request(1, 1)).await.unwrap(), Claim::Fresh(_)));
    drop(store);
    hand.turn_back(Duration::from_secs(3_600));
    let store = open(&folder, options).await;
    let lease = Duration::from_secs(30);
    assert_eq!(store.claim(&request(1, 2)).await.unwrap(), Claim::InFlight { retry_after: lease });
    hand.advance(Duration::from_secs(3_600) + lease);
    assert!(matches!(store.claim(&request(1, 2)).await.unwrap(), Claim::Unknown(_)));
}

/// Everything that was confirmed is there after the program was killed.
#[tokio::test]
async fn two_processes_share_the_rows() {
    let folder = Folder::new("sqlite-processes");
    let store = open(&folder, SqliteOptions::default().timeout(Duration::from_secs(60))).await;
    let child = start_child(&folder);
    let mut granted = vec![0; 200];
    for call in 0..200_u8 {
        let claim = store.claim(&request(call, 1)).await.unwrap();
        granted[usize::from(call)] += u32::from(matches!(claim, Claim::Fresh(_)));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let of_child: Vec<usize> = text
        .lines()
        .filter_map(|line| line.split("granted ").nth(1))
        .map(|call| call.parse().unwrap())
        .collect();
    let claims = text.matches("granted ").count() + text.matches("refused ").count();
    assert_eq!(claims, 200, "the other process claims every call: {text}");
    for call in &of_child {
        granted[*call] += 1;
    }
    assert_eq!(granted, vec![1; 200], "each call is granted once; the other process had {}", of_child.len());
    // The child ended without a commit: its calls are in flight for everybody else.
    for call in 0..200 {
        assert!(matches!(store.claim(&request(call, 3)).await.unwrap(), Claim::InFlight { .. }));
    }
}

fn start_child(folder: &Folder) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::the_other_process", "--nocapture", "--test-threads=1"])
        .env("ANTIPHON_STORE_FILE", folder.path("calls.db"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The second process of `two_processes_share_the_rows`. Alone, it does nothing.
#[tokio::test]
async fn the_other_process() {
    let Some(file) = std::env::var_os("ANTIPHON_STORE_FILE") else { return };
    let options = SqliteOptions::default().timeout(Duration::from_secs(60));
    let store = SqliteStore::open(PathBuf::from(file), options).await.unwrap();
    // From the other end, so that the processes meet in the middle.
    for call in (0..200).rev() {
        let claim = store.claim(&request(call, 2)).await.unwrap();
        let word = if matches!(claim, Claim::Fresh(_)) { "granted" } else { "refused" };
        writeln!(std::io::stdout(), "{word} {call}").unwrap();
    }
    // As a crash: no destructor runs.
    std::process::exit(0);
}

#[tokio::test]
async fn a_file_that_cannot_be_used() {
    let folder = Folder::new("sqlite-broken");
    let kind_of = async |file: &str| {
        let opened = SqliteStore::open(folder.path(file), SqliteOptions::default()).await;
        let error = opened.map(drop).unwrap_err();
        assert_eq!(error.written(), Written::No, "{file}");
        error.kind()
    };
    assert_eq!(kind_of("no/such/folder.db").await, StoreErrorKind::Unreachable);
    std::fs::write(folder.path("text.db"), "This is not a database, but a text of some length.".repeat(50))
        .unwrap();
    assert_eq!(kind_of("text.db").await, StoreErrorKind::Corrupt);

    drop(SqliteStore::open(folder.path("later.db"), SqliteOptions::default()).await.unwrap());
    let connection = rusqlite::Connection::open(folder.path("later.db")).unwrap();
    connection.execute("UPDATE antiphon_store SET version = 3", []).unwrap();
    assert_eq!(kind_of("later.db").await, StoreErrorKind::Version);
}

/// Another process that holds the file's lock delays an operation for its time limit, not longer.
#[tokio::test]
async fn a_locked_file_is_a_timeout() {
    let folder = Folder::new("sqlite-locked");
    let store = open(&folder, SqliteOptions::default().timeout(Duration::from_millis(50))).await;
    let connection = rusqlite::Connection::open(folder.path("calls.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.claim(&request(1, 1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Timeout);
    connection.execute_batch("ROLLBACK").unwrap();
    // The claim may be repeated: whatever became of the first one, this runner has the call.
    let patient = open(&folder, SqliteOptions::default()).await;
    assert!(matches!(patient.claim(&request(1, 1)).await.unwrap(), Claim::Fresh(_)));
}

/// The number of operations that wait for the file is limited.
#[tokio::test]
async fn a_full_queue_refuses() {
    let folder = Folder::new("sqlite-queue");
    let store = open(&folder, SqliteOptions::default().queue(2)).await;
    let connection = rusqlite::Connection::open(folder.path("calls.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    // One transaction takes at most 64 operations, and waits for the lock; two more wait for the transaction.
    let refused = (0..100).find_map(|call| store.claim(&request(call, 1)).now_or_never());
    let error = refused.expect("100 operations wait").unwrap_err();
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Unreachable, Written::No), "{error:?}");
    connection.execute_batch("ROLLBACK").unwrap();
    // The file is not damaged by what was refused.
    let patient = open(&folder, SqliteOptions::default().timeout(Duration::from_secs(60))).await;
    assert!(matches!(patient.claim(&request(99, 2)).await.unwrap(), Claim::Fresh(_)));
}

#[tokio::test]
async fn a_damaged_blob_is_not_returned() {
    let folder = Folder::new("sqlite-blob");
    let store = open(&folder, SqliteOptions::default()).await;
    let digest = store.put(b"blob", Duration::from_secs(600), Owner::from_bytes([1; 16])).await.unwrap();
    let connection = rusqlite::Connection::open(folder.path("calls.db")).unwrap();
    connection.execute("UPDATE antiphon_blobs SET value = x'00'", []).unwrap();
    assert_eq!(store.get(digest).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("sqlite-mode");
    let _store = open(&folder, SqliteOptions::default()).await;
    for file in ["calls.db", "calls.db-wal"] {
        let mode = std::fs::metadata(folder.path(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

/// Operations, while other timers of a paused clock wait: the clock stands still while the thread of the file works.
#[tokio::test(start_paused = true)]
async fn a_paused_clock_stands_still_while_the_file_is_used() {
    let folder = Folder::new("sqlite-paused");
    let begun = tokio::time::Instant::now();
    let other = tokio::spawn(tokio::time::sleep(Duration::from_secs(1)));
    let store = open(&folder, SqliteOptions::default()).await;
    let Claim::Fresh(fence) = store.claim(&request(1, 1)).await.unwrap() else {
        panic!("nobody else claims")
    };
    store.renew(&fence, Duration::from_secs(30)).await.unwrap();
    store.commit(&fence, b"outcome").await.unwrap();
    let all = (2..60).map(|call| {
        let store = store.clone();
        async move { store.claim(&request(call, 1)).await }
    });
    for claim in futures_util::future::join_all(all).await {
        assert!(matches!(claim, Ok(Claim::Fresh(_))), "{claim:?}");
    }
    let digest = store.put(b"blob", Duration::from_secs(30), Owner::from_bytes([1; 16])).await.unwrap();
    assert_eq!(store.get(digest).await.unwrap().as_deref(), Some(&b"blob"[..]));
    store.sweep(10).await.unwrap();
    assert!(!other.is_finished());
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // Without an operation, the clock advances as ever.
    other.await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}

/// An operation that nobody polls any more holds the clock until it ends, and no longer.
#[tokio::test(start_paused = true)]
async fn an_operation_that_is_left_does_not_hold_the_clock() {
    let folder = Folder::new("sqlite-left");
    let store = open(&folder, SqliteOptions::default().timeout(Duration::from_secs(3_600))).await;
    // The lock keeps an operation from ending before it is left.
    let locks = rusqlite::Connection::open(folder.path("calls.db")).unwrap();
    let first = request(1, 1);
    let mut left = store.claim(&first);
    locks.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!((&mut left).now_or_never().is_none());
    locks.execute_batch("ROLLBACK").unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let dropped = request(2, 1);
    locks.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(store.claim(&dropped).now_or_never().is_none());
    locks.execute_batch("ROLLBACK").unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(matches!(left.await.unwrap(), Claim::Fresh(_)));
}

/// The time limit is real time.
#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_paused_clock_is_real_time() {
    let folder = Folder::new("sqlite-limit");
    let limit = Duration::from_millis(100);
    let store = open(&folder, SqliteOptions::default().timeout(limit)).await;
    let locked = rusqlite::Connection::open(folder.path("calls.db")).unwrap();
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = std::time::Instant::now();
    let error = store.claim(&request(1, 1)).await.unwrap_err();
    assert!(begun.elapsed() >= limit, "{error}");
    locked.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(store.claim(&request(1, 1)).await.unwrap(), Claim::Fresh(_)));
}

#[tokio::test(start_paused = true)]
async fn the_feed_of_changes() {
    let folder = Folder::new("sqlite-changes");
    let (first, second) =
        (open(&folder, SqliteOptions::default()).await, open(&folder, SqliteOptions::default()).await);
    let (one, other) = (first.change_feed().unwrap(), second.change_feed().unwrap());
    check_changes(&one, &other).await;
    // The file keeps the latest messages: a watch that is behind by more fails.
    let channel = ChangeChannel::of("slow");
    let mut slow = one.watch(channel).await.unwrap();
    let connection = rusqlite::Connection::open(folder.path("calls.db")).unwrap();
    let fill = "WITH RECURSIVE many(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM many WHERE n < 10001)
        INSERT INTO antiphon_changes (channel, message) SELECT x'00', 'of others' FROM many";
    connection.execute_batch(fill).unwrap();
    let mut in_time = one.watch(channel).await.unwrap();
    other.publish(channel, "last").await.unwrap();
    assert_eq!(slow.next().await.map_err(|error| error.kind()), Err(StoreErrorKind::Unreachable));
    assert_eq!(in_time.next().await.unwrap(), "last");
    let rows: i64 =
        connection.query_row("SELECT count(*) FROM antiphon_changes", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 10_000, "the table is bounded");
    // A backup in the place of the file has lower numbers.
    connection.execute_batch("DELETE FROM antiphon_changes").unwrap();
    assert_eq!(in_time.next().await.map_err(|error| error.kind()), Err(StoreErrorKind::Unreachable));
}
