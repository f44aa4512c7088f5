//! A request of a client and its reply, as a layer sees them.

use crate::{
    asks::questions::ServerIdentity,
    request::{
        core::{Added, RequestSpec},
        fault::RequestFault,
    },
};
use antiphon_wire::Meta;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::{borrow::Cow, fmt, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// One request of a client on its way to the server, as a layer sees it: of any method, in both eras, and each leg of a call. A clone may
/// be sent again, with an id of its own.
#[derive(Clone)]
pub struct Request {
    method: Cow<'static, str>,
    target: Option<String>,
    arguments: Option<Arc<RawValue>>,
    round: u32,
    leg: u32,
    of: ServerIdentity,
    pub(crate) added: Added,
    pub(crate) server: ToServer,
}

/// The way from the innermost service to the future of the request.
#[derive(Clone)]
pub(crate) struct ToServer(pub(crate) mpsc::Sender<Run>);

/// A request for the server, and the place of its reply.
pub(crate) struct Run {
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Reply, RequestFault>>,
}

impl Request {
    pub(crate) fn new(spec: &RequestSpec<'_>, of: ServerIdentity, server: ToServer) -> Self {
        Self {
            method: spec.method.clone(),
            target: spec.name.map(str::to_owned),
            arguments: spec.arguments.cloned(),
            round: spec.round,
            leg: spec.leg,
            of,
            added: Added::default(),
            server,
        }
    }

    /// Returns the method: `tools/call`, `tools/list`, `subscriptions/listen`, ..
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the name of the tool or prompt, the URI of the resource, or the id of the task; `None` for other methods.
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// Returns the arguments of the call, as JSON text.
    pub fn arguments(&self) -> Option<&RawValue> {
        self.arguments.as_deref()
    }

    /// Returns the number of rounds that the call has had before this request.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns the number of the request in its call, from 1.
    pub fn leg(&self) -> u32 {
        self.leg
    }

    /// Returns the server, as far as it is known.
    pub fn server(&self) -> &ServerIdentity {
        &self.of
    }

    /// Returns the members that layers add to the `_meta` of the request. Members of the protocol and of the call itself are not in
    /// it, and are not replaced. Use a prefix of your own, such as `com.example/`.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.added.meta
    }

    /// Sets a header of this request; only HTTP sends headers. The headers of the protocol are not replaced. A name or a value
    /// that HTTP does not permit fails the request.
    pub fn set_header(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.added.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
        self.added.headers.push((name, value.into()));
    }
}

impl fmt::Debug for Request {
    /// Omits arguments, `_meta` and headers: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("leg", &self.leg)
            .finish_non_exhaustive()
    }
}

/// The result of a request of a client.
#[derive(Clone)]
pub struct Reply(Box<RawValue>);

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyKind {
    /// A final result.
    Complete {
        /// True for a result with `isError`.
        is_error: bool,
    },
    /// Questions, or a state alone: the client sends another leg.
    Asked,
    /// The call continues as a task.
    Task,
}

impl Reply {
    /// Returns a reply in the place of the server's, such as a [`CallToolResult`](antiphon_wire::CallToolResult). The client reads it as
    /// any result of the request's method.
    ///
    /// # Errors
    /// If the result cannot be written as JSON.
    pub fn new(result: &impl Serialize) -> Result<Self, serde_json::Error> {
        to_raw_value(result).map(Self)
    }

    /// Returns the result, as JSON text. Untrusted and unchecked.
    pub fn result(&self) -> &RawValue {
        &self.0
    }

    /// Returns what the result says.
    pub fn kind(&self) -> ReplyKind {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind<'a> {
            #[serde(borrow, default)]
            result_type: Option<Cow<'a, str>>,
            #[serde(default)]
            is_error: Option<bool>,
            #[serde(borrow, default)]
            task: Option<&'a RawValue>,
        }
        let kind: Option<Kind<'_>> = serde_json::from_str(self.0.get()).ok();
        match kind {
            Some(kind) if kind.result_type.as_deref() == Some("input_required") => ReplyKind::Asked,
            Some(kind) if kind.result_type.as_deref() == Some("task") || kind.task.is_some() => {
                ReplyKind::Task
            }
            kind => ReplyKind::Complete { is_error: kind.and_then(|kind| kind.is_error) == Some(true) },
        }
    }

    pub(crate) fn of(result: Box<RawValue>) -> Self {
        Self(result)
    }

    pub(crate) fn into_result(self) -> Box<RawValue> {
        self.0
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&self.kind()).finish()
    }
}
