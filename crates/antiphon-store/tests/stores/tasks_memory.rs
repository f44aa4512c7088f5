//! The tasks in memory: the contract.

use std::sync::Arc;

use antiphon_store::contract::{TaskSubject, check_random_tasks, check_tasks};
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
    let subject = TaskSubject::new(store.clone(), store.clone(), hand.clone());
    check_tasks(&subject).await;
    check_random_tasks(&subject, 1_000..2_000, 80).await;
    assert_eq!(store.reach(), StoreReach::Process);
}
