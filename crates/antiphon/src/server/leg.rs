//! One leg of a call that may ask: judge the answers, run the handler, seal what it asks.

pub(super) use super::admit::admit;

use super::{
    Caller, Ctx, HandlerOutcome, InputRequired, Request,
    admit::Admitted,
    emit::Emitter,
    refusal::Refusal,
    round::{Answered, Asked, Judged, Payload, judge},
    serve::Inner,
    settings::Settings,
};
use antiphon_seal::{Binding, Principal};
use antiphon_wire::{ElicitRequest, InputRequest, InputRequests, InputRequiredResult, InputResponses};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

/// One request for a tool, prompt or resource.
pub(super) struct Leg<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) target: &'a str,
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) settings: &'a Settings,
    pub(super) caller: &'a Caller<'a>,
}

impl<'a> Leg<'a> {
    /// What this leg's state must belong to.
    pub(super) fn binding<'b>(&'b self, principal: Option<&'b Principal>) -> Binding<'b> {
        Binding {
            method: &self.request.method,
            target: self.target,
            arguments: self.arguments.map(RawValue::get),
            principal,
            tool_version: self.settings.version,
        }
    }
}

/// What a leg came to.
pub(super) enum LegResult<T> {
    Complete(T),
    InputRequired(InputRequiredResult),
    /// The arguments do not decode.
    BadArguments(String),
    /// The handler failed; the text is for the caller.
    Failed(Option<String>),
    /// The handler's resource does not exist.
    NotFound,
}

/// Runs one leg. `start` decodes the arguments and gives the handler's future.
pub(super) async fn run<T>(
    server: &Inner,
    mut admitted: Admitted<'_>,
    start: impl FnOnce(Ctx) -> Result<BoxFuture<'static, HandlerOutcome<T>>, String>,
) -> Result<LegResult<T>, Refusal> {
    admitted.require(admitted.leg().settings.needs)?;
    let mut responses = read_responses(admitted.leg().request.params.input_responses)?;
    if admitted.late() {
        // What was kept stays; what came too late does not count, and is asked for again.
        responses = None;
    }
    let ctx = match admitted.take_payload() {
        None => context(server, &admitted, Vec::new(), None, responses),
        Some(payload) => match judge(payload, responses.as_ref(), &server.limits)? {
            Judged::Ready { answered, state } => context(server, &admitted, answered, state, None),
            Judged::AskAgain { payload, requests } => {
                let permit = admitted.permit(requests)?;
                return admitted.seal(server, permit, &payload).map(LegResult::InputRequired);
            }
        },
    };
    let Some(_slot) = server.slot() else { return Err(Refusal::Busy) };
    let handler = match start(ctx) {
        Ok(handler) => handler,
        Err(fault) => return Ok(LegResult::BadArguments(fault)),
    };
    let target = admitted.leg().target;
    match bounded(server, target, handler).await? {
        HandlerOutcome::Complete(result) => Ok(LegResult::Complete(result)),
        HandlerOutcome::InputRequired(required) => {
            ask(server, admitted, required).map(LegResult::InputRequired)
        }
        HandlerOutcome::Told(text) => Ok(LegResult::Failed(Some(text))),
        HandlerOutcome::NotFound => Ok(LegResult::NotFound),
        HandlerOutcome::Failed(cause) => {
            tracing::error!(target, %cause, "a handler failed");
            Ok(LegResult::Failed(None))
        }
    }
}

/// > Servers **SHOULD** validate that the data provided by the client is a valid `InputResponses` object
fn read_responses(text: Option<&RawValue>) -> Result<Option<InputResponses>, Refusal> {
    text.map(|text| serde_json::from_str(text.get()))
        .transpose()
        .map_err(|_| Refusal::params("params.inputResponses must be an object"))
}

fn context(
    server: &Inner,
    admitted: &Admitted<'_>,
    answered: Vec<Answered>,
    state: Option<String>,
    unverified: Option<InputResponses>,
) -> Ctx {
    let leg = admitted.leg();
    Ctx {
        call: admitted.call_id(),
        leg: admitted.leg_number(),
        answered,
        state,
        unverified: unverified.filter(|responses| !responses.is_empty()),
        asks: admitted.asks(),
        principal: admitted.principal().cloned(),
        client_info: leg.request.meta.client_info.map(ToOwned::to_owned),
        server: server.me.clone(),
        emitter: Emitter::of(leg.request, leg.caller.outbox, leg.request.registry(server).profile.logging),
    }
}

/// Runs the handler for as long as it may.
async fn bounded<T>(
    server: &Inner,
    target: &str,
    handler: BoxFuture<'static, HandlerOutcome<T>>,
) -> Result<HandlerOutcome<T>, Refusal> {
    tokio::time::timeout(server.limits.handler_time, handler).await.map_err(|_elapsed| {
        tracing::error!(target, limit = ?server.limits.handler_time, "a handler took too long and was dropped");
        Refusal::Internal
    })
}

/// Checks what the handler asks, and seals it.
fn ask(
    server: &Inner,
    admitted: Admitted<'_>,
    required: InputRequired,
) -> Result<InputRequiredResult, Refusal> {
    let target = admitted.leg().target;
    let author_fault = |cause: String| {
        tracing::error!(target, %cause, "a handler asked what cannot be asked");
        Refusal::Internal
    };
    let InputRequired { asks, state } = required;
    if asks.len() > server.limits.asks {
        return Err(author_fault(format!(
            "{} asks in one round; the limit is {}",
            asks.len(),
            server.limits.asks
        )));
    }
    let (mut requests, mut asked) = (InputRequests::new(), Vec::with_capacity(asks.len()));
    for ask in &asks {
        check_key(ask.key()).map_err(&author_fault)?;
        check_question(ask.request()).map_err(|cause| author_fault(format!("`{}`: {cause}", ask.key())))?;
        asked.push(Asked::first(ask.key(), ask.request()).map_err(|fault| author_fault(fault.to_string()))?);
        // > `inputRequests` keys are server assigned identifiers and **MUST** be unique within the scope of the request.
        if !requests.insert(ask.key(), ask.request().clone()) {
            return Err(author_fault(format!("the key `{}` is used twice in one round", ask.key())));
        }
    }
    let permit = admitted.permit(requests)?;
    admitted.seal(server, permit, &Payload { state, asked })
}

/// Keys are public: they stand on the wire and in logs.
fn check_key(key: &str) -> Result<(), String> {
    let fits = (1..=64).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'/'));
    if fits {
        Ok(())
    } else {
        Err(format!("the key {key:?} is not 1 to 64 visible ASCII characters without `#` and `/`"))
    }
}

fn check_question(request: &InputRequest) -> Result<(), String> {
    match request {
        InputRequest::Elicit(ElicitRequest::Form { requested_schema, .. }) => {
            requested_schema.beyond_subset().map_or(Ok(()), |fault| Err(fault.to_owned()))
        }
        InputRequest::Elicit(ElicitRequest::Url { url, .. }) => check_url(url),
        _ => Ok(()),
    }
}

/// > **SHOULD** use HTTPS URLs for non-development environments.
fn check_url(url: &str) -> Result<(), String> {
    let parsed: http::Uri = url.parse().map_err(|fault| format!("not a URL: {fault}"))?;
    let host = parsed.host().unwrap_or_default();
    match parsed.scheme_str() {
        Some("https") if !host.is_empty() => Ok(()),
        Some("http") if matches!(host, "localhost" | "127.0.0.1" | "[::1]") => Ok(()),
        _ => Err("a URL must be https://, or http:// on the loopback interface".to_owned()),
    }
}
