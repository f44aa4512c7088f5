//! The tasks in a SQLite file: the contract on one file with two connections.

use std::sync::Arc;
use std::time::Duration;

use antiphon_store::contract::{TaskSubject, check_random_tasks, check_tasks};
use antiphon_store::{CallStore as _, Micros, SqliteOptions, SqliteStore, StoreClock, StoreReach, TaskStore};

use crate::folder::Folder;

const START: Micros = Micros::new(1_800_000_000_000_000);

async fn open(folder: &Folder, options: SqliteOptions) -> Arc<dyn TaskStore> {
    let store = SqliteStore::open(folder.path("calls.db"), options).await.unwrap();
    store.tasks().unwrap()
}

#[tokio::test]
async fn the_contract() {
    let folder = Folder::new("sqlite-tasks");
    let (clock, hand) = StoreClock::manual(START);
    let options = SqliteOptions::default().timeout(Duration::from_secs(60)).clock(clock);
    let (first, second) = (open(&folder, options.clone()).await, open(&folder, options).await);
    let subject = TaskSubject::new(first.clone(), second, hand);
    check_tasks(&subject).await;
    check_random_tasks(&subject, 1_000..1_030, 60).await;
    assert_eq!(first.reach(), StoreReach::Host);
}
