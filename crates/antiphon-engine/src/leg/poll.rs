//! The polls of the handler: the context of the polled code, and the work that waits until the leg is unlocked; also what the leg notes
//! in them: the memory of the handler, and observations for a run that must be the same.

use super::slot::{BranchId, SlotId, SlotWaker, WakerId};
use crate::record::{EntryKind, HandlerState, Note, StepOutcome, UrlReference};
use antiphon_wire::{AskSupport, InputRequest};
use std::{sync::Arc, task::Waker};

/// The number of polls in a row in which the handler may wake itself before new steps begin.
const BUSY_POLLS: u32 = 64;

/// The present poll of the handler, and what it leaves to do.
#[derive(Debug, Default)]
pub(super) struct Polls {
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
    context: PollContext,
    deferred: DeferredWork,
}

/// The context of the code that is polled now: its branch, and the step or check around it.
/// [`Leg::enter`](super::Leg::enter) sets the context for a part of a poll.
#[derive(Clone, Copy, Debug, Default)]
pub struct PollContext {
    branch: BranchId,
    inside: Option<EnclosingBody>,
    /// True if a `select` polls its branches to see if one ends without a new step: no new step begins.
    holds_steps: bool,
}

/// The body around the code that is polled now. No future of the leg may be awaited in it.
#[derive(Clone, Copy, Debug)]
pub(super) enum EnclosingBody {
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

impl PollContext {
    pub(super) fn in_branch(self, branch: BranchId, holds_steps: bool) -> Self {
        Self { branch, holds_steps: self.holds_steps || holds_steps, ..self }
    }

    pub(super) fn inside(self, body: EnclosingBody) -> Self {
        Self { inside: Some(body), ..self }
    }
}

impl Polls {
    pub(super) fn begin(&mut self, waker: &Waker, parent: &Waker, is_replayed: bool) {
        self.number += 1;
        self.is_replayed = is_replayed;
        (self.is_active, self.poll_again, self.root) = (true, false, WakerId::of(waker));
        if !self.parent.as_ref().is_some_and(|known| known.will_wake(parent)) {
            self.deferred.drops.extend(self.parent.replace(parent.clone()));
        }
        self.context = PollContext::default();
    }

    pub(super) fn end(&mut self) {
        self.root = WakerId::default();
    }

    pub(super) fn enter(&mut self, context: PollContext) -> PollContext {
        std::mem::replace(&mut self.context, context)
    }

    pub(super) fn context(&self) -> PollContext {
        self.context
    }

    /// Returns the branch of the code that is polled now.
    pub(super) fn branch(&self) -> BranchId {
        self.context.branch
    }

    /// Returns the step or check around the code that is polled now.
    pub(super) fn enclosing_body(&self) -> Option<EnclosingBody> {
        self.context.inside
    }

    /// Returns `true` if no new step begins in this part of the poll.
    pub(super) fn holds_steps(&self) -> bool {
        self.context.holds_steps
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns `true` if all recorded entries were replayed before the poll began.
    pub(super) fn is_replayed(&self) -> bool {
        self.is_replayed
    }

    /// Returns `true` if this is the waker of the handler's poll.
    pub(super) fn is_root(&self, waker: &Waker) -> bool {
        WakerId::of(waker) == self.root
    }

    /// Wakes a future by its waker.
    pub(super) fn wake(&mut self, waker: SlotWaker) {
        match waker {
            SlotWaker::None => {}
            SlotWaker::Foreign(waker) => self.deferred.wakes.push(waker),
            SlotWaker::Root if self.is_active => self.poll_again = true,
            SlotWaker::Root => self.deferred.wakes.extend(self.parent.clone()),
        }
    }

    /// Drops a waker when the leg is unlocked.
    pub(super) fn drop_later(&mut self, waker: Option<Waker>) {
        self.deferred.drops.extend(waker);
    }

    pub(super) fn log(&mut self, event: LogEvent) {
        self.deferred.events.push(event);
    }

    /// Takes the work that must be done without the lock; `None` if there is none, as nearly always.
    pub(super) fn take_deferred_work(&mut self) -> Option<DeferredWork> {
        let DeferredWork { wakes, drops, events } = &self.deferred;
        let is_empty = wakes.is_empty() && drops.is_empty() && events.is_empty();
        (!is_empty).then(|| std::mem::take(&mut self.deferred))
    }

    /// Returns `true` if a future that the handler's poll reaches may continue.
    pub(super) fn has_more(&self) -> bool {
        self.poll_again
    }

    /// Returns `true` if the waker of a combinator is woken when the leg is unlocked.
    pub(super) fn wakes_others(&self) -> bool {
        !self.deferred.wakes.is_empty()
    }

    /// Notes the decision after a poll. If the driver waits, a wake goes to the driver from now on.
    pub(super) fn go_on(&mut self, polls_again: bool) {
        self.is_active = polls_again;
    }

    /// Makes the next poll one that only shows which steps are still polled.
    pub(super) fn probe(&mut self) {
        self.is_probe = true;
    }

    /// Returns `true` if the poll only showed which steps are still polled.
    pub(super) fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.is_probe)
    }

    /// Notes that the handler woke itself. Returns `true` if it did so in too many polls in a row.
    pub(super) fn count_self_wake(&mut self) -> bool {
        self.self_wakes += 1;
        self.self_wakes > BUSY_POLLS
    }

    /// Notes that the handler is idle, or that steps have begun.
    pub(super) fn forget_self_wakes(&mut self) {
        self.self_wakes = 0;
    }
}

/// The notes and the state of a handler.
#[derive(Debug, Default)]
pub(super) struct HandlerMemory {
    notes: Vec<Note>,
    /// The number of notes at the beginning of the list that are in the state or in the store.
    written: usize,
    /// The number of notes ever, with those that others have replaced.
    all: usize,
    /// The handler's own state, from the last leg that asked by hand.
    state: Option<HandlerState>,
}

impl HandlerMemory {
    pub(super) fn of(notes: Vec<Note>, state: Option<HandlerState>) -> Self {
        Self { written: notes.len(), all: notes.len(), notes, state }
    }

    /// Returns the kinds of questions that the client declared when the handler first looked.
    pub(super) fn ask_support(&self) -> Option<AskSupport> {
        self.notes.iter().find_map(|note| match note {
            Note::Asks(asks) => Some(*asks),
            Note::UrlReference { .. } => None,
        })
    }

    pub(super) fn note_ask_support(&mut self, asks: AskSupport) {
        self.push(Note::Asks(asks));
    }

    /// Returns the reference in the URL of this question.
    pub(super) fn url_reference(&self, question: &str) -> Option<&UrlReference> {
        self.notes.iter().find_map(|note| match note {
            Note::UrlReference { path, reference } => (**path == *question).then_some(reference),
            Note::Asks(_) => None,
        })
    }

    /// Notes the reference in the URL of this question, and replaces an older one.
    pub(super) fn note_url_reference(&mut self, question: &str, reference: UrlReference) {
        let is_of = |note: &Note| matches!(note, Note::UrlReference { path, .. } if **path == *question);
        if let Some(at) = self.notes.iter().position(is_of) {
            self.notes.remove(at);
            self.written -= usize::from(at < self.written);
        }
        self.push(Note::UrlReference { path: question.into(), reference });
    }

    fn push(&mut self, note: Note) {
        self.notes.push(note);
        self.all += 1;
    }

    /// Returns the number of notes ever, and those that are not in the store.
    pub(super) fn unwritten(&self) -> (usize, &[Note]) {
        (self.all, self.notes.get(self.written..).unwrap_or_default())
    }

    /// Notes that the notes up to this number are in the store.
    pub(super) fn note_written(&mut self, notes: usize) {
        // If one that came later was replaced, a note is written once more: the store has the last one of each path.
        let later = self.all.saturating_sub(notes);
        self.written = self.written.max(self.notes.len().saturating_sub(later));
    }

    /// Returns the handler's own state.
    pub(super) fn state(&self) -> Option<&str> {
        self.state.as_ref().map(|state| state.text.as_str())
    }

    pub(super) fn set_state(&mut self, state: Option<HandlerState>) {
        self.state = state;
    }

    /// Forgets the state if it is of a later round than this one: it holds what the handler learned by hand. Returns `true` if it
    /// did.
    pub(super) fn forget_after(&mut self, round: u32) -> bool {
        self.state.take_if(|state| state.round > round).is_some()
    }

    /// Takes the notes and the state for the next leg.
    pub(super) fn take(&mut self) -> (Vec<Note>, Option<HandlerState>) {
        (std::mem::take(&mut self.notes), self.state.take())
    }
}

/// The observations of one leg.
#[derive(Debug, Default)]
pub struct Observations {
    /// True if the leg records what the handler drops.
    watches: bool,
    /// True if a step or a question failed in the present poll. Futures beside it are then dropped because of that
    /// recorded error.
    failed: bool,
    /// The new step that a dry run reached.
    pub would_run: Option<Arc<str>>,
    /// The steps that wait for the next leg because this one has no state yet.
    pub anchored: Vec<Arc<str>>,
    /// The questions and steps that were dropped before they resolved, although the leg continued.
    pub dropped: Vec<(EntryKind, Arc<str>)>,
    /// The steps that were dropped while they ran.
    pub aborted_steps: Vec<Arc<str>>,
    /// The kinds of questions that the client has proven to support by answering.
    pub proven_support: AskSupport,
    /// True if the leg ended at a checkpoint.
    pub at_checkpoint: bool,
    /// True if the leg ended although code could still wake the handler, or with steps that wait for the next leg. The
    /// point that the handler reached then depends on time.
    pub ended_early: bool,
}

impl Observations {
    pub(super) fn watching(watches: bool) -> Self {
        Self { watches, ..Self::default() }
    }

    pub(super) fn note_outcome(&mut self, outcome: &StepOutcome) {
        self.failed |= matches!(outcome, StepOutcome::Failed(_));
    }

    /// Notes that a question failed.
    pub(super) fn note_failure(&mut self) {
        self.failed = true;
    }

    /// Notes the end of a poll. An error may make the handler drop other futures some polls later.
    pub(super) fn end_poll(&mut self, polls_again: bool) {
        self.failed &= polls_again;
    }

    pub(super) fn note_answer(&mut self, question: &InputRequest) {
        self.proven_support = self.proven_support.and(question.needs());
    }

    pub(super) fn note_dropped(&mut self, kind: EntryKind, path: &str) {
        if self.watches && !self.failed {
            self.dropped.push((kind, path.into()));
        }
    }

    pub(super) fn note_aborted(&mut self, path: &str) {
        if self.watches {
            self.aborted_steps.push(path.into());
        }
    }

    /// Notes the step that a dry run does not run.
    pub(super) fn note_unrun(&mut self, path: &Arc<str>) {
        self.would_run.get_or_insert_with(|| path.clone());
    }

    pub(super) fn note_anchored(&mut self, path: Arc<str>) {
        self.anchored.push(path);
    }

    /// Notes the end of the leg with a round.
    pub(super) fn note_end(&mut self, at_checkpoint: bool, is_early: bool) {
        self.at_checkpoint = at_checkpoint;
        self.ended_early |= is_early;
    }

    /// Notes that the leg ends although code could still wake the handler.
    pub(super) fn note_early_end(&mut self) {
        self.ended_early = true;
    }
}
