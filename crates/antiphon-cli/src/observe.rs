//! A transport that looks on: counts the rounds, and tells of each leg. Never of the state itself, nor of answers.

use crate::show;
use antiphon::{
    client::transport::{
        IncomingNotification, OutgoingRequest, ServerReply, SessionTransport, Transport, TransportError,
    },
    wire::{InputRequest, InputRequests, InputResponses, Meta},
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

/// What was seen of a call.
#[derive(Clone)]
pub(crate) struct Legs(Arc<Seen>);

struct Seen {
    legs: AtomicU32,
    rounds: AtomicU32,
    tell: Option<fn(&str)>,
}

impl Legs {
    /// Tells of each leg, if there is something to tell it to.
    pub(crate) fn new(tell: Option<fn(&str)>) -> Self {
        Self(Arc::new(Seen { legs: AtomicU32::new(0), rounds: AtomicU32::new(0), tell }))
    }

    /// How many results were `input_required`.
    pub(crate) fn rounds(&self) -> u32 {
        self.0.rounds.load(Ordering::Relaxed)
    }

    /// Counts those that an earlier process saw.
    pub(crate) fn add_rounds(&self, rounds: u32) {
        self.0.rounds.fetch_add(rounds, Ordering::Relaxed);
    }

    /// The same transport, looked upon.
    pub(crate) fn watch(&self, transport: impl Transport) -> Observed {
        Observed { inner: Box::new(transport), legs: self.clone() }
    }

    fn begin(&self, request: &OutgoingRequest) -> u32 {
        let leg = self.0.legs.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(tell) = self.0.tell {
            let name =
                request.name.as_deref().map(|name| format!(" `{}`", show::line(name))).unwrap_or_default();
            tell(&format!("-> leg {leg}: {}{name}{}", request.method, carried(&request.body)));
        }
        leg
    }

    fn end(&self, leg: u32, reply: &Result<ServerReply, TransportError>) {
        let result = match reply {
            Ok(Ok(result)) => serde_json::from_str::<ResultSeen<'_>>(result.get()).ok(),
            _ => None,
        };
        if result.as_ref().is_some_and(|result| result.result_type.as_deref() == Some("input_required")) {
            self.add_rounds(1);
        }
        let Some(tell) = self.0.tell else { return };
        match (result, reply) {
            (Some(result), _) => {
                result.lines().iter().for_each(|line| tell(&format!("<- leg {leg}: {line}")))
            }
            (None, Ok(Err(error))) => tell(&format!("<- leg {leg}: error {}", error.code)),
            (None, Ok(Ok(_))) => tell(&format!("<- leg {leg}: a result that cannot be read")),
            (None, Err(_)) => tell(&format!("<- leg {leg}: no response")),
        }
    }
}

#[derive(Deserialize)]
struct RequestSeen<'a> {
    #[serde(borrow)]
    params: ParamsSeen<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ParamsSeen<'a> {
    #[serde(default)]
    input_responses: Option<InputResponses>,
    #[serde(borrow, default)]
    request_state: Option<Cow<'a, str>>,
}

/// What a request carries beside the call.
fn carried(body: &[u8]) -> String {
    let Ok(request) = serde_json::from_slice::<RequestSeen<'_>>(body) else { return String::new() };
    let RequestSeen { params: ParamsSeen { input_responses: answers, request_state: state } } = request;
    let keys: Vec<String> =
        answers.iter().flat_map(InputResponses::iter).map(|(key, _)| show::line(key)).collect();
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
struct ResultSeen<'a> {
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
    #[serde(default)]
    input_requests: Option<InputRequests>,
    #[serde(borrow, default)]
    request_state: Option<Cow<'a, str>>,
    #[serde(rename = "_meta", default)]
    meta: Option<Meta>,
}

impl ResultSeen<'_> {
    fn lines(&self) -> Vec<String> {
        let server = self.meta.as_ref().and_then(Meta::server_info);
        let server = server.map_or_else(|| "the server".into(), |info| show::line(info.display_name()));
        if self.result_type.as_deref() != Some("input_required") {
            return vec![format!("{server} is done")];
        }
        let state = self.request_state.as_ref().map(|state| format!("{} bytes of state", state.len()));
        let asks = self.input_requests.iter().flat_map(InputRequests::iter);
        let mut lines: Vec<String> = asks
            .map(|(key, ask)| format!("{server} asks `{}`: {}", show::line(key), question(ask)))
            .collect();
        match (lines.last_mut(), state) {
            (Some(last), Some(state)) => last.push_str(&format!(" ({state})")),
            (Some(_), None) => {}
            (None, state) => lines.push(format!("{server} says: not yet ({})", state.unwrap_or_default())),
        }
        lines
    }
}

fn question(ask: &InputRequest) -> String {
    match ask {
        InputRequest::Elicit(elicit) => show::line(elicit.message()),
        other => other.method().to_owned(),
    }
}

/// A transport, looked upon.
pub(crate) struct Observed {
    inner: Box<dyn Transport>,
    legs: Legs,
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Transport for Observed {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> Boxed<'a, Result<ServerReply, TransportError>> {
        // It is no leg of a call, but finds out who is there.
        if request.method == "server/discover" {
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
