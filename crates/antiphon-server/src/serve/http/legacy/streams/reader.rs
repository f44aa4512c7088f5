//! AttachedReader a stream.

use crate::serve::http::legacy::streams::{EventId, Inner, STANDALONE, SessionStreams, Stream, StreamItem};
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use tokio::time::Instant;

/// The end of a stream that is read: one connection. Another may follow it once it is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) streams: Arc<SessionStreams>,
    /// Where it began.
    pub(crate) behind: EventId,
    pub(crate) reader: u64,
}

impl Reader {
    /// The id by which the stream can be taken up where this reader began.
    pub(crate) fn behind(&self) -> EventId {
        self.behind
    }

    /// Whether it reads the stream of a GET.
    pub(crate) fn is_standalone(&self) -> bool {
        self.behind.stream == STANDALONE
    }

    /// What comes next.
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

    /// Keeps nothing of the stream: the client has it whole, or knows no id of it.
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
