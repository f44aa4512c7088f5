//! A transport that counts the rounds and logs each leg. The log contains no state and no answers.

use crate::{ask, console};
use antiphon::{
    client::transport::{
        IncomingNotification, OutgoingRequest, ServerReply, SessionTransport, Transport, TransportError,
    },
    wire::{InputRequests, InputResponses, Meta},
};
use serde::Deserialize;
use std::{
    borrow::Cow,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// The observer of the legs of a call. Clones share the counters.
#[derive(Clone)]
pub(crate) struct LegObserver(Arc<Counters>);

struct Counters {
    legs: AtomicU32,
    rounds: AtomicU32,
    log: Option<fn(&str)>,
}

impl LegObserver {
    /// Returns an observer that logs each leg with `log`, if there is one.
    pub(crate) fn new(log: Option<fn(&str)>) -> Self {
        Self(Arc::new(Counters { legs: AtomicU32::new(0), rounds: AtomicU32::new(0), log }))
    }

    /// Returns the number of results that were `input_required`.
    pub(crate) fn rounds(&self) -> u32 {
        self.0.rounds.load(Ordering::Relaxed)
    }

    /// Adds the rounds that an earlier process counted.
    pub(crate) fn add_rounds(&self, rounds: u32) {
        self.0.rounds.fetch_add(rounds, Ordering::Relaxed);
    }

    /// Returns a transport that this observer observes.
    pub(crate) fn observe(&self, transport: impl Transport) -> ObservedTransport {
        ObservedTransport { inner: Box::new(transport), legs: self.clone() }
    }

    fn begin(&self, request: &OutgoingRequest) -> u32 {
        let leg = self.0.legs.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(log) = self.0.log {
            let name =
                request.name.as_deref().map(|name| format!(" `{}`", console::line(name))).unwrap_or_default();
            log(&format!("-> leg {leg}: {}{name}{}", request.method, describe_request(&request.body)));
        }
        leg
    }

    fn end(&self, leg: u32, reply: &Result<ServerReply, TransportError>) {
        let result = match reply {
            Ok(Ok(result)) => serde_json::from_str::<ResultView<'_>>(result.get()).ok(),
            _ => None,
        };
        if result.as_ref().is_some_and(|result| result.result_type.as_deref() == Some("input_required")) {
            self.add_rounds(1);
        }
        let Some(log) = self.0.log else { return };
        match (result, reply) {
            (Some(result), _) => result.lines().iter().for_each(|line| log(&format!("<- leg {leg}: {line}"))),
            (None, Ok(Err(error))) => log(&format!("<- leg {leg}: error {}", error.code)),
            (None, Ok(Ok(_))) => log(&format!("<- leg {leg}: a result that cannot be read")),
            (None, Err(_)) => log(&format!("<- leg {leg}: no response")),
        }
    }
}

#[derive(Deserialize)]
struct RequestView<'a> {
    #[serde(borrow)]
    params: ParamsView<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ParamsView<'a> {
    #[serde(default)]
    input_responses: Option<InputResponses>,
    #[serde(borrow, default)]
    request_state: Option<Cow<'a, str>>,
}

/// Describes the answers and the state in a request.
fn describe_request(body: &[u8]) -> String {
    let Ok(request) = serde_json::from_slice::<RequestView<'_>>(body) else { return String::new() };
    let RequestView { params: ParamsView { input_responses: answers, request_state: state } } = request;
    let keys: Vec<String> =
        answers.iter().flat_map(InputResponses::iter).map(|(key, _)| console::line(key)).collect();
    let answers = (!keys.is_empty()).then(|| format!("the answer to `{}`", keys.join("`, `")));
    let state = state.map(|state| format!("{} bytes of state", state.len()));
    match (answers, state) {
        (Some(answers), Some(state)) => format!(" with {answers} and {state}"),
        (Some(one), None) | (None, Some(one)) => format!(" with {one}"),
        (None, None) => String::new(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultView<'a> {
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
    #[serde(default)]
    input_requests: Option<InputRequests>,
    #[serde(borrow, default)]
    request_state: Option<Cow<'a, str>>,
    #[serde(rename = "_meta", default)]
    meta: Option<Meta>,
}

impl ResultView<'_> {
    fn lines(&self) -> Vec<String> {
        let server = self.meta.as_ref().and_then(Meta::server_info);
        let server = server.map_or_else(|| "the server".into(), |info| console::line(info.display_name()));
        match self.result_type.as_deref() {
            Some("input_required") => {}
            Some("task") => return vec![format!("{server} made a task of the call")],
            _ => return vec![format!("{server} is done")],
        }
        let state = self.request_state.as_ref().map(|state| format!("{} bytes of state", state.len()));
        let asks = self.input_requests.iter().flat_map(InputRequests::iter);
        let mut lines: Vec<String> = asks
            .map(|(key, ask)| format!("{server} asks `{}`: {}", console::line(key), ask::summary(ask)))
            .collect();
        match (lines.last_mut(), state) {
            (Some(last), Some(state)) => last.push_str(&format!(" ({state})")),
            (Some(_), None) => {}
            (None, state) => {
                lines.push(format!("{server} returns state only ({})", state.unwrap_or_default()))
            }
        }
        lines
    }
}

/// A transport with an observer.
pub(crate) struct ObservedTransport {
    inner: Box<dyn Transport>,
    legs: LegObserver,
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Transport for ObservedTransport {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> Boxed<'a, Result<ServerReply, TransportError>> {
        // These requests are no legs of a call.
        if request.method == "server/discover" || request.method.starts_with("tasks/") {
            return self.inner.exchange(request, on_notification);
        }
        Box::pin(async move {
            let leg = self.legs.begin(&request);
            let reply = self.inner.exchange(request, on_notification).await;
            self.legs.end(leg, &reply);
            reply
        })
    }

    fn close(&self) -> Boxed<'_, ()> {
        self.inner.close()
    }

    fn target(&self) -> &str {
        self.inner.target()
    }

    fn mirrors_parameters(&self) -> bool {
        self.inner.mirrors_parameters()
    }

    fn sessions(&self) -> Option<&dyn SessionTransport> {
        self.inner.sessions()
    }
}
