//! A call that waits for answers, as plain data.

use crate::{
    asks::{
        AskRound,
        answers::{AnswerError, AnswerFault, checked, refuse_other_schemes},
        questions::ServerIdentity,
    },
    call::{Call, CallOptions, must_be_known},
};
use antiphon_wire::{ElicitResult, InputRequests, InputResponses, TraceContext};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, value::RawValue};
use std::fmt;

/// The version of the format in which pending calls are written. A pending call without a version has the first one.
const FORMAT: u32 = 1;

/// A call that waits for answers: all data that is needed to continue it, in this process or another.
///
/// A pending call is plain data: write it as JSON text, store it, read it back days later, and
/// [`resume`](crate::Client::resume) it with a client of the same server.
///
/// # Security
///
/// A pending call contains the state of the call, and the person's answers. On a server without authentication, anyone who
/// has the state can continue the call. Store a pending call like a password: readable for its owner only, and removed after
/// the call. `Debug` shows neither the state nor the answers.
///
/// # Versions
///
/// A pending call from an older version of this crate can be read. A pending call from a newer version is refused, with an
/// error that names the reason.
#[derive(Clone)]
pub struct PendingCall {
    server: ServerIdentity,
    call: Call,
    round: AskRound,
    state: Option<String>,
    /// True if the client permits URLs of any scheme.
    any_url_scheme: bool,
    /// The trace of the call, so that it stays one trace in another process.
    trace: Option<TraceContext>,
}

impl PendingCall {
    pub(crate) fn new(server: ServerIdentity, call: Call, round: AskRound, state: Option<String>) -> Self {
        Self { server, call, round, state, any_url_scheme: false, trace: None }
    }

    /// Returns a pending call from parts that another system has stored: a `requestState`, and the asks of the same result.
    /// [`answer`](Self::answer) then adds the answers, each checked against its ask. `server` is that of the client which
    /// continues the call, [`Client::server`](crate::Client::server). The round is the first, so that the limit of rounds counts from here.
    ///
    /// ```
    /// # use antiphon::client::{Call, Client, PendingCall};
    /// # use serde_json::json;
    /// # fn continued(client: &Client, stored: &str) -> Result<PendingCall, Box<dyn std::error::Error>> {
    /// let call = Call::tool("provision", json!({"name": "orders"}))?;
    /// let asks = serde_json::from_str(stored)?; // the member `inputRequests` of the result
    /// let mut pending = PendingCall::from_parts(client.server(), call, asks, Some("the state".to_owned()));
    /// pending.accept("region", &json!({"region": "eu"}))?;
    /// # Ok(pending)
    /// # }
    /// ```
    pub fn from_parts(
        server: ServerIdentity,
        call: Call,
        asks: InputRequests,
        state: Option<String>,
    ) -> Self {
        Self::new(server, call, AskRound { number: 1, asks, answers: InputResponses::new() }, state)
    }

    /// The same pending call, with the setting of its client for URLs that are neither `http` nor `https`.
    pub(crate) fn with_any_url_scheme(self, on: bool) -> Self {
        Self { any_url_scheme: on, ..self }
    }

    /// The same pending call, in this trace.
    pub(crate) fn with_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// The trace of the call.
    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    /// The server that asks.
    pub fn server(&self) -> &ServerIdentity {
        &self.server
    }

    /// The call that waits.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The same pending call, whose call has these settings, such as time-outs. They are not written with it.
    #[must_use]
    pub fn with_options(mut self, options: CallOptions) -> Self {
        self.call = self.call.with_options(options);
        self
    }

    /// The number of the round in its call. The first is 1; 0 if nothing was asked yet.
    pub fn round(&self) -> u32 {
        self.round.number
    }

    /// The asks, in the server's order. Empty if the server sent state only.
    pub fn asks(&self) -> &InputRequests {
        &self.round.asks
    }

    /// The answers so far.
    pub fn answers(&self) -> &InputResponses {
        &self.round.answers
    }

    /// The keys that have no answer yet.
    pub fn missing(&self) -> Vec<String> {
        self.round.missing().into_iter().map(ToOwned::to_owned).collect()
    }

    /// Returns `true` if the server sent a state, which the next leg sends back.
    pub fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Sets an answer: an [`ElicitResult`], [`CreateMessageResult`](antiphon_wire::CreateMessageResult) or
    /// [`ListRootsResult`](antiphon_wire::ListRootsResult), or JSON of the same shape. It is checked against the ask,
    /// and a form's defaults are filled in. Only `http` and `https` URLs can be agreed to, unless the client that made the
    /// call permits [any scheme](crate::ClientBuilder::any_url_scheme).
    ///
    /// # Errors
    /// [`AnswerError`] if no ask has this key, or the answer does not fit. Nothing is changed then.
    pub fn answer(&mut self, key: &str, answer: &impl Serialize) -> Result<(), AnswerError> {
        if !self.any_url_scheme {
            refuse_other_schemes(key, self.round.ask(key)?, answer)?;
        }
        self.round.answer(key, answer)
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
                let kind = self.round.ask(key)?.kind();
                return Err(AnswerError::new(key, AnswerFault::WrongKind(kind)));
            }
        };
        self.answer(key, &ElicitResult::accept(content))
    }

    /// Sets the answer "decline": the person refused. The answer is sent to the server.
    ///
    /// # Errors
    /// [`AnswerError`] if no ask has this key, or it is neither a form nor a URL.
    pub fn decline(&mut self, key: &str) -> Result<(), AnswerError> {
        self.round.refuse(key, &ElicitResult::decline())
    }

    /// Sets the answer "cancel": the person closed the question without a choice. The answer is sent to the server.
    ///
    /// # Errors
    /// [`AnswerError`] if no ask has this key, or it is neither a form nor a URL.
    pub fn cancel(&mut self, key: &str) -> Result<(), AnswerError> {
        self.round.refuse(key, &ElicitResult::cancel())
    }

    /// Changes the target: the same server is now reached elsewhere. Its state and the answers will be sent there.
    pub fn retarget(&mut self, target: impl Into<String>) {
        self.server.target = target.into();
    }

    /// The round, for the callbacks to answer.
    pub(crate) fn round_mut(&mut self) -> &mut AskRound {
        &mut self.round
    }

    /// The answers and the state of the next leg, in the server's order. Answers are checked once more: a pending call may
    /// have been written and read in between. `any_url_scheme` is the setting of the client that sends them.
    pub(crate) fn outgoing(&self, any_url_scheme: bool) -> Result<Outgoing<'_>, NotReady> {
        let mut answers = InputResponses::new();
        for (key, ask) in self.round.asks.iter() {
            let Some(answer) = self.round.answers.get(key) else {
                return Err(NotReady::Missing(self.missing()));
            };
            if !any_url_scheme {
                refuse_other_schemes(key, ask, &answer).map_err(NotReady::Bad)?;
            }
            let answer: Box<RawValue> = checked(key, ask, answer).map_err(NotReady::Bad)?;
            // A raw value is JSON already.
            let _ = answers.insert(key, &answer);
        }
        Ok(Outgoing { answers: (!answers.is_empty()).then_some(answers), state: self.state.as_deref() })
    }
}

/// The answers and the state that a leg carries beside the call.
#[derive(Default)]
pub(crate) struct Outgoing<'a> {
    pub(crate) answers: Option<InputResponses>,
    pub(crate) state: Option<&'a str>,
}

/// The reason why a leg cannot be sent yet.
pub(crate) enum NotReady {
    Missing(Vec<String>),
    Bad(AnswerError),
}

/// The serialized form. The version comes first, so that a newer format is refused before its fields are read.
#[derive(Serialize)]
struct PendingCallOut<'a> {
    version: u32,
    server: &'a ServerIdentity,
    call: &'a Call,
    round: u32,
    asks: &'a InputRequests,
    answers: &'a InputResponses,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    any_url_scheme: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a TraceContext>,
}

#[derive(Deserialize)]
struct PendingCallIn {
    #[serde(default, rename = "version")]
    _version: KnownFormat,
    server: ServerIdentity,
    call: Call,
    round: u32,
    #[serde(default)]
    asks: InputRequests,
    #[serde(default)]
    answers: InputResponses,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    any_url_scheme: bool,
    #[serde(default)]
    trace: Option<TraceContext>,
}

/// A version of the format that can be read here.
#[derive(Default)]
struct KnownFormat;

impl<'de> Deserialize<'de> for KnownFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        must_be_known(u32::deserialize(deserializer)?, FORMAT, "pending call").map(|()| Self)
    }
}

impl Serialize for PendingCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { server, call, round, state, any_url_scheme, trace } = self;
        let AskRound { number, asks, answers } = round;
        let (version, state, trace) = (FORMAT, state.as_deref(), trace.as_ref());
        let (round, any_url_scheme) = (*number, *any_url_scheme);
        PendingCallOut { version, server, call, round, asks, answers, state, any_url_scheme, trace }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PendingCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PendingCallIn {
            server, call, round: number, asks, answers, state, any_url_scheme, trace, ..
        } = PendingCallIn::deserialize(deserializer)?;
        Ok(Self { server, call, round: AskRound { number, asks, answers }, state, any_url_scheme, trace })
    }
}

impl fmt::Debug for PendingCall {
    /// Writes neither state nor answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asks: Vec<(&str, &str)> = self.round.asks.iter().map(|(key, ask)| (key, ask.method())).collect();
        f.debug_struct("PendingCall")
            .field("server", &self.server)
            .field("call", &self.call)
            .field("round", &self.round.number)
            .field("asks", &asks)
            .field("answered", &self.round.answers)
            .field("has_state", &self.has_state())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written() -> Value {
        json!({
            "server": {"target": "test"},
            "call": {"method": "tools/call", "name": "t", "arguments": {"a": 1.50}},
            "round": 2,
            "asks": {},
            "answers": {},
            "state": "s"
        })
    }

    fn check(version: Option<u32>, expected: Result<(), &str>) {
        let mut text = serde_json::to_string(&written()).unwrap();
        if let Some(version) = version {
            text.insert_str(1, &format!(r#""version":{version},"#));
        }
        let read = serde_json::from_str::<PendingCall>(&text).map_err(|error| error.to_string());
        match (read, expected) {
            (Ok(pending), Ok(())) => {
                let mut again = serde_json::to_value(&pending).unwrap();
                assert_eq!(again["version"], FORMAT);
                again.as_object_mut().unwrap().remove("version");
                assert_eq!(again, written());
            }
            (Err(error), Err(text)) => assert!(error.contains(text), "{error}"),
            (read, expected) => panic!("{version:?}: {read:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn older_formats_are_read_and_newer_ones_refused() {
        check(None, Ok(()));
        check(Some(FORMAT), Ok(()));
        check(Some(FORMAT + 1), Err("was written by a newer version of antiphon (format 2)"));
        // The version of a newer format is refused before any other member is read.
        let newer = serde_json::from_str::<PendingCall>(r#"{"version":9,"server":[]}"#);
        assert!(newer.unwrap_err().to_string().contains("format 9"));
    }
}
