//! The header names of MCP, parsed once.

use antiphon_wire::header;
use http::HeaderName;

pub(crate) static MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static(header::MCP_PROTOCOL_VERSION);
pub(crate) static MCP_METHOD: HeaderName = HeaderName::from_static(header::MCP_METHOD);
pub(crate) static MCP_NAME: HeaderName = HeaderName::from_static(header::MCP_NAME);

/// The session that a message belongs to. Of the revisions up to 2025-11-25.
pub(crate) static MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The event after which a stream is resumed.
pub(crate) static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Has a proxy pass on each event at once.
pub(crate) static X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
