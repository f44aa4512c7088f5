//! The reply to one HTTP request, its status, and the response that is made of it: one message, or the event stream with progress, log
//! messages and changes before it.

use crate::{
    outbox::Outbox,
    reply::{ReplyKind, ReplyMessage},
    serve::http::{
        HttpOptions,
        auth::scope_challenge,
        body::{EventSource, Rejection, ReplyBody},
        fields::X_ACCEL_BUFFERING,
    },
};
use antiphon_wire::ErrorCode;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::body::Bytes;
use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep};

/// The reply to one HTTP request.
pub(crate) enum HttpReply {
    /// The request was rejected before its message was read.
    Rejection(Rejection),
    /// The message was a notification or a response: 202 without a body.
    Accepted,
    /// A JSON-RPC response.
    Json {
        message: ReplyMessage,
        /// The header fields of the response, or an empty map for them.
        fields: HeaderMap,
        /// True if the client reads event streams only.
        as_event: bool,
    },
    /// A status without a body.
    Empty(StatusCode),
    /// A complete HTTP response: of a session, or the metadata of the resource.
    Response(Box<Response<ReplyBody>>),
}

/// The maximum capacity of a map that is used again, because its connection keeps it. Maps have room for 3, 6, 12, 24, .. fields.
pub(crate) const REUSED_FIELDS: usize = 12;

impl HttpReply {
    /// Returns the reply with this JSON-RPC response.
    pub(crate) fn json(message: ReplyMessage) -> Self {
        Self::Json { message, fields: HeaderMap::new(), as_event: false }
    }

    /// Returns the reply for a client that reads event streams only. A rejection and an error with a status of its own stay as
    /// they are: the status says what is wrong.
    pub(crate) fn into_event(mut self) -> Self {
        if let Self::Json { message, as_event, .. } = &mut self {
            *as_event = message.http_status() == StatusCode::OK;
        }
        self
    }

    /// Returns the same JSON-RPC response with this header field.
    pub(crate) fn with_field(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if let Self::Json { fields, .. } = &mut self {
            fields.insert(name, value);
        }
        self
    }

    /// Returns whether the reply is to be the event of a stream, also without messages before it.
    pub(crate) fn is_event(&self) -> bool {
        matches!(self, Self::Json { as_event: true, .. })
    }

    /// Takes the header fields that the reply adds to its response.
    pub(crate) fn take_fields(&mut self) -> HeaderMap {
        match self {
            Self::Json { fields, .. } => std::mem::take(fields),
            _ => HeaderMap::new(),
        }
    }

    /// Uses the map of the request's header fields again, whose values are not needed any more. hyper keeps the map of each
    /// response for the next request of its connection, and it has room for its fields then.
    pub(crate) fn reuse(&mut self, mut request_fields: HeaderMap) {
        // A name that the request has twice takes memory besides.
        let is_small =
            request_fields.capacity() <= REUSED_FIELDS && request_fields.len() == request_fields.keys_len();
        if let Self::Json { fields, .. } = self
            && is_small
            && fields.is_empty()
        {
            request_fields.clear();
            *fields = request_fields;
        }
    }

    /// Returns the response that holds this reply as a whole.
    pub(crate) fn into_response(self, options: &HttpOptions) -> Response<ReplyBody> {
        match self {
            Self::Rejection(rejection) => rejection.to_response(),
            Self::Accepted => with_status(StatusCode::ACCEPTED, Vec::new()),
            Self::Json { message, mut fields, .. } => {
                fields.insert(header::CONTENT_TYPE, application_json());
                if let ReplyKind::InsufficientScope(needed) = message.kind() {
                    fields.insert(header::WWW_AUTHENTICATE, scope_challenge(options.auth.as_ref(), needed));
                }
                if let Some(seconds) = message.retry_after() {
                    fields.insert(header::RETRY_AFTER, seconds.into());
                }
                let mut response = with_status(message.http_status(), message.body);
                *response.headers_mut() = fields;
                response
            }
            Self::Empty(status) => with_status(status, Vec::new()),
            Self::Response(response) => *response,
        }
    }
}

fn application_json() -> HeaderValue {
    HeaderValue::from_static("application/json")
}

/// Returns a response whose body is an event stream.
pub(crate) fn stream_response(events: impl EventSource + 'static) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::events(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // > When initiating an SSE stream, servers **SHOULD** include the `X-Accel-Buffering: no` header
    headers.insert(X_ACCEL_BUFFERING.clone(), HeaderValue::from_static("no"));
    response
}

/// Returns a response with this status and this body.
pub(crate) fn with_status(status: StatusCode, body: impl Into<Bytes>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::from(body.into()));
    *response.status_mut() = status;
    response
}

impl ReplyMessage {
    /// Returns the HTTP status of a response with this body.
    ///
    /// `-32603` and codes of an author's own are 200, as are errors in legacy sessions: proxies would send a request again
    /// after a 5xx.
    pub fn http_status(&self) -> StatusCode {
        match self.kind() {
            ReplyKind::Error(code) => status_of(*code),
            // > `HTTP 403 Forbidden` status code (per RFC 6750 Section 3.1)
            ReplyKind::InsufficientScope(_) => StatusCode::FORBIDDEN,
            // HTTP has no status for an error in a session.
            ReplyKind::Result | ReplyKind::SessionError(_) => StatusCode::OK,
        }
    }
}

fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        // > it MUST respond with `404 Not Found` and a JSON-RPC error with code `-32601`
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        // > On HTTP, the response status MUST be `400 Bad Request`.
        ErrorCode::PARSE_ERROR
        | ErrorCode::INVALID_REQUEST
        | ErrorCode::INVALID_PARAMS
        | ErrorCode::HEADER_MISMATCH
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The events of one request: the messages that it sends, then its response.
///
/// The stream owns the handler, so the handler runs only while the body is polled: a client that reads slowly slows the
/// handler down.
pub(crate) struct EventStream {
    outbox: Outbox,
    state: State,
}

enum State {
    /// The handler runs. A comment is sent after each interval without a message.
    Running {
        reply: BoxFuture<'static, HttpReply>,
        quiet: KeepAlive,
    },
    /// The reply waits until the outbox is empty.
    Ending(HttpReply),
    Ended,
}

impl EventStream {
    /// A stream of a request that runs. If `quiet` has elapsed, the stream begins with a comment.
    pub(crate) fn new(outbox: Outbox, reply: BoxFuture<'static, HttpReply>, quiet: KeepAlive) -> Self {
        Self { outbox, state: State::Running { reply, quiet } }
    }

    /// A stream of a request that was answered in its first poll.
    pub(crate) fn ending(outbox: Outbox, reply: HttpReply) -> Self {
        Self { outbox, state: State::Ending(reply) }
    }
}

impl EventSource for EventStream {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // The handler runs in this task, and its messages are popped below.
        self.outbox.stop_waking();
        if let State::Running { reply, .. } = &mut self.state
            && let Poll::Ready(reply) = reply.as_mut().poll(cx)
        {
            self.state = State::Ending(reply);
        }
        if let Poll::Ready(message) = self.outbox.poll_pop(cx) {
            if let State::Running { quiet, .. } = &mut self.state {
                quiet.restart();
            }
            return Poll::Ready(Some(event(&message)));
        }
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Running { reply, mut quiet } => {
                let elapsed = quiet.poll(cx);
                if elapsed.is_ready() {
                    quiet.restart();
                }
                self.state = State::Running { reply, quiet };
                ready!(elapsed);
                Poll::Ready(Some(Bytes::from_static(b":\n\n")))
            }
            State::Ending(HttpReply::Json { message, .. }) => Poll::Ready(Some(event(&message.body))),
            // A request that is rejected before its message is read has sent nothing.
            State::Ending(_) | State::Ended => Poll::Ready(None),
        }
    }

    fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended) && self.outbox.is_empty()
    }
}

/// The timer of comments on a stream.
pub(crate) struct KeepAlive {
    elapses: Pin<Box<Sleep>>,
    interval: Duration,
}

impl KeepAlive {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { elapses: Box::pin(tokio::time::sleep(interval)), interval }
    }

    fn restart(&mut self) {
        self.elapses.as_mut().reset(Instant::now() + self.interval);
    }

    /// Resolves once the interval has passed without a restart, and remains ready until then.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.elapses.as_mut().poll(cx)
    }
}

/// Writes one event with one line of data.
fn event(message: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(message.len() + 8);
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(message);
    event.extend_from_slice(b"\n\n");
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_wire::ErrorObject;

    #[test]
    fn a_response_has_no_field_of_its_request() {
        let check = |names: usize, times: usize, is_reused: bool| {
            let mut request_fields = HeaderMap::new();
            for number in (0..names).flat_map(|number| std::iter::repeat_n(number, times)) {
                let name = format!("x-{number}").parse::<HeaderName>().unwrap();
                request_fields.append(name, HeaderValue::from_static("secret"));
            }
            let mut reply = HttpReply::json(ReplyMessage::error(None, &ErrorObject::internal()));
            reply.reuse(request_fields);
            let response = reply.into_response(&HttpOptions::default());
            let has: Vec<_> = response.headers().iter().collect();
            assert_eq!(has, [(&header::CONTENT_TYPE, &application_json())], "{names} names, {times} times");
            // A new map has room for fewer fields.
            assert_eq!(response.headers().capacity() == 12, is_reused, "{names} names, {times} times");
        };
        check(0, 1, false);
        check(12, 1, true);
        // The connection would keep the memory of these.
        check(13, 1, false);
        check(100, 1, false);
        check(7, 2, false);
    }
}
