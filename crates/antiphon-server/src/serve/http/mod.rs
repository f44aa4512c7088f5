//! Streamable HTTP: one POST, one exchange, no sessions. `legacy` adds what earlier revisions need.

pub mod auth;
mod body;
mod guard;
mod legacy;
mod options;
mod serve;
mod service;

pub use body::ReplyBody;
pub use options::HttpOptions;
pub use serve::serve_http;
pub use service::{BoxBodyError, Exchange, HttpService};
