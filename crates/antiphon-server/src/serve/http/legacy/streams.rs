//! The event streams of one session, each with a writer and a reader.
//!
//! Each request has a stream; stream 0 is that of the GET. The events of a stream are stored in the [`EventLog`], and its one
//! reader takes them from there. The reader is a connection, and after it breaks another may follow.

use crate::serve::http::{
    legacy::event_log::{Event, EventId, EventLog},
    options::EventLimits,
};
use antiphon_wire::lock::Lock;
use std::{
    collections::BTreeMap,
    sync::{Arc, MutexGuard, atomic::AtomicUsize},
    task::{Context, Poll, Waker},
};
use tokio::time::{Duration, Instant};

/// The number of the stream that a GET opens.
pub(crate) const STANDALONE: u64 = 0;

/// The number of events that may wait for a connected reader. Further messages wait in the outbox.
const AHEAD: usize = 4;

/// The streams of one session.
#[derive(Debug)]
pub(crate) struct SessionStreams(Lock<Inner>);

#[derive(Debug)]
struct Inner {
    log: EventLog,
    /// The streams with a writer, a reader or stored events.
    all: BTreeMap<u64, Stream>,
    opened: u64,
    readers: u64,
    /// The time of the last use.
    used: Instant,
    ended: bool,
}

#[derive(Debug, Default)]
struct Stream {
    /// The number of the last event that was written.
    written: u64,
    /// The number of the last event that a reader took.
    taken: u64,
    /// The number of the last discarded event that a client must not miss.
    lost: u64,
    /// True after the last event.
    done: bool,
    reader: Option<AttachedReader>,
    /// Wakes the writer when there is room.
    writer: Option<Waker>,
}

#[derive(Debug)]
struct AttachedReader {
    reader: u64,
    /// The number of the next event that the reader takes.
    at: u64,
    /// The number of the event after which the reader ends.
    until: Option<u64>,
    waker: Option<Waker>,
}

/// The next item of a stream for its reader.
#[derive(Debug)]
pub(crate) enum StreamItem {
    /// An event, and whether it is the last one of the stream.
    Event(Event, bool),
    /// The stream has ended.
    Done,
    /// The reader ends; the stream continues.
    Closed,
    /// The session has ended.
    Over,
}

/// The use of a session.
#[derive(Debug)]
pub(crate) struct SessionUse {
    /// True with a request in flight, or an open stream.
    pub(crate) is_busy: bool,
    /// The time since the client last sent something.
    pub(crate) before: Duration,
}

/// The reason why a stream cannot be resumed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ResumeError {
    /// No such event was ever sent in this session.
    Unknown,
    /// Events after it were discarded.
    Lost,
    /// The stream has ended, and the client has all of it.
    Complete,
    /// The session has ended.
    Over,
}

impl SessionStreams {
    /// Returns the streams of a new session; `all` counts the bytes of all sessions.
    pub(crate) fn new(limits: EventLimits, all: Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self(Lock::new(Inner {
            log: EventLog::new(limits, all),
            all: BTreeMap::from([(STANDALONE, Stream::default())]),
            opened: STANDALONE,
            readers: 0,
            used: Instant::now(),
            ended: false,
        })))
    }

    /// Opens a stream for a request.
    pub(crate) fn open(self: &Arc<Self>) -> (Writer, Reader) {
        let mut inner = self.inner();
        inner.opened += 1;
        let stream = inner.opened;
        inner.all.insert(stream, Stream::default());
        inner.used = Instant::now();
        let reader = inner.attach(stream, 0);
        drop(inner);
        (Writer { streams: Arc::clone(self), stream }, self.reader(stream, 0, reader))
    }

    /// Returns a reader of the stream of a GET that begins after the last event taken; `None` while another reads it.
    pub(crate) fn standalone(self: &Arc<Self>) -> Option<Reader> {
        let mut inner = self.inner();
        let stream = inner.all.get(&STANDALONE).filter(|stream| stream.reader.is_none())?;
        let taken = stream.taken;
        let reader = inner.attach(STANDALONE, taken);
        drop(inner);
        Some(self.reader(STANDALONE, taken, reader))
    }

    /// Resumes a stream after this event. The reader before ends.
    pub(crate) fn resume(self: &Arc<Self>, last: EventId) -> Result<Reader, ResumeError> {
        let mut inner = self.inner();
        if inner.ended {
            return Err(ResumeError::Over);
        }
        if last.stream > inner.opened {
            return Err(ResumeError::Unknown);
        }
        let stream = inner.all.get(&last.stream).ok_or(ResumeError::Lost)?;
        if last.number > stream.written {
            return Err(ResumeError::Unknown);
        }
        if last.number < stream.lost {
            return Err(ResumeError::Lost);
        }
        if stream.done && inner.log.count(last.stream, last.number + 1) == 0 {
            return Err(ResumeError::Complete);
        }
        let reader = inner.attach(last.stream, last.number);
        drop(inner);
        Ok(self.reader(last.stream, last.number, reader))
    }

    /// Returns a writer of the stream of the GET.
    pub(crate) fn to_standalone(self: &Arc<Self>) -> Writer {
        Writer { streams: Arc::clone(self), stream: STANDALONE }
    }

    /// Notes that the session is used now.
    pub(crate) fn touch(&self) {
        self.inner().used = Instant::now();
    }

    /// Returns the time since the last use. A session with a request in flight or an open stream is in use.
    pub(crate) fn idle(&self) -> Duration {
        let used = self.use_now();
        if used.is_busy { Duration::ZERO } else { used.before }
    }

    /// Returns the present use of the session.
    pub(crate) fn use_now(&self) -> SessionUse {
        let inner = self.inner();
        let is_busy = inner
            .all
            .iter()
            .any(|(number, stream)| stream.reader.is_some() || (*number != STANDALONE && !stream.done));
        SessionUse { is_busy, before: inner.used.elapsed() }
    }

    /// Ends all streams.
    pub(crate) fn end(&self) {
        let mut inner = self.inner();
        inner.ended = true;
        for stream in inner.all.values_mut() {
            stream.wake_writer();
            stream.wake_reader();
        }
    }

    fn reader(self: &Arc<Self>, stream: u64, number: u64, reader: u64) -> Reader {
        Reader { streams: Arc::clone(self), behind: EventId { stream, number }, reader }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }
}

impl Inner {
    /// Attaches a new reader that begins after this event of a stream.
    fn attach(&mut self, number: u64, behind: u64) -> u64 {
        self.readers += 1;
        let reader = self.readers;
        if let Some(stream) = self.all.get_mut(&number) {
            stream.wake_reader();
            stream.reader = Some(AttachedReader { reader, at: behind + 1, until: None, waker: None });
        }
        reader
    }

    /// Discards events beyond the limits, and removes the streams without events; `touched` may be one of them.
    fn trim(&mut self, touched: u64) {
        let Self { log, all, .. } = self;
        let mut losers = vec![touched];
        let mut lost = Vec::new();
        let is_awaited = |id: EventId| {
            let reader = all.get(&id.stream).and_then(|stream| stream.reader.as_ref());
            reader.is_some_and(|reader| id.number >= reader.at)
        };
        log.trim(is_awaited, |id, matters| lost.push((id, matters)));
        for (id, matters) in lost {
            losers.push(id.stream);
            if let Some(stream) = all.get_mut(&id.stream).filter(|_| matters) {
                stream.lost = stream.lost.max(id.number);
            }
        }
        for number in losers {
            let is_over = |stream: &Stream| number != STANDALONE && stream.done && stream.reader.is_none();
            if all.get(&number).is_some_and(is_over) && log.count(number, 0) == 0 {
                all.remove(&number);
            }
        }
    }
}

impl Stream {
    fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.as_mut().and_then(|reader| reader.waker.take()) {
            waker.wake();
        }
    }

    fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(events: usize) -> Arc<SessionStreams> {
        SessionStreams::new(EventLimits { events, bytes: 1 << 20, all_bytes: 1 << 20 }, Arc::default())
    }

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    /// The items that a reader finds now, in order: messages, `.` behind the last of the stream, and how it ends.
    fn all(reader: &Reader) -> String {
        let mut found = String::new();
        loop {
            match reader.poll_read(&cx()) {
                Poll::Ready(StreamItem::Event(event, last)) => {
                    found.push_str(std::str::from_utf8(&event.message()).unwrap());
                    if last {
                        return found + ".";
                    }
                }
                Poll::Ready(end) => return format!("{found} {end:?}"),
                Poll::Pending => return found,
            }
        }
    }

    fn id(stream: u64, number: u64) -> EventId {
        EventId { stream, number }
    }

    #[tokio::test]
    async fn a_stream_is_taken_up_where_it_is_kept() {
        let streams = streams(3);
        let (writer, reader) = streams.open();
        drop(reader);
        // `c` can be missed.
        for (message, matters) in [("a", true), ("b", true), ("c", false), ("d", true)] {
            writer.write(message.as_bytes(), matters);
        }
        writer.finish(Some(b"e"));
        for (number, expected) in [
            // `c` went first, then `a`.
            (0, Err(ResumeError::Lost)),
            (1, Ok("bde.")),
            (2, Ok("de.")),
            (3, Ok("de.")),
            (4, Ok("e.")),
            (5, Err(ResumeError::Complete)),
            (6, Err(ResumeError::Unknown)),
            (u64::MAX, Err(ResumeError::Unknown)),
        ] {
            let found = streams.resume(id(1, number)).map(|reader| all(&reader));
            assert_eq!(found, expected.map(str::to_owned), "{number}");
        }
        assert_eq!(streams.resume(id(2, 0)).map(|_| ()), Err(ResumeError::Unknown));
        assert_eq!(streams.resume(id(u64::MAX, 0)).map(|_| ()), Err(ResumeError::Unknown));
        // Another stream needs the room: nothing of the first is left.
        let (other, reader) = streams.open();
        drop(reader);
        for _ in 0..3 {
            other.write(b"x", true);
        }
        assert_eq!(streams.resume(id(1, 4)).map(|_| ()), Err(ResumeError::Lost));
        streams.end();
        assert_eq!(streams.resume(id(2, 3)).map(|_| ()), Err(ResumeError::Over));
    }

    /// Events that a connected reader has not taken stay, and their writer waits.
    #[tokio::test]
    async fn a_slow_reader_misses_nothing_and_one_that_is_gone_is_not_waited_for() {
        let streams = streams(2);
        let (writer, reader) = streams.open();
        for _ in 0..AHEAD {
            assert!(writer.poll_room(&cx()).is_ready());
            writer.write(b"a", true);
        }
        assert!(writer.poll_room(&cx()).is_pending());
        assert_eq!(all(&reader), "aaaa");
        assert!(writer.poll_room(&cx()).is_ready());
        for _ in 0..AHEAD {
            writer.write(b"b", true);
        }
        assert!(writer.poll_room(&cx()).is_pending());
        drop(reader);
        assert!(writer.poll_room(&cx()).is_ready());
        assert_eq!(streams.resume(id(1, 5)).map(|_| ()), Err(ResumeError::Lost));
        assert_eq!(all(&streams.resume(id(1, 6)).unwrap()), "bb");
    }

    #[tokio::test]
    async fn readers_follow_each_other() {
        let streams = streams(10);
        let (writer, first) = streams.open();
        writer.write(b"a", true);
        assert_eq!(all(&first), "a");
        let second = streams.resume(id(1, 0)).unwrap();
        assert_eq!((all(&first).as_str(), all(&second).as_str()), (" Closed", "a"));
        // What the first leaves is not the second's.
        drop(first);
        writer.write(b"b", true);
        writer.close_reader();
        writer.write(b"c", true);
        assert_eq!(all(&second), "b Closed");
        drop(second);
        let third = streams.resume(id(1, 2)).unwrap();
        assert_eq!(all(&third), "c");
        writer.finish(None);
        assert_eq!(all(&third), " Done");
        drop(third);
        assert_eq!(all(&streams.resume(id(1, 0)).unwrap()), "abc.");
        streams.end();
        let (writer, reader) = streams.open();
        writer.write(b"x", true);
        assert_eq!(all(&reader), " Over");
    }

    #[tokio::test]
    async fn the_stream_of_a_get_has_one_reader_and_goes_on_where_the_last_one_was() {
        let streams = streams(10);
        let writer = streams.to_standalone();
        let reader = streams.standalone().unwrap();
        assert!(streams.standalone().is_none());
        writer.write(b"a", true);
        assert_eq!(all(&reader), "a");
        writer.write(b"b", true);
        drop(reader);
        let reader = streams.standalone().unwrap();
        assert_eq!((reader.behind(), all(&reader).as_str()), (id(0, 1), "b"));
        drop(writer);
        let again = streams.resume(id(0, 0)).unwrap();
        assert_eq!((all(&reader).as_str(), all(&again).as_str()), (" Closed", "ab"));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_idle_while_nothing_is_under_way_and_nobody_reads() {
        let streams = streams(10);
        let second = Duration::from_secs(1);
        let after = async |expected| {
            tokio::time::advance(second).await;
            assert_eq!(streams.idle(), expected);
        };
        after(second).await;
        let (writer, reader) = streams.open();
        after(Duration::ZERO).await;
        drop(reader);
        after(Duration::ZERO).await;
        writer.finish(Some(b"a"));
        after(second).await;
        let reader = streams.resume(id(1, 0)).unwrap();
        after(Duration::ZERO).await;
        drop(reader);
        after(second).await;
        let reader = streams.standalone();
        after(Duration::ZERO).await;
        drop(reader);
        after(second).await;
        after(2 * second).await;
        streams.touch();
        after(second).await;
    }

    /// Nothing is left of a stream that was forgotten.
    #[tokio::test]
    async fn streams_that_are_over_leave_nothing() {
        let streams = streams(5);
        for _ in 0..100 {
            let (writer, reader) = streams.open();
            writer.finish(Some(b"a"));
            assert_eq!(all(&reader), "a.");
            reader.forget();
        }
        assert_eq!(streams.inner().all.len(), 1);
        for _ in 0..100 {
            let (writer, reader) = streams.open();
            drop(reader);
            writer.write(b"a", true);
        }
        assert_eq!(streams.inner().all.len(), 1 + 5);
    }
}
