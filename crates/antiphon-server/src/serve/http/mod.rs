//! Streamable HTTP: one POST, one response, no sessions. `legacy` adds the sessions of earlier revisions.

pub mod auth;
mod body;
mod checks;
mod connection;
mod cors;
mod event_stream;
mod fields;
mod legacy;
#[cfg(test)]
mod memory_tests;
mod options;
mod origins;
mod probes;
mod rejection;
mod reply;
mod request_body;
mod serve;
mod service;
mod stream_place;

pub use crate::identity::PeerAddress;
pub use body::ReplyBody;
pub use options::HttpOptions;
pub use request_body::BoxBodyError;
pub use serve::{ServeHttp, serve_http};
pub use service::{Exchange, HttpService};
