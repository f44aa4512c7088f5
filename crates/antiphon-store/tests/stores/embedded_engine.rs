//! The embedded engine against the contract of engines, over each store of tasks.

use std::sync::Arc;
use std::time::Duration;

use antiphon_store::contract::check_task_engine;
use antiphon_store::{
    CallStore as _, EmbeddedEngine, MemoryTasks, Micros, SqliteOptions, SqliteStore, StoreClock, TaskStore,
};
use tokio::time::{Instant, timeout};

use crate::folder::Folder;

/// The time that no check needs.
const LIMIT: Duration = Duration::from_secs(600);

async fn check(store: Arc<dyn TaskStore>) {
    let engine = || Arc::new(EmbeddedEngine::new(Arc::clone(&store), Duration::from_secs(30), 16));
    timeout(LIMIT, check_task_engine(engine(), engine())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tasks_in_memory_fulfil_the_contract() {
    let begin = Instant::now();
    let clock = StoreClock::from_fn(move || Micros::new(1_800_000_000_000_000).after(begin.elapsed()));
    check(Arc::new(MemoryTasks::new().clock(clock))).await;
}

#[tokio::test]
async fn tasks_in_sqlite_fulfil_the_contract() {
    let folder = Folder::new("engine");
    let store = SqliteStore::open(folder.path("tasks.db"), SqliteOptions::default()).await.unwrap();
    check(store.tasks().unwrap()).await;
}
