//! What a layer sees of a request, and of its outcome.

use crate::{
    dispatch::{listen::Subscription, reply::result_of},
    errors::refusal::Refusal,
    identity::{Bearer, Caller, PeerAddress, RequestHead},
    layer::visibility::OfferVisibility,
    request::{carrier, receive::Request},
};
use antiphon_seal::{CallId, Principal};
use antiphon_wire::{
    CallToolResult, ErrorCode, ErrorObject, GetPromptResult, Meta, ReadResourceResult, StringMember,
};
use http::{Extensions, HeaderMap};
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};
use std::{borrow::Cow, collections::HashMap, error::Error as StdError, fmt, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// One request on its way to the server, as a layer sees it: of any method, in both eras, and each leg of a task. Or a notification on its
/// way to a subscriber: its [`method`](Self::method) begins with `notifications/`, and its principal is the subscriber.
///
/// A layer may add [extensions](Self::extensions_mut), which the handler receives by
/// [`RequestInfo::extension`](crate::RequestInfo::extension), and may change the [`_meta`](Self::meta_mut) that it reads.
pub struct Call {
    pub(crate) method: String,
    pub(crate) target: Option<String>,
    pub(crate) arguments: Option<Box<RawValue>>,
    /// The keys of the answers, and their actions.
    pub(crate) answers: Vec<(String, Option<String>)>,
    pub(crate) version: String,
    pub(crate) meta: Meta,
    pub(crate) meta_changed: bool,
    pub(crate) principal: Option<Principal>,
    pub(crate) call: Option<CallId>,
    pub(crate) leg: u16,
    pub(crate) is_of_task: bool,
    pub(crate) peer: Option<PeerAddress>,
    pub(crate) head: Option<Arc<RequestHead>>,
    pub(crate) extensions: Extensions,
    pub(crate) visibility: OfferVisibility,
    pub(crate) server: ToServer,
}

/// The way from the innermost service to the future of the request.
#[derive(Clone)]
pub(crate) struct ToServer(pub(crate) mpsc::Sender<Run>);

/// A call for the server, and the place of its reply.
pub(crate) struct Run {
    pub(crate) call: Call,
    pub(crate) reply: oneshot::Sender<Result<CallReply, Refused>>,
}

impl Call {
    /// Reads what a layer may see. `principal`, the call and the visibility were found by the server.
    pub(crate) fn new(
        request: &Request<'_>,
        caller: &Caller<'_>,
        principal: Option<Principal>,
        opened: Option<(CallId, u16)>,
        visibility: OfferVisibility,
        server: ToServer,
    ) -> Self {
        let meta = request.params.meta.and_then(|text| serde_json::from_str(text.get()).ok());
        Self {
            method: request.method.to_string(),
            target: request.target().and_then(StringMember::text).map(str::to_owned),
            arguments: request.params.arguments.map(ToOwned::to_owned),
            answers: request.params.input_responses.map(actions).unwrap_or_default(),
            version: request.version.to_string(),
            meta: meta.unwrap_or_default(),
            meta_changed: false,
            principal,
            call: opened.map(|(call, _)| call),
            leg: opened.map_or(1, |(_, leg)| leg),
            is_of_task: carrier::is_a_task(caller),
            peer: caller.peer_address(),
            head: caller.shared_head(),
            extensions: caller.extensions.cloned().unwrap_or_default(),
            visibility,
            server,
        }
    }

    /// Returns the method: `tools/call`, `tools/list`, `subscriptions/listen`, ..
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the name of the tool or prompt, the URI of the resource, the id of the task, or that of the finished URL; `None` for other methods.
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// Returns the arguments, as JSON text. Untrusted and unchecked.
    pub fn arguments(&self) -> Option<&RawValue> {
        self.arguments.as_deref()
    }

    /// Returns the keys of the answers that came with the request, each with its action (`accept`, `decline`, `cancel`) if it is a person's.
    /// Untrusted and unchecked.
    pub fn answers(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.answers.iter().map(|(key, action)| (key.as_str(), action.as_deref()))
    }

    /// Returns the protocol version of the request: that of its session, if it has one.
    pub fn protocol_version(&self) -> &str {
        &self.version
    }

    /// Returns the authenticated caller; `None` without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Returns the verified access token, if there is one.
    pub fn bearer(&self) -> Option<&Bearer> {
        self.extensions.get()
    }

    /// Returns the HTTP headers; `None` on other transports, and for a leg of a task.
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.head.as_deref().map(RequestHead::headers)
    }

    /// Returns the address of the peer, if it is known.
    pub fn peer_address(&self) -> Option<PeerAddress> {
        self.peer
    }

    /// Returns the number of the leg, from 1. A state that is not accepted counts as none.
    pub fn leg(&self) -> u16 {
        self.leg
    }

    /// Returns the id of the call; `None` on its first leg, and for methods without legs.
    pub fn call_id(&self) -> Option<CallId> {
        self.call
    }

    /// Returns true for a leg of a task: the server runs it by itself, and a refusal ends the task.
    pub fn is_of_task(&self) -> bool {
        self.is_of_task
    }

    /// Returns the `_meta` of the request.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the `_meta` that the handler will read. The version, the client and its capabilities are those of the request
    /// in any case.
    pub fn meta_mut(&mut self) -> &mut Meta {
        self.meta_changed = true;
        &mut self.meta
    }

    /// Returns the values that tower layers in front of the endpoint, and outer layers, have added.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Returns whether the caller sees the offer that the request names, by its rule of [`visible_if`](crate::Tool::visible_if), with the
    /// [extensions](Self::extensions) of now; `None` if only the server finds out: the offer is found at run time, or is one of several
    /// templates. A layer that answers or refuses by the name lets other callers pass: the server refuses them as for an unknown name.
    pub fn is_visible(&self) -> Option<bool> {
        self.visibility.shows(&self.extensions)
    }

    /// Returns the same values, to add one for the handler.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.extensions
    }
}

/// Reads the keys and actions of answers.
fn actions(responses: &RawValue) -> Vec<(String, Option<String>)> {
    #[derive(serde::Deserialize)]
    struct Response {
        #[serde(default)]
        action: Option<String>,
    }
    let responses: HashMap<String, &RawValue> = serde_json::from_str(responses.get()).unwrap_or_default();
    let action = |text: &RawValue| serde_json::from_str::<Response>(text.get()).ok()?.action;
    responses
        .into_iter()
        .map(|(key, text)| {
            let action = action(text);
            (key, action)
        })
        .collect()
}

impl fmt::Debug for Call {
    /// Omits arguments, `_meta`, headers and extensions: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("leg", &self.leg)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

/// The answer to a request that is not an error.
pub struct CallReply(pub(crate) Written);

/// The answer of the server.
pub(crate) enum Served {
    /// The body of the response.
    Body(Vec<u8>),
    /// An open subscription, which is answered when it ends. Boxed, because nearly every answer is a body.
    Open(Box<Subscription>),
}

/// A reply, written or to be written.
pub(crate) enum Written {
    /// The server answered. What leaves is this.
    Served { served: Served, kind: Outcome },
    /// A layer answered with a result, which is written in the form of the request's version.
    Early(Box<EarlyResult>),
    /// A layer answered with the text of an earlier result for the same version.
    Again { result: Box<RawValue>, kind: Outcome },
    /// The notification is sent.
    Notified,
}

/// The result with which a layer answers in the place of the server.
pub(crate) enum EarlyResult {
    Tool(CallToolResult),
    Prompt(GetPromptResult),
    Resource(ReadResourceResult),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A final result.
    Complete {
        /// True for a result with `isError`.
        is_error: bool,
    },
    /// Questions, or a state alone: the client sends the request again.
    Asked,
    /// The call continues as a task.
    Task,
    /// A subscription is open.
    Subscribed,
    /// A notification is on its way to the client.
    Notified,
}

impl Outcome {
    /// Returns the name of the outcome in a log: `complete`, `error`, `asked`, `task`, `subscribed` or `notified`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete { is_error: false } => "complete",
            Self::Complete { is_error: true } => "error",
            Self::Asked => "asked",
            Self::Task => "task",
            Self::Subscribed => "subscribed",
            Self::Notified => "notified",
        }
    }
}

impl CallReply {
    /// Returns the answer to a `tools/call` with this result.
    #[must_use]
    pub fn tool(result: CallToolResult) -> Self {
        Self(Written::Early(Box::new(EarlyResult::Tool(result))))
    }

    /// Returns the answer to a `prompts/get` with this result.
    #[must_use]
    pub fn prompt(result: GetPromptResult) -> Self {
        Self(Written::Early(Box::new(EarlyResult::Prompt(result))))
    }

    /// Returns the answer to a `resources/read` with this result.
    #[must_use]
    pub fn resource(result: ReadResourceResult) -> Self {
        Self(Written::Early(Box::new(EarlyResult::Resource(result))))
    }

    /// Returns the answer with the text of an earlier [`result`](Self::result) to a request of the same method and
    /// [version](Call::protocol_version).
    #[must_use]
    pub fn again(result: Box<RawValue>) -> Self {
        let kind = kind_of(result.get());
        Self(Written::Again { result, kind })
    }

    /// Returns what became of the request.
    pub fn outcome(&self) -> Outcome {
        match &self.0 {
            Written::Served { kind, .. } | Written::Again { kind, .. } => *kind,
            Written::Notified => Outcome::Notified,
            Written::Early(early) => Outcome::Complete {
                is_error: matches!(&**early, EarlyResult::Tool(result) if result.is_error == Some(true)),
            },
        }
    }

    /// Returns the result as JSON text; `None` for a subscription or a notification.
    pub fn result(&self) -> Option<Box<RawValue>> {
        match &self.0 {
            Written::Served { served: Served::Body(body), .. } => result_of(body).ok(),
            Written::Served { served: Served::Open(_), .. } | Written::Notified => None,
            Written::Again { result, .. } => Some(result.clone()),
            Written::Early(early) => match &**early {
                EarlyResult::Tool(result) => to_raw_value(result),
                EarlyResult::Prompt(result) => to_raw_value(result),
                EarlyResult::Resource(result) => to_raw_value(result),
            }
            .ok(),
        }
    }

    /// Returns the reply for a notification that may be sent.
    pub(crate) fn notified() -> Self {
        Self(Written::Notified)
    }

    /// Returns the reply of the server.
    pub(crate) fn served(served: Served) -> Self {
        let kind = match &served {
            Served::Open(_) => Outcome::Subscribed,
            Served::Body(body) => {
                result_of(body).map_or(Outcome::Complete { is_error: false }, |result| kind_of(result.get()))
            }
        };
        Self(Written::Served { served, kind })
    }
}

/// Reads the kind of a result.
fn kind_of(result: &str) -> Outcome {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind<'a> {
        #[serde(borrow, default)]
        result_type: Option<Cow<'a, str>>,
        #[serde(default)]
        is_error: Option<bool>,
        #[serde(borrow, default)]
        task: Option<&'a RawValue>,
    }
    let kind: Option<Kind<'_>> = serde_json::from_str(result).ok();
    match kind {
        Some(kind) if kind.result_type.as_deref() == Some("input_required") => Outcome::Asked,
        Some(kind) if kind.result_type.as_deref() == Some("task") || kind.task.is_some() => Outcome::Task,
        kind => Outcome::Complete { is_error: kind.and_then(|kind| kind.is_error) == Some(true) },
    }
}

impl fmt::Debug for CallReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallReply").field(&self.outcome()).finish()
    }
}

/// The error with which a request is refused, by the server or by a layer.
#[derive(Debug)]
pub struct Refused(pub(crate) Refusal);

impl Refused {
    /// Returns a refusal of a layer, for the client to read.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::from(ErrorObject::new(code, message))
    }

    /// Returns the refusal of a request that may be sent again after this time. Over HTTP, the reply has `Retry-After`.
    pub fn busy(retry_after: Duration) -> Self {
        let millis = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        let text = "The server is busy: send the same request again later";
        Self::from(
            ErrorObject::new(ErrorCode::INTERNAL_ERROR, text)
                .with_data(json!({ "reason": "busy", "retryAfterMs": millis })),
        )
    }

    /// Returns the refusal of a request for a reason that is in the log.
    #[must_use]
    pub fn internal() -> Self {
        Self(Refusal::Internal)
    }

    /// Returns the error that the client receives.
    pub fn error(&self) -> ErrorObject {
        self.0.to_error()
    }

    /// Returns `data.reason` of the error, if it has one.
    pub fn reason(&self) -> Option<String> {
        Some(self.error().data?.get("reason")?.as_str()?.to_owned())
    }
}

impl From<ErrorObject> for Refused {
    fn from(error: ErrorObject) -> Self {
        Self(Refusal::Again(Box::new(error)))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error().message)
    }
}

impl StdError for Refused {}
