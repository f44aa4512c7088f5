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
//! use antiphon::client::{CallError, Client, transport::Transport};
//! use std::sync::Arc;
//!
//! async fn provision(transport: Arc<dyn Transport>) -> Result<(), CallError> {
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

mod answer;
mod ask;
mod ask_progress;
mod builder;
mod cache;
mod call;
mod call_error;
mod callback;
mod cancel;
mod client_error;
pub mod consent;
mod dispatch;
mod elicit_complete;
mod era;
mod event;
mod fault;
mod finished;
mod hearing;
mod identity;
mod leg;
mod legacy;
mod lists;
mod patience;
mod pending;
mod rounds;
mod subscription;
mod tools;
pub mod transport;

pub use answer::{AnswerError, AnswerFault};
pub use ask::{AskContext, ElicitAsk, FormAsk, RootsAsk, Round, RoundDecision, SampleAsk, UrlAsk};
pub use builder::ClientBuilder;
pub use call::{ArgumentsError, Call, CallKind, CallOptions};
pub use call_error::{CallError, CallErrorKind};
pub use callback::CallbackError;
pub use cancel::CancelToken;
pub use client_error::{ClientError, ClientErrorKind};
pub use elicit_complete::ElicitComplete;
pub use era::{Era, Mode};
pub use event::{EventContext, LogEvent, OnProgress, ProgressEvent};
pub use fault::RequestFault;
pub use finished::{Finished, Step};
pub use identity::ServerIdentity;
pub use pending::PendingCall;
pub use subscription::{ReconnectPolicy, Subscription, SubscriptionEvent};

use crate::transport::Transport;
use antiphon_wire::{
    CallToolResult, ClientCapabilities, GetPromptResult, Implementation, ProtocolVersion, ReadResourceResult,
    ServerCapabilities,
};
use builder::Bounds;
use cache::Cache;
use dispatch::Desk;
use era::Footing;
use hearing::Hearers;
use rounds::Run;
use serde::Serialize;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicU64},
    time::Duration,
};

/// A client of one server. Clones are the same client.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Arc<dyn Transport>,
    info: Implementation,
    capabilities: ClientCapabilities,
    desk: Arc<Desk>,
    bounds: Bounds,
    mode: Mode,
    probe_timeout: Duration,
    elicit_wait: Duration,
    /// Held by whoever finds out the era, or opens a session.
    negotiating: tokio::sync::Mutex<()>,
    /// For what runs beside the requests of a session.
    me: Weak<Inner>,
    next_id: AtomicU64,
    known: Mutex<Known>,
    hearers: Hearers,
    cache: Cache,
    /// Whether results are compared with output schemas.
    checks_output: bool,
}

/// What is known of the server.
struct Known {
    version: ProtocolVersion,
    info: Option<Implementation>,
    capabilities: Option<ServerCapabilities>,
    footing: Footing,
}

impl Inner {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Plain values, each written at once: a panic elsewhere leaves them whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn identity(&self) -> ServerIdentity {
        ServerIdentity::new(self.transport.target(), self.known().info.as_ref())
    }
}

impl Client {
    /// A client that tells servers this name and version of itself.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    fn new(builder: ClientBuilder, transport: Arc<dyn Transport>) -> Self {
        let declared = builder.callbacks.declared().and(builder.by_hand);
        let footing = builder.mode.footing(transport.sessions().is_some());
        let version = match &builder.mode {
            Mode::Pinned(version) => version.clone(),
            _ => builder.version,
        };
        let inner = |me: &Weak<Inner>| Inner {
            transport,
            info: builder.info,
            // Exactly what is attached; what a person cannot be asked here is not declared.
            capabilities: ClientCapabilities::for_asks(declared),
            desk: Arc::new(Desk {
                callbacks: builder.callbacks,
                declared,
                one_at_a_time: builder.one_at_a_time,
            }),
            bounds: builder.bounds,
            mode: builder.mode,
            probe_timeout: builder.probe_timeout,
            elicit_wait: builder.elicit_wait,
            negotiating: tokio::sync::Mutex::default(),
            me: me.clone(),
            next_id: AtomicU64::new(1),
            known: Mutex::new(Known { version, info: None, capabilities: None, footing }),
            hearers: builder.hearers,
            cache: Cache::new(builder.caches),
            checks_output: builder.checks_output,
        };
        Self { inner: Arc::new_cyclic(inner) }
    }

    /// Calls a tool, answering what it asks through the callbacks. The arguments are an object; `()` means none.
    ///
    /// # Errors
    /// [`CallError`] says whose fault it was, and holds the pending call if something was asked. A tool that failed is
    /// not an error: see [`CallToolResult::failed`].
    pub async fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<CallToolResult, CallError> {
        let call = self.checked(Call::tool(name, arguments))?;
        Run::first(self, call).finish().await
    }

    /// Gets a prompt, answering what it asks through the callbacks. The arguments are an object of strings; `()` means
    /// none.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<GetPromptResult, CallError> {
        let call = self.checked(Call::prompt(name, arguments))?;
        Run::first(self, call).finish().await
    }

    /// Reads a resource, answering what it asks through the callbacks.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn read_resource(&self, uri: impl Into<String>) -> Result<ReadResourceResult, CallError> {
        Run::first(self, Call::resource(uri)).finish().await
    }

    /// Makes a call with a timeout, deadline or cancellation of its own, answering through the callbacks.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn call(&self, call: Call) -> Result<Finished, CallError> {
        Run::first(self, call).finish().await
    }

    /// Makes a call up to its first question, if it has one. No callback runs.
    ///
    /// On a session of a legacy server, questions are asked while the call runs: the callbacks answer them, and the call goes
    /// on to its end. Only URLs that must be opened first (`-32042`) make it a pending call there.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn begin(&self, call: Call) -> Result<Step, CallError> {
        Run::first(self, call).step().await
    }

    /// Sends the answers of a pending call, up to its next question. No callback runs, and rounds are not counted. An
    /// error gives the pending call back; keep a clone if this future may be dropped.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool); [`CallErrorKind::MissingAnswers`] lists the keys that have no answer, and
    /// nothing is sent then.
    pub async fn resume(&self, pending: PendingCall) -> Result<Step, CallError> {
        Run::resumed(self, pending).step().await
    }

    /// Goes on with a pending call to its end: the callbacks answer what has no answer yet. Rounds are counted anew.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn drive(&self, pending: PendingCall) -> Result<Finished, CallError> {
        Run::resumed(self, pending).finish().await
    }

    /// The server, by its target and, once it told it, by its name.
    pub fn server(&self) -> ServerIdentity {
        self.inner.identity()
    }

    /// The server's identity: from `discover`, `initialize`, or any other result that told it.
    pub fn server_info(&self) -> Option<Implementation> {
        self.inner.known().info.clone()
    }

    /// What the server offers: from `discover` or `initialize`.
    pub fn capabilities(&self) -> Option<ServerCapabilities> {
        self.inner.known().capabilities.clone()
    }

    /// The version that requests are sent with; of a session, the one that was agreed upon.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.inner.known().version.clone()
    }

    /// Ends the connection, and the session if there is one. Requests that are under way fail.
    ///
    /// A client that is dropped instead, with all its clones, ends its session over HTTP in the background: where a tokio
    /// runtime runs, for two seconds at most, and nobody waits for it. A program that ends at once may leave the session to
    /// the server, which keeps it until it was idle for long enough: close the client before.
    pub async fn close(&self) {
        if let Some(session) = self.inner.session_now() {
            session.end().await;
        }
        self.inner.transport.close().await;
    }

    fn checked(&self, call: Result<Call, ArgumentsError>) -> Result<Call, CallError> {
        call.map_err(|error| CallError::new(self.server(), None, CallErrorKind::Arguments(error), None))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.server()).finish_non_exhaustive()
    }
}
