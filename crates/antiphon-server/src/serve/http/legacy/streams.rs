//! The event streams of one session: who writes on each, who reads, and where a reader goes on.
//!
//! One request, one stream; stream 0 is that of the GET. What is written is kept in the [`EventLog`], from which the one
//! reader of a stream takes it: a connection, that may break off and be followed by another.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

use crate::serve::http::legacy::{
    event_id::EventId,
    event_log::{Event, EventLimits, EventLog},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
    task::Waker,
};
use tokio::time::{Duration, Instant};

/// The stream that a GET opens.
pub(crate) const STANDALONE: u64 = 0;

/// How many events may wait for a reader that is connected. What is sent meanwhile waits where it is told.
const AHEAD: usize = 4;

/// The streams of one session.
#[derive(Debug)]
pub(crate) struct SessionStreams(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    log: EventLog,
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
    reader: Option<AttachedReader>,
    /// Waits for room.
    writer: Option<Waker>,
}

#[derive(Debug)]
struct AttachedReader {
    reader: u64,
    /// The number of the next event it takes.
    at: u64,
    /// Ends after this event.
    until: Option<u64>,
    waker: Option<Waker>,
}

/// What a reader finds.
#[derive(Debug)]
pub(crate) enum StreamItem {
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
pub(crate) enum ResumeError {
    /// No such event was ever sent in this session.
    Unknown,
    /// What came after the event is not kept any more.
    Lost,
    /// The stream has ended, and the client has all of it.
    Complete,
    /// The session has ended.
    Over,
}

impl SessionStreams {
    /// The streams of one more session; `all` counts the bytes of all of them.
    pub(crate) fn new(limits: EventLimits, all: Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner {
            log: EventLog::new(limits, all),
            all: BTreeMap::from([(STANDALONE, Stream::default())]),
            opened: STANDALONE,
            readers: 0,
            used: Instant::now(),
            ended: false,
        })))
    }

    /// A stream for one more request.
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

    /// The stream of a GET, from where its last reader left it; `None` while it is read.
    pub(crate) fn standalone(self: &Arc<Self>) -> Option<Reader> {
        let mut inner = self.inner();
        let stream = inner.all.get(&STANDALONE).filter(|stream| stream.reader.is_none())?;
        let taken = stream.taken;
        let reader = inner.attach(STANDALONE, taken);
        drop(inner);
        Some(self.reader(STANDALONE, taken, reader))
    }

    /// Takes a stream up again behind this event. Who read it before reads no more.
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

    /// A way to write on the stream of the GET.
    pub(crate) fn to_standalone(self: &Arc<Self>) -> Writer {
        Writer { streams: Arc::clone(self), stream: STANDALONE }
    }

    /// Somebody uses the session.
    pub(crate) fn touch(&self) {
        self.inner().used = Instant::now();
    }

    /// For how long nobody has used the session: no request was under way, and no stream was open.
    pub(crate) fn idle(&self) -> Duration {
        let inner = self.inner();
        let busy = inner
            .all
            .iter()
            .any(|(number, stream)| stream.reader.is_some() || (*number != STANDALONE && !stream.done));
        if busy { Duration::ZERO } else { inner.used.elapsed() }
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
            stream.reader = Some(AttachedReader { reader, at: behind + 1, until: None, waker: None });
        }
        reader
    }

    /// Makes room, and forgets the streams of which nothing is left; `touched` may be one of them.
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
