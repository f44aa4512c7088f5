//! The event stream of one request: progress, log messages and changes, then the response.

use crate::{
    outbox::Outbox,
    serve::http::{body::EventSource, reply::HttpReply},
};
use futures_util::future::BoxFuture;
use hyper::body::Bytes;
use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep};

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
