//! Notes: values that are read or created once and are the same on every later leg.

use super::Leg;
use crate::record::{Note, UrlReference};
use antiphon_wire::AskSupport;

impl Leg {
    /// Returns the kinds of questions that the client declared when the handler first looked.
    pub fn recorded_ask_support(&self) -> Option<AskSupport> {
        self.notes.iter().find_map(|note| match note {
            Note::Asks(asks) => Some(*asks),
            Note::UrlReference { .. } => None,
        })
    }

    /// Records the kinds of questions that the client declared.
    pub fn record_ask_support(&mut self, asks: AskSupport) {
        self.notes.push(Note::Asks(asks));
    }

    /// Returns the reference in the URL of this question.
    pub fn url_reference(&self, question: &str) -> Option<&UrlReference> {
        self.notes.iter().find_map(|note| match note {
            Note::UrlReference { path, reference } => (**path == *question).then_some(reference),
            Note::Asks(_) => None,
        })
    }

    /// Records the reference in the URL of this question, and replaces an older one.
    pub fn note_url_reference(&mut self, question: &str, reference: UrlReference) {
        self.notes.retain(|note| !matches!(note, Note::UrlReference { path, .. } if **path == *question));
        self.notes.push(Note::UrlReference { path: question.into(), reference });
    }
}
