//! The event streams of one session, each with a writer and a reader.
//!
//! Each request has a stream; stream 0 is that of the GET. The events of a stream are stored in the [`EventLog`], and its one
//! reader takes them from there. The reader is a connection, and after it breaks another may follow.

mod ends;
#[cfg(test)]
mod tests;

pub(crate) use ends::{Reader, Writer};

use crate::serve::http::{
    legacy::event_log::{Event, EventId, EventLog},
    options::EventLimits,
};
use antiphon_wire::lock::Lock;
use std::{
    collections::BTreeMap,
    sync::{Arc, MutexGuard, atomic::AtomicUsize},
    task::Waker,
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
