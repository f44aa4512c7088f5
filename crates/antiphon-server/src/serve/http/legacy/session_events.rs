//! The events of a response in a session: those of one stream, for one connection.

use crate::{
    outbox::Outbox,
    serve::http::{
        body::EventSource,
        legacy::streams::{Reader, StreamItem, Writer},
    },
    server::message_service::MessageSession,
};
use futures_util::future::BoxFuture;
use hyper::body::Bytes;
use std::{
    collections::VecDeque,
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep};

/// The events of one stream, until the stream or this connection ends.
pub(crate) struct SessionEvents {
    first: VecDeque<Bytes>,
    /// `None` once the stream has ended.
    reader: Option<Reader>,
    messages: Option<SessionMessages>,
    quiet: Pin<Box<Sleep>>,
    keep_alive: Duration,
    /// Ends the events when it resolves, such as at the expiry of the token.
    over: Option<BoxFuture<'static, ()>>,
}

/// The messages of a session that belong to no request. They are sent while a connection listens, and wait otherwise.
struct SessionMessages {
    sender: BoxFuture<'static, ()>,
    outbox: Outbox,
    writer: Writer,
    /// True once the server drains, or the session has ended.
    ended: bool,
}

impl SessionEvents {
    pub(crate) fn new(reader: Option<Reader>, keep_alive: Duration) -> Self {
        let quiet = Box::pin(tokio::time::sleep(keep_alive));
        Self { first: VecDeque::new(), reader, messages: None, quiet, keep_alive, over: None }
    }

    /// Ends the events when this future resolves.
    pub(crate) fn ending_with(self, over: BoxFuture<'static, ()>) -> Self {
        Self { over: Some(over), ..self }
    }

    /// Sends this event before all others.
    pub(crate) fn first(mut self, event: impl Into<Bytes>) -> Self {
        self.first.push_back(event.into());
        self
    }

    /// Adds the messages of the session that belong to no request.
    pub(crate) fn with_session_messages(
        mut self,
        session: &impl MessageSession,
        outbox: &Outbox,
        writer: Writer,
    ) -> Self {
        let (session, to) = (session.clone(), outbox.clone());
        let sender = Box::pin(async move { session.send_messages(&to).await });
        self.messages = Some(SessionMessages { sender, outbox: outbox.clone(), writer, ended: false });
        self
    }
}

impl EventSource for SessionEvents {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // Polled first, so that a stream which is never silent ends as well.
        if self.over.as_mut().is_some_and(|over| over.as_mut().poll(cx).is_ready()) {
            (self.over, self.reader) = (None, None);
            self.first.clear();
        }
        if let Some(event) = self.first.pop_front() {
            return Poll::Ready(Some(event));
        }
        loop {
            let Some(reader) = &self.reader else { return Poll::Ready(None) };
            match reader.poll_read(cx) {
                Poll::Ready(StreamItem::Event(event, last)) => {
                    if last {
                        self.reader = None;
                    }
                    self.quiet.as_mut().reset(Instant::now() + self.keep_alive);
                    return Poll::Ready(Some(event.into_bytes()));
                }
                Poll::Ready(StreamItem::Done | StreamItem::Closed | StreamItem::Over) => self.reader = None,
                Poll::Pending => {
                    match self.messages.as_mut().map_or(Poll::Pending, |messages| messages.poll_write(cx)) {
                        Poll::Ready(true) => {}
                        Poll::Ready(false) => self.reader = None,
                        Poll::Pending => break,
                    }
                }
            }
        }
        ready!(self.quiet.as_mut().poll(cx));
        self.quiet.as_mut().reset(Instant::now() + self.keep_alive);
        Poll::Ready(Some(Bytes::from_static(b":\n\n")))
    }

    fn is_ended(&self) -> bool {
        self.first.is_empty() && self.reader.is_none()
    }
}

impl SessionMessages {
    /// Writes the next message; `false` when there will be no more.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if !self.ended {
            self.ended = self.sender.as_mut().poll(cx).is_ready();
        }
        match self.outbox.poll_pop(cx) {
            Poll::Ready(message) => {
                self.writer.write(&message, true);
                Poll::Ready(true)
            }
            Poll::Pending if self.ended => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    }
}
