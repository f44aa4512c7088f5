//! The event streams of one session: who writes on each, who reads, and where a reader goes on.
//!
//! One request, one stream; stream 0 is that of the GET. What is written is kept in the [`Store`], from which the one
//! reader of a stream takes it: a connection, that may break off and be followed by another.

use super::{
    event_id::EventId,
    store::{Bounds, Event, Store},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
    task::{Context, Poll, Waker},
};
use tokio::time::{Duration, Instant};

/// The stream that a GET opens.
const STANDALONE: u64 = 0;

/// How many events may wait for a reader that is connected. What is sent meanwhile waits where it is told.
const AHEAD: usize = 4;

/// The streams of one session.
#[derive(Debug)]
pub(super) struct Streams(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    /// Those that are written on, read, or kept.
    all: BTreeMap<u64, Stream>,
    opened: u64,
    readers: u64,
    /// When somebody last cared.
    used: Instant,
    ended: bool,
}

#[derive(Debug, Default)]
struct Stream {
    /// The number of the event that was written last.
    written: u64,
    /// The number of the event that a reader took last.
    taken: u64,
    /// Up to here, something is lost that a client must not miss.
    lost: u64,
    /// Nothing more will be written.
    done: bool,
    reader: Option<Reading>,
    /// Waits for room.
    writer: Option<Waker>,
}

#[derive(Debug)]
struct Reading {
    reader: u64,
    /// The number of the next event it takes.
    at: u64,
    /// Ends after this event.
    until: Option<u64>,
    waker: Option<Waker>,
}

/// What a reader finds.
#[derive(Debug)]
pub(super) enum Read {
    /// An event, and whether it is the last one of the stream.
    Event(Event, bool),
    /// There is nothing more, and will not be.
    Done,
    /// This reader ends; the stream goes on.
    Closed,
    /// The session has ended.
    Over,
}

/// Why a stream cannot be taken up again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotResumed {
    /// No such event was ever sent in this session.
    Unknown,
    /// What came after the event is not kept any more.
    Lost,
    /// The stream has ended, and the client has all of it.
    Complete,
    /// The session has ended.
    Over,
}

impl Streams {
    /// The streams of one more session; `all` counts the bytes of all of them.
    pub(super) fn new(bounds: Bounds, all: Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner {
            store: Store::new(bounds, all),
            all: BTreeMap::from([(STANDALONE, Stream::default())]),
            opened: STANDALONE,
            readers: 0,
            used: Instant::now(),
            ended: false,
        })))
    }

    /// A stream for one more request.
    pub(super) fn open(self: &Arc<Self>) -> (Writer, Reader) {
        let mut inner = self.inner();
        inner.opened += 1;
        let stream = inner.opened;
        inner.all.insert(stream, Stream::default());
        inner.used = Instant::now();
        let reader = inner.attach(stream, 0);
        drop(inner);
        (Writer { streams: Arc::clone(self), stream }, self.reader(stream, 0, reader))
    }

    /// The stream of a GET, from where its last reader left it; `None` while it is read.
    pub(super) fn standalone(self: &Arc<Self>) -> Option<Reader> {
        let mut inner = self.inner();
        let stream = inner.all.get(&STANDALONE).filter(|stream| stream.reader.is_none())?;
        let taken = stream.taken;
        let reader = inner.attach(STANDALONE, taken);
        drop(inner);
        Some(self.reader(STANDALONE, taken, reader))
    }

    /// Takes a stream up again behind this event. Who read it before reads no more.
    pub(super) fn resume(self: &Arc<Self>, last: EventId) -> Result<Reader, NotResumed> {
        let mut inner = self.inner();
        if inner.ended {
            return Err(NotResumed::Over);
        }
        if last.stream > inner.opened {
            return Err(NotResumed::Unknown);
        }
        let stream = inner.all.get(&last.stream).ok_or(NotResumed::Lost)?;
        if last.number > stream.written {
            return Err(NotResumed::Unknown);
        }
        if last.number < stream.lost {
            return Err(NotResumed::Lost);
        }
        if stream.done && inner.store.count(last.stream, last.number + 1) == 0 {
            return Err(NotResumed::Complete);
        }
        let reader = inner.attach(last.stream, last.number);
        drop(inner);
        Ok(self.reader(last.stream, last.number, reader))
    }

    /// A way to write on the stream of the GET.
    pub(super) fn to_standalone(self: &Arc<Self>) -> Writer {
        Writer { streams: Arc::clone(self), stream: STANDALONE }
    }

    /// Somebody uses the session.
    pub(super) fn touch(&self) {
        self.inner().used = Instant::now();
    }

    /// For how long nobody has used the session: no request was under way, and no stream was open.
    pub(super) fn idle(&self) -> Duration {
        let inner = self.inner();
        let busy = inner
            .all
            .iter()
            .any(|(number, stream)| stream.reader.is_some() || (*number != STANDALONE && !stream.done));
        if busy { Duration::ZERO } else { inner.used.elapsed() }
    }

    /// Ends all streams.
    pub(super) fn end(&self) {
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
        // Each change of it leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Lets a new reader go on behind this event of a stream.
    fn attach(&mut self, number: u64, behind: u64) -> u64 {
        self.readers += 1;
        let reader = self.readers;
        if let Some(stream) = self.all.get_mut(&number) {
            stream.wake_reader();
            stream.reader = Some(Reading { reader, at: behind + 1, until: None, waker: None });
        }
        reader
    }

    /// Makes room, and forgets the streams of which nothing is left.
    fn trim(&mut self) {
        let Self { store, all, .. } = self;
        let mut lost = Vec::new();
        let is_awaited = |id: EventId| {
            let reader = all.get(&id.stream).and_then(|stream| stream.reader.as_ref());
            reader.is_some_and(|reader| id.number >= reader.at)
        };
        store.trim(is_awaited, |id, matters| lost.push((id, matters)));
        for (id, matters) in lost {
            let Some(stream) = all.get_mut(&id.stream) else { continue };
            if matters {
                stream.lost = stream.lost.max(id.number);
            }
        }
        all.retain(|number, stream| {
            let over = *number != STANDALONE && stream.done && stream.reader.is_none();
            !over || store.count(*number, 0) > 0
        });
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

/// The end of a stream that is written on. Nothing more is written once it is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    streams: Arc<Streams>,
    stream: u64,
}

impl Writer {
    /// Resolves when more can be written: a reader that is connected and slow is waited for, one that is gone is not.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.streams.inner();
        let Inner { store, all, ended, .. } = &mut *inner;
        let Some(stream) = all.get_mut(&self.stream).filter(|_| !*ended) else { return Poll::Ready(()) };
        match &stream.reader {
            Some(reader) if store.count(self.stream, reader.at) >= AHEAD => {
                stream.writer = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Writes a message; `matters` says whether a client must not miss it.
    pub(super) fn write(&self, message: &[u8], matters: bool) {
        self.put(Some((message, matters)), false);
    }

    /// Writes the last message, if there is one.
    pub(super) fn finish(self, message: Option<&[u8]>) {
        self.put(message.map(|message| (message, true)), true);
    }

    /// Ends the connection of the present reader, behind what has been written.
    pub(super) fn close_reader(&self) {
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
        let Inner { store, all, ended, .. } = &mut *inner;
        let Some(stream) = all.get_mut(&self.stream).filter(|stream| !stream.done && !*ended) else { return };
        stream.done = last;
        if let Some((message, matters)) = message {
            stream.written += 1;
            let id = EventId { stream: self.stream, number: stream.written };
            store.push(id, Event::new(id, message), matters);
        }
        stream.wake_reader();
        if last {
            inner.used = Instant::now();
        }
        inner.trim();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.stream != STANDALONE {
            self.put(None, true);
        }
    }
}

/// The end of a stream that is read: one connection. Another may follow it once it is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    streams: Arc<Streams>,
    /// Where it began.
    behind: EventId,
    reader: u64,
}

impl Reader {
    /// The id by which the stream can be taken up where this reader began.
    pub(super) fn behind(&self) -> EventId {
        self.behind
    }

    /// Whether it reads the stream of a GET.
    pub(super) fn is_standalone(&self) -> bool {
        self.behind.stream == STANDALONE
    }

    /// What comes next.
    pub(super) fn poll_read(&self, cx: &Context<'_>) -> Poll<Read> {
        let mut inner = self.streams.inner();
        let Inner { store, all, ended, .. } = &mut *inner;
        let Some(stream) = all.get_mut(&self.behind.stream).filter(|_| !*ended) else {
            return Poll::Ready(Read::Over);
        };
        let Stream { written, taken, done, reader, .. } = stream;
        let Some(reading) = reader.as_mut().filter(|reading| reading.reader == self.reader) else {
            return Poll::Ready(Read::Closed);
        };
        if reading.until.is_some_and(|until| reading.at > until) {
            return Poll::Ready(Read::Closed);
        }
        if let Some((number, event)) = store.take(self.behind.stream, reading.at) {
            reading.at = number + 1;
            *taken = number.max(*taken);
            let last = *done && number == *written;
            stream.wake_writer();
            inner.trim();
            return Poll::Ready(Read::Event(event, last));
        }
        if *done {
            return Poll::Ready(Read::Done);
        }
        reading.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Keeps nothing of the stream: the client has it whole, or knows no id of it.
    pub(super) fn forget(self) {
        let mut inner = self.streams.inner();
        inner.store.forget(self.behind.stream);
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
        inner.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn streams(events: usize) -> Arc<Streams> {
        Streams::new(Bounds { events, bytes: 1 << 20, all_bytes: 1 << 20 }, Arc::default())
    }

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    /// What a reader finds now, in order: messages, `.` behind the last of the stream, and how it ends.
    fn all(reader: &Reader) -> String {
        let mut found = String::new();
        loop {
            match reader.poll_read(&cx()) {
                Poll::Ready(Read::Event(event, last)) => {
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
            (0, Err(NotResumed::Lost)),
            (1, Ok("bde.")),
            (2, Ok("de.")),
            (3, Ok("de.")),
            (4, Ok("e.")),
            (5, Err(NotResumed::Complete)),
            (6, Err(NotResumed::Unknown)),
            (u64::MAX, Err(NotResumed::Unknown)),
        ] {
            let found = streams.resume(id(1, number)).map(|reader| all(&reader));
            assert_eq!(found, expected.map(str::to_owned), "{number}");
        }
        assert_eq!(streams.resume(id(2, 0)).map(|_| ()), Err(NotResumed::Unknown));
        assert_eq!(streams.resume(id(u64::MAX, 0)).map(|_| ()), Err(NotResumed::Unknown));
        // Another stream needs the room: nothing of the first is left.
        let (other, reader) = streams.open();
        drop(reader);
        for _ in 0..3 {
            other.write(b"x", true);
        }
        assert_eq!(streams.resume(id(1, 4)).map(|_| ()), Err(NotResumed::Lost));
        streams.end();
        assert_eq!(streams.resume(id(2, 3)).map(|_| ()), Err(NotResumed::Over));
    }

    /// What a connected reader has not taken stays, and its writer waits.
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
        assert_eq!(streams.resume(id(1, 5)).map(|_| ()), Err(NotResumed::Lost));
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

    /// Whatever was sent and forgotten, nothing is left of it.
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
