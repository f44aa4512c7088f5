//! The asks of servers, and their answers: the arguments of callbacks, their dispatch, and the check of each answer.
//!
//! ```text
//!  AskRound (round) -> AskHandlers (handlers): on_round, then callbacks -> each answer is checked (answers)
//! ```
//!
//! This module does not depend on calls, requests or sessions. The [`Origin`](questions::Origin) names the call, or the
//! session, that an ask belongs to.

pub(crate) mod answers;
pub(crate) mod callbacks;
pub mod consent;
pub(crate) mod progress;
pub(crate) mod questions;

use answers::{AnswerError, AnswerFault, checked};
use antiphon_wire::{
    AskSupport, ElicitRequest, ElicitResult, InputRequest, InputRequests, InputResponses, KnownAsk,
};
use callbacks::{AskFault, AskHandlers, CallbackError, Callbacks};
use consent::show_url;
use futures_util::{
    future::BoxFuture,
    stream::{self, StreamExt as _},
};
use progress::AskProgress;
use questions::{AskContext, FormAsk, Origin, RootsAsk, Round, SampleAsk, UrlAsk};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{pin::pin, sync::Arc, time::Duration};

/// Runs the callbacks of the asks that have no answer yet. Returns the time to wait before the answers are sent. The
/// callbacks report their progress to `progress`.
pub(crate) async fn answer_round(
    handlers: &AskHandlers,
    origin: &Origin,
    round: &mut AskRound,
    progress: &AskProgress,
) -> Result<Duration, AskFault> {
    let PreparedRound { wait, calls } = prepare_round(handlers, origin, round, progress).await?;
    let calls: Vec<_> = calls.into_iter().map(|(key, call)| async move { (key, call.await) }).collect();
    let at_once = if handlers.one_at_a_time { 1 } else { calls.len().max(1) };
    // Started in the server's order; when one fails, the others are dropped with the stream.
    let mut answers = pin!(stream::iter(calls).buffer_unordered(at_once));
    while let Some((key, answer)) = answers.next().await {
        let answer = answer.map_err(|source| failed(key.clone(), source))?;
        round.answer(&key, &answer).map_err(AskFault::Answer)?;
    }
    Ok(wait)
}

/// A round that was checked and that `on_round` has decided on.
pub(crate) struct PreparedRound {
    /// The time to wait before the answers are sent.
    pub(crate) wait: Duration,
    /// The callbacks of the asks without an answer, by key, in the server's order. None runs before it is polled.
    pub(crate) calls: Vec<(String, BoxFuture<'static, AnswerText>)>,
}

/// Checks the asks that have no answer yet, and lets `on_round` decide. Asks that it declined have their answers after this.
pub(crate) async fn prepare_round(
    handlers: &AskHandlers,
    origin: &Origin,
    round: &mut AskRound,
    progress: &AskProgress,
) -> Result<PreparedRound, AskFault> {
    for (key, ask) in round.asks.iter().filter(|(key, _)| round.answers.get(key).is_none()) {
        // `on_round` may decline an elicitation that cannot be read.
        if !matches!(ask, InputRequest::Unknown(it) if it.is_elicitation() && it.unreadable().is_some()) {
            must_be_known(key, ask)?;
        }
        must_be_among(handlers.callbacks.declared(), handlers, key, ask)?;
    }
    let wait = decide(&handlers.callbacks, origin, round).await?;
    for key in round.missing() {
        let Some(ask) = round.asks.get(key) else { continue };
        must_be_known(key, ask)?;
        may_be_opened(handlers, key, ask)?;
    }
    let calls = round.missing().into_iter().filter_map(|key| {
        let ask = round.asks.get(key)?.clone();
        let call = start(handlers.callbacks.clone(), context(origin, round.number, key, progress), ask);
        Some((key.to_owned(), Box::pin(call) as BoxFuture<'static, _>))
    });
    Ok(PreparedRound { wait, calls: calls.collect() })
}

/// The answer of a callback, as JSON text.
pub(crate) type AnswerText = Result<Box<RawValue>, CallbackError>;

/// > Servers **MUST NOT** send an `inputRequests` that the client has not declared support for in its capabilities.
pub(crate) fn must_be_declared(
    handlers: &AskHandlers,
    key: &str,
    ask: &InputRequest,
) -> Result<(), AskFault> {
    must_be_among(handlers.declared, handlers, key, ask)
}

/// Checks that `asks` include this ask. They are either all that are declared, or only those with a callback.
fn must_be_among(
    asks: AskSupport,
    handlers: &AskHandlers,
    key: &str,
    ask: &InputRequest,
) -> Result<(), AskFault> {
    let mut needs = ask.needs();
    // > If not declared, servers SHOULD only use `includeContext: "none"` (or omit it).
    // The callback receives the requested context, and may leave it out.
    needs.sampling_context = false;
    let missing = asks.missing(needs);
    if missing == AskSupport::NONE {
        return Ok(());
    }
    let part = (asks.sampling && missing.sampling_tools).then_some("tools");
    let by_hand = handlers.declared.missing(needs) == AskSupport::NONE;
    Err(AskFault::NoCallback { key: key.to_owned(), kind: ask.kind(), part, by_hand })
}

/// > If an `InputRequiredResult` contains the `inputRequests` field, the client **MUST** construct the requested inputs before
/// > retrying the original request.
fn must_be_known(key: &str, ask: &InputRequest) -> Result<(), AskFault> {
    match ask {
        InputRequest::Unknown(unknown) => Err(AskFault::UnknownKind {
            key: key.to_owned(),
            method: unknown.method.clone(),
            mode: unknown.mode(),
            unreadable: unknown.unreadable().map(ToOwned::to_owned),
        }),
        _ => Ok(()),
    }
}

/// Checks the URL of an ask before a callback receives it.
///
/// > The `url` parameter **MUST** contain a valid URL.
fn may_be_opened(handlers: &AskHandlers, key: &str, ask: &InputRequest) -> Result<(), AskFault> {
    match ask {
        InputRequest::Elicit(ElicitRequest::Url { url, .. }) if !handlers.any_url_scheme => {
            show_url(url).map(drop).map_err(|_| AskFault::Url { key: key.to_owned(), url: url.clone() })
        }
        _ => Ok(()),
    }
}

/// Calls `on_round` and applies its decision.
async fn decide(callbacks: &Callbacks, origin: &Origin, round: &mut AskRound) -> Result<Duration, AskFault> {
    let Some(on_round) = &callbacks.round else { return Ok(Duration::ZERO) };
    let asks = Arc::new(round.asks.clone());
    let Origin { server, method, target, arguments } = origin.clone();
    let shown = Round { server, method, target, arguments, number: round.number, asks: Arc::clone(&asks) };
    let decision = on_round(shown).await;
    if let Some(refusal) = decision.refusal(&asks) {
        return Err(AskFault::Refused { key: refusal.key, reason: refusal.reason });
    }
    for key in decision.declined() {
        round.refuse(key, &ElicitResult::decline()).map_err(AskFault::Answer)?;
    }
    Ok(decision.delay())
}

fn context(origin: &Origin, round: u32, key: &str, progress: &AskProgress) -> AskContext {
    let Origin { server, method, target, arguments } = origin.clone();
    AskContext { server, method, target, arguments, round, key: key.to_owned(), progress: progress.clone() }
}

/// Runs the callback for one ask. Nothing runs before the future is polled.
async fn start(callbacks: Callbacks, context: AskContext, ask: InputRequest) -> AnswerText {
    match (ask, callbacks) {
        (
            InputRequest::Elicit(ElicitRequest::Form { message, requested_schema: schema }),
            Callbacks { form: Some(form), .. },
        ) => written(&form(FormAsk::new(context, message, schema)).await?),
        (InputRequest::Elicit(ElicitRequest::Url { message, url }), Callbacks { url: Some(for_url), .. }) => {
            written(&for_url(UrlAsk { context, message, url }).await?)
        }
        (InputRequest::CreateMessage(params), Callbacks { sample: Some(sample), .. }) => {
            written(&sample(SampleAsk { context, params: *params }).await?)
        }
        (InputRequest::ListRoots { .. }, Callbacks { roots: Some(roots), .. }) => {
            written(&roots(RootsAsk { context }).await?)
        }
        // Every ask was declared, hence has a callback.
        _ => Err(CallbackError::new("no callback is attached")),
    }
}

fn written(answer: &impl Serialize) -> AnswerText {
    Ok(serde_json::value::to_raw_value(answer)?)
}

/// A form that was refused by [`FormAsk::accept`] and passed on is a bad answer, not a failure.
pub(crate) fn failed(key: String, source: CallbackError) -> AskFault {
    match source.into_inner().downcast::<AnswerError>() {
        Ok(error) => AskFault::Answer(*error),
        Err(source) => AskFault::Callback { key, source: CallbackError::from_box(source) },
    }
}

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
