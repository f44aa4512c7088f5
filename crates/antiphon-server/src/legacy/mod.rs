//! Sessions: clients of the revisions up to 2025-11-25, which declare their capabilities once, in a handshake.
//!
//! ```text
//!  initialize ─▶ handshake ─▶ Session ◀── notifications, answers ─── client
//!                               │                                      ▲
//!        request ─▶ answer ─────┤                                      │
//!                     │         └─ notifications: lists, resources ────┤
//!                     ▼                                                │
//!        route, as every request ─▶ handler ─▶ asks ─▶ outbound_request, on the stream of the call
//!                     │
//!                     └─▶ downgrade: results and errors in the form of the session's version
//! ```
//!
//! Offers, admission and handlers are the same as for other requests: a request of a session becomes a
//! [`Request`](crate::Request) with the handshake's data as its metadata. Nothing of a session is sealed: it ends with
//! this process.

mod answer;
mod handshake;
mod notifications;
