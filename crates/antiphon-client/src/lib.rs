//! The client: calls tools, gets prompts and reads resources, and answers what servers ask on the way.
//!
//! A call is a graph of a few states. The files are its nodes:
//!
//! ```text
//!  Call (call) ----begin----> leg (leg) ----complete----------------------> Done (finished)
//!                             ^  ^   |
//!                             |  |   +--input_required: state only---+
//!                             |  |                                   |
//!                             |  +---------- a pause (pacing) <------+
//!                             |      |
//!                             |      +--input_required: asks--> Pending (pending)
//!                             |                                      |
//!                             |                 callbacks (dispatch), or answer() by hand;
//!                             |                      every answer is checked (answer)
//!                             |                                      |
//!                             +---------- resume <------- all answered
//! ```
//!
//! [`Client::call_tool`], [`Client::get_prompt`] and [`Client::read_resource`] walk it to the end (rounds) and let the
//! callbacks that were attached to the [`ClientBuilder`] answer. [`Client::begin`] and [`Client::resume`] walk to the
//! next question; the [`PendingCall`] in between is plain data, for another process or another day.
//!
//! Each leg is a new request: the same name and arguments, a new id, the answers of the latest round only, and exactly
//! the latest state, or none if the latest result had none. Nothing of it is kept in the client: calls that run at the
//! same time cannot see each other's.
//!
//! ```
//! use antiphon::client::{ClientError, Client, transport::Transport};
//! use std::sync::Arc;
//!
//! async fn provision(transport: Arc<dyn Transport>) -> Result<(), ClientError> {
//!     let client = Client::builder("my-host", "1.0")
//!         .on_elicit_form(async |ask| {
//!             // Show `ask.context.server`, `ask.message` and `ask.schema.fields()` to the person.
//!             Ok(ask.accept(serde_json::json!({"region": "eu"}))?)
//!         })
//!         .connect(transport);
//!     let result = client.call_tool("provision", serde_json::json!({"name": "orders"})).await?;
//!     assert!(!result.failed());
//!     Ok(())
//! }
//! ```
//!
//! Beside the result, a client hears of a request's progress ([`ClientBuilder::on_progress`]) and of what the server logs
//! about it ([`ClientBuilder::on_log`]). What the lists say is kept for as long as the server allows, so that asking
//! twice is cheap ([`ClientBuilder::no_cache`] says what is kept, and for whom), and calls use what they say of a tool:
//! which of its arguments HTTP repeats in headers, and what its results must look like. A client that never lists calls
//! tools all the same: where the server then misses a header, the client lists and tries once more.
//!
//! Output schemas are of JSON Schema 2020-12 unless `$schema` names 2019-09 or draft 7, 6 or 4, and of bounded cost. No `$ref` is ever fetched: a tool whose output schema needs it is not called
//! ([`RequestFault::UnusableOutputSchema`]).
//!
//! # Legacy servers
//!
//! Behind the same methods and callbacks, a client speaks with servers of the revisions before 2026-07-28, which keep a
//! session: [`ClientBuilder::mode`] says whether it may, and finds out by itself unless told. There a server asks while the
//! call runs. Each of its questions is a round of one to [`ClientBuilder::on_round`]; its key is the elicitation's id, or else
//! that of the request. Where the transport tells which call it is for (the stream of a POST), the callbacks hear of that
//! call; otherwise its method is `initialize` and it belongs to the session. The time in which somebody is asked is not the
//! server's. What cannot be asked here is refused in the words of the session's version (`-32601`, `-32602`), and the call goes
//! on; a callback that fails ends the call, as ever.
//!
//! [`Client::begin`] has the callbacks answer there, for no such call can wait: a [`PendingCall`] is there only for URLs that
//! must be opened before a request is sent again (`-32042`). One that waits for a modern server is not sent to a session
//! ([`RequestFault::PendingOnSession`]).
//!
//! The session ends with [`Client::close`], or, as well as that can be done, when the last clone of the client is dropped.
//!
//! What it does not do: it does not start a call over, invent an answer, open a URL, or send what breaks the form's
//! rules.

mod asks;
mod builder;
mod cache;
mod call;
mod cancel;
mod client;
mod identity;
mod lists;
mod request;
mod session;
mod subscribe;
pub mod transport;

pub use asks::{
    answers::{AnswerError, AnswerFault},
    callbacks::{CallbackError, ElicitComplete},
    consent,
    errors::AskFault,
    questions::{AskContext, ElicitAsk, FormAsk, RootsAsk, Round, RoundDecision, SampleAsk, UrlAsk},
};
pub use builder::ClientBuilder;
pub use call::{
    definition::{ArgumentsError, Call, CallKind, CallOptions},
    errors::{ClientError, ClientErrorKind},
    outcome::{CallProgress, Finished},
    pending::PendingCall,
};
pub use cancel::CancelToken;
pub use client::Client;
pub use identity::ServerIdentity;
pub use request::{
    events::{EventContext, LogEvent, OnProgress, ProgressEvent},
    fault::RequestFault,
};
pub use session::mode::{Era, Mode};
pub use subscribe::{event::SubscriptionEvent, reconnect::ReconnectPolicy, subscription::Subscription};
