//! The body of a response: one message, or a stream of events.

use http_body::{Body, Frame, SizeHint};
use hyper::body::Bytes;
use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
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
