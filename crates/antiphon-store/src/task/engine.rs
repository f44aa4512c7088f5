//! The trait of engines of tasks: what stores tasks, and decides when and in which process each of them runs.

use std::fmt;
use std::sync::Weak;

use super::program::TaskProgram;
use super::{NewTask, TaskCreated, TaskKey, TaskLimits, TaskRow, TaskSent, TaskSummary};
use crate::future::{StoreFuture, TaskFuture};
use crate::key::Owner;
use crate::reach::StoreReach;

/// A function that an engine calls when a task has changed, or without a task if it may have missed changes.
pub type TaskListener = Box<dyn Fn(Option<TaskKey>) + Send + Sync>;

/// An engine of tasks: it stores them durably, and runs each of them by the [program](TaskProgram) of its server until the task
/// is final, in this process or in another one that has the same tasks.
///
/// A server runs tasks over a [`TaskStore`](super::TaskStore) by `EmbeddedEngine` (feature `engine`), for one machine. Another engine takes its
/// place with `ServerBuilder::task_engine`. One engine serves one server.
///
/// An engine sees sealed snapshots and messages only. It runs a task by these rules:
///
/// 1. It calls [`TaskProgram::decide`] with the present snapshot and the messages that no earlier decision took, and stores the
///    decision before it acts on it.
/// 2. If the decision is [`Continue`](super::program::TaskAction::Continue), it calls [`TaskProgram::run`], and decides again with the
///    snapshot that the leg returned. A process that dies in a leg, or stops for longer than the engine waits, leaves the leg to
///    another one: a leg may run twice, also at the same time, with the same snapshot.
/// 3. While a leg runs, a message that arrives ends the leg soon (a message that another process of the same machine took may wait for
///    the leg's own end), and a snapshot that the leg [shows](super::program::LegControl::show) is
///    what [`get`](Self::get) returns. So does a [drain](Self::drain).
/// 4. A message stays in [`get`](Self::get) until a stored decision took it. A final task has none.
///
/// `antiphon_store::contract::check_task_engine` (feature `testing`) checks an engine of your own.
pub trait TaskEngine: fmt::Debug + Send + Sync + 'static {
    /// Creates a task, durably, which runs then. A task that exists stays as it is: the same task is started again.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError); [`Full`](crate::StoreErrorKind::Full) if a limit is reached. Then there is no task.
    fn start<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated>;

    /// Returns a task, with the messages that were sent and not taken yet; nothing if there is none or its time is over.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn get(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>>;

    /// Returns a task as [`get`](Self::get) does, but its snapshot may end behind its first `bytes` bytes. The default returns the
    /// whole task.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn get_head(&self, task: TaskKey, bytes: usize) -> StoreFuture<'_, Option<TaskRow>> {
        let _ = bytes;
        self.get(task)
    }

    /// Sends a message to a task, durably. A task that waits runs then. Answers and cancellations are both sealed messages: only
    /// the program can tell them apart, and decides what follows.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError); [`Full`](crate::StoreErrorKind::Full) if the queue of the task has as many messages or
    /// bytes as the limits allow. A message that is sent again after another error may be there twice.
    fn send<'a>(
        &'a self,
        task: TaskKey,
        message: &'a [u8],
        limits: &'a TaskLimits,
    ) -> StoreFuture<'a, TaskSent>;

    /// Calls the listener after each change of a task that [`get`](Self::get) shows. Changes by other processes may be reported
    /// late, or without the name of the task.
    fn subscribe(&self, listener: TaskListener);

    /// Returns all tasks, the oldest first, without snapshots and messages, for the operator.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>>;

    /// Returns the tasks of one owner after this key, in the order of their keys: the next page of a list.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>>;

    /// Begins to run tasks by this program, also those of processes that died. Called once, in a runtime of tokio; an engine
    /// ignores a second call.
    fn begin(&self, program: Weak<dyn TaskProgram>);

    /// Ends the legs that run soon, and begins no others: another process continues the tasks. Requests are answered as before.
    fn drain(&self);

    /// Waits until no task runs in this process.
    fn idle(&self) -> TaskFuture<'_, ()>;

    /// Returns the set of processes that see the tasks.
    fn reach(&self) -> StoreReach;
}
