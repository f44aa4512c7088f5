//! Events in the life of a task, for tables of cases.

use std::time::Duration;

use super::subject::{LEASE, TaskSubject, expect, release};
use crate::task::{NewTask, TaskFence, TaskKey, TaskLimits, TaskNext, TaskUpdate};

/// An event in the life of a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The clock advances.
    Wait(Duration),
    /// A client sends a message.
    Send,
    /// Runner 1 claims the task, with the lease of the checks.
    Claim,
    /// The lease ends this much later.
    Renew(Duration),
    /// The runner takes the messages up to a number, and gives the lease back.
    Release(u64, TaskNext),
    /// The runner takes the messages up to a number, and runs on.
    Keep(u64, TaskNext),
}

/// A task, and the fence of its last claim.
pub(super) struct Life<'a> {
    subject: &'a TaskSubject,
    pub(super) new: NewTask,
    pub(super) fence: Option<TaskFence>,
}

impl<'a> Life<'a> {
    /// Creates a task with this `ttl`, to which all these events happen.
    pub(super) async fn of(
        subject: &'a TaskSubject,
        ttl: Option<Duration>,
        events: &[Event],
        case: &str,
    ) -> Self {
        let new = NewTask { ttl, ..subject.new_task() };
        expect(case, subject.first.create(&new, &TaskLimits::default()).await);
        let mut life = Self { subject, new, fence: None };
        for event in events {
            life.happens(*event, case).await;
        }
        life
    }

    pub(super) fn task(&self) -> TaskKey {
        self.new.task
    }

    async fn happens(&mut self, event: Event, case: &str) {
        let case = format!("{case}: {event:?}");
        let subject = self.subject;
        match event {
            Event::Wait(time) => subject.clock.advance(time),
            Event::Send => subject.queued(self.task(), b"message").await,
            Event::Claim => self.fence = Some(subject.granted(self.task(), 1).await.0),
            Event::Renew(lease) => expect(&case, subject.first.renew(&self.last_fence(), lease).await),
            Event::Release(taken, next) => self.update(&case, release(b"snapshot", taken, next)).await,
            Event::Keep(taken, next) => {
                self.update(&case, super::subject::keep(b"snapshot", taken, next)).await;
            }
        }
    }

    async fn update(&self, case: &str, update: TaskUpdate) {
        expect(case, self.subject.first.update(&self.last_fence(), &update).await);
    }

    /// Returns the fence of the last claim, or one that was never given.
    pub(super) fn last_fence(&self) -> TaskFence {
        self.fence.unwrap_or(TaskFence::new(self.task(), 0))
    }
}

/// Half a lease.
pub(super) const HALF: Duration = Duration::from_secs(LEASE.as_secs() / 2);
