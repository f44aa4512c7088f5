//! The tasks in memory: the contract, the limit of bytes, and many tasks that wait.

use std::sync::Arc;
use std::time::Duration;

use antiphon_store::contract::{TaskSubject, check_random_tasks, check_tasks};
use antiphon_store::{
    CallStore as _, ManualStoreClock, MemoryStore, MemoryTasks, Micros, NewTask, Owner, RunnerId, StoreClock,
    StoreError, StoreErrorKind, StoreReach, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskNext,
    TaskSent, TaskStore as _, TaskUpdate, Written,
};

const START: Micros = Micros::new(1_800_000_000_000_000);
const KEEP: Duration = Duration::from_secs(600);

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
    // Nothing is left when all time is over.
    hand.advance(KEEP * 100);
    let rest = store.list(10).await.unwrap();
    assert_eq!((store.bytes(), rest), (0, Vec::new()));
}

/// The store of calls has tasks beside it, with the same clock.
#[tokio::test]
async fn the_tasks_of_the_memory_store() {
    let (clock, hand) = StoreClock::manual(START);
    let tasks = MemoryStore::new().clock(clock).tasks().unwrap();
    check_tasks(&TaskSubject::new(tasks.clone(), tasks, hand)).await;
}

fn task(number: u16, snapshot: Vec<u8>) -> NewTask {
    NewTask::new(key(number), Owner::from_bytes([1; 16]), snapshot).with_ttl(KEEP)
}

fn key(number: u16) -> TaskKey {
    TaskKey::from_bytes([number.to_be_bytes(); 8].concat().try_into().unwrap())
}

async fn granted(store: &MemoryTasks, task: TaskKey) -> TaskFence {
    match store.claim(task, RunnerId::from_bytes([1; 16]), Duration::from_secs(30)).await {
        Ok(TaskClaim::Fresh(fence, _)) => fence,
        other => panic!("{other:?}"),
    }
}

fn update(snapshot: Vec<u8>, taken: u64, next: TaskNext) -> TaskUpdate {
    TaskUpdate::new(snapshot, next).with_taken(taken)
}

fn assert_full<T: std::fmt::Debug>(case: &str, result: Result<T, StoreError>) {
    let error = result.expect_err(case);
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Full, Written::No), "{case}");
}

#[tokio::test]
async fn bytes_are_limited_but_an_update_is_never_refused() {
    let (store, hand) = store();
    let (store, limits) = (store.max_bytes(20_000), TaskLimits::default());
    assert_eq!(store.create(&task(1, vec![0; 9_000]), &limits).await.unwrap(), TaskCreated::First);
    assert_full("another row", store.create(&task(2, vec![0; 11_000]), &limits).await);
    assert_eq!(store.load(key(2)).await.unwrap(), None);
    assert_eq!(store.create(&task(2, vec![0; 5_000]), &limits).await.unwrap(), TaskCreated::First);
    let before = store.bytes();
    assert!((14_000..16_000).contains(&before), "{before} bytes");
    assert_full("a message", store.send(key(1), &[0; 6_000], &limits).await);
    assert_eq!(store.bytes(), before, "what was refused takes no room");
    assert_eq!(store.send(key(1), &[0; 4_000], &limits).await.unwrap(), TaskSent::Queued);

    // The run has happened: its snapshot is stored, although the limit is reached.
    let fence = granted(&store, key(2)).await;
    store.update(&fence, &update(vec![0; 30_000], 0, TaskNext::Waits(None))).await.unwrap();
    assert!(store.bytes() > 40_000, "{} bytes", store.bytes());
    assert_full("an empty message", store.send(key(1), &[], &limits).await);
    assert_full("an empty row", store.create(&task(3, vec![]), &limits).await);
    // Room is there again when a snapshot is short, and when messages were taken.
    let fence = granted(&store, key(2)).await;
    store.update(&fence, &update(vec![], 0, TaskNext::Final(KEEP))).await.unwrap();
    let fence = granted(&store, key(1)).await;
    store.update(&fence, &update(vec![], 1, TaskNext::Waits(None))).await.unwrap();
    assert!(store.bytes() < 2_000, "{} bytes", store.bytes());
    assert_eq!(store.create(&task(3, vec![0; 15_000]), &limits).await.unwrap(), TaskCreated::First);
    store.send(key(3), b"message", &limits).await.unwrap();
    hand.advance(KEEP);
    assert_eq!(store.bytes(), 0, "all is gone, without a sweep");
}

/// A store of 64 MiB, of which one owner has 16; what ends or is taken makes room.
#[tokio::test]
async fn one_owner_has_a_part_of_the_bytes() {
    const QUARTER: usize = 4 << 20;
    let (store, limits) = (store().0, TaskLimits::default());
    let mut number = 0;
    for (owner, expected) in [(0, 3), (1, 3), (2, 3), (0, 0), (3, 3), (4, 3), (5, 0)] {
        let mut created = 0;
        for _ in 0..5 {
            number += 1;
            let new =
                NewTask::new(key(number), Owner::from_bytes([owner; 16]), vec![0; QUARTER]).with_ttl(KEEP);
            match store.create(&new, &limits).await {
                Ok(_) => created += 1,
                refused => assert_full("a row", refused),
            }
        }
        assert_eq!(created, expected, "{owner}");
    }
    assert!(store.bytes() <= 64 << 20, "{}", store.bytes());
    // Messages count for the owner of their task.
    assert_full("an answer", store.send(key(1), &vec![0; QUARTER], &limits).await);
    assert_eq!(store.send(key(1), &[0; 1024], &limits).await.unwrap(), TaskSent::Queued);
    assert_full("a second message", store.send(key(1), &vec![0; QUARTER], &limits).await);
    assert_eq!(store.send(key(2), b"cancel", &limits).await.unwrap(), TaskSent::Queued);
    // Room of one owner is not room of another, unless it is room of all.
    let fence = granted(&store, key(1)).await;
    store.update(&fence, &update(vec![], 1, TaskNext::Final(KEEP))).await.unwrap();
    let again = |owner: u8, number| {
        NewTask::new(key(number), Owner::from_bytes([owner; 16]), vec![0; QUARTER]).with_ttl(KEEP)
    };
    assert_full("of an owner who has most", store.create(&again(1, 101), &limits).await);
    assert_eq!(store.create(&again(0, 102), &limits).await.unwrap(), TaskCreated::First);
    assert_full("the rest is taken", store.create(&again(5, 103), &limits).await);
    // A limit that is set.
    let small = MemoryTasks::new().max_bytes_of_owner(10_000);
    assert_full("a row", small.create(&task(1, vec![0; 10_000]), &limits).await);
    assert_eq!(small.create(&task(1, vec![0; 9_000]), &limits).await.unwrap(), TaskCreated::First);
}

/// The one of many waiting tasks that got a message is found.
#[tokio::test]
async fn many_tasks_wait() {
    const TASKS: u16 = 10_000;
    let (store, hand) = store();
    let limits = TaskLimits::default();
    for number in 0..TASKS {
        assert_eq!(store.create(&task(number, vec![]), &limits).await.unwrap(), TaskCreated::First);
        let fence = granted(&store, key(number)).await;
        store.update(&fence, &update(b"waits".to_vec(), 0, TaskNext::Waits(None))).await.unwrap();
    }
    assert_full("one task more", store.create(&task(TASKS, vec![]), &limits).await);
    assert_eq!(store.due(1).await.unwrap(), []);
    for number in [7_777, 0, TASKS - 1] {
        store.send(key(number), b"message", &limits).await.unwrap();
        assert_eq!(store.due(1).await.unwrap(), [key(number)]);
        let fence = granted(&store, key(number)).await;
        assert_eq!(store.due(1).await.unwrap(), []);
        store.update(&fence, &update(b"waits".to_vec(), 1, TaskNext::Waits(None))).await.unwrap();
        assert_eq!(store.due(1).await.unwrap(), []);
    }
    hand.advance(KEEP);
    assert_eq!(store.bytes(), 0);
}
