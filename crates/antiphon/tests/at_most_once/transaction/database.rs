//! The databases of the tests: a store, a table of orders, and a clock that the test moves.

use super::script::Script;
use antiphon::{
    server::{Ctx, StepError},
    store::{
        CallStore, ManualStoreClock, SqliteOptions, SqliteStore, StoreClock, calls::Micros,
        rusqlite::Connection,
    },
};
use futures_util::future::{BoxFuture, FutureExt as _};
use std::{
    future::Future,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::runtime::Handle;

/// A database with a table of orders.
pub(super) trait Database {
    type Store: CallStore + Clone;

    /// Opens the store once more, as another instance does.
    fn open(&self) -> impl Future<Output = Self::Store>;

    fn hand(&self) -> &ManualStoreClock;

    /// Returns the number of orders.
    fn orders(&self) -> impl Future<Output = i64>;

    /// Orders in a transaction.
    fn order<'a>(
        ctx: &'a Ctx,
        key: &'static str,
        store: &'a Self::Store,
        script: &Arc<Script>,
    ) -> BoxFuture<'a, Result<String, StepError>>;
}

/// The number of a database in this process.
pub(super) fn next() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Relaxed)
}

pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn clock() -> (StoreClock, ManualStoreClock) {
    StoreClock::manual(Micros::new(1_800_000_000_000_000))
}

/// A file of a test, removed with its value.
pub(super) struct Sqlite {
    folder: PathBuf,
    clock: StoreClock,
    hand: ManualStoreClock,
}

impl Sqlite {
    pub(super) fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("antiphon-tx-{}-{}", std::process::id(), next()));
        std::fs::create_dir_all(&folder).unwrap();
        let (clock, hand) = clock();
        let database = Self { folder, clock, hand };
        database.connect().execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)").unwrap();
        database
    }

    fn connect(&self) -> Connection {
        Connection::open(self.folder.join("calls.db")).unwrap()
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl Database for Sqlite {
    type Store = SqliteStore;

    async fn open(&self) -> SqliteStore {
        let options = SqliteOptions::default().timeout(TIMEOUT).clock(self.clock.clone());
        SqliteStore::open(self.folder.join("calls.db"), options).await.unwrap()
    }

    fn hand(&self) -> &ManualStoreClock {
        &self.hand
    }

    async fn orders(&self) -> i64 {
        self.connect().query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap()
    }

    fn order<'a>(
        ctx: &'a Ctx,
        key: &'static str,
        store: &'a SqliteStore,
        script: &Arc<Script>,
    ) -> BoxFuture<'a, Result<String, StepError>> {
        let (script, runtime) = (Arc::clone(script), Handle::current());
        ctx.in_transaction(key, store, move |tx| {
            tx.execute("INSERT INTO orders (item) VALUES (?1)", [key])?;
            runtime.block_on(script.body.pass());
            script.end()
        })
        .boxed()
    }
}
