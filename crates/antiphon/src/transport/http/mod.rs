//! Streamable HTTP: one POST, one exchange, no sessions. What earlier revisions need besides is in `legacy`.

pub mod auth;
mod body;
mod client;
mod guard;
mod legacy;
mod options;
mod serve;
mod server;
pub mod sse;

pub use body::ReplyBody;
pub use client::{HttpTransport, HttpTransportBuilder, Token, TokenRequest};
pub use options::HttpOptions;
pub use serve::serve_http;
pub use server::{BoxBodyError, Exchange, HttpService};
