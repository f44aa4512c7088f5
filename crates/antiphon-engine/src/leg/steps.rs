//! The parts of a leg beside its slots and entries: the steps that run, the ends that it comes to because of them, the memory of the
//! handler, and observations for a run that must be the same.

use crate::{
    CallSite,
    leg::{
        replay::Replay,
        slot::{SlotId, StepPhase, Wake},
        slots::{Counted, Slots},
    },
    record::{EntryKind, HandlerState, Note, StepOutcome, UrlReference},
    step_waker::BodyState,
};
use antiphon_wire::{AskSupport, InputRequest};
use std::sync::Arc;

/// The steps of a leg, as far as their slots do not show it.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// The steps that run, in the order in which they began.
    running: Vec<SlotId>,
    /// New steps that begin after the `select` around them has polled its branches once without them. They are held in the present
    /// poll only.
    held_in_select: Vec<SlotId>,
    /// True if the steps of earlier runs do not wait any more for others of these that the handler has not reached.
    gives_up_earlier: bool,
    /// True if the call was cancelled and the handler does not know yet: its first new step does not run.
    refuses: bool,
}

/// The common state of the running steps of a leg.
#[derive(Debug)]
pub(super) enum RunningSteps {
    None,
    Polled,
    WakePending,
    Stalled(String, CallSite),
}

impl Steps {
    pub(super) fn of(refuses: bool) -> Self {
        Self { refuses, ..Self::default() }
    }

    pub(super) fn begin_poll(&mut self) {
        self.held_in_select.clear();
    }

    pub(super) fn hold_in_select(&mut self, id: SlotId) {
        self.held_in_select.push(id);
    }

    /// Takes the steps that a `select` has held in this poll.
    pub(super) fn take_held_in_select(&mut self) -> Vec<SlotId> {
        std::mem::take(&mut self.held_in_select)
    }

    pub(super) fn note_begin(&mut self, id: SlotId) {
        self.running.push(id);
    }

    pub(super) fn note_end(&mut self, id: SlotId) {
        self.running.retain(|running| *running != id);
    }

    /// Returns the steps that run, in the order in which they began.
    pub(super) fn running(&self) -> &[SlotId] {
        &self.running
    }

    /// Returns the step with this path that runs.
    pub(super) fn find_running(&self, path: &str, slots: &Slots) -> Option<SlotId> {
        let is_it = |id: &SlotId| slots.get(*id).is_some_and(|slot| *slot.path == *path);
        self.running.iter().copied().find(is_it)
    }

    /// Returns the common state of the running steps. The first step that is polled properly decides. `poll` is the number of the
    /// handler's last poll.
    pub(super) fn common_state(&self, slots: &Slots, poll: u64) -> RunningSteps {
        let mut stalled = RunningSteps::None;
        for id in &self.running {
            let Some(slot) = slots.get(*id) else { continue };
            let Some((_, running)) = slot.running_step() else { continue };
            let body_state = match running.root_poll {
                // Nothing between the step and the handler keeps wakers, and the handler was polled without polling the
                // step.
                Some(last) if last < poll => BodyState::Unpolled,
                _ => running.wake.body_state(),
            };
            match body_state {
                BodyState::Waiting => return RunningSteps::Polled,
                BodyState::WakePending => return RunningSteps::WakePending,
                BodyState::Unpolled => stalled = RunningSteps::Stalled(slot.path.to_string(), slot.site),
            }
        }
        stalled
    }

    /// Returns `true` if the next new step does not run, because the task was cancelled.
    pub(super) fn refuses(&self) -> bool {
        self.refuses
    }

    /// Notes that a step was refused. Later ones run: they compensate.
    pub(super) fn note_refused(&mut self) {
        self.refuses = false;
    }

    /// Returns `true` if a step of an earlier run waits until the handler has reached the others. In a set of futures, the outcome of
    /// one may lead to code that does not poll the rest, which then could not be reached any more.
    pub(super) fn waits_for_earlier(&self, replay: &Replay) -> bool {
        let waits = replay.slots().has(Counted::Ended) || replay.slots().has(Counted::Interrupted);
        waits
            && !self.gives_up_earlier
            && replay.history().is_replayed()
            && replay.history().has_unreplayed_steps()
    }

    /// Lets steps of earlier runs continue, although the handler has not reached the others.
    pub(super) fn give_up_earlier(&mut self) {
        self.gives_up_earlier = true;
    }
}

/// Makes the outcome due of the step that the handler has reached and that was the first to end in an earlier run.
pub(super) fn release_ended(replay: &mut Replay) -> Wake {
    if !replay.slots().has(Counted::Ended) || !replay.history().is_replayed() {
        return Wake(None);
    }
    let ended = replay.slots().iter().filter_map(|(id, slot)| match slot.step() {
        Some(StepPhase::Ended(at)) => Some((*at, id)),
        _ => None,
    });
    let Some((at, id)) = ended.min_by_key(|(at, _)| *at) else { return Wake(None) };
    replay.slots_mut().set_step(id, StepPhase::Recorded(at));
    replay.history_mut().make_due(at);
    Wake(Some(id))
}

/// Lets the steps begin again that an earlier run has begun. Returns them.
#[must_use]
pub(super) fn release_interrupted(replay: &mut Replay) -> Vec<SlotId> {
    if !replay.history().is_replayed() {
        return Vec::new();
    }
    let released = replay.slots().in_state(Counted::Interrupted);
    for id in &released {
        if let Some(StepPhase::Interrupted { at, .. }) = replay.slots().get(*id).and_then(|slot| slot.step())
        {
            let at = *at;
            replay.slots_mut().set_step(*id, StepPhase::Interrupted { at, may_begin: true });
        }
    }
    released
}

/// The means by which a leg ends before its handler has returned, and what its end waits for.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// True if the leg ends before its first new step.
    anchors: bool,
    /// The leg ends as soon as no step runs, at once or after its next new entry.
    soon: Soon,
    /// The number of legs that ended with state only.
    state_only_count: u8,
    /// The number of operations of the store that run, without those of steps.
    storing: u32,
}

/// An end of the leg that its runner requires.
#[derive(Debug, Default, PartialEq, Eq)]
enum Soon {
    #[default]
    No,
    AfterNextEntry,
    Now,
}

impl Ending {
    pub(super) fn of(anchors: bool, state_only_count: u8) -> Self {
        Self { anchors, state_only_count, ..Self::default() }
    }

    /// Ends the leg as soon as no step runs. No new step begins.
    pub(super) fn end_soon(&mut self) {
        (self.anchors, self.soon) = (true, Soon::Now);
    }

    /// Ends the leg as soon as no step runs and it has a new entry.
    pub(super) fn end_after_next_entry(&mut self) {
        if self.soon == Soon::No {
            self.soon = Soon::AfterNextEntry;
        }
    }

    /// Returns `true` if the leg ends as soon as no step runs. The function says if the leg has a new entry.
    pub(super) fn is_soon(&self, has_new_entry: impl FnOnce() -> bool) -> bool {
        match self.soon {
            Soon::No => false,
            Soon::AfterNextEntry => has_new_entry(),
            Soon::Now => true,
        }
    }

    /// Returns `true` if the leg ends before its next new step.
    pub(super) fn anchors(&self) -> bool {
        self.anchors
    }

    pub(super) fn state_only_count(&self) -> u8 {
        self.state_only_count
    }

    /// Counts this leg as one that ends with state only.
    pub(super) fn count_state_only(&mut self) {
        self.state_only_count = self.state_only_count.saturating_add(1);
    }

    /// Notes that an operation of the store has begun, or ended, without which the leg does not end.
    pub(super) fn store_operation(&mut self, begins: bool) {
        self.storing = if begins { self.storing + 1 } else { self.storing.saturating_sub(1) };
    }

    pub(super) fn is_storing(&self) -> bool {
        self.storing > 0
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
