//! One leg of one call: a coordinator of the parts that own its state.
//!
//! | part | what it owns |
//! |---|---|
//! | `Polls` (poll.rs) | the present poll, its context, and the work for the time after it |
//! | `Replay` (replay.rs) | the entries of the record (history.rs), and the futures that the handler awaits (slots.rs) |
//! | `Asks` (asks.rs) | the answers that have come (inbox.rs), the questions that are open, the round |
//! | `Steps` (steps.rs) | the order of the steps that run, and what makes new ones wait |
//! | `Ending` (steps.rs) | the ends that a leg has besides its questions |
//! | `HandlerMemory` (memory.rs) | notes, and the handler's own state |
//!
//! The fields of a part are private to its file. Its methods return what happened: a future that continues, a reason to stop. The
//! methods of `Leg` apply it; they stand in files by subject.

mod ask;
mod asks;
mod branches;
mod by_hand;
mod context;
mod end;
mod history;
mod inbox;
mod memory;
mod next_action;
mod poll;
mod replay;
mod select;
mod setup;
mod slot;
mod slots;
mod step;
mod steps;
mod write_ahead;

pub use ask::AskPoll;
pub use asks::AnsweredQuestion;
pub use end::{LegOutput, PendingAsk};
pub use inbox::AnsweredAsk;
pub use memory::Observations;
pub use next_action::{GraceReason, NextAction};
pub use poll::{DeferredWork, LogEvent, PollContext};
pub use setup::{Delivery, Purpose, Setup};
pub use slot::{BranchId, Question, SlotId};
pub use step::{StepBegin, StepPoll};

use crate::limits::StopReason;
use antiphon_seal::Call;
use asks::Asks;
use memory::HandlerMemory;
use poll::Polls;
use replay::Replay;
use steps::{Ending, Steps};

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
