//! What a handler is lent: the answers that came with this leg, the state of the last one, and who is calling.

use super::{
    Ask, Bearer, Server,
    emit::Emitter,
    round::{self, Flow, Response},
};
use crate::{Error, form};
use antiphon_engine::AnsweredAsk;
use antiphon_seal::{CallId, Principal};
use antiphon_wire::{
    Action, AskSupport, CreateMessageResult, ElicitResult, Implementation, InputResponses, ListRootsResult,
    ProtocolVersion,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, value::RawValue};
use std::{fmt, sync::Arc};

/// The context of one leg: how a handler asks, acts and tells.
///
/// | | |
/// |---|---|
/// | ask a person | [`elicit`](Self::elicit), [`elicit_with`](Self::elicit_with), [`confirm`](Self::confirm), [`elicit_url`](Self::elicit_url) |
/// | ask the client | [`sample`](Self::sample), [`roots`](Self::roots) |
/// | do something once | [`step`](Self::step), [`step_fn`](Self::step_fn), [`step_with`](Self::step_with), [`step_retry`](Self::step_retry) |
/// | several at once | [`join_all`](Self::join_all), [`select`](Self::select), [`scope`](Self::scope), [`spawn`](Self::spawn) |
/// | the same on every leg | [`now`](Self::now), [`random_u64`](Self::random_u64), [`can_ask`](Self::can_ask) |
/// | end a leg early | [`checkpoint`](Self::checkpoint) |
/// | tell the client | [`report_progress`](Self::report_progress), [`log`](Self::log) |
///
/// Whatever awaits an answer ends the leg, and the handler runs again from its top once that has come: see
/// [`guide::replay`](crate::guide::replay).
///
/// It is lent to the handler, never owned by it: asking from a spawned task does not compile.
///
/// ```compile_fail
/// async fn handler(ctx: &antiphon::server::Ctx) {
///     tokio::spawn(async { ctx.checkpoint().await });
/// }
/// ```
pub struct Ctx {
    leg: Arc<Leg>,
    /// What stands before every key; empty for most.
    scope: Box<str>,
}

/// How questions reach the client, and where the record of the call is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// A question ends the request; the record travels in the sealed `requestState`.
    Sealed,
    /// In a session of a client before 2026-07-28: a question is sent at once, the handler waits, and the record is the
    /// running handler itself.
    Pushed,
}

/// What one leg's context knows.
pub(super) struct Leg {
    pub(super) call: Option<CallId>,
    pub(super) leg: u16,
    pub(super) answered: Vec<AnsweredAsk>,
    pub(super) state: Option<String>,
    pub(super) unverified: Option<InputResponses>,
    pub(super) asks: AskSupport,
    pub(super) principal: Option<Principal>,
    pub(super) bearer: Option<Bearer>,
    pub(super) client_info: Option<Box<RawValue>>,
    pub(super) version: ProtocolVersion,
    /// `None` if nobody listens.
    pub(super) emitter: Option<Emitter>,
    pub(super) flow: Flow,
}

/// What the person did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// They filled in the form, or agreed to open the URL.
    Accept(T),
    /// They said no.
    Decline,
    /// They went away without choosing.
    Cancel,
}

impl<T> Answer<T> {
    /// What was filled in, if it was.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accept(value) => Some(value),
            Self::Decline | Self::Cancel => None,
        }
    }
}

/// Answers that no opened state asked for. Anyone can send them: to use them is a decision, made by name.
pub struct Unverified<T>(T);

impl<T> Unverified<T> {
    /// Takes the answers for what they say. Nothing was checked: neither that they were asked for, nor what they hold.
    pub fn trust_without_verification(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Unverified<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unverified(..)")
    }
}

impl Ctx {
    pub(super) fn new(leg: Arc<Leg>) -> Self {
        Self { leg, scope: Box::default() }
    }

    /// The same, with this before every key.
    pub(super) fn below(&self, prefix: String) -> Self {
        Self { leg: Arc::clone(&self.leg), scope: prefix.into() }
    }

    pub(super) fn scope_prefix(&self) -> &str {
        &self.scope
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.leg.flow
    }

    /// Where what is sent before the reply goes; nowhere while what happens has happened before.
    pub(super) fn emitter(&self) -> Option<&Emitter> {
        let emitter = self.leg.emitter.as_ref()?;
        (!self.leg.flow.is_silent()).then_some(emitter)
    }

    /// What this request's client declared it can be asked.
    pub(super) fn declared(&self) -> AskSupport {
        self.leg.asks
    }

    /// How questions reach the client.
    pub fn carrier(&self) -> Carrier {
        self.leg.flow.carrier().kind()
    }

    /// The version of the protocol that the client speaks.
    pub fn protocol_version(&self) -> &ProtocolVersion {
        &self.leg.version
    }

    /// The person's answer to exactly this form, decoded; `None` if it was not asked in the last leg.
    ///
    /// A question that is worded differently now than when it was asked has no answer: ask it again.
    ///
    /// # Errors
    /// If the content, which fits the form's schema, does not decode into `T`: form and type do not agree.
    pub fn form<T: DeserializeOwned>(&self, ask: &Ask) -> Result<Option<Answer<T>>, Error> {
        self.elicited(ask).map(|result| decoded(ask, result)).transpose()
    }

    /// The person's answer to exactly this URL; `None` if it was not asked in the last leg. Accepted means that they
    /// agreed to open it. [`elicit_url`](Self::elicit_url) can wait until they are done, and tells the page who they are.
    pub fn url(&self, ask: &Ask) -> Option<Answer<()>> {
        Some(match self.elicited(ask)?.action {
            Action::Accept => Answer::Accept(()),
            Action::Decline => Answer::Decline,
            Action::Cancel => Answer::Cancel,
        })
    }

    /// The model's message for exactly this ask; `None` if it was not asked in the last leg.
    pub fn sampled(&self, ask: &Ask) -> Option<&CreateMessageResult> {
        match self.answer_to(ask)? {
            AnsweredAsk { response: Response::Sampling(result), .. } => Some(result),
            _ => None,
        }
    }

    /// The client's roots; `None` if they were not asked for in the last leg.
    pub fn listed_roots(&self, ask: &Ask) -> Option<&ListRootsResult> {
        match self.answer_to(ask)? {
            AnsweredAsk { response: Response::Roots(result), .. } => Some(result),
            _ => None,
        }
    }

    /// Every answer of this leg by its key: each was asked by the opened state, fits its question, and is decoded.
    pub fn input_responses(&self) -> impl ExactSizeIterator<Item = (&str, &Response)> {
        let counts = |answered: &&AnsweredAsk| self.flow().with(|leg| leg.read_by_hand(&answered.key));
        let answered: Vec<&AnsweredAsk> = self.leg.answered.iter().filter(counts).collect();
        answered.into_iter().map(|answered| (&*answered.key, &answered.response))
    }

    /// Answers that came without a state that asked for them, on a first leg for example; `None` where there are none.
    pub fn unverified_responses(&self) -> Option<Unverified<&InputResponses>> {
        self.leg.unverified.as_ref().map(Unverified)
    }

    /// An answer to this form that came without a state that asked for it, decoded; `None` if none came, or if it does
    /// not fit the form.
    ///
    /// A tool with one harmless question may complete from it alone. Whoever asks to be sure asks, and reads
    /// [`form`](Self::form).
    ///
    /// # Errors
    /// As [`form`](Self::form).
    pub fn unverified_form<T: DeserializeOwned>(
        &self,
        ask: &Ask,
    ) -> Result<Option<Unverified<Answer<T>>>, Error> {
        let sent = self.leg.unverified.as_ref().and_then(|responses| responses.get(ask.key()));
        match sent.and_then(|text| round::read_answer(ask.request(), text.get()).ok()) {
            Some(Response::Elicit(result)) => decoded(ask, &result).map(|answer| Some(Unverified(answer))),
            _ => Ok(None),
        }
    }

    /// The state that the last leg left, as it was written; `None` on the first leg.
    pub fn state(&self) -> Option<&str> {
        self.leg.state.as_deref()
    }

    /// The state that the last leg left, from JSON; `None` on the first leg.
    ///
    /// # Errors
    /// If the state is not the JSON of a `T`.
    pub fn state_as<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let mismatch = |fault| Mismatch("the state is not of the type it is read as".to_owned(), fault);
        Ok(self.leg.state.as_deref().map(serde_json::from_str).transpose().map_err(mismatch)?)
    }

    /// Which request of the call this is, from 1.
    pub fn leg(&self) -> u16 {
        self.leg.leg
    }

    /// The call's id in the log; `None` on the first leg, where no state exists yet.
    pub fn call_id(&self) -> Option<CallId> {
        self.leg.call
    }

    /// Who is calling, as authenticated; `None` without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.leg.principal.as_ref()
    }

    /// The access token of this leg, verified: its scopes and claims; `None` without authentication, as on stdio. The next
    /// leg may bring another token of the same principal: what must stay as it is belongs into a [`step`](Self::step).
    pub fn bearer(&self) -> Option<&Bearer> {
        self.leg.bearer.as_ref()
    }

    /// The client's name and version. Self-reported: for display and logs, never for decisions.
    pub fn client_info(&self) -> Option<Implementation> {
        serde_json::from_str(self.leg.client_info.as_ref()?.get()).ok()
    }

    /// The server that this runs on: to change what it offers, or to tell that a resource was updated.
    pub fn server(&self) -> Server {
        self.leg.flow.server().clone()
    }

    /// Whether this client can take a result that holds state only.
    pub(super) fn takes_state_only(&self) -> bool {
        self.leg.flow.server().0.state_only.permits(self.leg.client_info.as_deref())
    }

    fn answer_to(&self, ask: &Ask) -> Option<&AnsweredAsk> {
        let answered = self.leg.answered.iter().find(|answered| &*answered.key == ask.key())?;
        // A question that is worded differently now was not asked.
        let is_it = serde_json::to_string(ask.request()).is_ok_and(|text| text == *answered.question);
        (is_it && self.flow().with(|leg| leg.read_by_hand(ask.key()))).then_some(answered)
    }

    fn elicited(&self, ask: &Ask) -> Option<&ElicitResult> {
        match self.answer_to(ask)? {
            AnsweredAsk { response: Response::Elicit(result), .. } => Some(result),
            _ => None,
        }
    }
}

/// What the person did with a form.
fn decoded<T: DeserializeOwned>(ask: &Ask, result: &ElicitResult) -> Result<Answer<T>, Error> {
    Ok(match result.action {
        Action::Accept => {
            let empty = Map::new();
            let content = result.content.as_ref().unwrap_or(&empty);
            let mismatch = |fault| {
                Mismatch(format!("the answer to `{}` fits its form but not its type", ask.key()), fault)
            };
            Answer::Accept(form::read_map(content).map_err(mismatch)?)
        }
        Action::Decline => Answer::Decline,
        Action::Cancel => Answer::Cancel,
    })
}

impl fmt::Debug for Ctx {
    /// Neither state nor answers: they do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx")
            .field("call", &self.leg.call)
            .field("leg", &self.leg.leg)
            .finish_non_exhaustive()
    }
}

/// Why something does not decode, without the value, which serde would quote.
pub(super) fn without_value(fault: &serde_json::Error) -> String {
    let text = fault.to_string();
    // Type and field names are the author's; what stands before them is the value.
    match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None if !fault.is_data() || text.starts_with("missing field `") => text,
        None => "the type refuses a value".to_owned(),
    }
}

/// An answer or a state does not decode. It is told without the value, which serde would quote: the text is for the log.
struct Mismatch(String, serde_json::Error);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, without_value(&self.1))
    }
}

impl fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Mismatch {}
