//! Sessions: clients of the revisions up to 2025-11-25, which declare their capabilities once, in a handshake.
//!
//! ```text
//!  initialize ─▶ handshake ─▶ Session ◀── notifications, answers ─── client
//!                               │                                      ▲
//!        request ─▶ answer ─────┤                                      │
//!                     │         └─ told: lists, resources, URLs ───────┤
//!                     ▼                                                │
//!        route, as every request ─▶ handler ─▶ asks ─▶ live: sent as requests of ours, on the stream of the call
//!                     │
//!                     └─▶ words: results and errors as the session's version knows them
//! ```
//!
//! Offers, admission and handlers are the same as for other requests: a request of a session becomes a
//! [`Request`](super::Request) with the handshake's data as its metadata. Nothing of a session is sealed: it ends with
//! this process.

mod answer;
mod handshake;
mod notifications;
