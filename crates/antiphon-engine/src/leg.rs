//! One leg of one call, its settings, and its beginning: a coordinator of the parts that own its state.
//!
//! | part | what it owns |
//! |---|---|
//! | `Polls` (poll.rs) | the present poll, its context, and the work for the time after it |
//! | `Replay` (replay.rs) | the entries of the record (history.rs), and the futures that the handler awaits (slots.rs) |
//! | `Asks` (asks.rs) | the answers that have come (`Inbox`, in replay.rs), the questions that are open, the round |
//! | `Steps` (steps.rs) | the order of the steps that run, and what makes new ones wait |
//! | `Ending` (steps.rs) | the ends that a leg has besides its questions |
//! | `HandlerMemory` (steps.rs) | notes, and the handler's own state |
//!
//! The fields of a part are private to its file. Its methods return what happened: a future that continues, a reason to stop. The
//! methods of `Leg` apply it; they stand in files by subject.

mod ask;
mod asks;
mod by_hand;
mod context;
mod end;
mod history;
mod next_action;
mod poll;
mod replay;
mod select;
mod slot;
mod slots;
mod step;
mod steps;
mod write_ahead;

pub use ask::AskPoll;
pub use asks::AnsweredQuestion;
pub use end::{LegOutput, PendingAsk};
pub use next_action::{GraceReason, NextAction};
pub use poll::{DeferredWork, LogEvent, PollContext};
pub use replay::AnsweredAsk;
pub use slot::{BranchId, Question, SlotId};
pub use step::{StepBegin, StepPoll};
pub use steps::Observations;

use crate::{
    limits::{Limits, StopReason},
    record::{Migration, Record},
};
use antiphon_seal::{Call, Digest};
use antiphon_wire::InputResponses;
use asks::{Asks, Incoming, RESERVED_SPACE};
use poll::Polls;
use replay::Replay;
use std::sync::Arc;
use steps::{Ending, HandlerMemory, Steps};

/// One leg of one call.
#[derive(Debug)]
pub struct Leg {
    setup: Setup,
    /// The time at which the leg began, in Unix seconds.
    began: u64,
    /// `None` until the leg needs the call: a call that never asks has no id.
    call: Option<Call>,
    status: Status,
    polls: Polls,
    replay: Replay,
    asks: Asks,
    steps: Steps,
    ending: Ending,
    memory: HandlerMemory,
    observations: Observations,
}

/// The status of a leg.
#[derive(Debug, Default)]
enum Status {
    #[default]
    Running,
    Stopping(StopReason),
    /// No client waits for the leg: running steps end, and nothing resolves.
    Cancelled,
    Ended,
}

/// The way in which an answer reaches the handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// The answer comes with the next leg: a question ends this leg.
    #[default]
    NextLeg,
    /// The answer comes during this leg: the handler waits for it.
    ThisLeg,
}

/// The purpose of a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The leg runs for its result.
    #[default]
    Serve,
    /// The leg runs for its result and for observations: it also records what the handler drops.
    Observe,
    /// The leg runs for the observations only: no step runs, and no checkpoint ends it.
    DryRun,
}

impl Purpose {
    /// Returns `true` if the leg records what the handler drops.
    fn watches(self) -> bool {
        self == Self::Observe
    }
}

/// The settings of a leg.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The limits of the call.
    pub limits: Limits,
    /// The way in which answers reach the handler.
    pub delivery: Delivery,
    /// The purpose of the leg.
    pub purpose: Purpose,
    /// The changes of this version of the tool to recorded steps.
    pub migration: Migration,
    /// True if recorded steps that the handler does not reach do not end the call.
    pub lenient: bool,
    /// True if the leg ends with state only before its first new step.
    pub anchor: bool,
    /// True in a task: questions stay open from leg to leg, so a leg without an answer is no refusal to answer.
    pub in_task: bool,
    /// The questions that an earlier run of this leg has shown, by their paths. In a task, an answer to one of them may have come:
    /// each stays open until this leg asks it, or a later leg comes to rest without it.
    pub shown: Vec<(Arc<str>, Digest)>,
    /// True if the call was cancelled and the handler does not know yet: its first new step does not run and fails with the
    /// code [`CANCELLED`](crate::CANCELLED).
    pub refuse_step: bool,
    /// The time at which the leg begins, in Unix seconds.
    pub now: u64,
    /// True if the leg writes its deliveries to a store: [`Leg::write_ahead`].
    pub writes_ahead: bool,
    /// The version of the tool.
    pub version: u32,
}

impl Leg {
    /// Begins the first leg of a call.
    // Not inlined: a function writes its result where the caller keeps it, and inlined code copies it there.
    #[inline(never)]
    pub fn begin(mut setup: Setup) -> Self {
        let asks = Asks::begin(std::mem::take(&mut setup.shown));
        let replay = match setup.writes_ahead {
            true => Replay::of(Vec::new(), None, true),
            false => Replay::default(),
        };
        Self {
            began: setup.now,
            call: None,
            status: Status::Running,
            polls: Polls::default(),
            replay,
            asks,
            steps: Steps::of(setup.refuse_step),
            ending: Ending::of(setup.anchor, 0),
            memory: HandlerMemory::default(),
            observations: Observations::watching(setup.purpose.watches()),
            setup,
        }
    }

    /// Begins a later leg, with the answers to awaited questions. [`Record::receive`] has received the answers to
    /// questions asked by hand.
    ///
    /// The leg is made in its box: it is large.
    pub fn resume(
        call: Call,
        record: Record,
        responses: Option<&InputResponses>,
        mut setup: Setup,
    ) -> Box<Self> {
        let shown = std::mem::take(&mut setup.shown);
        let room = setup
            .limits
            .state
            .saturating_sub(record.size())
            .saturating_sub(record.stored.as_ref().map_or(0, |stored| stored.size()))
            .saturating_sub(setup.limits.step_result)
            .saturating_sub(RESERVED_SPACE);
        let place = Box::new_uninit();
        let mut leg = Box::write(place, Self::begin(setup));
        let Setup { now, in_task, writes_ahead, anchor, refuse_step, .. } = leg.setup;
        let has_refused = record.stored.as_ref().is_some_and(|stored| stored.has_refused_step());
        leg.call(|| Ok(call));
        leg.steps = Steps::of(refuse_step && !has_refused);
        leg.replay = Replay::of(record.entries, record.stored, writes_ahead);
        leg.memory = HandlerMemory::of(record.notes, record.state);
        leg.ending = Ending::of(anchor, record.state_only_count);
        let incoming = Incoming { responses, room, now, in_task };
        leg.asks.resume(record.round, record.received, record.asked, incoming);
        leg.asks.reopen(shown);
        leg
    }

    /// Begins a leg only to see if the handler reaches the same entries again: as the next leg, without answers.
    pub fn dry_run(call: Call, mut record: Record, setup: Setup) -> Box<Self> {
        for asked in &mut record.asked {
            // A question may change in a dry run, however often it was asked.
            asked.times = 0;
        }
        // At second 0 no deadline is over.
        Self::resume(call, record, None, Setup { purpose: Purpose::DryRun, now: 0, ..setup })
    }

    /// Returns `true` if the leg is a dry run.
    pub fn is_dry_run(&self) -> bool {
        self.setup.purpose == Purpose::DryRun
    }
}

impl Leg {
    /// Returns the call, and begins it first if necessary. The leg stops if `begin` fails.
    pub fn call(&mut self, begin: impl FnOnce() -> Result<Call, String>) -> Option<&Call> {
        if self.call.is_none() {
            match begin() {
                Ok(call) => self.call = Some(call),
                Err(fault) => self.stop(StopReason::Author(fault)),
            }
        }
        self.call.as_ref()
    }

    /// Returns the call, if it has begun.
    pub fn begun_call(&self) -> Option<&Call> {
        self.call.as_ref()
    }

    /// Counts a question that is asked again during this leg as a leg.
    fn count_leg(&mut self) {
        self.call = self.call.take().and_then(Call::next_leg);
    }

    /// Returns the time at which the leg began, in Unix seconds.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// Sets the time, in Unix seconds. A leg that waits for people uses it for deadlines.
    pub fn set_now(&mut self, now: u64) {
        self.setup.now = now;
    }

    /// Returns the way in which answers reach the handler.
    pub fn delivery(&self) -> Delivery {
        self.setup.delivery
    }

    /// Stops the leg. Only the first reason counts.
    pub fn stop(&mut self, stop: StopReason) {
        if matches!(self.status, Status::Running) {
            self.status = Status::Stopping(stop);
        }
    }

    /// Stops the leg because the handler does not reach this entry as it did before.
    fn diverged(&mut self, path: &str, reason: &'static str) {
        let record = self.replay.history().describe();
        self.stop(StopReason::Diverged { path: path.to_owned(), reason, record });
    }

    /// Returns the reason for which the leg was stopped.
    pub fn stop_reason(&self) -> Option<&StopReason> {
        match &self.status {
            Status::Stopping(stop) => Some(stop),
            _ => None,
        }
    }

    /// Cancels the leg: nothing resolves from now on, and no attempt of a step begins.
    pub fn cancel(&mut self) {
        if matches!(self.status, Status::Running | Status::Stopping(_)) {
            self.status = Status::Cancelled;
        }
    }

    /// Returns `true` if the leg was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.status, Status::Cancelled)
    }

    /// Ends the leg. Returns the call.
    fn close(&mut self) -> Option<Call> {
        self.status = Status::Ended;
        self.call.take()
    }

    fn is_running(&self) -> bool {
        matches!(self.status, Status::Running)
    }

    fn is_ended(&self) -> bool {
        matches!(self.status, Status::Ended)
    }

    /// Returns `true` if nothing resolves any more in the present context.
    pub fn is_over(&self) -> bool {
        !self.is_running() || self.replay.slots().branches().is_abandoned(self.polls.branch())
    }

    /// Returns `true` if a step runs.
    pub fn has_running_step(&self) -> bool {
        self.replay.slots().running() > 0 || self.ending.is_storing()
    }

    /// Returns `true` if the handler's notifications must not be sent: an earlier leg has sent them, or the leg was
    /// cancelled.
    pub fn suppresses_output(&self) -> bool {
        self.is_cancelled() || self.is_repeating()
    }

    /// Returns `true` if the present code has already run in an earlier leg.
    fn is_repeating(&self) -> bool {
        !self.replay.is_past_history() && (!self.replay.history().is_replayed() || self.asks.has_awaited())
    }
}
