//! The revisions up to 2025-11-25 on the same endpoint: sessions, the stream of a GET, and streams that can be resumed.
//!
//! ```text
//!  POST ─▶ endpoint ─▶ request: a task of its own ──▶ Writer ─▶ streams ─▶ Reader ─▶ events ─▶ connection
//!                        session.call, outbox                event log                           │ breaks
//!  GET, Last-Event-ID ─────────────────────────────────────────────────────▶ Reader ─▶ events ◀───┘
//! ```
//!
//! A request continues when its connection breaks: its events are stored, within limits, for a client that reconnects.

mod batch;
mod endpoint;
mod event_id;
mod event_log;
mod request;
mod session_events;
mod session_table;
mod streams;

pub(crate) use endpoint::Endpoint;

use crate::serve::http::{checks::names_session, header_names::MCP_PROTOCOL_VERSION};
use antiphon_wire::ProtocolVersion;
use http::{HeaderMap, Method, request::Parts};

/// Returns whether this request is a POST of a session.
///
/// > An `Mcp-Session-Id` header on a request: ignore it
///
/// The header of a modern request is ignored.
pub(crate) fn is_of_session(parts: &Parts) -> bool {
    parts.method == Method::POST && names_session(&parts.headers) && !says_modern(&parts.headers)
}

/// Returns whether the headers name a modern version.
fn says_modern(headers: &HeaderMap) -> bool {
    version(headers).is_some_and(ProtocolVersion::is_modern_text)
}

/// Returns whether the headers name an earlier version, or none.
fn may_be_legacy(headers: &HeaderMap) -> bool {
    version(headers).is_none_or(|version| ProtocolVersion::legacy(version).is_some())
}

fn version(headers: &HeaderMap) -> Option<&str> {
    headers.get(&MCP_PROTOCOL_VERSION).map(|version| version.to_str().unwrap_or_default())
}
