//! Replies, and the server's name and version in every result.

use crate::refusal::Refusal;
use antiphon_wire::{
    CallToolResult, ErrorObject, GetPromptResult, Meta, ReadResourceResult, RequestId, meta_keys, write_error,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// A result with a member `_meta`.
pub(crate) trait HasMeta {
    fn meta_mut(&mut self) -> &mut Option<Meta>;
}

macro_rules! has_meta {
    ($($result:ty)*) => { $(
        impl HasMeta for $result {
            fn meta_mut(&mut self) -> &mut Option<Meta> {
                &mut self.meta
            }
        }
    )* };
}

has_meta! { CallToolResult GetPromptResult ReadResourceResult }

/// The server's name and version: as members for results with a `_meta` of their own, and as JSON text for the others.
pub(crate) struct ServerInfo {
    pub(crate) members: Meta,
    pub(crate) raw: Box<RawValue>,
}

/// A result without a `_meta` of its own, with the server's.
#[derive(Serialize)]
pub(crate) struct WithServerInfo<'a, T> {
    #[serde(flatten)]
    pub(crate) result: &'a T,
    #[serde(rename = "_meta")]
    pub(crate) server_info: &'a RawValue,
}

impl ServerInfo {
    /// > Servers **SHOULD** include the following `io.modelcontextprotocol/*` field in every result's `_meta`
    ///
    /// A value that the handler wrote itself is kept.
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
    /// The HTTP status of the reply.
    pub status: u16,
    /// True if the reply is an error.
    pub(crate) failed: bool,
    /// The required scopes, some of which the caller's token lacks.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only HTTP says so in a header"))]
    pub(crate) scopes: Vec<String>,
}

impl ReplyMessage {
    pub(crate) fn error(id: Option<&RequestId>, error: &ErrorObject) -> Self {
        let status = error.code.http_status();
        Self { body: write_error(id, error), status, failed: true, scopes: Vec::new() }
    }

    pub(crate) fn result(body: Vec<u8>) -> Self {
        Self { body, status: 200, failed: false, scopes: Vec::new() }
    }

    /// Adds the refusal's HTTP status and scopes.
    pub(crate) fn refused_by(self, refusal: Refusal) -> Self {
        match refusal {
            // > `HTTP 403 Forbidden` status code (per RFC 6750 Section 3.1)
            Refusal::Scope { needed } => Self::short_of_scopes(self.body, needed),
            _ => self,
        }
    }

    /// Returns the reply to a caller whose token lacks some of these scopes.
    pub(crate) fn short_of_scopes(body: Vec<u8>, scopes: Vec<String>) -> Self {
        Self { body, status: 403, failed: true, scopes }
    }

    /// Returns the response to a request.
    pub(crate) fn written(id: &RequestId, body: Result<Vec<u8>, Refusal>) -> Self {
        match body {
            Ok(body) => Self::result(body),
            Err(refusal) => Self::error(Some(id), &refusal.to_error()).refused_by(refusal),
        }
    }
}
