//! The tasks in a SQLite file: the contract on one file with two connections, and a file without tables of tasks.

use std::sync::Arc;
use std::time::Duration;

use antiphon_store::contract::{TaskSubject, check_random_tasks, check_tasks};
use antiphon_store::{
    CallKey, CallStore as _, Claim, ClaimRequest, Fingerprint, Micros, NewTask, Owner, RunnerId,
    SqliteOptions, SqliteStore, StepRecord, StoreClock, StoreErrorKind, StoreReach, TaskClaim, TaskCreated,
    TaskKey, TaskLimits, TaskStore,
};

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

/// SQLite reads no more of a long snapshot than it is asked for.
#[tokio::test]
async fn the_beginning_of_a_snapshot_is_read_without_the_rest() {
    let folder = Folder::new("sqlite-heads");
    let tasks = open(&folder, SqliteOptions::default()).await;
    let new = NewTask::new(TaskKey::from_bytes([1; 16]), Owner::from_bytes([1; 16]), vec![7; 1_000_000]);
    tasks.create(&new, &TaskLimits::default()).await.unwrap();
    for (bytes, length) in [(0, 0), (4_096, 4_096), (999_999, 999_999), (1_000_000, 1_000_000)] {
        let row = tasks.load_head(new.task, bytes).await.unwrap().unwrap();
        assert_eq!(row.snapshot.len(), length);
    }
}

/// The tables of version 1 have no tasks. A program of this version adds them, and keeps the calls.
#[tokio::test]
async fn a_file_of_version_1_is_migrated() {
    let folder = Folder::new("sqlite-version-1");
    let (call, owner) = (CallKey::from_bytes([1; 16]), Owner::from_bytes([1; 16]));
    let runner = RunnerId::from_bytes([1; 16]);
    let request = ClaimRequest::new(call, 1, Fingerprint::from_bytes([1; 16]), runner, owner);
    let open = async || SqliteStore::open(folder.path("calls.db"), SqliteOptions::default()).await.unwrap();
    let store = open().await;
    let Claim::Fresh(fence) = store.claim(&request).await.unwrap() else { panic!("a new call") };
    let step = StepRecord::ended("pay", *b"paid");
    store.append(&fence, &step).await.unwrap();
    store.commit(&fence, b"outcome").await.unwrap();
    let blob = store.put(b"blob", Duration::from_secs(600), owner).await.unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(folder.path("calls.db")).unwrap();
    connection
        .execute_batch(
            "DROP TABLE antiphon_task_messages; DROP TABLE antiphon_task_snapshots; DROP TABLE antiphon_tasks;
             UPDATE antiphon_store SET version = 1;",
        )
        .unwrap();

    // Two programs open the file at once; each later one finds the tables.
    let (first, second) = futures_util::future::join(open(), open()).await;
    let version: i64 =
        connection.query_row("SELECT version FROM antiphon_store", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 2);
    let new = NewTask::new(TaskKey::from_bytes([1; 16]), owner, b"snapshot");
    let created = first.tasks().unwrap().create(&new, &TaskLimits::default()).await.unwrap();
    assert_eq!(created, TaskCreated::First);
    for store in [first, second, open().await] {
        assert_eq!(store.claim(&request).await.unwrap(), Claim::Done(b"outcome".to_vec()));
        assert_eq!(store.load(call).await.unwrap(), std::slice::from_ref(&step));
        assert_eq!(store.get(blob).await.unwrap(), Some(b"blob".to_vec()));
        let row = store.tasks().unwrap().load(new.task).await.unwrap();
        assert_eq!(row.map(|row| row.snapshot.to_vec()), Some(new.snapshot.clone()));
    }
}

/// Everything that was confirmed is there after the program has ended, and a lease is a lease for the next program.
#[tokio::test]
async fn tasks_outlive_the_program() {
    let folder = Folder::new("sqlite-tasks-again");
    let (clock, hand) = StoreClock::manual(START);
    let options = SqliteOptions::default().clock(clock);
    let store = open(&folder, options.clone()).await;
    let (limits, lease) = (TaskLimits::default(), Duration::from_secs(30));
    let (task, owner) = (TaskKey::from_bytes([1; 16]), Owner::from_bytes([1; 16]));
    let new = NewTask::new(task, owner, b"snapshot").with_ttl(lease * 3);
    store.create(&new, &limits).await.unwrap();
    let TaskClaim::Fresh(fence, _) = store.claim(task, RunnerId::from_bytes([1; 16]), lease).await.unwrap()
    else {
        panic!("a new task")
    };
    store.send(task, b"message", &limits).await.unwrap();
    let row = store.load(task).await.unwrap();
    drop(store);

    // The clock of the rows does not go back with the system's.
    hand.turn_back(lease * 100);
    let store = open(&folder, options).await;
    assert_eq!(store.load(task).await.unwrap(), row);
    let other = RunnerId::from_bytes([2; 16]);
    let held = TaskClaim::Held { retry_after: lease };
    assert_eq!(store.claim(task, other, lease).await.unwrap(), held);
    hand.advance(lease * 101);
    assert_eq!(store.due(1).await.unwrap(), [task]);
    assert!(matches!(store.claim(task, other, lease).await.unwrap(), TaskClaim::Fresh(..)));
    assert_eq!(store.renew(&fence, lease).await.unwrap_err().kind(), StoreErrorKind::FenceLost);
}

/// An operator looks at the file of a running server: it is read, and neither created nor changed.
#[tokio::test]
async fn a_file_is_only_read() {
    let folder = Folder::new("sqlite-tasks-read");
    let (clock, hand) = StoreClock::manual(START);
    let options = SqliteOptions::default().clock(clock);
    let only_read = options.clone().read_only(true);
    let file = folder.path("calls.db");
    assert!(SqliteStore::open(&file, only_read.clone()).await.is_err());
    assert!(!file.exists());
    std::fs::write(folder.path("empty.db"), "").unwrap();
    let empty = SqliteStore::open(folder.path("empty.db"), only_read.clone()).await.unwrap_err();
    assert_eq!(empty.kind(), StoreErrorKind::Invalid);

    let store = open(&folder, options).await;
    let (task, owner) = (TaskKey::from_bytes([1; 16]), Owner::from_bytes([1; 16]));
    let new = NewTask::new(task, owner, b"snapshot");
    store.create(&new, &TaskLimits::default()).await.unwrap();
    let reader = open(&folder, only_read).await;
    hand.advance(Duration::from_secs(5));
    let list = reader.list(9).await.unwrap();
    assert_eq!((list.len(), list[0].task, list[0].age), (1, task, Duration::from_secs(5)));
    let sent = reader.send(task, b"message", &TaskLimits::default()).await.unwrap_err();
    assert_eq!(sent.kind(), StoreErrorKind::Unreachable, "{sent}");
    // Neither waits for the other.
    store.send(task, b"message", &TaskLimits::default()).await.unwrap();
    assert_eq!(reader.list(9).await.unwrap()[0].messages, 1);
}

/// A sweep leaves neither rows nor messages in the file.
#[tokio::test]
async fn a_sweep_removes_messages_too() {
    let folder = Folder::new("sqlite-tasks-sweep");
    let (clock, hand) = StoreClock::manual(START);
    let store = open(&folder, SqliteOptions::default().clock(clock)).await;
    let (limits, lease) = (TaskLimits::default(), Duration::from_secs(30));
    for number in 0..5 {
        let (task, owner) = (TaskKey::from_bytes([number; 16]), Owner::from_bytes([1; 16]));
        let new = NewTask::new(task, owner, []).with_ttl(lease);
        store.create(&new, &limits).await.unwrap();
        store.send(task, b"message", &limits).await.unwrap();
    }
    store.claim(TaskKey::from_bytes([0; 16]), RunnerId::from_bytes([1; 16]), lease * 2).await.unwrap();
    hand.advance(lease);
    let swept = (store.sweep(3).await.unwrap(), store.sweep(3).await.unwrap(), store.sweep(3).await.unwrap());
    assert_eq!(swept, (3, 1, 0), "a held row stays until its lease is over");
    hand.advance(lease);
    assert_eq!((store.sweep(3).await.unwrap(), store.sweep(3).await.unwrap()), (1, 0));
    let connection = rusqlite::Connection::open(folder.path("calls.db")).unwrap();
    for table in ["antiphon_tasks", "antiphon_task_messages"] {
        let rows: i64 =
            connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}
