//! Transactions of the SQLite store with writes of the program.

use std::panic::AssertUnwindSafe;
use std::sync::mpsc::channel;
use std::time::Duration;

use antiphon_store::rusqlite::{Connection, Transaction};
use antiphon_store::{
    CallKey, CallStore, Claim, ClaimRequest, Conclusion, Fence, Fingerprint, Micros, Owner, RunnerId,
    SqliteOptions, SqliteStore, StepEvent, StepRecord, StoreClock, StoreError, StoreErrorKind, Transact,
    Transacted, Written,
};
use futures_util::FutureExt as _;

use crate::folder::Folder;

const TABLES: &str = "
    CREATE TABLE items (id INTEGER PRIMARY KEY);
    CREATE TABLE orders (item INTEGER NOT NULL REFERENCES items (id) DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO items VALUES (1);";

async fn open(folder: &Folder) -> SqliteStore {
    let (clock, _) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let options = SqliteOptions::default().timeout(Duration::from_secs(60)).clock(clock);
    let store = SqliteStore::open(folder.path("calls.db"), options).await.unwrap();
    Connection::open(folder.path("calls.db")).unwrap().execute_batch(TABLES).unwrap();
    store
}

async fn claim(store: &SqliteStore, runner: u8) -> Fence {
    let (answers, owner) = (Fingerprint::from_bytes([1; 16]), Owner::from_bytes([1; 16]));
    let (call, runner) = (CallKey::from_bytes([1; 16]), RunnerId::from_bytes([runner; 16]));
    let request = ClaimRequest::new(call, 1, answers, runner, owner);
    match store.claim(&request).await.unwrap() {
        Claim::Fresh(fence) => fence,
        other => panic!("{other:?}"),
    }
}

fn orders(folder: &Folder) -> i64 {
    let connection = Connection::open(folder.path("calls.db")).unwrap();
    connection.query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap()
}

async fn records(store: &SqliteStore, fence: &Fence) -> Vec<StepRecord> {
    store.load(fence.call()).await.unwrap()
}

fn insert(transaction: &Transaction<'_>) -> usize {
    transaction.execute("INSERT INTO orders VALUES (1)", []).unwrap()
}

fn commit(_: usize) -> Conclusion<()> {
    Conclusion::Commit(StepRecord::ended("order", *b"done"), ())
}

#[tokio::test]
async fn writes_and_record_are_committed_together_or_not_at_all() {
    let folder = Folder::new("sqlite-tx");
    let store = open(&folder).await;
    let fence = claim(&store, 1).await;
    let undone = store.transact(&fence, insert, Conclusion::RollBack).await.unwrap();
    assert!(matches!(undone, Transacted::RolledBack(1)), "{undone:?}");
    assert_eq!((orders(&folder), records(&store, &fence).await), (0, vec![]));

    let done = store.transact(&fence, insert, commit).await.unwrap();
    assert!(matches!(done, Transacted::Committed(())), "{done:?}");
    let record = StepRecord::from_parts("order", StepEvent::Ended, *b"done");
    assert_eq!((orders(&folder), records(&store, &fence).await), (1, vec![record]));

    let again = store.transact(&fence, insert, commit).await.unwrap();
    assert!(matches!(&again, Transacted::Existing(value) if value == b"done"), "{again:?}");
    assert_eq!(orders(&folder), 1);
}

#[tokio::test]
async fn a_fence_that_is_lost_writes_nothing() {
    let folder = Folder::new("sqlite-tx-fence");
    let store = open(&folder).await;
    let old = claim(&store, 1).await;
    store.release(&old).await.unwrap();
    let error = store.transact(&old, insert, commit).await.unwrap_err();
    assert!(error.is_fence_lost() && error.written() == Written::No, "{error:?}");
    let fence = claim(&store, 2).await;
    let error = store.transact(&old, insert, commit).await.unwrap_err();
    assert!(error.is_fence_lost(), "{error:?}");
    assert_eq!(orders(&folder), 0);
    store.transact(&fence, insert, commit).await.unwrap();
    assert_eq!(orders(&folder), 1);
}

/// The panic is that of the caller, and the thread of the file works on.
#[tokio::test]
async fn a_body_that_panics_is_rolled_back() {
    let folder = Folder::new("sqlite-tx-panic");
    let store = open(&folder).await;
    let fence = claim(&store, 1).await;
    let panics = |transaction: &Transaction<'_>| -> usize {
        insert(transaction);
        panic!("on purpose")
    };
    let panic = AssertUnwindSafe(store.transact(&fence, panics, commit)).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    assert_eq!(orders(&folder), 0);
    store.transact(&fence, insert, commit).await.unwrap();
    assert_eq!(orders(&folder), 1);
}

/// The caller goes away while the body runs, or before.
#[tokio::test]
async fn a_transaction_that_nobody_waits_for_is_rolled_back() {
    let folder = Folder::new("sqlite-tx-gone");
    let store = open(&folder).await;
    let fence = claim(&store, 1).await;
    let ((begun, has_begun), (go, may_go)) = (channel(), channel::<()>());
    let body = move |transaction: &Transaction<'_>| {
        begun.send(()).unwrap();
        may_go.recv().unwrap();
        insert(transaction)
    };
    let mut first = Box::pin(store.transact(&fence, body, commit));
    assert!(futures_util::poll!(first.as_mut()).is_pending());
    let mut second = Box::pin(store.transact(&fence, insert, commit));
    assert!(futures_util::poll!(second.as_mut()).is_pending());
    has_begun.recv().unwrap();
    drop((first, second));
    go.send(()).unwrap();
    // This operation waits behind both.
    assert_eq!(records(&store, &fence).await, []);
    assert_eq!(orders(&folder), 0);
}

#[tokio::test]
async fn a_constraint_that_is_checked_at_the_commit() {
    let folder = Folder::new("sqlite-tx-deferred");
    let store = open(&folder).await;
    let fence = claim(&store, 1).await;
    let wrong =
        |transaction: &Transaction<'_>| transaction.execute("INSERT INTO orders VALUES (2)", []).unwrap();
    let refused = store.transact(&fence, wrong, commit).await.unwrap();
    let Transacted::Refused(cause) = &refused else { panic!("{refused:?}") };
    assert!(cause.to_string().contains("FOREIGN KEY"), "{cause}");
    assert_eq!((orders(&folder), records(&store, &fence).await), (0, vec![]));
}

/// A body that commits by itself breaks the rule, and is told so.
#[tokio::test]
async fn a_body_that_ends_its_transaction_is_an_error() {
    let folder = Folder::new("sqlite-tx-commits");
    let store = open(&folder).await;
    let fence = claim(&store, 1).await;
    let commits = |transaction: &Transaction<'_>| {
        insert(transaction);
        transaction.execute_batch("COMMIT").unwrap();
        1
    };
    let error: StoreError = store.transact(&fence, commits, commit).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Invalid, Written::Unknown), "{error:?}");
    assert_eq!(records(&store, &fence).await, []);
}

/// A value that no store accepts is refused before anything is written.
#[tokio::test]
async fn a_record_that_does_not_fit_rolls_back() {
    let folder = Folder::new("sqlite-tx-record");
    let store = open(&folder).await;
    let fence = claim(&store, 1).await;
    let unnamed = |_| Conclusion::Commit(StepRecord::ended("", *b"done"), ());
    let error = store.transact(&fence, insert, unnamed).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Invalid, Written::No), "{error:?}");
    assert_eq!(orders(&folder), 0);
}
