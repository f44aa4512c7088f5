//! The transports of a server: HTTP, and a pair of streams. Only the modules in here name sockets, pipes and HTTP.
//!
//! Each transport serves a [`MessageService`]: a [`Server`](crate::Server), or another implementation, such as a
//! bridge.

mod batch;
#[cfg(feature = "http")]
pub mod http;
pub mod stdio;
mod write_timeout;

pub use crate::{
    outbox::{MessageKind, Outbox},
    request::receive::{Received, Request},
    server::{
        message_service::{CallOutcome, MessageService, MessageSession, NoSession},
        service::{ServerOffers, ServerSession},
    },
};
