//! The embedded engine of tasks: it runs them over a store of rows, for one process or for the processes of one machine.
//!
//! A process that runs a task holds the lease of its row, and renews the lease. Each process looks for rows that are due: new
//! ones, those with a message, those of processes that died, and those that waited for a moment.

mod active;
mod engine;
mod run;
mod shared;
mod wake;

pub(crate) use self::engine::EmbeddedEngine;

#[cfg(test)]
mod tests {
    use super::EmbeddedEngine;
    use antiphon_store::{
        CallStore as _, MemoryTasks, Micros, SqliteOptions, SqliteStore, StoreClock, TaskStore,
        contract::check_task_engine,
    };
    use std::{sync::Arc, time::Duration};
    use tokio::time::{Instant, timeout};

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
        let file = std::env::temp_dir().join(format!("antiphon-engine-{}.db", std::process::id()));
        let store = SqliteStore::open(&file, SqliteOptions::default()).await.unwrap();
        check(store.tasks().unwrap()).await;
        for file in ["", "-wal", "-shm"].map(|end| format!("{}{end}", file.display())) {
            drop(std::fs::remove_file(file));
        }
    }
}
