//! A small model of a store of tasks, written from the documentation of the trait: the clock is a duration, and nothing is
//! indexed, removed or kept in order.

use super::subject::Outcome;
use crate::{
    claim::RunnerId,
    error::StoreErrorKind,
    task::{
        NewTask, TaskClaim, TaskCreated, TaskKey, TaskLimits, TaskMessage, TaskNext, TaskRow, TaskSent,
        TaskState, TaskSummary, TaskUpdate,
    },
};
use std::time::Duration;

/// The rows of one owner.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) now: Duration,
    rows: Vec<ModelRow>,
}

#[derive(Debug)]
struct ModelRow {
    task: TaskKey,
    row: TaskRow,
    created: Duration,
    changed: Duration,
    /// The moment after which the row is gone.
    end: Option<Duration>,
    /// The number of the last message.
    numbered: u64,
    claims: i64,
    /// The runner, and the end of its lease.
    lease: Option<(RunnerId, Duration)>,
    runs: bool,
    /// The moment until which the task waits.
    until: Option<Duration>,
    /// The moment before which the task does not run, whatever comes.
    pause: Option<Duration>,
}

/// The result of a claim at the model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claimed {
    /// The number of claims of this row, the present one included; the row.
    Fresh(i64, TaskRow),
    Other(TaskClaim),
}

impl Model {
    pub(super) fn create(&mut self, new: &NewTask, limits: &TaskLimits) -> Outcome<TaskCreated> {
        if self.find(new.task).is_some() {
            return Ok(TaskCreated::Existing);
        }
        let now = self.now;
        let open = |row: &&ModelRow| !row.row.is_final && !row.is_gone(now);
        if self.rows.iter().filter(open).count() >= limits.max_tasks_of_owner() {
            return Err(StoreErrorKind::Full);
        }
        self.rows.push(ModelRow {
            task: new.task,
            row: TaskRow {
                snapshot: new.snapshot.as_slice().into(),
                messages: Vec::new(),
                version: 1,
                is_final: false,
                is_held: false,
            },
            created: now,
            changed: now,
            end: new.ttl.map(|ttl| now + ttl),
            numbered: 0,
            claims: 0,
            lease: None,
            runs: true,
            until: None,
            pause: None,
        });
        Ok(TaskCreated::First)
    }

    pub(super) fn send(&mut self, task: TaskKey, body: &[u8], limits: &TaskLimits) -> Outcome<TaskSent> {
        let now = self.now;
        let Some(row) = self.find(task) else { return Ok(TaskSent::NotFound) };
        if row.row.is_final {
            return Ok(TaskSent::Final);
        }
        let bytes = row.row.messages.iter().fold(body.len(), |sum, message| sum + message.body.len());
        if row.row.messages.len() + 1 > limits.max_messages() || bytes > limits.max_message_bytes() {
            return Err(StoreErrorKind::Full);
        }
        row.numbered += 1;
        row.row.messages.push(TaskMessage { number: row.numbered, body: body.to_vec() });
        row.note_change(now);
        Ok(TaskSent::Queued)
    }

    pub(super) fn claim(&mut self, task: TaskKey, runner: RunnerId, lease: Duration) -> Claimed {
        let now = self.now;
        let Some(row) = self.find(task) else { return Claimed::Other(TaskClaim::NotFound) };
        if row.row.is_final {
            return Claimed::Other(TaskClaim::Final);
        }
        match row.lease {
            Some((other, until)) if until > now && other != runner => {
                return Claimed::Other(TaskClaim::Held { retry_after: until - now });
            }
            Some((_, until)) if until > now => {}
            _ => {
                if let Some(pause) = row.pause.filter(|pause| *pause > now) {
                    return Claimed::Other(TaskClaim::Held { retry_after: pause - now });
                }
                row.claims += 1;
            }
        }
        row.lease = Some((runner, now + lease));
        Claimed::Fresh(row.claims, row.at(now))
    }

    /// Renews the lease of a claim of a row that was created at this moment.
    pub(super) fn renew(&mut self, task: TaskKey, claim: (Duration, i64), lease: Duration) -> Outcome<()> {
        let now = self.now;
        let row = self.find(task).filter(|row| row.has(claim)).ok_or(StoreErrorKind::FenceLost)?;
        row.lease = row.lease.map(|(runner, _)| (runner, now + lease));
        Ok(())
    }

    pub(super) fn update(
        &mut self,
        task: TaskKey,
        claim: (Duration, i64),
        update: &TaskUpdate,
    ) -> Outcome<()> {
        let now = self.now;
        let row = self.find(task).filter(|row| row.has(claim)).ok_or(StoreErrorKind::FenceLost)?;
        row.row.snapshot = update.snapshot.as_slice().into();
        row.row.messages.retain(|message| message.number > update.taken);
        row.pause = None;
        (row.runs, row.until) = match update.next {
            TaskNext::Runs => (true, None),
            TaskNext::Pauses(time) => {
                row.pause = Some(now + time);
                (true, None)
            }
            TaskNext::Waits(time) => (false, time.map(|time| now + time)),
            TaskNext::Final(keep) => {
                row.row.is_final = true;
                row.row.messages.clear();
                row.end = row.end.max(Some(now + keep));
                (false, None)
            }
        };
        if row.row.is_final || !update.keeps_lease {
            row.lease = None;
        }
        row.note_change(now);
        Ok(())
    }

    /// Returns the row, its summary, and true if the task is due.
    pub(super) fn view(&mut self, task: TaskKey) -> Option<(TaskRow, TaskSummary, bool)> {
        let now = self.now;
        let row = self.find(task)?;
        let present = row.at(now);
        let state = match &present {
            row if row.is_final => TaskState::Final,
            row if row.is_held => TaskState::Held,
            _ if row.is_ready(now) => TaskState::Due,
            _ => TaskState::Waits,
        };
        let summary = TaskSummary {
            age: now - row.created,
            unchanged_for: now - row.changed,
            rest: row.end.map(|end| end - now),
            messages: present.messages.len(),
            received: row.numbered,
            snapshot_bytes: present.snapshot.len(),
            claims: row.claims,
            ..TaskSummary::new(task, state)
        };
        Some((present, summary, state == TaskState::Due))
    }

    /// Returns the moment at which the present row was created.
    pub(super) fn created(&mut self, task: TaskKey) -> Option<Duration> {
        self.find(task).map(|row| row.created)
    }

    fn find(&mut self, task: TaskKey) -> Option<&mut ModelRow> {
        let now = self.now;
        self.rows.iter_mut().find(|row| row.task == task && !row.is_gone(now))
    }
}

impl ModelRow {
    fn is_gone(&self, now: Duration) -> bool {
        self.end.is_some_and(|end| now >= end)
    }

    /// Returns true if the task can run, if nobody runs it.
    fn is_ready(&self, now: Duration) -> bool {
        let is_ready =
            self.runs || !self.row.messages.is_empty() || self.until.is_some_and(|until| now >= until);
        is_ready && self.pause.is_none_or(|pause| now >= pause)
    }

    fn has(&self, (created, claim): (Duration, i64)) -> bool {
        self.created == created && self.claims == claim && self.lease.is_some()
    }

    fn at(&self, now: Duration) -> TaskRow {
        TaskRow { is_held: self.lease.is_some_and(|(_, until)| until > now), ..self.row.clone() }
    }

    fn note_change(&mut self, now: Duration) {
        self.row.version += 1;
        self.changed = now;
    }
}
