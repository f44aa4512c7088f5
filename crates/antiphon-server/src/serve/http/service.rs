//! The endpoint as a [`tower_service::Service`]: mount it in axum, or serve it with [`serve_http`](super::serve_http).

use crate::{
    errors::refusal_log::RefusalLog,
    identity::{Caller, PeerAddress, RequestHead},
    in_place::{boxed, rare},
    outbox::Outbox,
    quota::RequestBudget,
    reply::ReplyMessage,
    request::receive::{Received, without_session},
    serve::http::{
        HttpOptions,
        auth::{Authorized, authorize, metadata, token_expired},
        body::{Rejection, ReplyBody},
        checks::{check_agreement, check_head, check_notification, check_path, check_stream},
        cors::{preflight, probe},
        fields::Accepts,
        legacy,
        reply::{EventStream, HttpReply, KeepAlive, stream_response},
        request_body::{BoxBodyError, BufferPool, StreamPlace, read_body, without_body},
    },
    server::{
        Server,
        message_service::{CallOutcome, MessageService},
    },
};
use antiphon_wire::Notification;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, Version, header, request::Parts};
use http_body::Body;
use std::{
    convert::Infallible,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;

/// The MCP endpoint of a server, as a [`tower_service::Service`]. Cheap to clone. In an axum router it stands beside
/// routes of yours, at any path: `Router::new().route("/", get(page)).route_service("/tools", mcp)`. This is such a
/// router with nothing but tower's trait:
///
/// ```
/// use antiphon::{serve::http::{HttpOptions, HttpService}, server::Server};
/// use http::{Request, StatusCode};
/// use http_body_util::Empty;
/// use tower_service::Service;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("orders", "1.0").build()?;
/// let mut mcp = HttpService::new(server, HttpOptions::default());
///
/// let request = Request::get("/tools").header("host", "localhost").body(Empty::<bytes::Bytes>::new())?;
/// let status = match request.uri().path() {
///     "/tools" => mcp.call(request).await?.status(),
///     _ => StatusCode::NOT_FOUND,
/// };
/// assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
/// # Ok(())
/// # }
/// ```
///
/// While the server drains ([`Server::drain`]), each response closes its connection, so that the next request can reach
/// another instance.
///
/// Dropping the future of a call cancels the request. hyper drops it when the client disconnects.
///
/// > The server **MUST** treat a client disconnect as cancellation of that request.
///
/// Clients of the revisions 2025-03-26 to 2025-11-25 are served on the same endpoint, unless the server is
/// [`modern_only`](crate::ServerBuilder::modern_only). This value and its clones hold the sessions; dropping the
/// last clone ends them. A request of a session continues when its client disconnects.
#[derive(Clone, Debug)]
pub struct HttpService<S: MessageService = Server> {
    /// One pointer, because every request clones it.
    shared: Arc<Shared<S>>,
    /// True if no router selects the path.
    checks_path: bool,
}

/// The parts of an endpoint that all of its clones share.
#[derive(Debug)]
struct Shared<S: MessageService> {
    server: S,
    options: Arc<HttpOptions>,
    /// The rejections that were logged.
    refusals: RefusalLog,
    /// `None` if the server has no sessions.
    legacy: Option<Arc<legacy::Endpoint<S>>>,
    budget: RequestBudget,
    buffers: BufferPool,
    /// An outbox that stays empty: those of all requests are limited together with it.
    outbox: Outbox,
}

impl<S: MessageService> HttpService<S> {
    /// Returns the endpoint of this server. It answers on every path.
    pub fn new(server: S, options: HttpOptions) -> Self {
        if server.key_is_ephemeral() {
            tracing::warn!(
                server = server.name(),
                "state is sealed with a random key: right for one process; calls end with it, and no other instance \
                 can finish them (`ServerBuilder::keys`, the same on every instance)"
            );
        }
        let (options, budget) = (Arc::new(options), server.request_budget());
        let outbox = Outbox::first();
        let sessions = || {
            let (server, options) = (server.clone(), Arc::clone(&options));
            Arc::new(legacy::Endpoint::new(server, options, budget.clone(), outbox.sibling()))
        };
        let legacy = server.has_sessions().then(sessions);
        let (refusals, buffers) = (RefusalLog::default(), BufferPool::default());
        let shared = Shared { server, options, refusals, legacy, budget, buffers, outbox };
        Self { shared: Arc::new(shared), checks_path: false }
    }

    /// Answers only on the path of the options.
    pub(crate) fn with_path_check(self) -> Self {
        Self { checks_path: true, ..self }
    }

    /// Ends all legacy sessions, and cancels their requests.
    pub(crate) fn end_sessions(&self) {
        if let Some(legacy) = &self.shared.legacy {
            legacy.end_all();
        }
    }

    pub(crate) fn options(&self) -> &HttpOptions {
        &self.shared.options
    }

    #[cfg(feature = "http2")]
    pub(crate) fn budget(&self) -> &RequestBudget {
        &self.shared.budget
    }

    /// Returns the response to a request that is not for the protocol, from its head alone: a route for operators, the
    /// metadata of the resource, a preflight. Any other request must pass the checks of its head.
    fn reply_to_head(&self, parts: &Parts) -> Result<Head, Rejection> {
        let Shared { server, options, legacy, .. } = &*self.shared;
        if let Some(answer) = probe(parts, options, server) {
            return Ok(Head::Answered(answer));
        }
        if let Some(metadata) = metadata(parts, options.auth.as_ref()) {
            return Ok(Head::Answered(metadata));
        }
        if self.checks_path {
            check_path(parts, options)?;
        }
        if let Some(answer) = preflight(parts, options, legacy.is_some()) {
            return answer.map(Head::Answered);
        }
        check_head(parts, options, legacy.is_some()).map(Head::Checked)
    }

    /// Begins to answer a request. `address` is that of the peer, unless an extension of the request has it.
    pub(crate) fn exchange<B>(self, parts: Parts, body: B, address: Option<PeerAddress>) -> Exchange<S>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxBodyError>,
    {
        let outbox = self.shared.outbox.sibling();
        let closes_connection = parts.version <= Version::HTTP_11;
        let page = self.options().page_of(&parts.headers);
        let reply = Box::into_pin(boxed(|| self.clone().reply(parts, body, address, outbox.clone())));
        Exchange { service: self, closes_connection, reply: Some(reply), outbox, silent: None, page }
    }

    /// Checks a request and answers it, and logs a rejection. The messages before the reply go into the outbox.
    ///
    /// Not an `async fn`, whose future would have a second place for each argument.
    #[expect(clippy::manual_async_fn, reason = "the future of a request is smaller so")]
    fn reply<B>(
        self,
        mut parts: Parts,
        body: B,
        address: Option<PeerAddress>,
        outbox: Outbox,
    ) -> impl Future<Output = HttpReply> + Send
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<BoxBodyError>,
    {
        async move {
            let mut accepts = Accepts::ALL;
            let mut reply = self.checked_reply(&mut parts, pin!(body), address, &outbox, &mut accepts).await;
            if !accepts.json {
                reply = reply.into_event();
            }
            if let HttpReply::Rejection(rejection) = &reply {
                rejection.log(&self.shared.refusals, self.shared.server.now());
            }
            reply.reuse(parts.headers);
            reply
        }
    }

    /// Runs the handler of a notification, if there is one.
    async fn notified(
        &self,
        notification: &Notification<'_>,
        parts: &mut Parts,
        authorized: &Authorized,
    ) -> HttpReply {
        let server = &self.shared.server;
        if !server.has_notification(&notification.method) {
            return HttpReply::Accepted;
        }
        if let Err(error) = check_notification(notification, &parts.headers) {
            return HttpReply::json(ReplyMessage::error(None, &error));
        }
        let head = Arc::new(RequestHead::taken(parts));
        let caller = authorized.caller_of(&head);
        accepted(rare(server.notify(notification, None, &caller)).await)
    }

    async fn checked_reply<B>(
        &self,
        parts: &mut Parts,
        body: Pin<&mut B>,
        address: Option<PeerAddress>,
        outbox: &Outbox,
        accepts: &mut Accepts,
    ) -> HttpReply
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<BoxBodyError>,
    {
        let Shared { server, options, legacy, budget, buffers, .. } = &*self.shared;
        let unread = !body.is_end_stream();
        match self.reply_to_head(parts) {
            Ok(Head::Checked(found)) => *accepts = found,
            Ok(Head::Answered(response)) => return HttpReply::Response(Box::new(response)),
            Err(refused) => return rare(without_body(refused, body, parts.version)).await,
        }
        let authorized = match authorize(parts, options.auth.as_ref(), server, address).await {
            Ok(authorized) => authorized,
            Err(refused) => return rare(without_body(refused, body, parts.version)).await,
        };
        // A request of HTTP/2 has a place among all of them; now its caller is known.
        // The stream itself holds the place; what keeps extensions for longer must not.
        let place = parts.extensions.remove::<Arc<StreamPlace>>();
        if place.is_some_and(|place| !place.assign(budget.account(&authorized.caller(parts)))) {
            return HttpReply::Rejection(StreamPlace::refused(unread));
        }
        if let Some(legacy) = legacy.as_ref().filter(|_| parts.method != Method::POST) {
            return legacy.get_or_delete(parts, authorized);
        }
        let body = match read_body(body, parts, options, budget, buffers, &authorized).await {
            Ok(body) => body,
            Err(refused) => return HttpReply::Rejection(refused),
        };
        // A client that reads no event streams gets no messages before the reply.
        let outbox = accepts.events.then_some(outbox);
        // Boxed, to keep the future of a modern request small.
        if let Some(legacy) = legacy.as_ref().filter(|_| legacy::is_of_session(parts)) {
            return Box::pin(legacy.post(taken(parts), body, authorized, *accepts)).await;
        }
        let request = match server.read(&body) {
            Ok(Received::Request(request)) => request,
            // > If the server accepts it, the server **MUST** return HTTP status code `202 Accepted` with no body.
            Ok(Received::Notification(notification)) => {
                return self.notified(&notification, parts, &authorized).await;
            }
            Ok(Received::Legacy(message)) => {
                let Some(legacy) = legacy else {
                    return HttpReply::json(without_session(message).into());
                };
                let caller = sending(authorized.caller(parts), outbox);
                return Box::pin(legacy.without_session(message, &caller, &parts.headers)).await;
            }
            Err(reply) => {
                let Some(legacy) = legacy else { return HttpReply::json(reply) };
                let batch = Box::pin(legacy.batch_without_session(
                    &body,
                    sending(authorized.caller(parts), outbox),
                    &parts.headers,
                ));
                return batch.await.unwrap_or(HttpReply::json(reply));
            }
        };
        if let Err(refused) = check_stream(request.method(), *accepts) {
            return HttpReply::Rejection(refused);
        }
        // The same snapshot for the check of the headers and for the call.
        let offers = server.offers();
        let param_headers = |target: &str| server.param_headers(&offers, request.method(), target);
        if let Err(error) = check_agreement(&request, &parts.headers, param_headers) {
            return HttpReply::json(ReplyMessage::error(Some(&request.id), &error));
        }
        let head = Arc::new(RequestHead::taken(parts));
        let caller = sending(authorized.caller_of(&head), outbox);
        if let Some(outbox) = outbox {
            outbox.may_be_silent();
        }
        // In a box of its own, as in `call_tool`: an allocator is fast for up to a kilobyte, and all of it is larger.
        match Box::into_pin(boxed(|| server.call(&offers, &request, &caller))).await {
            CallOutcome::Reply(reply) => {
                // The memory of the headers is used again, unless a handler still has them.
                if let Ok(head) = Arc::try_unwrap(head) {
                    parts.headers = head.headers;
                }
                HttpReply::json(reply)
            }
            CallOutcome::Open(subscription) => {
                // A subscription may stay open for days: the memory of its request is freed.
                drop((request, offers));
                drop((body, taken(parts), head));
                until_expired(subscription, authorized.expired(server)).await
            }
        }
    }
}

/// Returns the reply to a notification.
fn accepted(notified: Result<(), ReplyMessage>) -> HttpReply {
    notified.map_or_else(HttpReply::json, |()| HttpReply::Accepted)
}

/// Returns the reply of a subscription. It is cut off when its token expires, and the client opens another with a new token.
async fn until_expired(
    subscription: BoxFuture<'static, ReplyMessage>,
    expired: BoxFuture<'static, ()>,
) -> HttpReply {
    tokio::select! {
        reply = subscription => HttpReply::json(reply),
        () = expired => HttpReply::Rejection(token_expired()),
    }
}

/// What the head of a request decides.
enum Head {
    /// The request is answered without its body.
    Answered(Response<ReplyBody>),
    /// The request is for the protocol, and its client reads these responses.
    Checked(Accepts),
}

/// Returns the caller with an outbox for messages before the reply, if there is one.
fn sending<'a>(caller: Caller<'a>, outbox: Option<&'a Outbox>) -> Caller<'a> {
    match outbox {
        Some(outbox) => caller.with_outbox(outbox),
        None => caller,
    }
}

/// Takes the head of a request.
fn taken(parts: &mut Parts) -> Parts {
    let (empty, ()) = Request::new(()).into_parts();
    std::mem::replace(parts, empty)
}

/// The future of a response. It resolves with the reply, or with an event stream once a message is sent before the
/// reply, or once the handler has been silent for [`keep_alive_interval`](HttpOptions::keep_alive_interval): proxies and clients
/// wait for the head of a response for a limited time.
#[must_use = "a future does nothing unless it is polled"]
pub struct Exchange<S: MessageService = Server> {
    service: HttpService<S>,
    /// True for versions of HTTP with a `Connection` header: those before HTTP/2.
    closes_connection: bool,
    /// Moved into the event stream once one begins.
    reply: Option<BoxFuture<'static, HttpReply>>,
    outbox: Outbox,
    /// The time at which the stream of a silent handler begins. `None` before the handler was pending.
    silent: Option<KeepAlive>,
    /// The origin of the page that sent the request, if the page may read the response.
    page: Option<HeaderValue>,
}

// Nothing in it is pinned.
impl<S: MessageService> Unpin for Exchange<S> {}

impl<S: MessageService> Future for Exchange<S> {
    type Output = Result<Response<ReplyBody>, Infallible>;

    // > the server **MUST** return either `Content-Type: application/json` (a single JSON object) or
    // > `Content-Type: text/event-stream` (an SSE response stream).
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(mut reply) = this.reply.take() else { return Poll::Pending };
        let Shared { server, options, .. } = &*this.service.shared;
        // The handler runs in this task, and its messages are checked below.
        this.outbox.stop_waking();
        let polled = reply.as_mut().poll(cx);
        let mut response = match polled {
            Poll::Ready(reply) if this.outbox.is_empty() && !reply.is_event() => reply.into_response(options),
            Poll::Ready(mut reply) => {
                let fields = reply.take_fields();
                let mut response = stream_response(EventStream::ending(this.outbox.clone(), reply));
                response.headers_mut().extend(fields);
                response
            }
            Poll::Pending => {
                // A message that waits begins the stream without a timer.
                let has_message = this.outbox.poll_ready(cx).is_ready();
                let timer = || KeepAlive::new(options.keep_alive);
                let is_silent = !has_message
                    && this.outbox.is_silent_stream()
                    && this.silent.get_or_insert_with(timer).poll(cx).is_ready();
                if !has_message && !is_silent {
                    this.reply = Some(reply);
                    return Poll::Pending;
                }
                let quiet = this.silent.take().unwrap_or_else(timer);
                stream_response(EventStream::new(this.outbox.clone(), reply, quiet))
            }
        };
        // Further requests should reach another instance.
        if this.closes_connection && server.is_draining() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        options.origins.add_headers(this.page.take(), response.headers_mut());
        Poll::Ready(Ok(response))
    }
}

impl<B, S> Service<Request<B>> for HttpService<S>
where
    S: MessageService,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxBodyError>,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Exchange<S>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        self.clone().exchange(parts, body, None)
    }
}
