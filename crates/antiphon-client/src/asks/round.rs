//! One round of asks with the answers so far.

use crate::asks::answers::{AnswerError, AnswerFault, checked};
use antiphon_wire::{ElicitResult, InputRequest, InputRequests, InputResponses, KnownAsk};
use serde::Serialize;

/// The asks of one round in the server's order, and the answers so far. Every answer in it was checked against its ask.
#[derive(Clone, Default)]
pub(crate) struct AskRound {
    /// The number of the round in its call. The first is 1; 0 if nothing was asked yet.
    pub(crate) number: u32,
    pub(crate) asks: InputRequests,
    pub(crate) answers: InputResponses,
}

impl AskRound {
    pub(crate) fn new(number: u32, asks: InputRequests) -> Self {
        Self { number, asks, answers: InputResponses::new() }
    }

    /// A round of a single ask.
    pub(crate) fn of_one(number: u32, key: &str, ask: InputRequest) -> Self {
        let mut asks = InputRequests::new();
        // An ask that was read can be written.
        let _ = asks.insert(key, ask);
        Self::new(number, asks)
    }

    /// The keys that have no answer yet.
    pub(crate) fn missing(&self) -> Vec<&str> {
        self.asks.iter().map(|(key, _)| key).filter(|key| self.answers.get(key).is_none()).collect()
    }

    /// The ask of this key.
    pub(crate) fn ask(&self, key: &str) -> Result<&InputRequest, AnswerError> {
        self.asks.get(key).ok_or_else(|| {
            let asked = self.asks.iter().map(|(key, _)| key.to_owned()).collect();
            AnswerError::new(key, AnswerFault::UnknownKey { asked })
        })
    }

    /// Checks an answer and sets it. Nothing is changed if it does not fit.
    pub(crate) fn answer(&mut self, key: &str, answer: &impl Serialize) -> Result<(), AnswerError> {
        let ask = self.ask(key)?;
        let kind = ask.kind();
        let wrong = |kind| AnswerError::new(key, AnswerFault::WrongKind(kind));
        let given = serde_json::value::to_raw_value(answer).map_err(|_| wrong(kind))?;
        let answer = checked(key, ask, &given)?;
        self.answers.insert(key, &answer).map_err(|_| wrong(kind))
    }

    /// Sets the answer to a form or a URL that the person declined or cancelled.
    pub(crate) fn refuse(&mut self, key: &str, answer: &ElicitResult) -> Result<(), AnswerError> {
        let ask = self.ask(key)?;
        let can_decline = match ask.known() {
            Ok(KnownAsk::Form { .. } | KnownAsk::Url { .. }) => true,
            Ok(KnownAsk::Sampling(_) | KnownAsk::Roots) => false,
            // An elicitation of any mode has the same three actions.
            Err(unknown) => unknown.is_elicitation(),
        };
        match can_decline {
            true => self.answer(key, answer),
            false => Err(AnswerError::new(key, AnswerFault::CannotDecline(ask.kind()))),
        }
    }
}
