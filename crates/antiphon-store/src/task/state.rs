//! The state of a task's row, and how each operation changes it. No I/O.

use super::{TaskNext, TaskState, TaskUpdate};
use crate::{claim::RunnerId, clock::Micros};
use std::time::Duration;

/// The row of a task without its snapshot and its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowState {
    /// A number that grows with each change of the snapshot or of the queue.
    pub(crate) version: u64,
    /// The number of the last message.
    pub(crate) numbered: u64,
    /// The number of the last claim. The first one is above the row's creation, in microseconds: a later task with the same key
    /// has higher fences, as no task is claimed more than once in a microsecond.
    pub(crate) fence: i64,
    pub(crate) lease: Option<Lease>,
    pub(crate) plan: Plan,
    /// The moment after which the row is gone.
    pub(crate) expires: Option<Micros>,
    pub(crate) created: Micros,
    pub(crate) changed: Micros,
}

/// The claim of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) runner: RunnerId,
    pub(crate) until: Micros,
}

/// The condition under which a task can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing: it can run since this moment.
    Ready(Micros),
    /// A message, or this moment if there is one.
    Waits(Option<Micros>),
    Final,
}

/// The result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    Fresh(i64),
    Held(Duration),
    Final,
}

/// The fence is not the row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

impl RowState {
    /// Returns a new row, which is ready.
    pub(crate) fn new(now: Micros, ttl: Option<Duration>) -> Self {
        Self {
            version: 1,
            numbered: 0,
            fence: now.get(),
            lease: None,
            plan: Plan::Ready(now),
            expires: ttl.map(|ttl| now.after(ttl)),
            created: now,
            changed: now,
        }
    }

    /// Returns the number of claims so far.
    pub(crate) fn claims(&self) -> i64 {
        self.fence.saturating_sub(self.created.get())
    }

    pub(crate) fn is_final(&self) -> bool {
        self.plan == Plan::Final
    }

    pub(crate) fn is_held(&self, now: Micros) -> bool {
        self.lease.is_some_and(|lease| lease.until > now)
    }

    /// Returns the moment from which the task is due, if nobody changes it.
    pub(crate) fn due_at(&self) -> Option<Micros> {
        let ready = match self.plan {
            Plan::Ready(since) => since,
            Plan::Waits(until) => until?,
            Plan::Final => return None,
        };
        Some(self.lease.map_or(ready, |lease| ready.max(lease.until)))
    }

    pub(crate) fn state(&self, now: Micros) -> TaskState {
        match self.due_at() {
            _ if self.is_final() => TaskState::Final,
            _ if self.is_held(now) => TaskState::Held,
            Some(due) if due <= now => TaskState::Due,
            _ => TaskState::Waits,
        }
    }

    pub(crate) fn claim(&mut self, runner: RunnerId, lease: Duration, now: Micros) -> Claimed {
        if self.is_final() {
            return Claimed::Final;
        }
        let is_valid = |lease: &Lease| lease.until > now;
        match (self.lease.filter(is_valid), self.plan) {
            (Some(held), _) if held.runner != runner => return Claimed::Held(held.until.since(now)),
            (Some(_), _) => {}
            // A pause.
            (None, Plan::Ready(since)) if since > now => return Claimed::Held(since.since(now)),
            (None, _) => self.fence += 1,
        }
        self.lease = Some(Lease { runner, until: now.after(lease) });
        Claimed::Fresh(self.fence)
    }

    pub(crate) fn renew(&mut self, fence: i64, lease: Duration, now: Micros) -> Result<(), Lost> {
        self.check(fence)?;
        if let Some(held) = &mut self.lease {
            held.until = now.after(lease);
        }
        Ok(())
    }

    /// Adds a message. Returns its number.
    pub(crate) fn send(&mut self, now: Micros) -> u64 {
        self.plan = match self.plan {
            Plan::Waits(until) => Plan::Ready(until.map_or(now, |until| until.min(now))),
            plan => plan,
        };
        self.numbered += 1;
        self.version += 1;
        self.changed = now;
        self.numbered
    }

    /// Changes the row by its runner. `has_messages` says if any are left in the queue.
    pub(crate) fn update(
        &mut self,
        fence: i64,
        update: &TaskUpdate,
        has_messages: bool,
        now: Micros,
    ) -> Result<(), Lost> {
        self.check(fence)?;
        self.plan = match update.next {
            TaskNext::Runs => Plan::Ready(now),
            TaskNext::Pauses(time) => Plan::Ready(now.after(time)),
            TaskNext::Waits(_) if has_messages => Plan::Ready(now),
            TaskNext::Waits(time) => Plan::Waits(time.map(|time| now.after(time))),
            TaskNext::Final(keep) => {
                let until = now.after(keep);
                self.expires = Some(self.expires.map_or(until, |expires| expires.max(until)));
                Plan::Final
            }
        };
        if !update.keeps_lease || self.is_final() {
            self.lease = None;
        }
        self.version += 1;
        self.changed = now;
        Ok(())
    }

    /// A lease that was given back is as lost as one that another runner has.
    fn check(&self, fence: i64) -> Result<(), Lost> {
        let is_held = self.fence == fence && self.lease.is_some() && !self.is_final();
        if is_held { Ok(()) } else { Err(Lost) }
    }
}
