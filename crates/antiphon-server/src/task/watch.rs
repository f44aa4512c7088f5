//! The tasks that a subscription watches.

use super::{
    requests::{load, load_content},
    sealed::{self, LONG, Parts, beside},
    view::WrittenTask,
};
use crate::{
    errors::refusal::Refusal,
    feed::{TaskChange, task_digest},
    identity::account::Account,
    quota::{BudgetExhausted, RequestBytes},
    runtime::Runtime,
    task_registry::Tasks,
};
use antiphon_seal::Principal;
use antiphon_store::{BlobDigest, TaskKey, TaskRow};
use serde::Serialize;
use std::{
    collections::HashSet,
    hash::{BuildHasher as _, Hasher, RandomState},
    io,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    task::yield_now,
    time::sleep,
};

/// The changes of tasks, for a request that waits for one of them.
pub(super) struct Changes(broadcast::Receiver<TaskChange>);

impl Changes {
    /// Returns the changes from now on.
    pub(super) fn of(tasks: &Tasks) -> Self {
        Self(tasks.changes())
    }

    /// Waits for the next change.
    pub(super) async fn next(&mut self) -> TaskChange {
        match self.0.recv().await {
            Ok(change) => change,
            Err(RecvError::Lagged(_)) => TaskChange::Any,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Waits until this task may have changed.
    pub(super) async fn of_task(&mut self, task: TaskKey) {
        let digest = task_digest(task);
        while !self.next().await.may_be(task, digest) {}
    }
}

/// The pause after which a subscription tries again to send a task, if the budget has no rest.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// The number of tasks that a subscription looks at before other tasks of the runtime go on.
const TASKS_AT_ONCE: usize = 16;

/// The tasks that a subscription watches. It holds digests of what was sent, and the task that was sent last is in the
/// [budget](crate::RequestBudget) until it was read.
pub(crate) struct TaskWatch {
    server: Arc<Runtime>,
    principal: Option<Principal>,
    account: Account,
    watched: Vec<Watched>,
    changes: broadcast::Receiver<TaskChange>,
    digests: RandomState,
    /// The bytes of the task that was sent last.
    reserved: RequestBytes,
}

struct Watched {
    key: TaskKey,
    /// The digest of the key.
    digest: BlobDigest,
    /// The digest of what was sent last.
    sent: Option<u64>,
    /// The bytes that were read of the row at the last look.
    bytes: usize,
    /// True if the task may have changed since.
    is_due: bool,
}

impl Watched {
    /// Reserves the bytes of the row, which may have grown since the last look.
    fn reserve(
        &mut self,
        reserved: RequestBytes,
        row: &TaskRow,
        reserve: impl Fn(usize) -> Result<RequestBytes, BudgetExhausted>,
    ) -> Result<RequestBytes, BudgetExhausted> {
        let bytes = bytes_of(row);
        if std::mem::replace(&mut self.bytes, bytes) >= bytes {
            return Ok(reserved);
        }
        drop(reserved);
        reserve(bytes)
    }
}

impl TaskWatch {
    /// Returns the watch of those of the tasks that the caller has, and their ids.
    pub(crate) async fn open(
        server: &Arc<Runtime>,
        ids: &[String],
        principal: Option<Principal>,
        account: Account,
    ) -> Result<Option<(Self, Vec<String>)>, Refusal> {
        let Some(tasks) = &server.tasks else { return Ok(None) };
        // Before the first look, so that no change is missed.
        let changes = tasks.changes();
        let (mut watched, mut known, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for (number, text) in ids.iter().enumerate() {
            // A store in memory never waits.
            if number % TASKS_AT_ONCE == TASKS_AT_ONCE - 1 {
                yield_now().await;
            }
            let Some(key) = sealed::parse(text).filter(|key| seen.insert(*key)) else { continue };
            let Some((row, _)) = load(server, tasks, key, principal.as_ref()).await? else { continue };
            let (digest, bytes) = (task_digest(key), bytes_of(&row));
            watched.push(Watched { key, digest, sent: None, bytes, is_due: true });
            known.push(text.clone());
        }
        let (server, digests, reserved) = (Arc::clone(server), RandomState::new(), RequestBytes::default());
        Ok(Some((Self { server, principal, account, watched, changes, digests, reserved }, known)))
    }

    /// Returns the number of the next task that has changed, and its state. The state at the beginning is the first change. The
    /// bytes of the task are reserved until it [was read](Self::was_read).
    pub(crate) async fn next(&mut self) -> (u32, WrittenTask) {
        let server = Arc::clone(&self.server);
        let Some(tasks) = &server.tasks else { return std::future::pending().await };
        loop {
            match self.look(&server, tasks).await {
                Ok(Some(changed)) => return changed,
                Ok(None) => self.wait().await,
                Err(BudgetExhausted) => sleep(BUSY_PAUSE).await,
            }
        }
    }

    /// Releases the bytes of the task that was sent last.
    pub(crate) fn was_read(&mut self) {
        self.reserved = RequestBytes::default();
    }

    /// Returns the number of a task that has changed, and its state.
    async fn look(
        &mut self,
        server: &Arc<Runtime>,
        tasks: &Tasks,
    ) -> Result<Option<(u32, WrittenTask)>, BudgetExhausted> {
        let mut looked_at = 0;
        for (number, watched) in (0..).zip(&mut self.watched) {
            if !watched.is_due {
                continue;
            }
            looked_at += 1;
            if looked_at % TASKS_AT_ONCE == 0 {
                yield_now().await;
            }
            let reserve = |bytes| server.request_budget.reserve_message(self.account, bytes);
            // The task has this length, unless it has changed.
            let mut reserved = reserve(watched.bytes)?;
            let loaded = load(server, tasks, watched.key, self.principal.as_ref()).await;
            let Ok(Some((mut row, mut shown))) = loaded else {
                watched.is_due = false;
                continue;
            };
            reserved = watched.reserve(reserved, &row, reserve)?;
            match load_content(server, tasks, watched.key, &row).await {
                Ok(None) => {}
                Ok(Some(Some(loaded))) => {
                    (row, shown) = loaded;
                    reserved = watched.reserve(reserved, &row, reserve)?;
                }
                Ok(Some(None)) | Err(_) => {
                    watched.is_due = false;
                    continue;
                }
            }
            let (bytes, key) = (Parts::content_length(&row.snapshot), watched.key);
            // Of all subscriptions, a few open long contents at once. The semaphore is never closed.
            let places = Arc::clone(&tasks.openings);
            let place = if bytes < LONG { None } else { places.acquire_owned().await.ok() };
            let (server, digests) = (Arc::clone(server), self.digests.clone());
            let (task, digest) = beside(bytes, move || {
                let _place = place;
                let task = WrittenTask::of_row(&server, key, &row, &shown);
                let digest = digest(&digests, &task);
                (task, digest)
            })
            .await;
            // Cleared after the look only: this future may be dropped meanwhile.
            watched.is_due = false;
            if watched.sent != Some(digest) {
                watched.sent = Some(digest);
                self.reserved = reserved;
                return Ok(Some((number, task)));
            }
        }
        Ok(None)
    }

    async fn wait(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(TaskChange::Any) | Err(RecvError::Lagged(_)) => self.look_at_all(),
                Ok(change) => {
                    let may_be = |watched: &&mut Watched| change.may_be(watched.key, watched.digest);
                    let Some(watched) = self.watched.iter_mut().find(may_be) else { continue };
                    watched.is_due = true;
                }
                Err(RecvError::Closed) => std::future::pending().await,
            }
            return;
        }
    }

    fn look_at_all(&mut self) {
        self.watched.iter_mut().for_each(|watched| watched.is_due = true);
    }
}

fn bytes_of(row: &TaskRow) -> usize {
    let content = Parts::ends(&row.snapshot).map_or(0, |(_, end)| end);
    let messages = row.messages.iter().map(|message| message.body.len());
    row.snapshot.len().max(content) + messages.sum::<usize>()
}

/// Returns the digest of the text of a value, which is not stored.
pub(super) fn digest(digests: &RandomState, value: &impl Serialize) -> u64 {
    let mut hasher = digests.build_hasher();
    // A task is written as it is sent: there is nothing in it that cannot be written.
    let _ = serde_json::to_writer(Digesting(&mut hasher), value);
    hasher.finish()
}

struct Digesting<'a, H>(&'a mut H);

impl<H: Hasher> io::Write for Digesting<'_, H> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
