//! One connection of [`serve_http`](crate::serve::http::serve_http): its place among the others, its reads, its requests.

#[cfg(feature = "http2")]
mod http2;
mod read_ahead;
mod serve;
mod service;
mod small_write;
mod table;
mod until;

pub(crate) use serve::serve_connection;
#[cfg(test)]
pub(crate) use table::LARGE_HEADS;
pub(crate) use table::{ConnectionTable, NoPlace};
