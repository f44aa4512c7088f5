//! What a leg notes beside its entries: the memory of the handler, and observations for a run that must be the same.

use crate::record::{EntryKind, HandlerState, Note, StepOutcome, UrlReference};
use antiphon_wire::{AskSupport, InputRequest};
use std::sync::Arc;

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
