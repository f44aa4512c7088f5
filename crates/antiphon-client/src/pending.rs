//! A call that waits for answers, as plain data.

use crate::{
    Call, ServerIdentity,
    answer::{AnswerError, AnswerFault, checked},
};
use antiphon_wire::{ElicitResult, InputRequest, InputRequests, InputResponses};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use std::fmt;

/// A call that waits for answers: everything that is needed to go on, in this process or another.
///
/// Plain data: write it as JSON text, keep it, read it back days later, and
/// [`resume`](super::Client::resume) it with a client of the same server.
///
/// # It holds a secret
/// The state of the call is inside. Where the server does not know who is calling, whoever has it can go on with the
/// call; and the answers are what a person typed. Keep a written pending call as you keep a password: readable for its
/// owner only, and removed once the call is over. `Debug` shows neither.
#[derive(Clone, Serialize, Deserialize)]
pub struct PendingCall {
    server: ServerIdentity,
    call: Call,
    round: u32,
    #[serde(default)]
    asks: InputRequests,
    #[serde(default)]
    answers: InputResponses,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl PendingCall {
    pub(crate) fn new(
        server: ServerIdentity,
        call: Call,
        round: u32,
        asks: InputRequests,
        state: Option<String>,
    ) -> Self {
        Self { server, call, round, asks, answers: InputResponses::new(), state }
    }

    /// Who asks.
    pub fn server(&self) -> &ServerIdentity {
        &self.server
    }

    /// What was called.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// To change its timeouts and its cancellation, which are not written with it.
    pub fn call_mut(&mut self) -> &mut Call {
        &mut self.call
    }

    /// Which round of the call this is; the first is 1. 0 if nothing was asked yet.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The asks, in the server's order. None if the server only wants its state back.
    pub fn asks(&self) -> &InputRequests {
        &self.asks
    }

    /// The answers so far.
    pub fn answers(&self) -> &InputResponses {
        &self.answers
    }

    /// The keys that have no answer yet.
    pub fn missing(&self) -> Vec<&str> {
        self.asks.iter().map(|(key, _)| key).filter(|key| self.answers.get(key).is_none()).collect()
    }

    /// Whether the server can tell that its state came back.
    pub fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Sets an answer: an [`ElicitResult`], [`CreateMessageResult`](antiphon_wire::CreateMessageResult) or
    /// [`ListRootsResult`](antiphon_wire::ListRootsResult), or JSON of the same shape. It is checked against the ask,
    /// and a form's defaults are filled in.
    ///
    /// # Errors
    /// [`AnswerError`] if nobody asked this, or the answer does not fit. Nothing is changed then.
    pub fn answer(&mut self, key: &str, answer: &impl Serialize) -> Result<(), AnswerError> {
        let ask = self.ask(key)?;
        let kind = ask.kind();
        let wrong = |kind| AnswerError::new(key, AnswerFault::WrongKind(kind));
        let given = serde_json::value::to_raw_value(answer).map_err(|_| wrong(kind))?;
        let answer = checked(key, ask, &given)?;
        self.answers.insert(key, &answer).map_err(|_| wrong(kind))
    }

    /// Fills in a form, or agrees to a URL: [`answer`](Self::answer) with the content only.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn accept(&mut self, key: &str, content: &impl Serialize) -> Result<(), AnswerError> {
        let content = match serde_json::to_value(content) {
            Ok(Value::Object(content)) => content,
            Ok(Value::Null) => return self.answer(key, &ElicitResult::consent()),
            _ => {
                let kind = self.ask(key)?.kind();
                return Err(AnswerError::new(key, AnswerFault::WrongKind(kind)));
            }
        };
        self.answer(key, &ElicitResult::accept(content))
    }

    /// The person said no: an answer, which the server is told.
    ///
    /// # Errors
    /// [`AnswerError`] if nobody asked this, or it is neither a form nor a URL.
    pub fn decline(&mut self, key: &str) -> Result<(), AnswerError> {
        self.refuse(key, &ElicitResult::decline())
    }

    /// The person went away without choosing: an answer, which the server is told.
    ///
    /// # Errors
    /// [`AnswerError`] if nobody asked this, or it is neither a form nor a URL.
    pub fn cancel(&mut self, key: &str) -> Result<(), AnswerError> {
        self.refuse(key, &ElicitResult::cancel())
    }

    /// Says that the same server is now reached elsewhere. Its state and the answers will be sent there.
    pub fn retarget(&mut self, target: impl Into<String>) {
        self.server.target = target.into();
    }

    fn refuse(&mut self, key: &str, answer: &ElicitResult) -> Result<(), AnswerError> {
        match self.ask(key)? {
            InputRequest::Elicit(_) => self.answer(key, answer),
            other => Err(AnswerError::new(key, AnswerFault::CannotDecline(other.kind()))),
        }
    }

    fn ask(&self, key: &str) -> Result<&InputRequest, AnswerError> {
        self.asks.get(key).ok_or_else(|| {
            let asked = self.asks.iter().map(|(key, _)| key.to_owned()).collect();
            AnswerError::new(key, AnswerFault::UnknownKey { asked })
        })
    }

    /// What the next leg carries, in the server's order and checked once more: a pending call may have been written
    /// and read in between.
    pub(crate) fn outgoing(&self) -> Result<Outgoing<'_>, NotReady> {
        let mut answers = InputResponses::new();
        for (key, ask) in self.asks.iter() {
            let Some(answer) = self.answers.get(key) else {
                return Err(NotReady::Missing(self.missing().into_iter().map(str::to_owned).collect()));
            };
            let answer: Box<RawValue> = checked(key, ask, answer).map_err(NotReady::Bad)?;
            // A raw value is JSON already.
            let _ = answers.insert(key, &answer);
        }
        Ok(Outgoing { answers: (!answers.is_empty()).then_some(answers), state: self.state.as_deref() })
    }
}

/// What a leg carries beside the call.
#[derive(Default)]
pub(crate) struct Outgoing<'a> {
    pub(crate) answers: Option<InputResponses>,
    pub(crate) state: Option<&'a str>,
}

/// Why a leg cannot be sent yet.
pub(crate) enum NotReady {
    Missing(Vec<String>),
    Bad(AnswerError),
}

impl fmt::Debug for PendingCall {
    /// Without state and answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asks: Vec<(&str, &str)> = self.asks.iter().map(|(key, ask)| (key, ask.method())).collect();
        f.debug_struct("PendingCall")
            .field("server", &self.server)
            .field("call", &self.call)
            .field("round", &self.round)
            .field("asks", &asks)
            .field("answered", &self.answers)
            .field("has_state", &self.has_state())
            .finish_non_exhaustive()
    }
}
