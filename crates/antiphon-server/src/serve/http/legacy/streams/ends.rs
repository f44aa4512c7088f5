//! The two ends of a stream: its writer and its reader.

use crate::serve::http::legacy::streams::{
    AHEAD, Event, EventId, Inner, STANDALONE, SessionStreams, Stream, StreamItem,
};
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use tokio::time::Instant;

/// The writer of a stream. Dropping it ends the stream.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) streams: Arc<SessionStreams>,
    pub(crate) stream: u64,
}

impl Writer {
    /// Resolves when more can be written. The writer waits for a connected reader that is slow, but for no absent one.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.streams.inner();
        let Inner { log, all, ended, .. } = &mut *inner;
        let Some(stream) = all.get_mut(&self.stream).filter(|_| !*ended) else { return Poll::Ready(()) };
        match &stream.reader {
            Some(reader) if log.count(self.stream, reader.at) >= AHEAD => {
                stream.writer = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Writes a message; `matters` says whether a client must not miss it.
    pub(crate) fn write(&self, message: &[u8], matters: bool) {
        self.put(Some((message, matters)), false);
    }

    /// Writes the last message, if there is one.
    pub(crate) fn finish(self, message: Option<&[u8]>) {
        self.put(message.map(|message| (message, true)), true);
    }

    /// Ends the connection of the present reader after the last event that was written.
    pub(crate) fn close_reader(&self) {
        let mut inner = self.streams.inner();
        let Some(stream) = inner.all.get_mut(&self.stream) else { return };
        let written = stream.written;
        if let Some(reader) = &mut stream.reader {
            reader.until.get_or_insert(written);
        }
        stream.wake_reader();
    }

    fn put(&self, message: Option<(&[u8], bool)>, last: bool) {
        let mut inner = self.streams.inner();
        let Inner { log, all, ended, .. } = &mut *inner;
        let Some(stream) = all.get_mut(&self.stream).filter(|stream| !stream.done && !*ended) else { return };
        stream.done = last;
        if let Some((message, matters)) = message {
            stream.written += 1;
            let id = EventId { stream: self.stream, number: stream.written };
            log.push(id, Event::new(id, message), matters);
        }
        stream.wake_reader();
        if last {
            inner.used = Instant::now();
        }
        inner.trim(self.stream);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.stream != STANDALONE {
            self.put(None, true);
        }
    }
}

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
