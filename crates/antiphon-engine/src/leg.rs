//! One leg of one call: its state, and its settings.

mod answered;
mod ask;
mod by_hand;
mod checkpoint;
mod dry_run;
mod earlier_run;
mod end;
mod end_soon;
mod history;
mod next_action;
mod notes;
mod observations;
mod pending;
mod poll;
mod resume;
mod select;
mod setup;
mod slot;
mod slots;
mod stale;
mod step;
mod write_ahead;

pub use answered::AnsweredQuestion;
pub use ask::AskPoll;
pub use by_hand::AnsweredAsk;
pub use end::LegOutput;
pub use next_action::{GraceReason, NextAction};
pub use observations::Observations;
pub use pending::PendingAsk;
pub use setup::{Delivery, Purpose, Setup};
pub use slot::{BranchId, Question, SlotId};
pub use step::{StepBegin, StepPoll};

use crate::{
    CallSite,
    record::{AskRecord, EntryKind, HandlerState, Note, ReceivedAnswer},
    stop::StopReason,
};
use antiphon_seal::Call;
use antiphon_wire::InputRequest;
use history::History;
use slot::WakerId;
use slots::Slots;
use std::{sync::Arc, task::Waker};

/// The space that the record keeps free before a step runs, in bytes, besides the space for its outcome: one question
/// must still fit after the step.
const RESERVED_SPACE: usize = 512;

/// One leg of one call.
#[derive(Debug)]
pub struct Leg {
    setup: Setup,
    /// The time at which the leg began, in Unix seconds.
    began: u64,
    /// `None` until the leg needs the call: a call that never asks has no id.
    call: Option<Call>,
    status: Status,
    history: History,
    /// Answers that have come and were not delivered, and answers to questions asked by hand.
    inbox: Vec<IncomingAnswer>,
    /// The questions that were dropped while the handler unwound, and those that a race has dropped.
    dropped: Vec<(AskRecord, AskDrop)>,
    /// Questions of the last round without an answer.
    unanswered: Vec<UnansweredAsk>,
    notes: Vec<Note>,
    /// The handler's own state, from the last leg that asked by hand.
    state: Option<HandlerState>,
    /// The questions whose answers the handler has received, in that order.
    shown: Vec<(Arc<str>, InputRequest)>,
    slots: Slots,
    /// Futures that continue when all recorded entries were replayed.
    after_replay: Vec<SlotId>,
    /// Steps that ended in an earlier run, and whose outcomes the handler receives when it is idle.
    ended: Vec<SlotId>,
    /// Steps that have begun in an earlier run, and begin again when the handler is idle.
    interrupted: Vec<SlotId>,
    /// True if these do not wait any more for other steps of earlier runs that the handler has not reached.
    gives_up_earlier_steps: bool,
    /// New steps that begin when the handler is idle.
    held: Vec<SlotId>,
    /// New steps that begin when a running step has ended and its reserved space is free.
    held_for_space: Vec<SlotId>,
    /// New steps that begin after the `select` around them has polled its branches once without them.
    held_in_select: Vec<SlotId>,
    running: Vec<SlotId>,
    /// The number of checkpoints that end the leg.
    ending_checkpoints: u32,
    /// The number of new steps before which the leg ends.
    anchored: u32,
    /// True if the leg ends as soon as no step runs.
    ends_soon: bool,
    /// The number of futures that wait for abandoned steps.
    awaited_abandoned_steps: u32,
    /// The number of steps that wait because nobody can find out their effects.
    unresolved: u32,
    /// The number of operations of the store that run, without those of steps.
    storing: u32,
    /// The number of deliveries of the leg that texts for the store hold.
    submitted: u32,
    /// The number of notes that are in the state or in the store.
    written_notes: usize,
    /// True if a new step has begun or a `select` was decided: what follows has never happened before.
    is_past_history: bool,
    /// True if the handler used an answer in this leg that became stale: no new step begins.
    used_stale_answer: bool,
    /// True if answers have come and the handler was not idle since: the handler takes the answers before a step
    /// begins.
    has_new_answers: bool,
    round: u32,
    state_only: u8,
    /// A number that changes when a question is asked, answered or dropped.
    asks_version: u64,
    poll: PollState,
    context: PollContext,
    deferred: DeferredWork,
    observations: Observations,
}

/// The index of the entry of an awaited key, or `None` if the key is new.
#[derive(Clone, Copy, Debug)]
struct Recorded(Option<usize>);

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

/// An answer that has come.
#[derive(Debug)]
struct IncomingAnswer {
    received: ReceivedAnswer,
    /// True if the question was asked by hand and a handler has read the answer.
    was_read: bool,
    /// True if the future that asked was dropped before it took the answer.
    given_up: bool,
}

/// The reason for which a question was dropped that may be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskDrop {
    /// The handler unwound.
    Unwinding,
    /// Another branch of a race has ended.
    Race,
}

/// A question of the last round without a valid answer.
#[derive(Debug)]
struct UnansweredAsk {
    asked: AskRecord,
    cause: Unanswered,
}

/// The cause for which a question of the last round has no answer.
#[derive(Debug)]
enum Unanswered {
    /// The question did not leave, because its leg failed; or this leg brings answers to others of its round.
    NotCounted,
    /// This leg answers no question of its round.
    Missing,
    /// The fault of the answer that came, as text for the person.
    Invalid(String),
}

/// The state of the present poll of the handler.
#[derive(Debug, Default)]
struct PollState {
    number: u64,
    /// The identity of the waker of the handler's poll.
    root: WakerId,
    /// True from the beginning of the poll until the driver waits.
    is_active: bool,
    /// True if all recorded entries were replayed before the poll began. New outcomes are delivered only in such a
    /// poll, in its order.
    is_replayed: bool,
    /// True if a future that the handler's poll reaches may continue.
    poll_again: bool,
    /// The waker of the driver's task.
    parent: Option<Waker>,
    /// The number of polls in a row in which the handler woke itself.
    self_wakes: u32,
    /// True if the poll only shows which steps are still polled.
    is_probe: bool,
}

/// The context of the code that is polled now: its branch, and the step or check around it. [`Leg::enter`] sets the
/// context for a part of a poll.
#[derive(Clone, Copy, Debug, Default)]
pub struct PollContext {
    branch: BranchId,
    inside: Option<EnclosingBody>,
    /// True if a `select` polls its branches to see if one ends without a new step: no new step begins.
    holds_steps: bool,
}

#[derive(Clone, Copy, Debug)]
enum EnclosingBody {
    Step(SlotId),
    Check(SlotId),
}

/// The wakers and log events that the caller handles after it has unlocked the leg.
#[derive(Debug, Default)]
pub struct DeferredWork {
    /// The wakers to wake.
    pub wakes: Vec<Waker>,
    /// The wakers to drop. Dropping a waker may run foreign code.
    pub drops: Vec<Waker>,
    /// The events for the log.
    pub events: Vec<LogEvent>,
}

/// An event for the log.
#[derive(Clone, Debug)]
pub enum LogEvent {
    /// An answer is valid for its form, but does not decode as the handler's type. The question is asked again.
    AnswerTypeMismatch {
        /// The path of the question.
        path: String,
        /// The cause, without the value.
        cause: String,
    },
    /// A step was dropped while it ran. The step may have had its effect, and never runs again in this call.
    StepAborted {
        /// The path of the step.
        path: String,
    },
    /// The handler did not reach recorded steps, and the settings permit that.
    UnreplayedSteps {
        /// The paths of the steps.
        paths: Vec<String>,
    },
}

impl Leg {
    /// Begins the first leg of a call.
    // Not inlined: a function writes its result where the caller keeps it, and inlined code copies it there.
    #[inline(never)]
    pub fn begin(mut setup: Setup) -> Self {
        let watches = setup.purpose.watches();
        let unanswered = Self::shown_questions(std::mem::take(&mut setup.shown), 1).collect();
        let history = match setup.writes_ahead {
            true => History::of(Vec::new(), None, true),
            false => History::default(),
        };
        Self {
            began: setup.now,
            setup,
            call: None,
            status: Status::Running,
            history,
            inbox: Vec::new(),
            dropped: Vec::new(),
            unanswered,
            notes: Vec::new(),
            state: None,
            shown: Vec::new(),
            slots: Slots::default(),
            after_replay: Vec::new(),
            ended: Vec::new(),
            interrupted: Vec::new(),
            gives_up_earlier_steps: false,
            held: Vec::new(),
            held_for_space: Vec::new(),
            held_in_select: Vec::new(),
            running: Vec::new(),
            ending_checkpoints: 0,
            anchored: 0,
            ends_soon: false,
            awaited_abandoned_steps: 0,
            unresolved: 0,
            storing: 0,
            submitted: 0,
            written_notes: 0,
            is_past_history: false,
            used_stale_answer: false,
            has_new_answers: false,
            round: 1,
            state_only: 0,
            asks_version: 0,
            poll: PollState::default(),
            context: PollContext::default(),
            deferred: DeferredWork::default(),
            observations: Observations::watching(watches),
        }
    }

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

    /// Returns the time at which the leg began, in Unix seconds.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// Returns the call, if it has begun.
    pub fn begun_call(&self) -> Option<&Call> {
        self.call.as_ref()
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

    /// Returns `true` if nothing resolves any more in the present context.
    pub fn is_over(&self) -> bool {
        !matches!(self.status, Status::Running) || self.slots.is_abandoned_branch(self.context.branch)
    }

    /// Returns `true` if a step runs.
    pub fn has_running_step(&self) -> bool {
        self.slots.running() > 0 || self.storing > 0
    }

    /// Returns `true` if the handler's notifications must not be sent: an earlier leg has sent them, or the leg was
    /// cancelled.
    pub fn suppresses_output(&self) -> bool {
        self.is_cancelled() || self.is_repeating()
    }

    /// Returns `true` if the present code has already run in an earlier leg.
    fn is_repeating(&self) -> bool {
        let waits =
            |incoming: &IncomingAnswer| !incoming.given_up && incoming.received.asked.question.is_none();
        !self.is_past_history
            && (!self.history.is_replayed() || !self.unanswered.is_empty() || self.inbox.iter().any(waits))
    }

    /// Takes the work that must be done without the lock; `None` if there is none, as nearly always.
    pub fn take_deferred_work(&mut self) -> Option<DeferredWork> {
        let DeferredWork { wakes, drops, events } = &self.deferred;
        let is_empty = wakes.is_empty() && drops.is_empty() && events.is_empty();
        (!is_empty).then(|| std::mem::take(&mut self.deferred))
    }

    /// Finds the entry of a key that the handler begins to await here. Returns `None` if it may not: the leg is over, the
    /// key is in use, or the code is inside of a step. The leg stops in the last two cases.
    fn find_recorded(&mut self, kind: EntryKind, path: &str, site: CallSite) -> Option<Recorded> {
        if self.is_in_step(kind, path, site) || self.is_over() {
            return None;
        }
        let waiting = self.slots.find(kind, path).map(|slot| slot.site);
        let recorded = self.history.find(kind, path);
        let first = waiting.or_else(|| self.history.delivered_at(recorded?));
        let Some(first) = first else { return Some(Recorded(recorded)) };
        let (what, cure) = match kind {
            EntryKind::Step => ("The step", "a number from the program, `step((\"key\", i), ..)`"),
            EntryKind::Ask => ("The question", "`.key(\"..\")`, or a number from the program with `.nth(i)`"),
            EntryKind::Select => ("The select", "a number from the program, `select((\"key\", i), ..)`"),
            EntryKind::Checkpoint => {
                ("The checkpoint", "`.key(\"..\")`, or a number from the program with `.nth(i)`")
            }
        };
        self.stop(StopReason::Author(format!(
            "{what} `{path}` is used twice, at {first} and at {site}: a call uses each key once. Give it {cure}, or use \
             `ctx.scope(\"..\")`"
        )));
        None
    }

    fn is_in_step(&mut self, kind: EntryKind, path: &str, site: CallSite) -> bool {
        let name = |id| self.slots.get(id).map_or("", |slot| &slot.path);
        let step = match self.context.inside {
            None => return false,
            Some(EnclosingBody::Step(id)) => format!("the step `{}`", name(id)),
            Some(EnclosingBody::Check(id)) => format!("the check of `{}`", name(id)),
        };
        let what = match kind {
            EntryKind::Ask => "The question",
            EntryKind::Step => "The step",
            EntryKind::Select => "The select",
            EntryKind::Checkpoint => "The checkpoint",
        };
        self.stop(StopReason::Author(format!(
            "{what} `{path}` at {site} is inside of {step}. Await it before or after that"
        )));
        true
    }

    fn diverged(&mut self, path: &str, reason: &'static str) {
        let stop = StopReason::Diverged { path: path.to_owned(), reason, record: self.history.describe() };
        self.stop(stop);
    }

    fn incoming(&self, path: &str) -> Option<usize> {
        self.inbox.iter().position(|incoming| *incoming.received.asked.path == *path)
    }
}

impl From<ReceivedAnswer> for IncomingAnswer {
    fn from(received: ReceivedAnswer) -> Self {
        Self { received, was_read: false, given_up: false }
    }
}
