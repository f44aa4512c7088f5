//! The stamp: every result says who answers.

use crate::refusal::Refusal;
use antiphon_wire::{
    CallToolResult, ErrorObject, GetPromptResult, Meta, ReadResourceResult, RequestId, meta_keys, write_error,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// A result with room for `_meta`.
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

/// Who answers: as members for results that have a `_meta` of their own, and written once for those that have none.
pub(crate) struct ServerInfo {
    pub(crate) members: Meta,
    pub(crate) raw: Box<RawValue>,
}

/// A result without a `_meta` of its own, with the stamp for one.
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
    /// What the handler wrote there itself stays.
    pub(crate) fn join(&self, members: &mut Meta) {
        let own = members.0.get(meta_keys::SERVER_INFO).is_some_and(|info| !info.is_null());
        if !own {
            members.0.extend(self.members.0.clone());
        }
    }
}

/// The reply to one message, ready to be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReplyMessage {
    /// One JSON-RPC response, without a newline.
    pub body: Vec<u8>,
    /// The HTTP status that goes with it.
    pub status: u16,
    /// It is an error.
    pub(crate) failed: bool,
    /// The scopes that the caller's token lacks some of.
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

    /// The same reply, with what this refusal says in HTTP's words.
    pub(crate) fn refused_by(self, refusal: Refusal) -> Self {
        match refusal {
            // > `HTTP 403 Forbidden` status code (per RFC 6750 Section 3.1)
            Refusal::Scope { needed } => Self::short_of_scopes(self.body, needed),
            _ => self,
        }
    }

    /// A reply to a caller whose token would have to hold all of these.
    pub(crate) fn short_of_scopes(body: Vec<u8>, scopes: Vec<String>) -> Self {
        Self { body, status: 403, failed: true, scopes }
    }

    /// The response to a request that was read.
    pub(crate) fn written(id: &RequestId, body: Result<Vec<u8>, Refusal>) -> Self {
        match body {
            Ok(body) => Self::result(body),
            Err(refusal) => Self::error(Some(id), &refusal.to_error()).refused_by(refusal),
        }
    }
}
