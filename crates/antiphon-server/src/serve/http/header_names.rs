//! The header names of MCP, parsed once.

use antiphon_wire::header;
use http::{HeaderName, header as name};

pub(crate) static MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static(header::MCP_PROTOCOL_VERSION);
pub(crate) static MCP_METHOD: HeaderName = HeaderName::from_static(header::MCP_METHOD);
pub(crate) static MCP_NAME: HeaderName = HeaderName::from_static(header::MCP_NAME);

// Those that the checks look for, as statics: a constant is made anew where it is used.
pub(crate) static ACCEPT: HeaderName = name::ACCEPT;
pub(crate) static CONTENT_ENCODING: HeaderName = name::CONTENT_ENCODING;
pub(crate) static CONTENT_LENGTH: HeaderName = name::CONTENT_LENGTH;
pub(crate) static CONTENT_TYPE: HeaderName = name::CONTENT_TYPE;
pub(crate) static HOST: HeaderName = name::HOST;
pub(crate) static ORIGIN: HeaderName = name::ORIGIN;
pub(crate) static TRANSFER_ENCODING: HeaderName = name::TRANSFER_ENCODING;

/// The session that a message belongs to. Of the revisions up to 2025-11-25.
pub(crate) static MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The event after which a stream is resumed.
pub(crate) static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Has a proxy pass on each event at once.
pub(crate) static X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
