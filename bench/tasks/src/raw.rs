//! The raw operations of a task, on a row of their own.

use crate::{engine::Engine, measured::Result};
use antiphon::store::{
    TaskLimits, TaskStore,
    calls::{Owner, RunnerId},
    tasks::{NewTask, TaskClaim, TaskKey, TaskNext, TaskUpdate},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

const HOUR: Duration = Duration::from_secs(3600);
/// The length of a sealed answer.
const MESSAGE_BYTES: usize = 128;

/// The store, and the length of a snapshot.
pub(crate) struct Raw {
    tasks: Arc<dyn TaskStore>,
    limits: TaskLimits,
    snapshot_bytes: usize,
    next: AtomicU64,
}

impl Raw {
    pub(crate) fn new(engine: &Engine, snapshot_bytes: usize) -> Self {
        let limits = TaskLimits::default().tasks(1_000_000).tasks_of_owner(1_000_000);
        Self { tasks: Arc::clone(&engine.raw), limits, snapshot_bytes, next: AtomicU64::new(0) }
    }

    pub(crate) async fn create(&self) -> Result<TaskKey> {
        let mut key = [7; 16];
        key[..8].copy_from_slice(&self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        let task = TaskKey::from_bytes(key);
        let (owner, snapshot) = (Owner::from_bytes([2; 16]), vec![7; self.snapshot_bytes]);
        self.tasks.create(&NewTask::new(task, owner, snapshot).with_ttl(HOUR), &self.limits).await?;
        Ok(task)
    }

    pub(crate) async fn load(&self, task: TaskKey) -> Result<()> {
        self.tasks.load(task).await?.ok_or("the row is gone")?;
        Ok(())
    }

    pub(crate) async fn send(&self, task: TaskKey) -> Result<()> {
        self.tasks.send(task, &[7; MESSAGE_BYTES], &self.limits).await?;
        Ok(())
    }

    /// Does what a leg does with its row: a claim, its input, and its result.
    pub(crate) async fn run(&self, task: TaskKey) -> Result<()> {
        let TaskClaim::Fresh(fence, row) =
            self.tasks.claim(task, RunnerId::from_bytes([3; 16]), HOUR).await?
        else {
            return Err("the row is held".into());
        };
        let taken = row.messages.last().map_or(0, |message| message.number);
        let update = |next| TaskUpdate::new(row.snapshot.to_vec(), next).with_taken(taken);
        self.tasks.update(&fence, &update(TaskNext::Runs).with_lease_kept(true)).await?;
        self.tasks.update(&fence, &update(TaskNext::Final(HOUR))).await?;
        Ok(())
    }
}
