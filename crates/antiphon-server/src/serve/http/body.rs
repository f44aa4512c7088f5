//! The body of a response: one message, or a stream of events; and the response without one that rejects a request before its message
//! is read.

use crate::errors::refusal_log::{Loudness, RefusalLog, log_refusal};
use antiphon_wire::escaped;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Bytes;
use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::SystemTime,
};

/// The body of a response of [`HttpService`](super::HttpService).
///
/// > - The final JSON-RPC _response_ **SHOULD** terminate the stream.
///
/// Dropping the body cancels the request, unless the request belongs to a legacy session.
pub struct ReplyBody(Kind);

enum Kind {
    /// `None` once it was sent.
    Whole(Option<Bytes>),
    /// Boxed: most responses are whole.
    Events(Box<dyn EventSource>),
}

/// The events of one response.
pub(crate) trait EventSource: Send {
    /// Returns the next event as it is written, or `None` at the end of the stream.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;

    /// Returns whether no event will follow.
    fn is_ended(&self) -> bool;
}

impl ReplyBody {
    /// Returns a body that consists of these events.
    pub(crate) fn events(events: impl EventSource + 'static) -> Self {
        Self(Kind::Events(Box::new(events)))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut self.0 {
            Kind::Whole(bytes) => bytes.take(),
            Kind::Events(events) => ready!(events.poll_event(cx)),
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Events(events) => events.is_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl From<Bytes> for ReplyBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0 {
            Kind::Whole(_) => "whole",
            Kind::Events(_) => "events",
        };
        f.debug_tuple("ReplyBody").field(&kind).finish()
    }
}

/// The maximum length of a name in the log, in characters.
const MAX_ABOUT: usize = 100;

/// The name of the header with a nonce for proofs of possession.
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The status, the text and the headers of a rejection.
#[derive(Debug, PartialEq)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    /// True if the rest of the body may still arrive.
    pub(crate) unread: bool,
    /// True if reading of the body was stopped half-way, so that no other request can follow on this connection.
    pub(crate) breaks_off: bool,
    /// The value of `WWW-Authenticate`.
    pub(crate) challenge: Option<HeaderValue>,
    /// The value of `DPoP-Nonce`.
    pub(crate) dpop_nonce: Option<Box<HeaderValue>>,
    /// The value of `Retry-After`, in seconds, if the same request may succeed then.
    pub(crate) retry_after: Option<&'static str>,
    /// The name that was refused, or the cause, for the log only: cut, and escaped where it is logged.
    pub(crate) about: Option<String>,
}

impl Rejection {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        let breaks_off = matches!(
            status,
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT | StatusCode::BAD_REQUEST
        );
        Self {
            status,
            text: text.into(),
            unread: true,
            breaks_off,
            challenge: None,
            dpop_nonce: None,
            retry_after: None,
            about: None,
        }
    }

    /// The same rejection, with a name or a cause for the log.
    pub(crate) fn about(self, about: &(impl fmt::Display + ?Sized)) -> Self {
        Self { about: Some(about.to_string().chars().take(MAX_ABOUT).collect()), ..self }
    }

    /// Returns the response: a text for people.
    pub(crate) fn to_response<B: From<Bytes>>(&self) -> Response<B> {
        let mut response = Response::new(B::from(self.text.clone().into()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        if let Some(challenge) = &self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge.clone());
        }
        if let Some(nonce) = &self.dpop_nonce {
            headers.insert(DPOP_NONCE, (**nonce).clone());
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        if self.breaks_off {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.unread {
            response.extensions_mut().insert(RequestBodyUnread);
        }
        response
    }

    /// Logs the rejection: a wrong setting or a wrong caller as a warning once a minute, anything else for debugging.
    pub(crate) fn log(&self, refusals: &RefusalLog, now: SystemTime) {
        let (status, reason) = (self.status.as_u16(), &*self.text);
        let about = self.about.as_deref().unwrap_or_default();
        let loudness = if self.is_warning() {
            refusals.count(&format!("{status} {reason} {about}"), now)
        } else {
            Loudness::Debug
        };
        log_refusal!(loudness, { status, reason, about = ?escaped(about) }, "request rejected");
    }

    /// Returns `true` if the operator should know: the setting of a host name, of a path or of a token may be wrong.
    fn is_warning(&self) -> bool {
        let by_status = matches!(
            self.status,
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::NOT_ACCEPTABLE
                | StatusCode::UNSUPPORTED_MEDIA_TYPE
                | StatusCode::MISDIRECTED_REQUEST
        );
        // A challenge with a nonce is a part of every exchange.
        (by_status && self.dpop_nonce.is_none()) || self.about.is_some()
    }
}

/// An extension of a response: the rest of the request's body was not read, so the connection must not be closed at once.
#[derive(Clone, Copy)]
pub(crate) struct RequestBodyUnread;
