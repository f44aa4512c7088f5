//! Sessions: clients of the revisions up to 2025-11-25, which say once who they are and what they can do.
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
//! What is offered, admitted and run is the same as ever: a request of a session becomes a [`Request`](super::Request)
//! with what the handshake said in the place of its metadata. Nothing of a session is sealed: it lives and dies with this
//! process.

mod answer;
mod handshake;
mod notifications;
