//! The server itself: one message in, one reply out.

use super::{
    Caller, Limits, OnExpired, Received, Request, ServerBuilder,
    caller::Identity,
    define::States,
    hub::Hub,
    legacy::{Sessions, Share},
    listen::Subscription,
    receive::{receive, unsupported_version, without_session},
    refusal::Refusal,
    registry::Registry,
    replay_check::Replay,
    reply::Stamp,
    route::{Routed, route},
    state_only::StateOnly,
};
use crate::Clock;
use antiphon_seal::{Principal, Sealer};
use antiphon_wire::{
    ErrorObject, Implementation, Incoming, ProtocolVersion, RequestId, StringMember, Unreadable, write_error,
};
use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// A server: what it offers, and how it keeps state. Cheap to clone; every clone is the same server.
#[derive(Clone)]
pub struct Server(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) name: String,
    /// Who answers, for handshakes.
    pub(super) info: Implementation,
    /// Nobody opens a session.
    pub(super) modern_only: bool,
    /// The sessions that are open, and the handlers that run in them.
    pub(super) sessions: Arc<Sessions>,
    /// The stamp of every result: who answers.
    pub(super) stamp: Stamp,
    /// What is offered now: a request takes one snapshot, by [`Request::registry`].
    pub(super) registry: ArcSwap<Registry>,
    /// For what is added while it runs.
    pub(super) states: States,
    pub(super) sealer: Sealer,
    pub(super) identity: Identity,
    pub(super) limits: Limits,
    pub(super) clock: Clock,
    pub(super) answer_within: Duration,
    pub(super) call_within: Option<Duration>,
    pub(super) on_expired: OnExpired,
    pub(super) hub: Arc<Hub>,
    /// Whether a leg should end at its next checkpoint.
    pub(super) shed_when: Option<Box<ShedWhen>>,
    /// Which clients can take a result that holds state only.
    pub(super) state_only: StateOnly,
    pub(super) replay: Replay,
    /// How many steps of cancelled requests still run.
    pub(super) detached: watch::Sender<usize>,
    /// Itself, for handlers.
    pub(super) me: Weak<Inner>,
    pub(super) running: AtomicUsize,
    pub(super) told_of_unknown_key: AtomicBool,
}

/// Whether work should go elsewhere.
pub(super) type ShedWhen = dyn Fn(&Load) -> bool + Send + Sync;

/// How busy a server is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Load {
    /// Handlers that run now.
    pub handlers: usize,
    /// How many may: [`Limits::handlers`].
    pub limit: usize,
}

/// What a request came to.
pub(crate) enum Begun {
    Answered(ReplyMessage),
    /// It is answered when it ends. Its request can go.
    Open(Subscription),
}

/// The reply to one message, ready to be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReplyMessage {
    /// One JSON-RPC response, without a newline.
    pub body: Vec<u8>,
    /// The HTTP status that goes with it.
    pub status: u16,
    /// It is an error.
    pub(crate) failed: bool,
    /// The scopes that the caller's token lacks some of.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only HTTP says so in a header"))]
    pub(crate) scopes: Vec<String>,
}

impl ReplyMessage {
    pub(crate) fn error(id: Option<&RequestId>, error: &ErrorObject) -> Self {
        let status = error.code.http_status();
        Self { body: write_error(id, error), status, failed: true, scopes: Vec::new() }
    }

    pub(crate) fn result(body: Vec<u8>) -> Self {
        Self { body, status: 200, failed: false, scopes: Vec::new() }
    }

    /// The same reply, with what this refusal says in HTTP's words.
    pub(super) fn refused_by(self, refusal: Refusal) -> Self {
        match refusal {
            // > `HTTP 403 Forbidden` status code (per RFC 6750 Section 3.1)
            Refusal::Scope { needed } => Self::short_of_scopes(self.body, needed),
            _ => self,
        }
    }

    /// A reply to a caller whose token would have to hold all of these.
    pub(crate) fn short_of_scopes(body: Vec<u8>, scopes: Vec<String>) -> Self {
        Self { body, status: 403, failed: true, scopes }
    }

    fn unreadable(Unreadable { id, error }: Unreadable) -> Self {
        Self::error(id.as_ref(), &error)
    }

    /// The reply to a message of a session, where there is none.
    pub(crate) fn without_session(message: Incoming<'_>) -> Self {
        Self::unreadable(without_session(message))
    }

    /// The response to a request that was read.
    pub(super) fn written(id: &RequestId, body: Result<Vec<u8>, Refusal>) -> Self {
        match body {
            Ok(body) => Self::result(body),
            Err(refusal) => Self::error(Some(id), &refusal.to_error()).refused_by(refusal),
        }
    }
}

impl Server {
    /// Begins a server with a name and a version. The name is also the audience of its state, unless
    /// [`audience`](ServerBuilder::audience) says otherwise.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name.into(), version.into())
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether state is sealed with a key that only this process has, and that ends with it.
    pub fn key_is_ephemeral(&self) -> bool {
        self.0.sealer.is_ephemeral()
    }

    /// Ends every subscription with its response, and those still to come, so that the server can stop.
    /// [`serve_http`](crate::transport::http::serve_http) does so when its shutdown begins.
    ///
    /// > When the server ends a subscription on its own initiative (for example, during shutdown), it **SHOULD**
    /// > respond to the original `subscriptions/listen` request with a completion result before closing the stream.
    pub fn drain(&self) {
        self.0.hub.drain();
    }

    /// Whether legs end at their next checkpoint.
    pub(crate) fn sheds(&self) -> bool {
        let Inner { hub, shed_when, running, limits, .. } = &*self.0;
        let load = || Load { handlers: running.load(Ordering::Relaxed), limit: limits.handlers };
        hub.is_draining() || shed_when.as_ref().is_some_and(|sheds| sheds(&load()))
    }

    /// Resolves once no step of a cancelled request runs any more: after [`Limits::step_grace`] at the latest. A process
    /// that ends before ends them in the middle. [`serve_http`](crate::transport::http::serve_http) and
    /// [`serve_streams`](crate::transport::stdio::serve_streams) wait for it before they return.
    pub async fn steps_ended(&self) {
        // The sender is in the server itself, so there is no error.
        let _ = self.0.detached.subscribe().wait_for(|running| *running == 0).await;
    }

    /// Whether the server is about to stop: what is asked of it next is better asked elsewhere.
    #[cfg(feature = "http")]
    pub(crate) fn is_draining(&self) -> bool {
        self.0.hub.is_draining()
    }

    /// What time it is here.
    #[cfg(feature = "http")]
    pub(crate) fn now(&self) -> std::time::SystemTime {
        self.0.clock.now()
    }

    /// Whether a principal without a subject will do.
    #[cfg(feature = "http")]
    pub(crate) fn client_is_enough(&self) -> bool {
        self.0.identity.client_is_enough
    }

    /// Answers one message; `None` for a notification. Dropping the future cancels the request: the handler is
    /// dropped with it. What a request sends before its reply goes nowhere, so that `subscriptions/listen` is refused.
    pub async fn respond(&self, message: &[u8], caller: &Caller<'_>) -> Option<ReplyMessage> {
        match self.read(message) {
            Ok(Received::Request(request)) => Some(match self.begin(&request, caller).await {
                Begun::Answered(reply) => reply,
                Begun::Open(subscription) => subscription.ended(self).await,
            }),
            Ok(Received::Notification(_)) => None,
            Ok(Received::Legacy(message)) => Some(ReplyMessage::without_session(message)),
            Err(refused) => Some(refused),
        }
    }

    /// Reads one message.
    ///
    /// # Errors
    /// The reply, if the message cannot be read or its metadata is incomplete.
    pub(crate) fn read<'a>(&self, message: &'a [u8]) -> Result<Received<'a>, ReplyMessage> {
        receive(message, self.has_sessions()).map_err(ReplyMessage::unreadable)
    }

    /// Answers one request, or opens the subscription it asks for.
    pub(crate) async fn begin(&self, request: &Request<'_>, caller: &Caller<'_>) -> Begun {
        // > If the server does not implement the requested version [...] it **MUST** respond with an
        // > `UnsupportedProtocolVersionError` listing the versions it does support
        if !ProtocolVersion::is_modern_text(&request.version) {
            let error = unsupported_version(&request.version);
            return Begun::Answered(ReplyMessage::error(Some(&request.id), &error));
        }
        match self.route(request, caller).await {
            Ok(Routed::Open(subscription)) => Begun::Open(subscription),
            Ok(Routed::Body(body)) => Begun::Answered(ReplyMessage::written(&request.id, Ok(body))),
            Err(refusal) => Begun::Answered(ReplyMessage::written(&request.id, Err(refusal))),
        }
    }

    /// Has a request answered by its method.
    pub(super) async fn route(&self, request: &Request<'_>, caller: &Caller<'_>) -> Result<Routed, Refusal> {
        // All that an author plugs in may panic: handlers, binders, codecs, types that decode. The future is dropped
        // then: nothing half-changed in it is seen again.
        let routed = AssertUnwindSafe(route(&self.0, request, caller)).catch_unwind().await;
        routed.unwrap_or_else(|panic| {
            let target = request.target().and_then(StringMember::text);
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let cause = text.or_else(|| panic.downcast_ref::<&str>().copied());
            tracing::error!(method = %request.method, target, cause, "a request panicked");
            self.0.replay.tell(|| format!("it panicked: {}", cause.unwrap_or_default()));
            Err(Refusal::Internal)
        })
    }
}

impl Inner {
    /// A place among the handlers that run; `None` if all are taken. Those of sessions wait for people, and have places
    /// of their own, of which one caller gets some.
    pub(super) fn slot(&self, request: &Request<'_>, principal: Option<&Principal>) -> Option<Slot> {
        if request.session.is_some() {
            let share = self.sessions.handler(principal, &self.limits)?;
            return Some(Slot { running: None, _in_session: Some(share) });
        }
        let slot = Slot { running: Some(self.handle()), _in_session: None };
        // Counted first, so that two cannot take the last place.
        (self.running.fetch_add(1, Ordering::Relaxed) < self.limits.handlers).then_some(slot)
    }

    /// The server, to be kept.
    pub(super) fn handle(&self) -> Server {
        // Who calls this was reached through it.
        Server(self.me.upgrade().expect("a server lives while it answers"))
    }

    /// Who is calling, for a method that binds no state; refused if that cannot be told.
    pub(super) fn identified(
        &self,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<Option<Principal>, Refusal> {
        self.identity.of(caller).map_err(|cause| {
            tracing::error!(%cause, method = %request.method, "no identity: refused");
            Refusal::Internal
        })
    }

    /// Says loudly, once, what is probably wrong.
    pub(super) fn tell_of_unknown_key(&self) {
        if !self.told_of_unknown_key.swap(true, Ordering::Relaxed) {
            tracing::error!(
                server = %self.name,
                "a requestState was sealed under a key this process does not have: a shared key ring is probably \
                 missing (ANTIPHON_KEYS or a key file, the same on every instance), or the server was restarted"
            );
        }
    }
}

/// A handler's place; free again when dropped.
pub(super) struct Slot {
    /// Where it is counted, if it is in no session.
    running: Option<Server>,
    _in_session: Option<Share>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(server) = &self.running {
            server.0.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Server {
    /// Its name, and what is under way on it now.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.0.name)
            .field("handlers", &self.0.running.load(Ordering::Relaxed))
            .field("sessions", &self.0.sessions.len())
            .field("running_in_sessions", &self.0.sessions.handlers())
            .field("subscriptions", &self.0.hub.len())
            .field("detached_steps", &*self.0.detached.borrow())
            .finish_non_exhaustive()
    }
}
