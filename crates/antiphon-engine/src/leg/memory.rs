//! The memory of a handler from leg to leg beside its entries: values that are read or created once, and its own state.

use crate::record::{HandlerState, Note, UrlReference};
use antiphon_wire::AskSupport;

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
