//! The counts of tasks, for an exporter of metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of the tasks of one process, since it began: see [`Server::task_metrics`](crate::Server::task_metrics). A task that
/// moves to another process is counted there from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskMetrics {
    /// The legs that run now. A task that waits for an answer has none.
    pub running: u64,
    /// The tasks that were created.
    pub created: u64,
    /// The tasks that ended with a result, errors of tools included.
    pub completed: u64,
    /// The tasks that ended with a JSON-RPC error.
    pub failed: u64,
    /// The tasks that were cancelled.
    pub cancelled: u64,
    /// The legs that began: a task has one for each answer, at least.
    pub legs: u64,
    /// The legs that failed for now, and were to run again.
    pub failed_legs: u64,
    /// The legs that were stopped before their end: another process took the task over, or its time was over.
    pub lost_claims: u64,
    /// The answers and cancellations that were stored.
    pub messages: u64,
}

/// The counters behind [`TaskMetrics`].
#[derive(Debug, Default)]
pub(crate) struct TaskCounters {
    running: Counter,
    pub(crate) created: Counter,
    pub(crate) completed: Counter,
    pub(crate) failed: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) legs: Counter,
    pub(crate) failed_legs: Counter,
    pub(crate) lost_claims: Counter,
    pub(crate) messages: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn subtract_one(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl TaskCounters {
    pub(crate) fn to_metrics(&self) -> TaskMetrics {
        TaskMetrics {
            running: self.running.get(),
            created: self.created.get(),
            completed: self.completed.get(),
            failed: self.failed.get(),
            cancelled: self.cancelled.get(),
            legs: self.legs.get(),
            failed_legs: self.failed_legs.get(),
            lost_claims: self.lost_claims.get(),
            messages: self.messages.get(),
        }
    }
}

/// A leg that runs. It counts as lost if it is dropped before its [end](Self::end).
pub(crate) struct RunningLeg<'a> {
    counters: &'a TaskCounters,
    has_ended: bool,
}

impl<'a> RunningLeg<'a> {
    pub(crate) fn new(counters: &'a TaskCounters) -> Self {
        counters.running.add_one();
        Self { counters, has_ended: false }
    }

    pub(crate) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for RunningLeg<'_> {
    fn drop(&mut self) {
        self.counters.running.subtract_one();
        if !self.has_ended {
            self.counters.lost_claims.add_one();
        }
    }
}
