//! Streamable HTTP: one POST, one response, no sessions. `legacy` adds the sessions of earlier revisions.

mod accept;
pub mod auth;
mod body;
mod buffer_pool;
mod checks;
mod connection;
mod cors;
mod event_stream;
mod fields;
mod header_names;
mod health;
mod legacy;
#[cfg(test)]
mod memory_tests;
mod options;
mod origins;
mod rejection;
mod reply;
mod request_body;
mod serve;
mod service;
mod session_options;
mod status;
mod stream_place;

pub use crate::identity::peer_address::PeerAddress;
pub use body::ReplyBody;
pub use options::HttpOptions;
pub use request_body::BoxBodyError;
pub use serve::{ServeHttp, serve_http};
pub use service::{Exchange, HttpService};
