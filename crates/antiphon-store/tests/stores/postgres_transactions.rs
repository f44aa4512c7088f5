//! Transactions of the PostgreSQL store with writes of the program.

use std::sync::Arc;
use std::time::Duration;

use antiphon_store::{
    CallKey, CallStore, Claim, ClaimRequest, Conclusion, Fence, Fingerprint, Micros, Owner, PostgresOptions,
    PostgresStore, PostgresTransaction, RunnerId, StepRecord, StoreClock, StoreErrorKind, Transact,
    Transacted, Written,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;

use crate::postgres_server::Server;

const TABLES: &str = "
    CREATE TABLE items (id int PRIMARY KEY);
    CREATE TABLE orders (item int NOT NULL REFERENCES items (id) DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO items VALUES (1);";

fn options() -> PostgresOptions {
    let (clock, _) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    PostgresOptions::default().timeout(Duration::from_secs(60)).test_clock(clock)
}

async fn started(name: &str) -> (Server, PostgresStore) {
    let server = Server::start(name);
    server.execute(TABLES).await;
    let store = server.store(options()).await.unwrap();
    (server, store)
}

async fn claim(store: &PostgresStore, call: u8, runner: u8) -> Fence {
    let (answers, owner) = (Fingerprint::from_bytes([1; 16]), Owner::from_bytes([1; 16]));
    let (call, runner) = (CallKey::from_bytes([call; 16]), RunnerId::from_bytes([runner; 16]));
    match store.claim(&ClaimRequest::new(call, 1, answers, runner, owner)).await.unwrap() {
        Claim::Fresh(fence) => fence,
        other => panic!("{other:?}"),
    }
}

/// Returns the number of orders, and of records of a call.
async fn counts(server: &Server, store: &PostgresStore, fence: &Fence) -> (i64, usize) {
    let orders = server.count("orders").await;
    (orders, store.load(fence.call()).await.unwrap().len())
}

async fn insert(tx: PostgresTransaction) -> u64 {
    tx.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap()
}

fn commit<T>(_: T) -> Conclusion<()> {
    Conclusion::Commit(StepRecord::ended("order", *b"done"), ())
}

#[tokio::test]
async fn writes_and_record_are_committed_together_or_not_at_all() {
    let (server, store) = started("postgres-tx").await;
    let fence = claim(&store, 1, 1).await;
    let undone = store.transact(&fence, insert, Conclusion::RollBack).await.unwrap();
    assert!(matches!(undone, Transacted::RolledBack(1)), "{undone:?}");
    assert_eq!(counts(&server, &store, &fence).await, (0, 0));
    let done = store.transact(&fence, insert, commit).await.unwrap();
    assert!(matches!(done, Transacted::Committed(())), "{done:?}");
    assert_eq!(counts(&server, &store, &fence).await, (1, 1));
    let again = store.transact(&fence, insert, commit).await.unwrap();
    assert!(matches!(&again, Transacted::Existing(value) if value == b"done"), "{again:?}");
    assert_eq!(counts(&server, &store, &fence).await, (1, 1));

    // A constraint that is checked at the commit, and a statement whose error the body ignores.
    let fence = claim(&store, 2, 1).await;
    let wrong =
        async |tx: PostgresTransaction| tx.execute("INSERT INTO orders VALUES (2)", &[]).await.unwrap();
    let refused = store.transact(&fence, wrong, commit).await.unwrap();
    assert!(matches!(refused, Transacted::Refused(_)), "{refused:?}");
    let ignores = async |tx: PostgresTransaction| {
        tx.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap();
        tx.batch_execute("SELECT 1 / 0").await.unwrap_err();
    };
    let refused = store.transact(&fence, ignores, commit).await.unwrap();
    assert!(matches!(refused, Transacted::Refused(_)), "{refused:?}");
    assert_eq!(counts(&server, &store, &fence).await, (1, 0));
    // With a savepoint, the body may go on.
    let catches = async |tx: PostgresTransaction| {
        tx.batch_execute("INSERT INTO orders VALUES (1); SAVEPOINT part").await.unwrap();
        tx.batch_execute("SELECT 1 / 0").await.unwrap_err();
        tx.batch_execute("ROLLBACK TO part").await.unwrap();
    };
    store.transact(&fence, catches, commit).await.unwrap();
    assert_eq!(counts(&server, &store, &fence).await, (2, 1));
}

#[tokio::test]
async fn a_fence_that_is_lost_while_the_body_runs_writes_nothing() {
    let (server, store) = started("postgres-tx-fence").await;
    let old = claim(&store, 1, 1).await;
    let (begun, has_begun) = oneshot::channel();
    let (go, may_go) = oneshot::channel::<()>();
    let body = async |tx: PostgresTransaction| {
        insert(tx).await;
        begun.send(()).unwrap();
        may_go.await.unwrap();
    };
    let take_over = async {
        has_begun.await.unwrap();
        // The row is not locked yet, so the run that is taken over delays nobody.
        store.release(&old).await.unwrap();
        let fence = claim(&store, 1, 2).await;
        store.transact(&fence, insert, commit).await.unwrap();
        go.send(()).unwrap();
        fence
    };
    let (zombie, fence) = tokio::join!(store.transact(&old, body, commit), take_over);
    let error = zombie.unwrap_err();
    assert!(error.is_fence_lost() && error.written() == Written::No, "{error:?}");
    assert_eq!(counts(&server, &store, &fence).await, (1, 1));
}

/// A future that is dropped, a body that keeps its transaction, one that commits by itself, and one that takes too long. No
/// connection goes back to the pool with an open transaction: the store has one connection only.
#[tokio::test]
async fn what_the_body_must_not_do() {
    let (server, _) = started("postgres-tx-misuse").await;
    let store = server.store(options().connections(1)).await.unwrap();
    let fence = claim(&store, 1, 1).await;
    let (begun, has_begun) = oneshot::channel();
    let waits = async |tx: PostgresTransaction| {
        tx.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap();
        begun.send(()).unwrap();
        std::future::pending::<()>().await;
        drop(tx);
    };
    tokio::select! {
        end = store.transact(&fence, waits, commit) => panic!("{end:?}"),
        _ = has_begun => {}
    }
    assert_eq!(counts(&server, &store, &fence).await, (0, 0));

    let kept = Arc::new(std::sync::Mutex::new(None));
    let keeps = async |tx: PostgresTransaction| {
        tx.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap();
        *kept.lock().unwrap() = Some(tx);
    };
    let error = store.transact(&fence, keeps, commit).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Invalid, Written::No), "{error:?}");
    kept.lock().unwrap().take();
    assert_eq!(counts(&server, &store, &fence).await, (0, 0));

    let commits = async |tx: PostgresTransaction| {
        tx.batch_execute("INSERT INTO orders VALUES (1); COMMIT").await.unwrap()
    };
    let error = store.transact(&fence, commits, commit).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Invalid, Written::Unknown), "{error:?}");
    assert_eq!(counts(&server, &store, &fence).await.0, 1);

    // On a busy machine, a store with a short time may need several attempts.
    let short = loop {
        match server.store(options().timeout(Duration::from_secs(1))).await {
            Ok(store) => break store,
            Err(error) => assert!(error.is_temporary(), "{error:?}"),
        }
    };
    let fence = claim(&store, 2, 1).await;
    let endless = async |tx: PostgresTransaction| {
        drop(tx.execute("INSERT INTO orders VALUES (1)", &[]).await);
        std::future::pending::<()>().await;
    };
    let error = short.transact(&fence, endless, commit).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Timeout, Written::No), "{error:?}");
    assert_eq!(counts(&server, &store, &fence).await, (1, 0));
}

/// The place at which a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cut {
    BeforeCommit,
    AfterCommit,
}

/// A proxy that closes the connection on which the client commits: before the database receives that, or after it has replied.
async fn cut_at_commit(listener: UnixListener, database: std::path::PathBuf, cut: Cut) {
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = UnixStream::connect(&database).await.unwrap();
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                read = client.read(&mut up) => {
                    let Ok(length @ 1..) = read else { break };
                    let is_commit = up[..length].windows(7).any(|window| window == b"COMMIT\0");
                    if is_commit && cut == Cut::BeforeCommit {
                        break;
                    }
                    server.write_all(&up[..length]).await.unwrap();
                    if is_commit {
                        // The database has committed when it replies.
                        assert!(server.read(&mut down).await.unwrap() > 0);
                        break;
                    }
                }
                read = server.read(&mut down) => {
                    let Ok(length @ 1..) = read else { break };
                    client.write_all(&down[..length]).await.unwrap();
                }
            }
        }
    }
}

/// The commit is not confirmed: the records say if it happened, after an operation that waits for the row.
#[tokio::test]
async fn a_connection_that_breaks_at_the_commit() {
    let (server, store) = started("postgres-tx-cut").await;
    for (call, cut, expected) in [(1, Cut::BeforeCommit, 0), (2, Cut::AfterCommit, 1)] {
        let folder = server.folder.path(format!("proxy-{call}"));
        std::fs::create_dir(&folder).unwrap();
        let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
        let proxy = tokio::spawn(cut_at_commit(listener, server.folder.path(".s.PGSQL.5432"), cut));
        let url = format!("host={} user=postgres dbname=postgres", folder.display());
        let cut_off = PostgresStore::connect(&url, options().migrate(false)).await.unwrap();
        let fence = claim(&store, call, 1).await;
        let error = cut_off.transact(&fence, insert, commit).await.unwrap_err();
        let found = (error.kind(), error.written());
        assert_eq!(found, (StoreErrorKind::Unreachable, Written::Unknown), "{cut:?}: {error:?}");
        cut_off.renew(&fence, Duration::from_secs(30)).await.unwrap();
        let found = counts(&server, &store, &fence).await;
        assert_eq!(found, (i64::from(expected), usize::from(expected > 0)), "{cut:?}");
        proxy.abort();
    }
}

/// The row is locked from the record to the commit. If the program is stopped in between, the database ends its session.
#[tokio::test]
async fn a_stopped_program_does_not_keep_the_row() {
    let (server, store) = started("postgres-tx-stopped").await;
    // A session as that of a program that was stopped between its record and its commit.
    let fence = claim(&store, 1, 1).await;
    let limit = async |tx: PostgresTransaction| {
        let row = tx.query_one("SHOW idle_in_transaction_session_timeout", &[]).await.unwrap();
        row.get::<_, String>(0)
    };
    let limit = store.transact(&fence, limit, Conclusion::RollBack).await.unwrap();
    assert!(matches!(&limit, Transacted::RolledBack(limit) if limit == "1min"), "{limit:?}");
    let (client, connection) =
        tokio_postgres::connect(&server.url("postgres"), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 100").await.unwrap();
    client
        .execute(
            "SELECT antiphon.append_v1(null, $1, $2, 'order', 0, 'done')",
            &[&&fence.call().as_bytes()[..], &fence.number()],
        )
        .await
        .unwrap();
    // The database ends that session, so this operation gets the row.
    store.release(&fence).await.unwrap();
    assert!(connection.await.unwrap().is_err());
    assert_eq!(counts(&server, &store, &fence).await, (0, 0));
}
