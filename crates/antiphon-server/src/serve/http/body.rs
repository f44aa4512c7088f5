//! The body of a response: a whole one, or a stream of events that ends with the response to the request.

use crate::{
    Outbox,
    serve::http::{legacy, service::Reply},
};
use futures_util::future::BoxFuture;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Bytes;
use std::{
    convert::Infallible,
    fmt,
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep};

/// The body of a response of [`HttpService`](super::HttpService).
///
/// > - The final JSON-RPC _response_ **SHOULD** terminate the stream.
///
/// Dropping it cancels the request, unless it is of a legacy session.
pub struct ReplyBody(Kind);

enum Kind {
    /// `None` once it has left.
    Whole(Option<Bytes>),
    /// Boxed: most responses are whole.
    Events(Box<EventStream>),
    /// Of a session.
    Session(Box<legacy::Events>),
}

/// One request under way whose response has begun. It owns the handler: nothing runs but while the body is polled, and
/// a client that does not read is waited for.
pub(crate) struct EventStream {
    outbox: Outbox,
    state: State,
}

enum State {
    /// The handler runs; when it has been silent for so long, a comment is sent.
    Running {
        reply: BoxFuture<'static, Reply>,
        quiet: Pin<Box<Sleep>>,
        keep_alive: Duration,
    },
    /// The last frame waits behind what is still in the outbox.
    Ending(Reply),
    Ended,
}

impl EventStream {
    pub(crate) fn new(outbox: Outbox, reply: BoxFuture<'static, Reply>, keep_alive: Duration) -> Self {
        let quiet = Box::pin(tokio::time::sleep(keep_alive));
        Self { outbox, state: State::Running { reply, quiet, keep_alive } }
    }

    /// A stream whose handler was done at once.
    pub(crate) fn ending(outbox: Outbox, reply: Reply) -> Self {
        Self { outbox, state: State::Ending(reply) }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let State::Running { reply, .. } = &mut self.state
            && let Poll::Ready(reply) = reply.as_mut().poll(cx)
        {
            self.state = State::Ending(reply);
        }
        if let Some(message) = self.outbox.pop() {
            if let State::Running { quiet, keep_alive, .. } = &mut self.state {
                quiet.as_mut().reset(Instant::now() + *keep_alive);
            }
            return Poll::Ready(Some(event(&message)));
        }
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Running { reply, mut quiet, keep_alive } => {
                let rang = quiet.as_mut().poll(cx);
                if rang.is_ready() {
                    quiet.as_mut().reset(Instant::now() + keep_alive);
                }
                self.state = State::Running { reply, quiet, keep_alive };
                ready!(rang);
                Poll::Ready(Some(Bytes::from_static(b":\n\n")))
            }
            State::Ending(Reply::Json(reply)) => Poll::Ready(Some(event(&reply.body))),
            // What is refused before its message is read has sent nothing before.
            State::Ending(_) | State::Ended => Poll::Ready(None),
        }
    }
}

/// One event, one line, one write.
fn event(message: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(message.len() + 8);
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(message);
    event.extend_from_slice(b"\n\n");
    event.into()
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
            Kind::Session(events) => ready!(events.poll_event(cx)),
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Events(events) => matches!(events.state, State::Ended) && events.outbox.is_empty(),
            Kind::Session(events) => events.is_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Events(_) | Kind::Session(_) => SizeHint::default(),
        }
    }
}

impl From<Bytes> for ReplyBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }
}

impl From<EventStream> for ReplyBody {
    fn from(events: EventStream) -> Self {
        Self(Kind::Events(Box::new(events)))
    }
}

impl From<legacy::Events> for ReplyBody {
    fn from(events: legacy::Events) -> Self {
        Self(Kind::Session(Box::new(events)))
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0 {
            Kind::Whole(_) => "whole",
            Kind::Events(_) | Kind::Session(_) => "events",
        };
        f.debug_tuple("ReplyBody").field(&kind).finish()
    }
}
