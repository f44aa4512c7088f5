//! The server: reads messages and answers them.

use crate::{
    Caller, Ctx, Received, ReplyMessage, Request, ServerBuilder, UrlRef, UrlRefError, VerifiedUrlRef,
    define::States,
    dispatch::route::{Routed, route},
    message_service::CallOutcome,
    offer::registry::Registry,
    refusal::Refusal,
    request::receive::{receive, unsupported_version, without_session},
    runtime::Runtime,
    session::Sessions,
};
use antiphon_seal::Principal;
use antiphon_wire::{Implementation, ProtocolVersion};
use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use serde_json::value::RawValue;
use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
};

/// A server: what it offers, and how it keeps state. Cheap to clone; every clone is the same server.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// The part that calls need.
    pub(crate) runtime: Arc<Runtime>,
    /// The name and version for handshakes.
    pub(crate) info: Implementation,
    /// True if no session can be opened.
    pub(crate) modern_only: bool,
    /// The open sessions, and the handlers that run in them.
    pub(crate) sessions: Arc<Sessions>,
    /// The present offers: a request takes one snapshot of them, by [`Server::offered`].
    pub(crate) registry: ArcSwap<Registry>,
    /// The states for definitions that are added while the server runs.
    pub(crate) states: States,
}

impl Server {
    /// Begins a server with a name and a version. The name is also the audience of its state, unless
    /// [`audience`](ServerBuilder::audience) says otherwise.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name.into(), version.into())
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.0.runtime.name
    }

    /// Returns whether state is sealed with a key that only this process has, and that ends with the process.
    pub fn key_is_ephemeral(&self) -> bool {
        self.0.runtime.sealer.is_ephemeral()
    }

    /// Ends every subscription with its response, and those still to come, so that the server can stop.
    /// [`serve_http`](crate::serve::http::serve_http) does so when its shutdown begins.
    ///
    /// > When the server ends a subscription on its own initiative (for example, during shutdown), it **SHOULD**
    /// > respond to the original `subscriptions/listen` request with a completion result before closing the stream.
    pub fn drain(&self) {
        self.0.runtime.hub.drain();
    }

    /// Resolves once no step of a cancelled request runs any more: after [`Limits::step_grace`] at the latest. A process
    /// that ends before ends them in the middle. [`serve_http`](crate::serve::http::serve_http) and
    /// [`serve_streams`](crate::serve::stdio::serve_streams) wait for it before they return.
    pub async fn steps_ended(&self) {
        // The sender is in the server itself, so there is no error.
        let _ = self.0.runtime.detached.subscribe().wait_for(|running| *running == 0).await;
    }

    /// Answers one message; `None` for a notification. Dropping the future cancels the request: the handler is
    /// dropped with it. Messages before the reply go into the caller's [outbox](Caller::with_outbox); without one they are
    /// dropped, and `subscriptions/listen` is rejected.
    pub async fn respond(&self, message: &[u8], caller: &Caller<'_>) -> Option<ReplyMessage> {
        match self.read(message) {
            Ok(Received::Request(request)) => {
                Some(match self.begin(&self.offered(), &request, caller).await {
                    CallOutcome::Reply(reply) => reply,
                    CallOutcome::Open(subscription) => subscription.await,
                })
            }
            Ok(Received::Notification(_)) => None,
            Ok(Received::Legacy(message)) => Some(without_session(message).into()),
            Err(refused) => Some(refused),
        }
    }

    /// Reads one message.
    ///
    /// # Errors
    /// The reply, if the message cannot be read or its metadata is incomplete.
    pub(crate) fn read<'a>(&self, message: &'a [u8]) -> Result<Received<'a>, ReplyMessage> {
        Ok(receive(message, self.has_sessions())?)
    }

    /// Returns a snapshot of the present offers: a request uses the same one from its first check to its reply.
    pub(crate) fn offered(&self) -> Arc<Registry> {
        self.0.registry.load_full()
    }

    /// Answers one request from this snapshot of the offers, or opens the subscription that it requests.
    pub(crate) async fn begin(
        &self,
        offered: &Registry,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> CallOutcome {
        // > If the server does not implement the requested version [...] it **MUST** respond with an
        // > `UnsupportedProtocolVersionError` listing the versions it does support
        if !ProtocolVersion::is_modern_text(&request.version) {
            let error = unsupported_version(&request.version);
            return CallOutcome::Reply(ReplyMessage::error(Some(&request.id), &error));
        }
        let body = match self.route(offered, request, caller).await {
            Ok(Routed::Open(subscription)) => {
                let runtime = Arc::clone(&self.0.runtime);
                return CallOutcome::Open(async move { subscription.ended(&runtime.stamp).await }.boxed());
            }
            Ok(Routed::Body(body)) => Ok(body),
            Err(refusal) => Err(refusal),
        };
        CallOutcome::Reply(ReplyMessage::written(&request.id, body))
    }

    /// Has a request answered by its method.
    pub(crate) async fn route(
        &self,
        offered: &Registry,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<Routed, Refusal> {
        // All that an author plugs in may panic: handlers, binders, codecs, types that decode. The future is dropped
        // then: nothing half-changed in it is seen again.
        let routed = AssertUnwindSafe(route(&self.0.runtime, offered, request, caller)).catch_unwind().await;
        routed.unwrap_or_else(|panic| {
            let target = request.target().map(RawValue::get);
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let cause = text.or_else(|| panic.downcast_ref::<&str>().copied());
            tracing::error!(method = %request.method, target, cause, "a request panicked");
            self.0.runtime.replay.tell(|| format!("it panicked: {}", cause.unwrap_or_default()));
            Err(Refusal::Internal)
        })
    }
}

impl UrlRef {
    /// For the page behind the URL: whether this reference was made by this server (or another instance with the same
    /// keys and audience), is in time, and was made for `principal`, who has opened the page now.
    ///
    /// Anyone can send a URL to anyone: without this a person can be led to finish what somebody else began, and their
    /// account ends up in that somebody's hands. So call this before the page shows or takes anything, and again where it
    /// takes it: when a form is posted, when an authorization server redirects back.
    ///
    /// > The MCP Server **MUST** verify the identity of the user who opens the URL before accepting information.
    ///
    /// `principal` comes from the page's own login, such as its session cookie: never from the URL, and never from what
    /// the visitor says. Issuer and subject are compared. The client is not: the person opens the page with a browser,
    /// and called with something else. Only a principal without a subject is compared whole.
    ///
    /// Where calls are not authenticated there is nobody to compare: references are made for nobody then, and only `None`
    /// verifies. Such a reference is all that tells who opens the page. That may do on one's own machine.
    ///
    /// ```
    /// use antiphon::{seal::Principal, server::{Server, UrlRef, UrlRefError}};
    ///
    /// # struct Form(String);
    /// # struct Accounts;
    /// # impl Accounts { fn connect(&self, _call: String, _key: &str, _form: Form) {} }
    /// /// Behind `https://example.com/connect/{reference}`; `user` is who is logged in there.
    /// fn connect(
    ///     server: &Server,
    ///     accounts: &Accounts,
    ///     reference: &str,
    ///     user: &str,
    ///     form: Form,
    /// ) -> Result<(), UrlRefError> {
    ///     let user = Principal::user(user).with_issuer("https://login.example.com");
    ///     let asked = UrlRef::verify(server, reference, Some(&user))?;
    ///     accounts.connect(asked.call_id().to_string(), asked.key(), form);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// A reference verifies as often as it is opened while it is in time. What is to happen once is for the page to keep.
    ///
    /// # Errors
    /// [`UrlRefError`]: show the visitor its text, or a page not found, and take nothing from them.
    pub fn verify(
        server: &Server,
        text: &str,
        principal: Option<&Principal>,
    ) -> Result<VerifiedUrlRef, UrlRefError> {
        Self::open(&server.0.runtime, text, principal)
    }
}

impl Ctx {
    /// Returns the server that runs this handler: to change its lists, or to tell that a resource was updated.
    pub fn server(&self) -> Server {
        let owner = self.runtime().owner.upgrade().and_then(|owner| owner.downcast::<Inner>().ok());
        // The handler was reached through it.
        Server(owner.expect("a server lives while it answers"))
    }
}

impl fmt::Debug for Server {
    /// Its name, and what is under way on it now.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.0.runtime.name)
            .field("handlers", &self.0.runtime.running.load(Ordering::Relaxed))
            .field("sessions", &self.0.sessions.len())
            .field("running_in_sessions", &self.0.sessions.handlers())
            .field("subscriptions", &self.0.runtime.hub.len())
            .field("detached_steps", &*self.0.runtime.detached.borrow())
            .finish_non_exhaustive()
    }
}
