//! One leg of one call: its state, and what begins and ends a poll of its handler.

mod ask;
mod by_hand;
mod checkpoint;
mod end;
mod history;
mod next_action;
mod notes;
mod observations;
mod pending;
mod poll;
mod select;
mod slots;
mod stale;
mod step;

pub use ask::{AskPoll, DecodeCheck, Question};
pub use by_hand::AnsweredAsk;
pub use end::LegOutput;
pub use next_action::{GraceReason, NextAction};
pub use observations::Observations;
pub use pending::PendingAsk;
pub use slots::{BranchId, SlotId};
pub use step::StepPoll;

use crate::{
    CallSite,
    answer::too_long,
    limits::Limits,
    record::{AskRecord, EntryKind, HandlerState, Migration, Note, ReceivedAnswer, Record},
    stop::StopReason,
};
use antiphon_seal::Call;
use antiphon_wire::InputResponses;
use history::History;
use slots::{Slots, WakerId};
use std::task::Waker;

/// Room that is kept free in the record before a step runs, besides for its outcome: one question finds room behind it.
const RESERVED_SPACE: usize = 512;

/// The way in which an answer reaches the handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// With the next leg: a question ends this one.
    #[default]
    NextLeg,
    /// While this leg runs: the handler waits for it.
    ThisLeg,
}

/// The purpose of a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// For its result.
    #[default]
    Serve,
    /// For its result, and for whoever wants to see what the handler gives up.
    Observe,
    /// Only to see whether the handler comes to the same again: no step runs, no checkpoint ends it.
    DryRun,
}

/// The settings of a leg.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The bounds of the call.
    pub limits: Limits,
    /// The way in which answers reach the handler.
    pub delivery: Delivery,
    /// The purpose of the leg.
    pub purpose: Purpose,
    /// Steps that this version of the tool runs before recorded ones.
    pub migration: Migration,
    /// Recorded steps that are not met do not end the call.
    pub lenient: bool,
    /// When the leg begins, in Unix seconds.
    pub now: u64,
}

/// One leg of one call.
#[derive(Debug)]
pub struct Leg {
    setup: Setup,
    /// `None` until something needs it: a call that never asks has no id.
    call: Option<Call>,
    status: Status,
    history: History,
    /// Answers that have come and were not delivered, and those to questions asked by hand.
    inbox: Vec<IncomingAnswer>,
    /// Questions of the last round that were not answered.
    unanswered: Vec<UnansweredAsk>,
    notes: Vec<Note>,
    /// The handler's own state, from the last leg that asked by hand.
    state: Option<HandlerState>,
    slots: Slots,
    /// Futures that go on once all that is recorded was met.
    after_replay: Vec<SlotId>,
    /// New steps that begin once the handler is at rest.
    held: Vec<SlotId>,
    /// New steps that begin once another one has ended.
    held_for_space: Vec<SlotId>,
    /// New steps that could begin but for a `select` that looks at its branches first.
    held_in_select: Vec<SlotId>,
    running: Vec<SlotId>,
    /// Checkpoints that end the leg.
    ending_checkpoints: u32,
    /// Abandoned steps that are waited for.
    awaited_abandoned_steps: u32,
    /// A new step has begun.
    is_past_history: bool,
    /// An answer that the handler has used in this leg does not count any more: no step begins.
    used_stale_answer: bool,
    /// Answers have come, and the handler has not been at rest since: they are taken before a step begins.
    has_new_answers: bool,
    round: u32,
    state_only: u8,
    /// Changes whenever a question is asked, or no longer.
    asks_version: u64,
    poll: PollState,
    context: PollContext,
    deferred: DeferredWork,
    observations: Observations,
}

/// The status of a leg.
#[derive(Debug, Default)]
enum Status {
    #[default]
    Running,
    Stopping(StopReason),
    /// Nobody waits for it: what runs comes to its end, nothing resolves.
    Cancelled,
    Ended,
}

/// An answer that has come.
#[derive(Debug)]
struct IncomingAnswer {
    received: ReceivedAnswer,
    /// A handler has read it, if it was asked by hand.
    was_read: bool,
    /// The future that asked it was dropped before it took it.
    given_up: bool,
}

/// A question of the last round without an answer that counts, and why the one that came does not.
#[derive(Debug)]
struct UnansweredAsk {
    asked: AskRecord,
    fault: Option<String>,
}

/// The state of the present poll of the handler.
#[derive(Debug, Default)]
struct PollState {
    number: u64,
    /// The waker of the handler's poll.
    root: WakerId,
    /// From its beginning until its driver waits.
    is_active: bool,
    /// All that is recorded was met when it began: what is new is delivered in such a poll only, in its order.
    is_replayed: bool,
    /// Something that was reached by polling the handler may go on.
    poll_again: bool,
    /// The driver's own.
    parent: Option<Waker>,
    /// Polls in a row in which the handler has woken itself while new steps waited.
    self_wakes: u32,
    /// The poll only shows which steps are still polled.
    is_probe: bool,
}

/// The place of what is polled now: which branch, and whether in the body of a step. Set for a part of a poll with
/// [`Leg::enter`], and put back behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PollContext {
    branch: BranchId,
    inside: Option<EnclosingBody>,
    /// A `select` looks whether a branch comes to its end without a new step: none begins.
    holds_steps: bool,
}

#[derive(Clone, Copy, Debug)]
enum EnclosingBody {
    Step(SlotId),
    Check(SlotId),
}

/// The wakers and log messages to be dealt with once the leg is unlocked.
#[derive(Debug, Default)]
pub struct DeferredWork {
    /// Wakers to be woken.
    pub wakes: Vec<Waker>,
    /// Wakers to be dropped: that may run foreign code.
    pub drops: Vec<Waker>,
    /// Messages for the log.
    pub events: Vec<LogEvent>,
}

/// Something for the log.
#[derive(Clone, Debug)]
pub enum LogEvent {
    /// An answer fits its form and not its type: it is asked again.
    AnswerTypeMismatch {
        /// The question.
        path: String,
        /// The cause, without the value.
        cause: String,
    },
    /// A step was dropped while it ran: it may have acted, and never runs again in this call.
    StepAborted {
        /// The step.
        path: String,
    },
    /// Recorded steps were not met, and that is permitted.
    UnreplayedSteps {
        /// Their paths.
        paths: Vec<String>,
    },
}

impl Leg {
    /// A first leg.
    pub fn begin(setup: Setup) -> Self {
        let watches = setup.purpose.watches();
        Self {
            setup,
            call: None,
            status: Status::Running,
            history: History::default(),
            inbox: Vec::new(),
            unanswered: Vec::new(),
            notes: Vec::new(),
            state: None,
            slots: Slots::default(),
            after_replay: Vec::new(),
            held: Vec::new(),
            held_for_space: Vec::new(),
            held_in_select: Vec::new(),
            running: Vec::new(),
            ending_checkpoints: 0,
            awaited_abandoned_steps: 0,
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

    /// A later leg, with the answers to the questions that were awaited. Those that were asked by hand were received by
    /// [`Record::receive`].
    pub fn resume(call: Call, record: Record, responses: Option<&InputResponses>, setup: Setup) -> Self {
        let mut room = setup
            .limits
            .state
            .saturating_sub(record.size())
            .saturating_sub(setup.limits.step_result)
            .saturating_sub(RESERVED_SPACE);
        let mut leg = Self::begin(setup);
        leg.call = Some(call);
        leg.history = History::of(record.entries);
        leg.inbox.extend(record.received.into_iter().map(IncomingAnswer::from));
        (leg.notes, leg.state) = (record.notes, record.state);
        (leg.round, leg.state_only) = (record.round.saturating_add(1), record.state_only);
        leg.has_new_answers = responses.is_some() || !leg.inbox.is_empty();
        for mut asked in record.asked {
            if let Some(reason) = asked.not_asked.take() {
                let fault = (!reason.is_empty()).then(|| reason.into());
                leg.unanswered.push(UnansweredAsk { asked, fault });
                continue;
            }
            let sent = responses.and_then(|responses| responses.get(&asked.path)).map(|text| text.get());
            let is_over = asked.deadline.is_some_and(|deadline| leg.setup.now > deadline);
            match sent {
                _ if is_over => leg.inbox.push(ReceivedAnswer { asked, text: None, response: None }.into()),
                None => leg.unanswered.push(UnansweredAsk { asked, fault: None }),
                // A short one is not at fault where the record is full.
                Some(text) if text.len() > room.max(RESERVED_SPACE) => {
                    leg.unanswered
                        .push(UnansweredAsk { asked, fault: Some(too_long(room.max(RESERVED_SPACE))) });
                }
                Some(text) => {
                    room = room.saturating_sub(text.len());
                    leg.inbox
                        .push(ReceivedAnswer { asked, text: Some(text.to_owned()), response: None }.into());
                }
            }
        }
        leg
    }

    /// The call, which begins where it is first needed. The leg ends if it cannot.
    pub fn call(&mut self, begin: impl FnOnce() -> Result<Call, String>) -> Option<&Call> {
        if self.call.is_none() {
            match begin() {
                Ok(call) => self.call = Some(call),
                Err(fault) => self.stop(StopReason::Author(fault)),
            }
        }
        self.call.as_ref()
    }

    /// The call, if it has begun.
    pub fn begun_call(&self) -> Option<&Call> {
        self.call.as_ref()
    }

    /// Sets the time, in Unix seconds, where a leg waits for people.
    pub fn set_now(&mut self, now: u64) {
        self.setup.now = now;
    }

    /// The way in which answers reach the handler.
    pub fn delivery(&self) -> Delivery {
        self.setup.delivery
    }

    /// Ends the leg, unless something has ended it. The first fault is the one that counts.
    pub fn stop(&mut self, stop: StopReason) {
        if matches!(self.status, Status::Running) {
            self.status = Status::Stopping(stop);
        }
    }

    /// Nothing resolves from here on, and no attempt of a step begins.
    pub fn cancel(&mut self) {
        if matches!(self.status, Status::Running | Status::Stopping(_)) {
            self.status = Status::Cancelled;
        }
    }

    /// Returns whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.status, Status::Cancelled)
    }

    /// Returns whether nothing resolves any more where the handler is polled now.
    pub fn is_over(&self) -> bool {
        !matches!(self.status, Status::Running) || self.slots.is_abandoned_branch(self.context.branch)
    }

    /// Returns whether a step runs.
    pub fn has_running_step(&self) -> bool {
        self.slots.running() > 0
    }

    /// Returns whether what the handler sends now was sent by an earlier leg, or is for nobody.
    pub fn suppresses_output(&self) -> bool {
        self.is_cancelled() || self.is_repeating()
    }

    /// Returns whether what happens now has happened in an earlier leg.
    fn is_repeating(&self) -> bool {
        let waits =
            |incoming: &IncomingAnswer| !incoming.given_up && incoming.received.asked.question.is_none();
        !self.is_past_history
            && (!self.history.is_replayed() || !self.unanswered.is_empty() || self.inbox.iter().any(waits))
    }

    /// Takes what is to be done without a lock.
    pub fn take_deferred_work(&mut self) -> DeferredWork {
        std::mem::take(&mut self.deferred)
    }

    /// Returns whether something of this kind may be awaited where it is, once, and not within a step.
    fn may_await(&mut self, kind: EntryKind, path: &str, site: CallSite) -> bool {
        if self.is_in_step(kind, path, site) || self.is_over() {
            return false;
        }
        let waiting = self.slots.find(kind, path).map(|slot| slot.site);
        let first = waiting.or_else(|| self.history.delivered_at(self.history.find(kind, path)?));
        let Some(first) = first else { return true };
        let (what, cure) = match kind {
            EntryKind::Step => ("The step", "a number from the program, `step((\"key\", i), ..)`"),
            EntryKind::Ask => ("The question", "`.key(\"..\")`, or a number from the program with `.nth(i)`"),
            EntryKind::Select => ("The select", "a number from the program, `select((\"key\", i), ..)`"),
            EntryKind::Checkpoint => {
                ("The checkpoint", "`.key(\"..\")`, or a number from the program with `.nth(i)`")
            }
        };
        self.stop(StopReason::Author(format!(
            "{what} `{path}` is used twice, at {first} and at {site}: one key, one use. Give it {cure}, or use \
             `ctx.scope(\"..\")`"
        )));
        false
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
            "{what} `{path}` at {site} is inside of {step}, which runs to its end by itself: await it before or behind that"
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
