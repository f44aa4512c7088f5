//! The trait between a transport and a server.
//!
//! ```text
//!  transport ── read ──▶ Received::Request ──── call ──▶ CallOutcome::Reply, or Open: a subscription
//!                        Received::Notification
//!                        Received::Legacy ── initialize ──▶ Session ── call, notify, respond
//!            ◀──────────── Outbox: the messages before a reply, and those of a session
//! ```

use crate::{
    identity::Caller,
    outbox::Outbox,
    quota::RequestBudget,
    reply::ReplyMessage,
    request::receive::{Received, Request, receive, without_session},
};
use antiphon_wire::{Incoming, Notification, ProtocolVersion, Response, header::params::ParamHeaders};
use futures_util::future::BoxFuture;
use std::{fmt, future::Future, time::SystemTime};

/// Answers the messages that a transport receives.
///
/// [`Server`](crate::Server) is the implementation to use. Implement the trait for a replacement of a server: a bridge
/// to another server, or a test double. Only [`offers`](Self::offers) and [`call`](Self::call) are required; the
/// defaults serve requests of 2026-07-28 and reject earlier revisions. Every clone is the same service.
pub trait MessageService: Clone + Send + Sync + 'static {
    /// A session with a client of an earlier revision. [`NoSession`] where none can be opened.
    type Session: MessageSession;

    /// A snapshot of what is offered: a request uses the same one from the check of its headers to its reply. `()` where
    /// the offers never change.
    type Offers: Send + Sync + 'static;

    /// Returns a snapshot of the present offers.
    fn offers(&self) -> Self::Offers;

    /// Answers one request, or opens the subscription that it requests.
    ///
    /// Messages before the reply go into [`Caller::outbox`]. Dropping the future cancels the request.
    fn call(
        &self,
        offers: &Self::Offers,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> impl Future<Output = CallOutcome> + Send;

    /// Returns the parameters of this tool that the client repeats in `Mcp-Param-*` headers. Default: none.
    fn param_headers<'a>(
        &self,
        offers: &'a Self::Offers,
        method: &str,
        target: &str,
    ) -> Option<&'a ParamHeaders> {
        let _ = (offers, method, target);
        None
    }

    /// Reads one message.
    ///
    /// # Errors
    /// The reply, if the message cannot be read or its metadata is incomplete.
    fn read<'a>(&self, message: &'a [u8]) -> Result<Received<'a>, ReplyMessage> {
        Ok(receive(message, self.has_sessions())?)
    }

    /// Returns whether clients of earlier revisions can open sessions. Default: no.
    fn has_sessions(&self) -> bool {
        false
    }

    /// Opens a session, and returns it with the reply to its `initialize`. Default: rejects the request.
    ///
    /// # Errors
    /// The reply that rejects the request.
    fn initialize(
        &self,
        request: antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<(Self::Session, ReplyMessage), ReplyMessage> {
        let _ = caller;
        Err(without_session(Incoming::Request(request)).into())
    }

    /// Answers a request of an earlier revision that belongs to no session. Default: rejects the request.
    fn call_without_session(
        &self,
        request: antiphon_wire::Request<'_>,
        version: ProtocolVersion,
        caller: &Caller<'_>,
    ) -> impl Future<Output = ReplyMessage> + Send {
        let _ = (version, caller);
        std::future::ready(without_session(Incoming::Request(request)).into())
    }

    /// Returns whether notifications of this method have a handler, that of an extension. Default: no.
    fn has_notification(&self, method: &str) -> bool {
        let _ = method;
        false
    }

    /// Runs the handler of a notification, of this session if it came in one. Called only where [`has_notification`](Self::has_notification)
    /// returns true. Default: does nothing.
    ///
    /// # Errors
    /// The reply that says why the notification was not accepted: [`ReplyMessage::not_accepted`]. Only HTTP sends it.
    fn notify(
        &self,
        notification: &Notification<'_>,
        session: Option<&Self::Session>,
        caller: &Caller<'_>,
    ) -> impl Future<Output = Result<(), ReplyMessage>> + Send {
        let _ = (notification, session, caller);
        std::future::ready(Ok(()))
    }

    /// Returns the budget for the bytes of requests, of which the transports reserve. Default: one with the default
    /// [`Limits`](crate::Limits), for each endpoint and each pair of streams.
    fn request_budget(&self) -> RequestBudget {
        RequestBudget::default()
    }

    /// Returns the name for log messages. Default: the name of the type.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }

    /// Returns whether state is sealed with a key that only this process has. Default: no.
    fn key_is_ephemeral(&self) -> bool {
        false
    }

    /// Returns whether an access token may name a client without a user. Default: no.
    fn accepts_client_principals(&self) -> bool {
        false
    }

    /// Returns the time at which the expiry of access tokens is checked. Default: the system's clock.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Returns the metrics of the service in the text format of Prometheus, for
    /// [`metrics_path`](crate::serve::http::HttpOptions::metrics_path). Default: none.
    fn metrics_text(&self) -> Option<String> {
        None
    }

    /// Begins to stop: subscriptions and sessions end. Default: does nothing.
    fn drain(&self) {}

    /// Returns whether the service is about to stop, so that further requests should go to another instance. Default: no.
    fn is_draining(&self) -> bool {
        false
    }

    /// Resolves once work that outlives its request has ended. A transport waits for it before it returns. Default:
    /// resolves at once.
    fn finished(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// A session with a client of the revisions up to 2025-11-25. Every clone is the same session.
pub trait MessageSession: Clone + Send + Sync + 'static {
    /// Returns the version that was negotiated.
    fn version(&self) -> &ProtocolVersion;

    /// Answers one request; `None` if it was cancelled.
    ///
    /// Messages before the reply go into [`Caller::outbox`]. Dropping the future cancels the request.
    fn call(
        &self,
        request: antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> impl Future<Output = Option<ReplyMessage>> + Send;

    /// Receives a notification. Returns whether it cancelled a request of this session.
    fn notify(&self, notification: &Notification<'_>) -> bool;

    /// Receives the response to a request that was sent to the client.
    ///
    /// # Errors
    /// The reply, if this caller may not send the response.
    fn respond(&self, response: Response<'_>, caller: &Caller<'_>) -> Result<(), ReplyMessage>;

    /// Puts the messages that belong to no request into this outbox. Resolves when the session ends or the service drains.
    fn send_messages(&self, outbox: &Outbox) -> impl Future<Output = ()> + Send;

    /// Returns whether this caller opened the session.
    fn is_opened_by(&self, caller: &Caller<'_>) -> bool;

    /// Checks that this caller may receive the messages of the session.
    ///
    /// # Errors
    /// The reply, if the caller's token does not hold a scope that is needed.
    fn may_listen(&self, caller: &Caller<'_>) -> Result<(), ReplyMessage>;

    /// Continues the request ids of `previous`, an ended session on the same streams. A late response to `previous` then
    /// belongs to no request of this session. Default: does nothing.
    fn follows(&self, _previous: &Self) {}

    /// Notes that the client sends nothing more, although it may still read: its responses are not awaited any more. Default: does
    /// nothing.
    fn input_ended(&self) {}

    /// Ends the session, and cancels its requests.
    fn end(&self);

    /// Returns whether the session has ended.
    fn is_ended(&self) -> bool;
}

/// The result of [`MessageService::call`].
#[non_exhaustive]
pub enum CallOutcome {
    /// The reply to the request.
    Reply(ReplyMessage),
    /// A subscription is open. The future resolves to the reply when the subscription ends; until then, it puts
    /// notifications into the outbox. Dropping the future closes the subscription.
    Open(BoxFuture<'static, ReplyMessage>),
}

/// The session type of a service without sessions. It has no values.
#[derive(Clone, Copy, Debug)]
pub enum NoSession {}

impl MessageSession for NoSession {
    fn version(&self) -> &ProtocolVersion {
        match *self {}
    }

    async fn call(&self, _: antiphon_wire::Request<'_>, _: &Caller<'_>) -> Option<ReplyMessage> {
        match *self {}
    }

    fn notify(&self, _: &Notification<'_>) -> bool {
        match *self {}
    }

    fn respond(&self, _: Response<'_>, _: &Caller<'_>) -> Result<(), ReplyMessage> {
        match *self {}
    }

    async fn send_messages(&self, _: &Outbox) {
        match *self {}
    }

    fn is_opened_by(&self, _: &Caller<'_>) -> bool {
        match *self {}
    }

    fn may_listen(&self, _: &Caller<'_>) -> Result<(), ReplyMessage> {
        match *self {}
    }

    fn end(&self) {
        match *self {}
    }

    fn is_ended(&self) -> bool {
        match *self {}
    }
}

impl fmt::Debug for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(reply) => f.debug_tuple("Reply").field(reply).finish(),
            Self::Open(_) => f.write_str("Open"),
        }
    }
}
