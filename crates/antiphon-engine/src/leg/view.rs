//! The methods with which the code of a handler reads from its leg, and notes something in it.

use super::{AnsweredAsk, AnsweredQuestion, Leg};
use crate::record::{EntryKind, UrlReference};
use antiphon_wire::AskSupport;

impl Leg {
    /// Returns the kinds of questions that the client declared when the handler first looked.
    pub fn recorded_ask_support(&self) -> Option<AskSupport> {
        self.memory.ask_support()
    }

    /// Records the kinds of questions that the client declared.
    pub fn record_ask_support(&mut self, asks: AskSupport) {
        self.memory.note_ask_support(asks);
    }

    /// Returns the reference in the URL of this question.
    pub fn url_reference(&self, question: &str) -> Option<&UrlReference> {
        self.memory.url_reference(question)
    }

    /// Records the reference in the URL of this question, and replaces an older one.
    pub fn note_url_reference(&mut self, question: &str, reference: UrlReference) {
        self.memory.note_url_reference(question, reference);
    }

    /// Returns the handler's own state.
    pub fn state(&self) -> Option<&str> {
        self.memory.state()
    }

    /// Returns the answers to the questions that the handler returned.
    pub fn answered_by_hand(&mut self) -> Vec<AnsweredAsk> {
        self.asks.inbox_mut().answered_by_hand()
    }

    /// Notes that the handler reads the answer to a question that it returned. Returns `true` if the answer is still
    /// valid.
    pub fn read_by_hand(&mut self, key: &str) -> bool {
        self.asks.inbox_mut().read(key)
    }

    /// Returns the questions whose answers the handler has received, in the order in which it received them. Answers to
    /// questions that the handler returned are those of the last round. Each leg of the call begins with the same ones.
    pub fn answered_questions(&mut self) -> Vec<AnsweredQuestion<'_>> {
        self.asks.answered(&mut self.replay)
    }

    /// Returns `true` if the question with this path has an answer, or was agreed to in an earlier leg.
    pub fn has_answer(&mut self, path: &str) -> bool {
        self.replay.history_mut().find(EntryKind::Ask, path).is_some()
            || self.asks.inbox().find(path).is_some()
    }

    /// Returns the id of a URL question to which the author gave none. The id is the same each time the question is
    /// asked.
    pub fn elicitation_id(&self, path: &str) -> Option<String> {
        // No scope can have this name, because `#` is not allowed in keys.
        Some(self.call.as_ref()?.secret().idempotency_key("#elicitation", path))
    }

    /// Notes that a question failed. The handler may drop futures beside it because of that.
    pub fn note_refusal(&mut self) {
        self.observations.note_failure();
    }

    /// Returns `true` if the handler has met the cancellation of its task, or there is none.
    pub fn has_met_cancellation(&self) -> bool {
        !self.steps.refuses()
    }
}
