//! The tasks in memory: the contract.

use std::sync::Arc;

use antiphon_store::contract::{TaskSubject, check_tasks};
use antiphon_store::{ManualStoreClock, MemoryTasks, Micros, StoreClock, StoreReach, TaskStore as _};

const START: Micros = Micros::new(1_800_000_000_000_000);

fn store() -> (MemoryTasks, ManualStoreClock) {
    let (clock, hand) = StoreClock::manual(START);
    (MemoryTasks::new().clock(clock), hand)
}

#[tokio::test]
async fn the_contract() {
    let (store, hand) = store();
    let store = Arc::new(store);
    check_tasks(&TaskSubject::new(store.clone(), store.clone(), hand)).await;
    assert_eq!(store.reach(), StoreReach::Process);
}
