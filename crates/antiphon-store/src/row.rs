//! The row of a call as a state machine: a pure function from a row, an operation and a time to a change and a reply.
//!
//! ```text
//!            claim                    commit
//!  (no row) ──────▶ Running ─────────────────────▶ Done
//!      ▲             │  ▲  ▲                        │
//!      │     release │  │  │ claim of a later leg   │
//!      │             ▼  │  └────────────────────────┘
//!      │          Released      claim with take_over: Running, after the lease, under a new fence
//!      └──────────────── expired: neither lease nor keeping time is left
//! ```
//!
//! The memory store and SQLite run this function. PostgreSQL and Redis have the same rules in their own languages; the
//! contract suite compares every store with the memory store, operation by operation.

#[cfg(test)]
mod exhaustive;

use crate::{
    claim::{Claim, ClaimRequest, Conflict, Fence, Fingerprint, Predecessor, RunnerId, Unknown},
    clock::Micros,
    step::{StepAttempt, StepEvent, StepRecord},
};
use std::{sync::Arc, time::Duration};

/// The row of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) leg: u32,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) runner: RunnerId,
    /// The number of the last claim that was granted.
    pub(crate) fence: i64,
    pub(crate) phase: Phase,
    pub(crate) keep_until: Micros,
    /// The records of steps, without their values, in the order in which they were appended.
    pub(crate) marks: Vec<Mark>,
}

/// The state of a row's leg.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// A runner has the leg; after `lease_until` it counts as dead.
    Running { lease_until: Micros },
    /// The leg has an outcome.
    Done { outcome: Arc<[u8]> },
    /// A runner gave the leg back.
    Released,
}

/// A step's record without its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    pub(crate) leg: u32,
    pub(crate) step: String,
    pub(crate) event: StepEvent,
}

/// An operation on one row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    Claim(&'a ClaimRequest),
    Renew(&'a Fence, Duration),
    Append(&'a Fence, &'a StepRecord),
    Commit(&'a Fence, &'a [u8]),
    Release(&'a Fence),
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Claim(Claim),
    Written,
    /// The record is there already; the store returns its value.
    Existing,
    FenceLost,
}

/// The write that follows from an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    /// A new row, in the place of an expired one and its steps.
    Create(Row),
    /// The row's columns, without its steps.
    Update(Row),
    /// One more record of a step.
    Append(Mark),
}

/// Returns what `operation` writes and replies at the time `now`.
pub(crate) fn transition(row: Option<&Row>, operation: Operation<'_>, now: Micros) -> (Change, Reply) {
    let row = row.filter(|row| !row.is_expired(now));
    match operation {
        Operation::Claim(request) => match row {
            None => {
                let row = Row::running(request, now);
                let fence = Fence::new(request.call, row.fence);
                (Change::Create(row), Reply::Claim(Claim::Fresh(fence)))
            }
            Some(row) => claim(row, request, now),
        },
        Operation::Renew(fence, lease) => with_fence(row, fence, |row| match row.phase {
            Phase::Running { .. } => Some((
                Change::Update(row.in_phase(Phase::Running { lease_until: now.after(lease) })),
                Reply::Written,
            )),
            // A renewal that was sent before the outcome may arrive after it.
            Phase::Done { .. } => Some((Change::Nothing, Reply::Written)),
            Phase::Released => None,
        }),
        Operation::Append(fence, record) => with_fence(row, fence, |row| match row.phase {
            Phase::Running { .. } if row.has(record.step(), record.event()) => {
                Some((Change::Nothing, Reply::Existing))
            }
            Phase::Running { .. } => {
                let mark = Mark { leg: row.leg, step: record.step().to_owned(), event: record.event() };
                Some((Change::Append(mark), Reply::Written))
            }
            Phase::Done { .. } | Phase::Released => None,
        }),
        Operation::Commit(fence, outcome) => with_fence(row, fence, |row| match &row.phase {
            Phase::Running { .. } => {
                Some((Change::Update(row.in_phase(Phase::Done { outcome: outcome.into() })), Reply::Written))
            }
            // The same commit again, because its confirmation was lost.
            Phase::Done { outcome: stored } if **stored == *outcome => {
                Some((Change::Nothing, Reply::Written))
            }
            Phase::Done { .. } | Phase::Released => None,
        }),
        Operation::Release(fence) => with_fence(row, fence, |row| match row.phase {
            Phase::Running { .. } => Some((Change::Update(row.in_phase(Phase::Released)), Reply::Written)),
            Phase::Released => Some((Change::Nothing, Reply::Written)),
            Phase::Done { .. } => None,
        }),
    }
}

/// Runs `write` if the row has this fence.
fn with_fence(
    row: Option<&Row>,
    fence: &Fence,
    write: impl FnOnce(&Row) -> Option<(Change, Reply)>,
) -> (Change, Reply) {
    row.filter(|row| row.fence == fence.number())
        .and_then(write)
        .unwrap_or((Change::Nothing, Reply::FenceLost))
}

/// Decides a claim of a call that has a row.
fn claim(row: &Row, request: &ClaimRequest, now: Micros) -> (Change, Reply) {
    let refuse = |claim| (Change::Nothing, Reply::Claim(claim));
    if request.leg < row.leg {
        return refuse(Claim::Conflict(Conflict::EarlierLeg));
    }
    let same_leg = request.leg == row.leg;
    let same_answers = same_leg && request.fingerprint == row.fingerprint;
    if same_leg && !same_answers && (row.phase != Phase::Released || row.has_steps_of_leg()) {
        return refuse(Claim::Conflict(Conflict::OtherAnswers));
    }
    match &row.phase {
        // The same claim again, because its reply was lost.
        Phase::Running { .. } if same_answers && row.runner == request.runner => row.repeat(request, now),
        Phase::Running { lease_until } if now < *lease_until => {
            refuse(Claim::InFlight { retry_after: lease_until.since(now) })
        }
        Phase::Running { .. } if same_answers && request.take_over => row.next(request, now),
        Phase::Running { .. } => {
            refuse(Claim::Unknown(Unknown { leg: row.leg, step: row.interrupted_step() }))
        }
        Phase::Done { outcome } if same_answers => refuse(Claim::Done(outcome.to_vec())),
        Phase::Done { .. } | Phase::Released if same_leg => row.next(request, now),
        Phase::Done { .. } | Phase::Released => match request.after {
            Some(after) if after != row.as_predecessor() => {
                refuse(Claim::Conflict(Conflict::OtherPredecessor))
            }
            _ => row.next(request, now),
        },
    }
}

impl Row {
    /// Returns the first row of a call.
    fn running(request: &ClaimRequest, now: Micros) -> Self {
        Self {
            leg: request.leg,
            fingerprint: request.fingerprint,
            runner: request.runner,
            // A call that comes back after its row expired has a higher fence too.
            fence: now.get(),
            phase: Phase::Running { lease_until: now.after(request.lease) },
            keep_until: now.after(request.keep),
            marks: Vec::new(),
        }
    }

    /// Grants the claim under a new fence.
    fn next(&self, request: &ClaimRequest, now: Micros) -> (Change, Reply) {
        let first = Self::running(request, now);
        let row = Self {
            fence: first.fence.max(self.fence + 1),
            keep_until: first.keep_until.max(self.keep_until),
            marks: self.marks.clone(),
            ..first
        };
        let fence = Fence::new(request.call, row.fence);
        (Change::Update(row), Reply::Claim(Claim::Fresh(fence)))
    }

    /// Grants the claim of the runner that has the leg already, under the same fence.
    fn repeat(&self, request: &ClaimRequest, now: Micros) -> (Change, Reply) {
        let mut row = self.in_phase(Phase::Running { lease_until: now.after(request.lease) });
        row.keep_until = now.after(request.keep).max(self.keep_until);
        (Change::Update(row), Reply::Claim(Claim::Fresh(Fence::new(request.call, self.fence))))
    }

    fn in_phase(&self, phase: Phase) -> Self {
        Self { phase, ..self.clone() }
    }

    /// Returns the moment at which the row may be removed.
    pub(crate) fn expires_at(&self) -> Micros {
        match self.phase {
            Phase::Running { lease_until } => lease_until.max(self.keep_until),
            Phase::Done { .. } | Phase::Released => self.keep_until,
        }
    }

    /// Returns true if neither the lease nor the keeping time is left.
    pub(crate) fn is_expired(&self, now: Micros) -> bool {
        now >= self.expires_at()
    }

    fn as_predecessor(&self) -> Predecessor {
        Predecessor { leg: self.leg, fingerprint: self.fingerprint }
    }

    fn has(&self, step: &str, event: StepEvent) -> bool {
        self.marks.iter().any(|mark| mark.step == step && mark.event == event)
    }

    fn has_steps_of_leg(&self) -> bool {
        self.marks.iter().any(|mark| mark.leg == self.leg)
    }

    /// Returns the attempt that started last, of a step without an end.
    fn interrupted_step(&self) -> Option<StepAttempt> {
        self.marks.iter().rev().find_map(|mark| match mark.event {
            StepEvent::Started { attempt } if !self.has(&mark.step, StepEvent::Ended) => {
                Some(StepAttempt { step: mark.step.clone(), attempt })
            }
            StepEvent::Started { .. } | StepEvent::Ended => None,
        })
    }
}

impl Change {
    /// Returns the row after the change.
    #[cfg(test)]
    pub(crate) fn apply(self, row: Option<Row>) -> Option<Row> {
        match self {
            Self::Nothing => row,
            Self::Create(row) | Self::Update(row) => Some(row),
            Self::Append(mark) => row.map(|mut row| {
                row.marks.push(mark);
                row
            }),
        }
    }
}
