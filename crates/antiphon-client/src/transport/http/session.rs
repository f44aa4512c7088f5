//! A legacy session over Streamable HTTP: 2025-03-26 to 2025-11-25.

use crate::transport::{
    IncomingNotification, OutgoingRequest, ServerMessage, ServerReply, SessionLink, TransportError,
    TransportErrorKind::{Closed, HttpStatus, Malformed},
    http::{
        answer::{self, is_unknown_session},
        core::{CookieJar, Core, add_headers},
        resume::{self, ConnectionEnd, Cursor, read_connection},
    },
    session::sort,
};
use antiphon_wire::{
    CancelledParams, ProtocolVersion, RequestId, escaped, header::MCP_PROTOCOL_VERSION, lock::Lock, method,
    write_notification,
};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming as Body};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{sleep, timeout};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// A longer session id is not one.
const MAX_SESSION_ID: usize = 4096;
/// The number of failed attempts in a row to open a broken stream again.
const ATTEMPTS: u32 = 5;
/// The time limit of the last messages of a session: the cancellation of a request, the end of the session.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(crate) struct HttpLink {
    shared: Arc<Shared>,
}

struct Shared {
    core: Arc<Core>,
    cookies: CookieJar,
    /// The session id from the result of `initialize`.
    id: Lock<Option<HeaderValue>>,
    version: Lock<Option<HeaderValue>>,
    /// `true` once the server answered a GET with a stream: a 404 does not mean then that it offers none.
    streamed: AtomicBool,
    /// `true` after the server answered that it no longer has the session.
    lost: AtomicBool,
    /// `true` once the end of the session was sent to the server.
    ended: AtomicBool,
}

impl HttpLink {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        let shared = Shared {
            core: Arc::clone(core),
            cookies: CookieJar::default(),
            id: Lock::default(),
            version: Lock::default(),
            streamed: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Shared {
    fn id(&self) -> Option<HeaderValue> {
        self.id.lock().clone()
    }

    /// A request of the session, up to its method and body.
    ///
    /// > clients using the Streamable HTTP transport **MUST** include it in the `MCP-Session-Id` header on all of their
    /// > subsequent HTTP requests.
    fn request(&self, how: Method, body: Vec<u8>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = how;
        *request.uri_mut() = self.core.uri.clone();
        *request.headers_mut() = self.core.headers.clone();
        let headers = request.headers_mut();
        if let Some(id) = self.id() {
            headers.insert(SESSION_ID, id);
        }
        if let Some(version) = self.version.lock().clone() {
            headers.insert(MCP_PROTOCOL_VERSION, version);
        }
        self.cookies.add(headers);
        request
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Body>, TransportError> {
        self.send_waiting(request, &mut |_| {}).await
    }

    async fn send_waiting(
        &self,
        request: Request<Full<Bytes>>,
        wait: &mut (dyn FnMut(bool) + Send),
    ) -> Result<Response<Body>, TransportError> {
        let of_session = request.headers().contains_key(SESSION_ID);
        let is_post = request.method() == Method::POST;
        let response = self.core.send_waiting(request, wait).await?;
        self.cookies.keep(response.headers());
        // > When a client receives HTTP 404 in response to a request containing an `MCP-Session-Id`, it **MUST** start a
        // > new session
        if response.status() == StatusCode::NOT_FOUND && of_session && is_post {
            return Err(self.lose(404));
        }
        Ok(response)
    }

    /// Marks the session as lost, and returns the error of the request that showed it.
    fn lose(&self, status: u16) -> TransportError {
        self.lost.store(true, Ordering::Relaxed);
        let text = "the server no longer has the session; it did not act on the request";
        TransportError::new(HttpStatus(status), text).session_lost()
    }

    async fn ask(
        &self,
        request: OutgoingRequest,
        on_message: &mut (dyn FnMut(ServerMessage) + Send),
    ) -> Result<ServerReply, TransportError> {
        let id = request.id.clone();
        let opens = request.method == method::INITIALIZE;
        let of_session = self.id().is_some();
        let mut post = self.request(Method::POST, request.body);
        add_headers(post.headers_mut(), &request.headers)?;
        let mut wait = |waits| on_message(ServerMessage::Notification(IncomingNotification::waiting(waits)));
        let response = self.send_waiting(post, &mut wait).await?;
        let (head, body) = response.into_parts();
        if head.status.is_redirection() {
            return Err(answer::redirected(head.status, &head.headers, &self.core.uri));
        }
        let media_type = resume::media_type(&head.headers);
        let limit = self.core.max_response;
        if !head.status.is_success() {
            let said = answer::read_body(&head, body, limit).await;
            // Some servers answer an unknown session with 400, where the specification demands 404.
            if head.status == StatusCode::BAD_REQUEST && of_session && is_unknown_session(&said) {
                return Err(self.lose(400));
            }
            return answer::parse_refusal(&head, &said, &id);
        }
        if opens {
            self.keep_id(&head.headers);
        }
        match media_type.as_str() {
            "application/json" => {
                let whole = resume::read_whole(body, limit).await?;
                let text = |why: &str| format!("the server's answer is no response: {why}");
                let reply = sort(&whole, Some(&id), on_message)
                    .map_err(|unreadable| TransportError::new(Malformed, text(&unreadable.error.message)))?;
                reply.ok_or_else(|| TransportError::new(Malformed, text("it answers something else")))
            }
            "text/event-stream" => self.follow(body, &id, on_message).await,
            other => Err(answer::neither_json_nor_events(other)),
        }
    }

    /// > The session ID **MUST** only contain visible ASCII characters (ranging from 0x21 to 0x7E).
    fn keep_id(&self, headers: &HeaderMap) {
        let visible = |id: &&HeaderValue| {
            let bytes = id.as_bytes();
            (1..=MAX_SESSION_ID).contains(&bytes.len())
                && bytes.iter().all(|byte| (0x21..=0x7e).contains(byte))
        };
        let mut id = headers.get(SESSION_ID).filter(visible).cloned();
        if let Some(id) = &mut id {
            id.set_sensitive(true);
        }
        *self.id.lock() = id;
    }

    /// Reads the stream of a request to its response, over as many connections as it takes.
    ///
    /// > After the server has sent an SSE event with an event ID to the client, the server **MAY** close the _connection_
    /// > (without terminating the _SSE stream_) at any time [...]. The client **SHOULD** then "poll" the SSE stream by
    /// > attempting to reconnect.
    async fn follow(
        &self,
        mut body: Body,
        id: &RequestId,
        on_message: &mut (dyn FnMut(ServerMessage) + Send),
    ) -> Result<ServerReply, TransportError> {
        let mut cursor = Cursor::default();
        loop {
            let ended =
                read_connection(body, Some(id), &mut cursor, self.core.max_response, on_message).await?;
            match ended {
                ConnectionEnd::Answered(reply) => return Ok(reply),
                ConnectionEnd::Cut(error) if cursor.last_id.is_none() => return Err(error),
                ConnectionEnd::Cut(error) => body = self.resume(&cursor, error).await?,
            }
        }
    }

    /// > Resumption is always via HTTP GET with `Last-Event-ID`.
    async fn resume(&self, cursor: &Cursor, mut error: TransportError) -> Result<Body, TransportError> {
        for failures in 0..ATTEMPTS {
            sleep(cursor.wait(failures)).await;
            match self.get(cursor.last_id.as_deref()).await {
                Ok(StreamReply::Stream(body)) => return Ok(body),
                Ok(StreamReply::Refused(status)) => {
                    let text = format!(
                        "the connection ended before the answer did, and the stream is not resumed ({status})"
                    );
                    return Err(TransportError::new(Closed, text));
                }
                Ok(StreamReply::Later(status)) => error = answer::refused(status, &HeaderMap::new(), b""),
                Err(fault) if fault.is_final() => return Err(fault),
                Err(fault) => error = fault,
            }
        }
        let text = "the connection ended before the answer did, and the stream could not be resumed";
        Err(TransportError::new(Closed, text).with_source(error))
    }

    /// > The client **MUST** include an `Accept` header, listing `text/event-stream` as a supported content type.
    async fn get(&self, last_id: Option<&str>) -> Result<StreamReply, TransportError> {
        let mut request = self.request(Method::GET, Vec::new());
        let headers = request.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.send(request).await?;
        let (status, media_type) = (response.status(), resume::media_type(response.headers()));
        if status == StatusCode::BAD_REQUEST && self.id().is_some() {
            let said = answer::read_beginning(&media_type, response.into_body()).await;
            if is_unknown_session(&said) {
                self.lost.store(true, Ordering::Relaxed);
            }
            return Ok(StreamReply::Refused(status));
        }
        Ok(match status.as_u16() {
            200..=299 if media_type == "text/event-stream" => {
                self.streamed.store(true, Ordering::Relaxed);
                StreamReply::Stream(response.into_body())
            }
            // Some servers without a stream send 404 instead of 405. So a 404 means a lost session only after a stream was open.
            404 if (last_id.is_some() || self.streamed.load(Ordering::Relaxed)) && self.id().is_some() => {
                self.lost.store(true, Ordering::Relaxed);
                StreamReply::Refused(status)
            }
            // The server may not yet have noticed that the previous stream is closed.
            409 if self.streamed.load(Ordering::Relaxed) => StreamReply::Later(status),
            408 | 429 | 500 | 502..=504 => StreamReply::Later(status),
            _ => StreamReply::Refused(status),
        })
    }

    fn is_over(&self) -> bool {
        self.lost.load(Ordering::Relaxed) || *self.core.closed.borrow()
    }

    /// The request that ends the session; none the second time, or if there is nothing to end.
    ///
    /// > Clients that no longer need a particular session [...] **SHOULD** send an HTTP DELETE to the MCP endpoint
    fn last_request(&self) -> Option<Request<Full<Bytes>>> {
        if self.is_over() || self.core.keeps_sessions.load(Ordering::Relaxed) {
            return None;
        }
        let mut request = self.request(Method::DELETE, Vec::new());
        if !request.headers().contains_key(SESSION_ID) || self.ended.swap(true, Ordering::Relaxed) {
            return None;
        }
        request.headers_mut().remove(header::CONTENT_TYPE);
        Some(request)
    }

    async fn send_message(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let response = self.send(self.request(Method::POST, message)).await?;
        // > If the server accepts the input, the server **MUST** return HTTP status code 202 Accepted with no body.
        // Some servers answer 200, or 204, or with a body; the response is not read.
        let (head, body) = response.into_parts();
        if head.status.is_success() { Ok(()) } else { Err(answer::read_refused(&head, body).await) }
    }
}

/// Ends the session in the background when the last clone is dropped, if it was not ended before and a runtime runs. A
/// task that still sends a cancellation has a clone.
impl Drop for Shared {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if let Some(request) = self.last_request() {
            let core = Arc::clone(&self.core);
            runtime.spawn(async move { end(&core, request).await });
        }
    }
}

/// Ends a session, if the server takes that in time.
async fn end(core: &Core, request: Request<Full<Bytes>>) {
    match timeout(LAST_WORDS, core.unless_closed(core.send_with_token(request))).await {
        // > The server **MAY** respond to this request with HTTP 405 Method Not Allowed, indicating that the server does not
        // > allow clients to terminate sessions.
        Ok(Ok(response)) if response.status() == StatusCode::METHOD_NOT_ALLOWED => {
            core.keeps_sessions.store(true, Ordering::Relaxed);
        }
        Ok(Ok(_)) => {}
        Ok(Err(_)) | Err(_) => tracing::debug!("the end of a session could not be sent"),
    }
}

/// The answer to a GET.
enum StreamReply {
    Stream(Body),
    /// No stream here.
    Refused(StatusCode),
    /// No stream for now.
    Later(StatusCode),
}

/// Cancels a request when it is dropped before its response.
///
/// > Disconnection **SHOULD NOT** be interpreted as the client cancel_on_drop its request. To cancel, the client **SHOULD**
/// > explicitly send an MCP `CancelledNotification`.
struct CancelOnDrop {
    shared: Arc<Shared>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let mut params = CancelledParams::new(id);
        params.reason = Some("the client no longer waits for the response".into());
        let Ok(message) = write_notification(method::CANCELLED, &params) else { return };
        let shared = Arc::clone(&self.shared);
        runtime.spawn(async move {
            let sent = shared.core.unless_closed(shared.send_message(message));
            if !matches!(timeout(LAST_WORDS, sent).await, Ok(Ok(()))) {
                tracing::debug!("the cancellation of a request could not be sent");
            }
        });
    }
}

impl SessionLink for HttpLink {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(async move {
            let shared = &self.shared;
            // > The `initialize` request **MUST NOT** be cancelled by clients
            let id = (request.method != method::INITIALIZE).then(|| request.id.clone());
            let mut cancel_on_drop = CancelOnDrop { shared: Arc::clone(shared), id };
            let reply = shared.core.unless_closed(shared.ask(request, on_message)).await;
            cancel_on_drop.id = None;
            reply
        })
    }

    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(self.shared.core.unless_closed(self.shared.send_message(message)))
    }

    fn established(&self, version: &ProtocolVersion) {
        if version.has_version_header() {
            let value = HeaderValue::from_str(version.as_str()).ok();
            *self.shared.version.lock() = value;
        }
    }

    fn listen<'a>(
        &'a self,
        ready: &'a mut (dyn FnMut() + Send),
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<(), TransportError>> {
        let shared = &self.shared;
        let reading = async move {
            let (mut cursor, mut failures) = (Cursor::default(), 0);
            loop {
                let got = shared.get(cursor.last_id.as_deref()).await;
                ready();
                match got {
                    Ok(StreamReply::Stream(body)) => {
                        let before = cursor.last_id.clone();
                        let limit = shared.core.max_response;
                        if let Err(fault) = read_connection(body, None, &mut cursor, limit, on_message).await
                        {
                            tracing::warn!(fault = %escaped(&fault), "the stream of the session broke: it is opened again");
                        }
                        failures = if cursor.last_id == before { failures + 1 } else { 0 };
                    }
                    // > or else return HTTP 405 Method Not Allowed, indicating that the server does not offer an SSE
                    // > stream at this endpoint.
                    Ok(StreamReply::Refused(status)) => {
                        tracing::debug!(%status, "the server offers no stream of its own");
                        return Ok(());
                    }
                    Ok(StreamReply::Later(_)) => failures += 1,
                    Err(fault) if fault.is_final() => return Err(fault),
                    Err(_) => failures += 1,
                }
                // A request returns its own error if the server cannot be reached.
                sleep(cursor.wait(failures.min(ATTEMPTS))).await;
            }
        };
        Box::pin(shared.core.unless_closed(reading))
    }

    fn is_over(&self) -> bool {
        self.shared.is_over()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(request) = self.shared.last_request() {
                end(&self.shared.core, request).await;
            }
        })
    }
}
