//! One round: from asks to answers, through the callbacks.

use crate::{
    ask::{AskContext, FormAsk, RootsAsk, Round, SampleAsk, UrlAsk},
    ask_progress::AskProgress,
    call::Call,
    call_error::CallErrorKind,
    callback::{CallbackError, Callbacks},
    pending::PendingCall,
};
use antiphon_wire::{AskSupport, ElicitRequest, InputRequest};
use futures_util::{
    future::BoxFuture,
    stream::{self, StreamExt as _},
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};

/// Who answers, and how.
pub(crate) struct Desk {
    pub(crate) callbacks: Callbacks,
    /// What can be asked here, by hand or by callback.
    pub(crate) declared: AskSupport,
    pub(crate) one_at_a_time: bool,
}

/// What asks are for.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) arguments: Option<Box<RawValue>>,
}

impl Origin {
    pub(crate) fn of(call: &Call) -> Self {
        let arguments = call.arguments().map(ToOwned::to_owned);
        Self { method: call.method(), target: call.name().to_owned(), arguments }
    }
}

/// Fills in the answers that are missing. Returns how long to wait before they are sent. `progress` is that of the asks.
pub(crate) async fn answer_round(
    desk: &Desk,
    origin: &Origin,
    pending: &mut PendingCall,
    progress: &AskProgress,
) -> Result<Duration, CallErrorKind> {
    for (key, ask) in pending.asks().iter().filter(|(key, _)| pending.answers().get(key).is_none()) {
        must_be_among(desk.callbacks.declared(), desk, key, ask)?;
    }
    let wait = decide(&desk.callbacks, origin, pending).await?;
    let calls: Vec<BoxFuture<'static, (String, Answered)>> = pending
        .missing()
        .into_iter()
        .filter_map(|key| {
            let ask = pending.asks().get(key)?.clone();
            let call = start(desk.callbacks.clone(), context(origin, pending, key, progress), ask);
            let key = key.to_owned();
            Some(Box::pin(async move { (key, call.await) }) as BoxFuture<'static, _>)
        })
        .collect();
    let at_once = if desk.one_at_a_time { 1 } else { calls.len().max(1) };
    // Started in the server's order; when one fails, the others are dropped with the stream.
    let mut answers = stream::iter(calls).buffer_unordered(at_once);
    while let Some((key, answer)) = answers.next().await {
        let answer = answer.map_err(|source| failed(key.clone(), source))?;
        pending.answer(&key, &answer).map_err(CallErrorKind::Answer)?;
    }
    Ok(wait)
}

/// What a callback answered, as text.
type Answered = Result<Box<RawValue>, CallbackError>;

/// > Servers **MUST NOT** send an `inputRequests` that the client has not declared support for in its capabilities.
pub(crate) fn must_be_declared(desk: &Desk, key: &str, ask: &InputRequest) -> Result<(), CallErrorKind> {
    must_be_among(desk.declared, desk, key, ask)
}

/// Whether these asks, all that are declared or only those with a callback, include this one.
fn must_be_among(asks: AskSupport, desk: &Desk, key: &str, ask: &InputRequest) -> Result<(), CallErrorKind> {
    let mut needs = ask.needs();
    // > If not declared, servers SHOULD only use `includeContext: "none"` (or omit it).
    // The callback sees what is wanted, and may leave the context out.
    needs.sampling_context = false;
    let missing = asks.missing(needs);
    if missing == AskSupport::NONE {
        return Ok(());
    }
    let part = (asks.sampling && missing.sampling_tools).then_some("tools");
    let by_hand = desk.declared.missing(needs) == AskSupport::NONE;
    Err(CallErrorKind::NoCallback { key: key.to_owned(), kind: ask.kind(), part, by_hand })
}

/// Shows the round to `on_round` and obeys.
async fn decide(
    callbacks: &Callbacks,
    origin: &Origin,
    pending: &mut PendingCall,
) -> Result<Duration, CallErrorKind> {
    let Some(on_round) = &callbacks.round else { return Ok(Duration::ZERO) };
    let asks = Arc::new(pending.asks().clone());
    let Origin { method, target, arguments } = origin.clone();
    let round = Round {
        server: pending.server().clone(),
        method,
        target,
        arguments,
        number: pending.round(),
        asks: Arc::clone(&asks),
    };
    let decision = on_round(round).await;
    if let Some(refusal) = decision.refusal(&asks) {
        return Err(CallErrorKind::Refused { key: refusal.key, reason: refusal.reason });
    }
    for key in decision.declined() {
        pending.decline(key).map_err(CallErrorKind::Answer)?;
    }
    Ok(decision.wait_time())
}

fn context(origin: &Origin, pending: &PendingCall, key: &str, progress: &AskProgress) -> AskContext {
    let Origin { method, target, arguments } = origin.clone();
    AskContext {
        server: pending.server().clone(),
        method,
        target,
        arguments,
        round: pending.round(),
        key: key.to_owned(),
        progress: progress.clone(),
    }
}

/// Runs the callback for one ask. Nothing runs before the future is polled.
async fn start(callbacks: Callbacks, context: AskContext, ask: InputRequest) -> Answered {
    match (ask, callbacks) {
        (
            InputRequest::Elicit(ElicitRequest::Form { message, requested_schema: schema }),
            Callbacks { form: Some(form), .. },
        ) => written(&form(FormAsk { context, message, schema }).await?),
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

fn written(answer: &impl Serialize) -> Answered {
    Ok(serde_json::value::to_raw_value(answer)?)
}

/// A form that was refused by [`FormAsk::accept`] and passed on is a bad answer, not a failure.
fn failed(key: String, source: CallbackError) -> CallErrorKind {
    match source.into_inner().downcast() {
        Ok(error) => CallErrorKind::Answer(*error),
        Err(source) => CallErrorKind::Callback { key, source: CallbackError::from_box(source) },
    }
}
