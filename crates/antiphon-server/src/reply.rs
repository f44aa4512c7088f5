//! Replies: their kind, and the name and version of the server that stand in every result.

use crate::{errors::refusal::Refusal, quota::Exceeded, session::SessionResult};
use antiphon_wire::{
    CallToolResult, ErrorCode, ErrorObject, GetPromptResult, Meta, ProtocolVersion, ReadResourceResult,
    RequestId, Unreadable, meta_keys, write_error, write_result,
};
use serde::{Serialize, ser::SerializeMap};
use serde_json::{json, value::RawValue};

/// A final result of a call.
pub(crate) trait HasMeta {
    fn meta_mut(&mut self) -> &mut Option<Meta>;
    /// Returns true for a result that reports an error.
    fn is_error(&self) -> bool;
}

macro_rules! has_meta {
    ($($result:ty, $is_error:expr;)*) => { $(
        impl HasMeta for $result {
            fn meta_mut(&mut self) -> &mut Option<Meta> {
                &mut self.meta
            }

            fn is_error(&self) -> bool {
                $is_error(self)
            }
        }
    )* };
}

has_meta! {
    CallToolResult, |result: &Self| result.is_error == Some(true);
    GetPromptResult, |_: &Self| false;
    ReadResourceResult, |_: &Self| false;
}

/// The name and version of the server for `_meta`: as members for results with a `_meta` of their own, and as text for the
/// others.
pub(crate) struct ServerInfo {
    pub(crate) members: Meta,
    pub(crate) raw: Box<RawValue>,
}

/// A result without a `_meta` of its own, with the name and version of the server as `_meta`.
#[derive(Serialize)]
pub(crate) struct WithServerInfo<'a, T> {
    #[serde(flatten)]
    pub(crate) result: &'a T,
    #[serde(rename = "_meta")]
    pub(crate) server_info: &'a RawValue,
}

impl<T: SessionResult> SessionResult for WithServerInfo<'_, T> {
    fn write_members<M: SerializeMap>(
        &self,
        version: &ProtocolVersion,
        members: &mut M,
    ) -> Result<(), M::Error> {
        self.result.write_members(version, members)
    }
}

impl ServerInfo {
    /// > Servers **SHOULD** include the following `io.modelcontextprotocol/*` field in every result's `_meta`
    ///
    /// A value that the handler has set stays.
    pub(crate) fn join(&self, members: &mut Meta) {
        let own = members.0.get(meta_keys::SERVER_INFO).is_some_and(|info| !info.is_null());
        if !own {
            members.0.extend(self.members.0.clone());
        }
    }
}

/// The written reply to one message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReplyMessage {
    /// One JSON-RPC response, without a newline.
    pub body: Vec<u8>,
    kind: ReplyKind,
    /// The limit that one more session would exceed, if that is the reason of the error.
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "only an HTTP endpoint can end another session")
    )]
    sessions_full: Option<Exceeded>,
    /// The time after which the same request may succeed, in milliseconds, if the error names one.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has a header for it"))]
    retry_after_ms: Option<u64>,
}

/// The kind of a reply, for transports that say more than the body does. Over HTTP the kind becomes the status.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyKind {
    /// A result.
    Result,
    /// An error of this code.
    Error(ErrorCode),
    /// An error of this code in a session of an earlier revision.
    SessionError(ErrorCode),
    /// An error, because the caller's token does not hold all of these scopes.
    InsufficientScope(Vec<String>),
}

impl ReplyMessage {
    /// Returns a reply that consists of this JSON-RPC response, which holds a result.
    pub fn result(body: Vec<u8>) -> Self {
        Self { body, kind: ReplyKind::Result, sessions_full: None, retry_after_ms: None }
    }

    /// Returns an error response. `id` is that of the request, if it could be read.
    pub fn error(id: Option<&RequestId>, error: &ErrorObject) -> Self {
        let retry_after_ms = error.data.as_ref().and_then(|data| data.get("retryAfterMs")?.as_u64());
        let (body, kind) = (write_error(id, error), ReplyKind::Error(error.code));
        Self { body, kind, sessions_full: None, retry_after_ms }
    }

    /// Returns an error response to a request of an earlier revision: one of a session, or one for
    /// [`call_without_session`](crate::serve::MessageService::call_without_session). Over HTTP, its status is 200.
    pub fn session_error(id: &RequestId, error: &ErrorObject) -> Self {
        Self { kind: ReplyKind::SessionError(error.code), ..Self::error(Some(id), error) }
    }

    /// Returns an error response to a caller whose token does not hold all of these scopes, with the body that a
    /// [`Server`](crate::Server) sends. `id` is that of the request; `None` in the place of a stream. Over HTTP, its status is
    /// 403, and `WWW-Authenticate` names the scopes; a text that is no scope (RFC 6749, 3.3) is omitted there.
    pub fn insufficient_scope<Text: Into<String>>(
        id: Option<&RequestId>,
        scopes: impl IntoIterator<Item = Text>,
    ) -> Self {
        let refusal = Refusal::Scope { needed: scopes.into_iter().map(Into::into).collect() };
        Self::error(id, &refusal.to_error()).refused_by(refusal)
    }

    /// Returns the error response in the place of the acceptance of a notification. It has no id, and over HTTP its status is never 200.
    ///
    /// > If the server cannot accept it, it **MUST** return an HTTP error status code (e.g., `400 Bad Request`). The HTTP response
    /// > body **MAY** comprise a JSON-RPC _error response_ that has no `id`.
    pub fn not_accepted(error: &ErrorObject) -> Self {
        let kind = match error.code {
            ErrorCode::METHOD_NOT_FOUND => ErrorCode::METHOD_NOT_FOUND,
            _ => ErrorCode::INVALID_REQUEST,
        };
        Self { kind: ReplyKind::Error(kind), ..Self::error(None, error) }
    }

    /// Returns the reply to a ping, which needs no session.
    pub(crate) fn pong(id: &RequestId) -> Self {
        match write_result(id, &json!({})) {
            Ok(body) => Self::result(body),
            Err(_fault) => Self::session_error(id, &ErrorObject::internal()),
        }
    }

    /// Returns the kind of the reply.
    pub fn kind(&self) -> &ReplyKind {
        &self.kind
    }

    /// Returns whether the reply is an error response. A tool that failed has a result.
    pub fn is_error(&self) -> bool {
        self.kind != ReplyKind::Result
    }

    /// Returns the same reply, to an `initialize` that would exceed this limit.
    pub(crate) fn because_sessions_are_full(self, limit: Exceeded) -> Self {
        Self { sessions_full: Some(limit), ..self }
    }

    /// Returns the limit that one more session would exceed, if that is the reason of the error.
    #[cfg(feature = "http")]
    pub(crate) fn sessions_full(&self) -> Option<Exceeded> {
        self.sessions_full
    }

    /// Returns the value of `Retry-After`, in seconds.
    #[cfg(feature = "http")]
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.retry_after_ms.map(|millis| millis.div_ceil(1000).max(1))
    }

    /// Returns the same reply, with the scopes that this refusal demands.
    pub(crate) fn refused_by(self, refusal: Refusal) -> Self {
        match refusal {
            Refusal::Scope { needed } => Self::with_missing_scopes(self.body, needed),
            _ => self,
        }
    }

    /// Returns the reply with this body, an error response to a caller whose token does not hold all of these scopes.
    pub(crate) fn with_missing_scopes(body: Vec<u8>, needed: Vec<String>) -> Self {
        Self { kind: ReplyKind::InsufficientScope(needed), ..Self::result(body) }
    }

    /// Returns the response to a request that was read.
    pub(crate) fn written(id: &RequestId, body: Result<Vec<u8>, Refusal>) -> Self {
        match body {
            Ok(body) => Self::result(body),
            Err(refusal) => Self::error(Some(id), &refusal.to_error()).refused_by(refusal),
        }
    }
}

impl From<Unreadable> for ReplyMessage {
    fn from(Unreadable { id, error }: Unreadable) -> Self {
        Self::error(id.as_ref(), &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bridge sends what a server sends.
    #[test]
    fn public_replies_are_those_of_a_server() {
        let id = RequestId::from(7_i64);
        let needed = vec!["write".to_owned(), "orders".to_owned()];
        let refused = ReplyMessage::written(&id, Err(Refusal::Scope { needed: needed.clone() }));
        let reply = ReplyMessage::insufficient_scope(Some(&id), &needed);
        assert_eq!((&reply.body, reply.kind()), (&refused.body, refused.kind()));
        assert_eq!(*reply.kind(), ReplyKind::InsufficientScope(needed));
        let error = ErrorObject::method_not_found("a/method");
        let reply = ReplyMessage::session_error(&id, &error);
        assert_eq!(reply.body, ReplyMessage::error(Some(&id), &error).body);
        assert_eq!(*reply.kind(), ReplyKind::SessionError(ErrorCode::METHOD_NOT_FOUND));
    }
}
