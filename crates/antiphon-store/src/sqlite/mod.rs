//! The store in one SQLite file, for the processes of one host, of calls and of tasks: each operation is sent to the thread of
//! the file.

mod changes;
mod rows;
mod schema;
mod task_rows;
mod transaction;
mod worker;

pub use schema::SqliteOptions;

use crate::{
    changes::ChangeFeed,
    check,
    claim::{BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner, RunnerId},
    error::{StoreError, StoreErrorKind, Written},
    properties::StoreIdentity,
    row::{Operation, Reply},
    step::{Appended, StepRecord},
    store::{CallStore, StoreFuture, StoreReach, Swept},
    task::{
        NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskRow, TaskSent, TaskStore,
        TaskSummary, TaskUpdate, state::Lost,
    },
};
use changes::SqliteChanges;
use rows::Rows;
use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
use task_rows::Full;
use worker::Worker;

/// A store in one SQLite file, for the processes of one host.
///
/// The file has a write-ahead log, and a write returns when it is on the disk. The clock is the host's; the file remembers the
/// latest time, so a clock that goes back stops the time of the rows until it is right again. The file must be on a local disk:
/// on a network file system, the locks between processes do not hold. The file is created for its owner alone.
///
/// One thread has the connection. Operations that wait at the same moment are one transaction. A body of
/// [`Transact::transact`](crate::Transact::transact) runs on that thread, alone: every other operation waits for its end, so it
/// only reads and writes the file.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    worker: Worker,
    /// The number of messages that this store has published.
    published: Arc<AtomicU64>,
    identity: StoreIdentity,
}

impl SqliteStore {
    /// Opens the file, and creates it and its tables if they are missing.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Version`] if a later version of antiphon wrote the tables; other kinds if the file cannot be used.
    pub async fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        let worker = Worker::start(path.as_ref().to_owned(), options).await?;
        Ok(Self { worker, published: Arc::default(), identity: StoreIdentity::new() })
    }

    async fn write(
        &self,
        name: &'static str,
        work: impl FnOnce(&Rows<'_>) -> rusqlite::Result<Reply> + Send + 'static,
    ) -> Result<(), StoreError> {
        match self.worker.run(name, Written::Unknown, work).await? {
            Reply::FenceLost => Err(StoreError::fence_lost(name)),
            Reply::Claim(_) | Reply::Written | Reply::Existing => Ok(()),
        }
    }
}

impl CallStore for SqliteStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        Box::pin(async move {
            check::claim(request)?;
            let request = request.clone();
            let run = move |rows: &Rows<'_>| rows.run(request.call, Operation::Claim(&request));
            match self.worker.run("claim", Written::Unknown, run).await? {
                Reply::Claim(claim) => Ok(claim),
                reply => Err(StoreError::read(StoreErrorKind::Corrupt, "claim", format!("{reply:?}"))),
            }
        })
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::lease("renew", lease)?;
            let fence = fence.clone();
            self.write("renew", move |rows| rows.run(fence.call(), Operation::Renew(&fence, lease))).await
        })
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            check::record(record)?;
            let (fence, record) = (fence.clone(), record.clone());
            let run = move |rows: &Rows<'_>| {
                let reply = rows.run(fence.call(), Operation::Append(&fence, &record))?;
                Ok(match reply {
                    Reply::FenceLost => None,
                    Reply::Existing => Some(Appended::Existing(rows.value(fence.call(), &record)?)),
                    Reply::Claim(_) | Reply::Written => Some(Appended::First),
                })
            };
            let appended = self.worker.run("append", Written::Unknown, run).await?;
            appended.ok_or_else(|| StoreError::fence_lost("append"))
        })
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::value("commit", outcome)?;
            let (fence, outcome) = (fence.clone(), outcome.to_vec());
            self.write("commit", move |rows| rows.run(fence.call(), Operation::Commit(&fence, &outcome)))
                .await
        })
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let fence = fence.clone();
            self.write("release", move |rows| rows.run(fence.call(), Operation::Release(&fence))).await
        })
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        Box::pin(self.worker.run("load", Written::No, move |rows| rows.load(call)))
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, _owner: Owner) -> StoreFuture<'a, BlobDigest> {
        Box::pin(async move {
            check::value("put", blob)?;
            check::keep("put", keep)?;
            let (digest, blob) = (BlobDigest::of(blob), blob.to_vec());
            self.worker.run("put", Written::Unknown, move |rows| rows.put(digest, &blob, keep)).await?;
            Ok(digest)
        })
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            let blob = self.worker.run("get", Written::No, move |rows| rows.get(digest)).await?;
            blob.map(|blob| digest.verify(blob)).transpose()
        })
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        Box::pin(self.worker.run("sweep", Written::Unknown, move |rows| rows.sweep(limit)))
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Host
    }

    fn tasks(&self) -> Option<Arc<dyn TaskStore>> {
        Some(Arc::new(SqliteTasks { worker: self.worker.clone() }))
    }

    /// Reaches the processes that have the file open, by looking at its version ten times a second.
    fn change_feed(&self) -> Option<Arc<dyn ChangeFeed>> {
        let (worker, published) = (self.worker.clone(), Arc::clone(&self.published));
        Some(Arc::new(SqliteChanges { worker, published }))
    }

    fn identity(&self) -> Option<StoreIdentity> {
        Some(self.identity)
    }
}

/// The tasks of a SQLite file.
#[derive(Clone, Debug)]
struct SqliteTasks {
    worker: Worker,
}

impl TaskStore for SqliteTasks {
    fn create<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated> {
        Box::pin(async move {
            check::new_task(task)?;
            let (task, limits) = (task.clone(), *limits);
            let created = self
                .worker
                .run("create", Written::Unknown, move |rows| rows.create_task(&task, &limits))
                .await?;
            created.map_err(|limit| full("create", limit))
        })
    }

    fn load(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>> {
        self.load_head(task, usize::MAX)
    }

    fn load_head(&self, task: TaskKey, bytes: usize) -> StoreFuture<'_, Option<TaskRow>> {
        Box::pin(self.worker.run("load", Written::No, move |rows| rows.load_task(task, bytes)))
    }

    fn send<'a>(
        &'a self,
        task: TaskKey,
        message: &'a [u8],
        limits: &'a TaskLimits,
    ) -> StoreFuture<'a, TaskSent> {
        Box::pin(async move {
            check::value("send", message)?;
            let (message, limits) = (message.to_vec(), *limits);
            let send = self
                .worker
                .run("send", Written::Unknown, move |rows| rows.send_to_task(task, &message, &limits));
            send.await?.map_err(|limit| full("send", limit))
        })
    }

    fn claim(&self, task: TaskKey, runner: RunnerId, lease: Duration) -> StoreFuture<'_, TaskClaim> {
        Box::pin(async move {
            check::lease("claim", lease)?;
            self.worker.run("claim", Written::Unknown, move |rows| rows.claim_task(task, runner, lease)).await
        })
    }

    fn renew<'a>(&'a self, fence: &'a TaskFence, lease: Duration) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::lease("renew", lease)?;
            let fence = *fence;
            let renewed = self
                .worker
                .run("renew", Written::Unknown, move |rows| rows.renew_task(&fence, lease))
                .await?;
            renewed.map_err(|Lost| StoreError::fence_lost("renew"))
        })
    }

    fn update<'a>(&'a self, fence: &'a TaskFence, update: &'a TaskUpdate) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::task_update(update)?;
            let (fence, update) = (*fence, update.clone());
            let updated = self
                .worker
                .run("update", Written::Unknown, move |rows| rows.update_task(&fence, &update))
                .await?;
            updated.map_err(|Lost| StoreError::fence_lost("update"))
        })
    }

    fn due(&self, limit: usize) -> StoreFuture<'_, Vec<TaskKey>> {
        Box::pin(self.worker.run("due", Written::No, move |rows| rows.due_tasks(limit)))
    }

    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>> {
        Box::pin(self.worker.run("list", Written::No, move |rows| rows.list_tasks(limit)))
    }

    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>> {
        let list = move |rows: &Rows<'_>| rows.list_tasks_of_owner(owner, after, limit);
        Box::pin(self.worker.run("list", Written::No, list))
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, usize> {
        Box::pin(self.worker.run("sweep", Written::Unknown, move |rows| rows.sweep_tasks(limit)))
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Host
    }
}

fn full(operation: &'static str, (what, limit): Full) -> StoreError {
    check::full(operation, what, limit)
}
