//! The program of tasks: the part of a task's run that is not storage, which every engine calls.

use super::{NewTask, TaskCreated, TaskKey, TaskLimits, TaskMessage, TaskRow, TaskSent, TaskSummary};
use crate::{
    claim::Owner,
    error::{StoreFuture, TaskFuture},
    properties::StoreReach,
};
use std::{
    fmt,
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

/// The program of tasks, which a server implements: an engine stores, waits and recovers, and the program does the rest.
pub trait TaskProgram: Send + Sync + 'static {
    /// Decides from a snapshot and the messages that no decision took, without I/O. After
    /// [`Continue`](TaskAction::Continue), the engine stores the decision and runs a leg with its snapshot.
    fn decide(&self, task: TaskKey, snapshot: &[u8], messages: &[TaskMessage]) -> TaskDecision;

    /// Runs a leg with the snapshot of a decision. After [`Continue`](TaskAction::Continue), the engine decides again. Dropping
    /// the future drops the leg.
    fn run<'a>(
        &'a self,
        task: TaskKey,
        snapshot: &'a [u8],
        control: &'a LegControl,
    ) -> TaskFuture<'a, TaskDecision>;
}

/// The state of a task after a decision, or after a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskDecision {
    /// The new snapshot.
    pub snapshot: Vec<u8>,
    /// The number of the last message that the snapshot contains; 0 for none, as always after a leg.
    pub taken: u64,
    /// The next action of the engine.
    pub action: TaskAction,
}

impl TaskDecision {
    /// Returns the decision with this snapshot and action, which takes no messages.
    #[must_use]
    pub fn new(snapshot: impl Into<Vec<u8>>, action: TaskAction) -> Self {
        Self { snapshot: snapshot.into(), taken: 0, action }
    }

    /// Returns the decision with this number of the last message that the snapshot contains.
    #[must_use]
    pub fn with_taken(mut self, number: u64) -> Self {
        self.taken = number;
        self
    }
}

/// The next action of an engine on a task.
///
/// The enum is exhaustive: an engine that ignored an action would run a task too early, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskAction {
    /// The next leg runs, after a decision; or the next decision comes, after a leg.
    Continue,
    /// The next decision comes with the next message, or after this time if there is one.
    Wait(Option<Duration>),
    /// The next decision comes after this time, and not before, also if a message comes. An engine cannot tell a cancellation from
    /// another message: a task that is cancelled in its pause finds out after the pause.
    Pause(Duration),
    /// The task is over. It is kept for this time, or until its `ttl` if that is later. Messages are dropped.
    Finish(Duration),
    /// The task can no longer run in this process: another one continues it with this snapshot.
    Leave,
}

/// When a leg is to end before its handler does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LegStop {
    /// It goes on.
    #[default]
    No,
    /// As soon as it has recorded something new: the process drains.
    AfterNextEntry,
    /// At its next opportunity.
    Soon,
}

/// The connection between a leg that runs and its engine.
#[derive(Default)]
pub struct LegControl(Mutex<ControlState>);

#[derive(Default)]
struct ControlState {
    end: LegStop,
    on_end: Option<Waker>,
    shown: Option<Vec<u8>>,
    on_shown: Option<Waker>,
}

impl LegControl {
    /// Returns the control of a leg that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the leg at its next opportunity: called by the engine when a message arrives, or when the process drains and the
    /// leg has had time to get on.
    pub fn end_soon(&self) {
        self.end(LegStop::Soon);
    }

    /// Ends the leg as soon as it has recorded something new, and before its next step: called by the engine when the process
    /// drains. A leg that only replays would hand the task over as it was.
    pub fn end_after_next_entry(&self) {
        self.end(LegStop::AfterNextEntry);
    }

    fn end(&self, stop: LegStop) {
        let mut state = self.state();
        state.end = state.end.max(stop);
        let waker = state.on_end.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until the leg is to end earlier than this: called by the program. One future may wait at a time.
    pub async fn ends_before(&self, known: LegStop) -> LegStop {
        poll_fn(|context| self.poll_ends(known, context)).await
    }

    /// Replaces the snapshot that requests see while the leg runs: called by the program.
    pub fn show(&self, snapshot: Vec<u8>) {
        let mut state = self.state();
        state.shown = Some(snapshot);
        let waker = state.on_shown.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits for the next snapshot to show, the last one if there were several: called by the engine. One future may wait at a
    /// time.
    pub async fn shown(&self) -> Vec<u8> {
        poll_fn(|context| self.poll_shown(context)).await
    }

    fn poll_ends(&self, known: LegStop, context: &Context<'_>) -> Poll<LegStop> {
        let mut state = self.state();
        if state.end > known {
            return Poll::Ready(state.end);
        }
        state.on_end = Some(context.waker().clone());
        Poll::Pending
    }

    fn poll_shown(&self, context: &Context<'_>) -> Poll<Vec<u8>> {
        let mut state = self.state();
        if let Some(snapshot) = state.shown.take() {
            return Poll::Ready(snapshot);
        }
        state.on_shown = Some(context.waker().clone());
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, ControlState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LegControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegControl").field("end", &self.state().end).finish_non_exhaustive()
    }
}

// The trait of engines of tasks: what stores tasks, and decides when and in which process each of them runs.

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
/// 2. If the decision is [`Continue`](TaskAction::Continue), it calls [`TaskProgram::run`], and decides again with the
///    snapshot that the leg returned. A process that dies in a leg, or stops for longer than the engine waits, leaves the leg to
///    another one: a leg may run twice, also at the same time, with the same snapshot.
/// 3. While a leg runs, a message that arrives ends the leg soon (a message that another process of the same machine took may wait for
///    the leg's own end), and a snapshot that the leg [shows](LegControl::show) is
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_side_wakes_the_other() {
        let (control, count) = (LegControl::new(), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        let context = &mut Context::from_waker(&waker);
        let (mut ends, mut shown) = (pin!(control.ends_before(LegStop::No)), pin!(control.shown()));
        assert!(ends.as_mut().poll(context).is_pending());
        assert!(shown.as_mut().poll(context).is_pending());
        control.show(b"first".to_vec());
        control.show(b"second".to_vec());
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(shown.as_mut().poll(context), Poll::Ready(b"second".to_vec()));
        control.end_after_next_entry();
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        assert_eq!(ends.as_mut().poll(context), Poll::Ready(LegStop::AfterNextEntry));
        let mut sooner = pin!(control.ends_before(LegStop::AfterNextEntry));
        assert!(sooner.as_mut().poll(context).is_pending());
        control.end_soon();
        control.end_after_next_entry();
        assert_eq!(count.0.load(Ordering::Relaxed), 3);
        assert_eq!(sooner.as_mut().poll(context), Poll::Ready(LegStop::Soon), "the earlier end stays");
        assert!(pin!(control.shown()).poll(context).is_pending(), "a snapshot is shown once");
    }
}
