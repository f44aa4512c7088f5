//! The server: reads messages and answers them.

pub(crate) mod build;
pub(crate) mod builder;
pub(crate) mod key_file;
pub(crate) mod layered;
pub(crate) mod message_service;
pub(crate) mod registration;
pub(crate) mod service;

use crate::{
    call::{UrlRef, UrlRefError, VerifiedUrlRef, ctx::Ctx},
    define::States,
    dispatch::{listen, observe, reply::result_of, route},
    errors::refusal::Refusal,
    extension::ExtensionCtx,
    identity::Caller,
    in_place::rare,
    layer::{Layers, call::Served},
    metrics::{Gauges, Metrics},
    offer::offers::Offers,
    reply::ReplyMessage,
    request::receive::{Received, Request, receive, unsupported_version, without_session},
    runtime::Runtime,
    session::Sessions,
    task,
    task_registry::{RunLeg, TaskMetrics, Tasks, leg::TaskLeg},
};
use antiphon_seal::Principal;
use antiphon_wire::{Implementation, Notification, ProtocolVersion, StringMember, escaped, method};
use arc_swap::ArcSwap;
use builder::ServerBuilder;
use futures_util::{FutureExt as _, future::BoxFuture};
use message_service::CallOutcome;
use serde_json::value::RawValue;
use std::{
    fmt,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{Arc, OnceLock, Weak, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::time::timeout;
use tracing::Instrument as _;

/// A server: its offers and its state. Cheap to clone; every clone is the same server.
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
    /// The present offers: a request takes one snapshot of them, by [`Server::current_offers`].
    pub(crate) offers: ArcSwap<Offers>,
    /// The layers around every request, if there are any.
    pub(crate) layers: Option<Arc<Layers>>,
    /// The states for definitions that are added while the server runs.
    pub(crate) states: States,
}

impl Server {
    /// Returns a builder with a name and a version. The name is also the audience of the state, unless
    /// [`audience`](ServerBuilder::audience) is set.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name.into(), version.into())
    }

    /// Returns the server's name.
    pub fn name(&self) -> &str {
        &self.0.runtime.name
    }

    /// Returns whether state is sealed with a random key that is lost when this process ends.
    pub fn key_is_ephemeral(&self) -> bool {
        self.0.runtime.sealing.sealer().is_ephemeral()
    }

    /// Ends every subscription with its response, including later ones, so that the server can stop.
    /// [`serve_http`](crate::serve::http::serve_http) and [`serve_stdio`](crate::serve::stdio::serve_stdio) call it when their
    /// shutdown begins.
    ///
    /// > When the server ends a subscription on its own initiative (for example, during shutdown), it **SHOULD**
    /// > respond to the original `subscriptions/listen` request with a completion result before closing the stream.
    pub fn drain(&self) {
        self.0.runtime.subscriptions.drain();
        if let Some(tasks) = &self.0.runtime.tasks {
            tasks.drain();
        }
    }

    /// Waits until no step of a cancelled request and, if the server drains, no task runs any more, for [`Limits::step_grace`](crate::Limits::step_grace)
    /// at most, and until changes are [published](Self::changes_published), for the same time. If the process ends earlier, such steps are interrupted. [`serve_http`](crate::serve::http::serve_http)
    /// and [`serve_streams`](crate::serve::stdio::serve_streams) wait for it before they return.
    pub async fn steps_ended(&self) {
        // The server itself holds the sender, so there is no error.
        let _ = self.0.runtime.detached.subscribe().wait_for(|running| *running == 0).await;
        if let Some(tasks) =
            self.0.runtime.tasks.as_ref().filter(|_| self.0.runtime.subscriptions.is_draining())
        {
            tasks.idle(self.0.runtime.limits.step_grace).await;
        }
        // What is not published by then is lost with the process.
        let _ = timeout(self.0.runtime.limits.step_grace, self.changes_published()).await;
    }

    /// Returns the types of the [layers](ServerBuilder::layer), from the outermost on.
    pub fn layers(&self) -> &[&'static str] {
        self.0.layers.as_ref().map_or(&[], |layers| &layers.names)
    }

    /// Returns the metrics of this process: counts and times of requests, calls, asks, steps and the store, and what is held now.
    /// [`metrics_path`](crate::serve::http::HttpOptions::metrics_path) serves them.
    pub fn metrics(&self) -> Metrics {
        let runtime = &self.0.runtime;
        let gauges = Gauges {
            handlers: runtime.running.load(Ordering::Relaxed),
            sessions: self.0.sessions.len(),
            request_bytes: runtime.request_budget.in_use(),
            subscriptions: runtime.subscriptions.len(),
            tasks: self.task_metrics(),
        };
        Metrics::new(&runtime.metrics, &gauges)
    }

    /// Returns the counts of the tasks of this process, for an exporter of metrics; zeros if calls cannot become tasks.
    pub fn task_metrics(&self) -> TaskMetrics {
        self.0.runtime.tasks.as_ref().map(Tasks::metrics).unwrap_or_default()
    }

    /// Answers one message; `None` for a notification. Dropping the future cancels the request: the handler is
    /// dropped with it. Messages before the reply go into the caller's [outbox](Caller::with_outbox); without one they are
    /// dropped, and `subscriptions/listen` is rejected.
    pub async fn respond(&self, message: &[u8], caller: &Caller<'_>) -> Option<ReplyMessage> {
        match self.read(message) {
            Ok(Received::Request(request)) => {
                Some(match self.begin(&self.current_offers(), &request, caller).await {
                    CallOutcome::Reply(reply) => reply,
                    CallOutcome::Open(subscription) => subscription.await,
                })
            }
            Ok(Received::Notification(notification)) => {
                if self.current_offers().profile.extensions.has_notification(&notification.method) {
                    // A refused one has no reply either.
                    let _ = self.notify(&notification, caller).await;
                }
                None
            }
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

    /// Returns the server of a running handler.
    fn of(runtime: &Runtime) -> Self {
        let owner = runtime.owner.upgrade().and_then(|owner| owner.downcast::<Inner>().ok());
        // The handler was called through the server.
        Self(owner.expect("the server exists while it answers"))
    }

    /// Returns a snapshot of the present offers: a request uses the same one from its first check to its reply.
    pub(crate) fn current_offers(&self) -> Arc<Offers> {
        self.0.offers.load_full()
    }

    /// Runs the handler of a notification of an extension.
    ///
    /// # Errors
    /// The reply that says why the notification was not accepted.
    pub(crate) async fn notify(
        &self,
        notification: &Notification<'_>,
        caller: &Caller<'_>,
    ) -> Result<(), ReplyMessage> {
        let request = Request::of_notification(notification);
        let request = request.map_err(|error| ReplyMessage::not_accepted(&error))?;
        let routed = self.route(&self.current_offers(), &request, caller).await;
        routed
            .map(drop)
            .map_err(|refusal| ReplyMessage::not_accepted(&refusal.to_error()).refused_by(refusal))
    }

    /// Answers one request from this snapshot of the offers, or opens the subscription that it requests.
    pub(crate) async fn begin(
        &self,
        offers: &Offers,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> CallOutcome {
        // > If the server does not implement the requested version [...] it **MUST** respond with an
        // > `UnsupportedProtocolVersionError` listing the versions it does support
        if !ProtocolVersion::is_modern_text(&request.version) {
            let error = unsupported_version(&request.version);
            return CallOutcome::Reply(ReplyMessage::error(Some(&request.id), &error));
        }
        // The server may have been built outside of a runtime.
        task::begin(&self.0.runtime);
        if &*request.method != method::SUBSCRIPTIONS_LISTEN {
            return CallOutcome::Reply(ReplyMessage::written(
                &request.id,
                self.route(offers, request, caller).await,
            ));
        }
        let served = match &self.0.layers {
            None => rare(self.served(offers, request, caller)).await,
            Some(layers) => Box::pin(self.layered(layers, offers, request, caller)).await,
        };
        match served {
            Ok(Served::Open(subscription)) => {
                let runtime = Arc::clone(&self.0.runtime);
                CallOutcome::Open(async move { subscription.ended(&runtime.server_info).await }.boxed())
            }
            Ok(Served::Body(body)) => CallOutcome::Reply(ReplyMessage::written(&request.id, Ok(body))),
            Err(refusal) => CallOutcome::Reply(ReplyMessage::written(&request.id, Err(refusal))),
        }
    }

    /// Answers a request by its method; `subscriptions/listen` only begins, by [`begin`](Self::begin).
    pub(crate) async fn route(
        &self,
        offers: &Offers,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        let Some(layers) = &self.0.layers else {
            let answer = pin!(route(&self.0.runtime, offers, request, caller));
            return self.observed(offers, request, caller, answer).await;
        };
        match rare(self.layered(layers, offers, request, caller)).await? {
            Served::Body(body) => Ok(body),
            Served::Open(_) => Err(Refusal::Method(request.method.to_string())),
        }
    }

    /// Answers a request without layers, or opens the subscription that it requests.
    pub(crate) async fn served(
        &self,
        offers: &Offers,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<Served, Refusal> {
        let runtime = &self.0.runtime;
        if let Some(session) = &request.session
            && session.has_method_of_its_own(&request.method)
        {
            return self.caught(request, async { session.answer_layered(self, request, caller) }).await;
        }
        if &*request.method == method::SUBSCRIPTIONS_LISTEN {
            let opened = pin!(listen::open(runtime, offers, request, caller));
            let opened = self.observed(offers, request, caller, opened).await;
            return opened.map(|mut subscription| {
                // This caller has what layers added to the request.
                subscription.filter = self.notification_filter(caller, &request.version);
                Served::Open(Box::new(subscription))
            });
        }
        let answer = pin!(route(runtime, offers, request, caller));
        self.observed(offers, request, caller, answer).await.map(Served::Body)
    }

    /// Answers in the span of the request, and turns a panic into a refusal. The future is large: it stays where it was made.
    async fn observed<T>(
        &self,
        offers: &Offers,
        request: &Request<'_>,
        caller: &Caller<'_>,
        answer: Pin<&mut impl Future<Output = Result<T, Refusal>>>,
    ) -> Result<T, Refusal> {
        let (begin, runtime) = (Instant::now(), &self.0.runtime);
        let span = observe::span(runtime, offers, request, caller);
        let answered = self.caught(request, answer.instrument(span.clone())).await;
        let (error, tool_failed) =
            (answered.as_ref().err(), request.noted.tool_failed.load(Ordering::Relaxed));
        runtime.metrics.request(&request.method, error, tool_failed, begin.elapsed());
        if request.noted.was_found.load(Ordering::Relaxed) {
            observe::note_found(&span, request);
        }
        answered.inspect_err(|refusal| observe::note_error(&span, refusal))
    }

    /// Turns a panic into a refusal.
    pub(crate) async fn caught<T>(
        &self,
        request: &Request<'_>,
        answer: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        // All code of the author may panic: handlers, binders, codecs, decoded types. The future is then dropped, so no
        // broken invariant is observed.
        let answered = AssertUnwindSafe(answer).catch_unwind().await;
        answered.unwrap_or_else(|panic| {
            let target = request.target().and_then(StringMember::text);
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let cause = text.or_else(|| panic.downcast_ref::<&str>().copied());
            tracing::error!(method = %escaped(&request.method), target = target.map(|text| debug(escaped(text))), cause = cause.map(|text| debug(escaped(text))), "a request panicked");
            let text = format!("it panicked: {}", cause.unwrap_or_default());
            let refusal = self.0.runtime.hidden(&text);
            self.0.runtime.replay.report_cause(|| text);
            Err(refusal)
        })
    }
}

impl UrlRef {
    /// Verifies a reference, for the page behind the URL: it was made by this server (or another instance with the same
    /// keys and audience), has not expired, and was made for `principal`, who has opened the page now.
    ///
    /// Anyone can send a URL to anyone. Without this check, a person can be led to finish what an attacker began, and
    /// the attacker gets access to their account. So call this before the page shows or accepts anything, and again
    /// when it accepts it: when a form is posted, when an authorization server redirects back.
    ///
    /// > The MCP Server **MUST** verify the identity of the user who opens the URL before accepting information.
    ///
    /// `principal` must come from the page's own login, such as its session cookie: never from the URL, and never from
    /// the visitor's input. Issuer and subject are compared. The client is not compared, because the person opens the
    /// page with a browser and called with another program. A principal without a subject is compared as a whole.
    ///
    /// Without authentication there is no principal to compare: references are made without one, and only `None`
    /// verifies. Such a reference is the only proof of who opens the page, which may be enough on one's own machine.
    ///
    /// ```
    /// use antiphon::{seal::Principal, server::{Server, asks::{UrlRef, UrlRefError}}};
    ///
    /// # struct Form(String);
    /// # struct Accounts;
    /// # impl Accounts { fn connect(&self, _call: String, _key: &str, _form: Form) {} }
    /// /// Shows `https://example.com/connect/{reference}`; `user` is who is logged in there.
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
    /// A reference can be verified any number of times until it expires. The page must itself ensure that an action
    /// happens once.
    ///
    /// # Errors
    /// [`UrlRefError`]: show the visitor its text, or a page not found, and accept nothing from them.
    pub fn verify(
        server: &Server,
        text: &str,
        principal: Option<&Principal>,
    ) -> Result<VerifiedUrlRef, UrlRefError> {
        Self::open(&server.0.runtime, text, principal)
    }
}

impl Ctx {
    /// Returns the server that runs this handler, to change its lists or to announce an updated resource.
    pub fn server(&self) -> Server {
        Server::of(self.server_runtime())
    }
}

impl ExtensionCtx {
    /// Returns the server that runs this handler, to change its lists or to announce an updated resource.
    pub fn server(&self) -> Server {
        Server::of(&self.0.server)
    }
}

impl fmt::Debug for Server {
    /// Writes the name, and the numbers of running handlers, sessions, reserved bytes of requests, and subscriptions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.0.runtime.name)
            .field("handlers", &self.0.runtime.running.load(Ordering::Relaxed))
            .field("sessions", &self.0.sessions.len())
            .field("running_in_sessions", &self.0.sessions.handlers())
            .field("request_bytes", &self.0.runtime.request_budget.in_use())
            .field("subscriptions", &self.0.runtime.subscriptions.len())
            .field("detached_steps", &*self.0.runtime.detached.borrow())
            .finish_non_exhaustive()
    }
}

/// The time until a task is tried again whose tool this process does not have.
const WITHOUT_TOOL: Duration = Duration::from_secs(5);

/// The server of tasks. It is set after the server was built, and does not keep it alive.
#[derive(Clone, Default)]
pub(crate) struct OwnServer(Arc<OnceLock<Weak<Inner>>>);

impl OwnServer {
    pub(crate) fn set(&self, server: &Server) {
        // It is set once.
        let _ = self.0.set(Arc::downgrade(&server.0));
    }
}

impl RunLeg for OwnServer {
    fn run<'a>(
        &'a self,
        message: &'a [u8],
        leg: &'a Arc<TaskLeg>,
    ) -> BoxFuture<'a, Option<Result<Box<RawValue>, Refusal>>> {
        async move {
            let server = Server(self.0.get()?.upgrade()?);
            let Ok(Received::Request(request)) = receive(message, false) else {
                tracing::error!("the request of a task cannot be read");
                return Some(Err(Refusal::Internal));
            };
            let offers = server.current_offers();
            let tool = request.target().and_then(StringMember::text).unwrap_or_default();
            if offers.lists.tools.get(tool).is_none() {
                // During an upgrade, another process has the tool.
                tracing::warn!(tool = ?escaped(tool), "a task needs a tool that this process does not have: it waits");
                return Some(Err(Refusal::InFlight { retry_after: WITHOUT_TOOL }));
            }
            let tasks = server.0.runtime.tasks.as_ref();
            tasks.inspect(|tasks| tasks.counters.legs.add_one());
            let routed = server.route(&offers, &request, &Caller::of_task(leg)).await;
            Some(routed.and_then(|body| result_of(&body)))
        }
        .boxed()
    }
}
