//! The reader of a stream.

use crate::serve::http::legacy::streams::{EventId, Inner, STANDALONE, SessionStreams, Stream, StreamItem};
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use tokio::time::Instant;

/// The reader of a stream: one connection. Another may follow once the reader is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) streams: Arc<SessionStreams>,
    /// The event after which the reader began.
    pub(crate) behind: EventId,
    pub(crate) reader: u64,
}

impl Reader {
    /// Returns the id by which the stream can be resumed where this reader began.
    pub(crate) fn behind(&self) -> EventId {
        self.behind
    }

    /// Returns whether this is a reader of the stream of a GET.
    pub(crate) fn is_standalone(&self) -> bool {
        self.behind.stream == STANDALONE
    }

    /// Returns the next item.
    pub(crate) fn poll_read(&self, cx: &Context<'_>) -> Poll<StreamItem> {
        let mut inner = self.streams.inner();
        let Inner { log, all, ended, .. } = &mut *inner;
        let Some(stream) = all.get_mut(&self.behind.stream).filter(|_| !*ended) else {
            return Poll::Ready(StreamItem::Over);
        };
        let Stream { written, taken, done, reader, .. } = stream;
        let Some(reading) = reader.as_mut().filter(|reading| reading.reader == self.reader) else {
            return Poll::Ready(StreamItem::Closed);
        };
        if reading.until.is_some_and(|until| reading.at > until) {
            return Poll::Ready(StreamItem::Closed);
        }
        if let Some((number, event)) = log.take(self.behind.stream, reading.at) {
            reading.at = number + 1;
            *taken = number.max(*taken);
            let last = *done && number == *written;
            stream.wake_writer();
            inner.trim(self.behind.stream);
            return Poll::Ready(StreamItem::Event(event, last));
        }
        if *done {
            return Poll::Ready(StreamItem::Done);
        }
        reading.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Discards the events of the stream: the client has all of them, or knows none of their ids.
    pub(crate) fn forget(self) {
        let mut inner = self.streams.inner();
        inner.log.forget(self.behind.stream);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = self.streams.inner();
        inner.used = Instant::now();
        if let Some(stream) = inner.all.get_mut(&self.behind.stream)
            && stream.reader.as_ref().is_some_and(|reading| reading.reader == self.reader)
        {
            stream.reader = None;
            stream.wake_writer();
        }
        inner.trim(self.behind.stream);
    }
}
