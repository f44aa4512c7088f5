//! The store of tasks in the file of the calls.

use super::{rows::Rows, task_rows::Full, worker::Worker};
use crate::{
    check,
    claim::{Owner, RunnerId},
    error::{StoreError, Written},
    store::{StoreFuture, StoreReach},
    task::{
        NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskRow, TaskSent, TaskStore,
        TaskSummary, TaskUpdate, state::Lost,
    },
};
use std::time::Duration;

/// The tasks of a SQLite file.
#[derive(Clone, Debug)]
pub(super) struct SqliteTasks {
    pub(super) worker: Worker,
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
