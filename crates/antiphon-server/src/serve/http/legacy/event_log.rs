//! The events that the streams of one session have sent, by their ids, stored within limits for a client that reconnects.

use crate::serve::http::options::EventLimits;
use hyper::body::Bytes;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// An event as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    bytes: Bytes,
    /// The index at which the message begins. The message ends before the empty line.
    message: usize,
}

impl Event {
    /// Writes an event with one line of data.
    pub(crate) fn new(id: EventId, message: &[u8]) -> Self {
        let head = format!("id: {id}\ndata: ");
        let mut bytes = Vec::with_capacity(head.len() + message.len() + 2);
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(message);
        bytes.extend_from_slice(b"\n\n");
        Self { bytes: bytes.into(), message: head.len() }
    }

    /// Returns the whole event, for an event stream.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Returns the message alone.
    pub(crate) fn message(&self) -> Bytes {
        self.bytes.slice(self.message..self.bytes.len() - 2)
    }
}

#[derive(Debug)]
struct StoredEvent {
    id: EventId,
    event: Event,
    /// True if a client must not miss the event: it is neither progress nor a log message.
    matters: bool,
    /// True once a connection has taken the event.
    taken: bool,
}

/// The events of one session, the oldest first.
#[derive(Debug)]
pub(crate) struct EventLog {
    kept: VecDeque<StoredEvent>,
    bytes: usize,
    limits: EventLimits,
    /// The bytes of all sessions.
    all: Arc<AtomicUsize>,
}

impl EventLog {
    pub(crate) fn new(limits: EventLimits, all: Arc<AtomicUsize>) -> Self {
        Self { kept: VecDeque::new(), bytes: 0, limits, all }
    }

    pub(crate) fn push(&mut self, id: EventId, event: Event, matters: bool) {
        let length = event.bytes.len();
        self.bytes += length;
        self.all.fetch_add(length, Ordering::Relaxed);
        self.kept.push_back(StoredEvent { id, event, matters, taken: false });
    }

    /// Returns the first event of this stream from this number on, with its number.
    pub(crate) fn take(&mut self, stream: u64, from: u64) -> Option<(u64, Event)> {
        let mut events = self.kept.iter_mut();
        let kept = events.find(|kept| kept.id.stream == stream && kept.id.number >= from)?;
        kept.taken = true;
        Some((kept.id.number, kept.event.clone()))
    }

    /// Returns the number of events of this stream from this number on.
    pub(crate) fn count(&self, stream: u64, from: u64) -> usize {
        self.kept.iter().filter(|kept| kept.id.stream == stream && kept.id.number >= from).count()
    }

    /// Discards events beyond the limits, and reports each with whether it matters. Pinned events are never discarded. The
    /// order is: events that can be missed, events that were taken, the rest; the oldest first.
    pub(crate) fn trim(&mut self, pinned: impl Fn(EventId) -> bool, mut lost: impl FnMut(EventId, bool)) {
        while self.is_over() {
            let free = || self.kept.iter().enumerate().filter(|(_, kept)| !pinned(kept.id));
            let goes = free()
                .find(|(_, kept)| !kept.matters)
                .or_else(|| free().find(|(_, kept)| kept.taken))
                .or_else(|| free().next());
            let Some(kept) = goes.map(|(index, _)| index).and_then(|index| self.kept.remove(index)) else {
                break;
            };
            self.subtract(kept.event.bytes.len());
            lost(kept.id, kept.matters);
        }
    }

    /// Discards all events of a stream.
    pub(crate) fn forget(&mut self, stream: u64) {
        let mut length = 0;
        self.kept.retain(|kept| {
            let stays = kept.id.stream != stream;
            length += if stays { 0 } else { kept.event.bytes.len() };
            stays
        });
        self.subtract(length);
    }

    fn is_over(&self) -> bool {
        let EventLimits { events, bytes, all_bytes } = self.limits;
        self.kept.len() > events || self.bytes > bytes || self.all.load(Ordering::Relaxed) > all_bytes
    }

    fn subtract(&mut self, length: usize) {
        self.bytes -= length;
        self.all.fetch_sub(length, Ordering::Relaxed);
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.subtract(self.bytes);
    }
}

/// The length of the longest id: two numbers of 64 bits and a dash.
const MAX_LENGTH: usize = 41;

/// The id of an event of a session.
///
/// > Event IDs **SHOULD** encode sufficient information to identify the originating stream
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    /// The stream: 0 is that of a GET, the others are those of requests.
    pub(crate) stream: u64,
    /// The number in the stream: 0 is before the first event.
    pub(crate) number: u64,
}

impl EventId {
    /// Reads the value of a `Last-Event-ID` header. `None` for all that [`Display`](fmt::Display) does not write.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= MAX_LENGTH)?;
        let (stream, number) = text.split_once('-')?;
        Some(Self { stream: digits(stream)?, number: digits(number)? })
    }
}

/// Reads a number without a sign and without leading zeros.
fn digits(text: &str) -> Option<u64> {
    let written = text == "0" || text.starts_with(|first: char| matches!(first, '1'..='9'));
    text.parse().ok().filter(|_| written)
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(stream: u64, number: u64) -> EventId {
        EventId { stream, number }
    }

    /// The length of an event with this message.
    fn length(message: &[u8]) -> usize {
        Event::new(id(1, 1), message).bytes.len()
    }

    #[test]
    fn an_event_holds_its_message() {
        let event = Event::new(id(3, 14), br#"{"a":1}"#);
        assert_eq!(event.message(), r#"{"a":1}"#);
        assert_eq!(event.into_bytes(), "id: 3-14\ndata: {\"a\":1}\n\n");
    }

    /// Pushes events `(stream, number, matters, taken)` into a log of these limits, and trims the log with one event pinned.
    fn check(
        events: usize,
        pushed: &[(u64, u64, bool, bool)],
        pinned: EventId,
        expected: &[(EventId, bool)],
    ) {
        let all = Arc::<AtomicUsize>::default();
        let mut log = EventLog::new(EventLimits { events, bytes: 1000, all_bytes: 1000 }, Arc::clone(&all));
        for (stream, number, matters, taken) in pushed {
            log.push(id(*stream, *number), Event::new(id(*stream, *number), b"{}"), *matters);
            if *taken {
                assert_eq!(log.take(*stream, *number).unwrap().0, *number);
            }
        }
        let mut lost = Vec::new();
        log.trim(|event| event == pinned, |event, matters| lost.push((event, matters)));
        assert_eq!(lost, expected, "{pushed:?}");
        drop(log);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_can_be_missed_goes_first_then_what_was_taken_then_the_oldest() {
        let none = id(9, 9);
        let all = [(1, 1, true, false), (1, 2, true, true), (2, 1, false, false), (1, 3, false, true)];
        check(4, &all, none, &[]);
        check(3, &all, none, &[(id(2, 1), false)]);
        check(2, &all, none, &[(id(2, 1), false), (id(1, 3), false)]);
        check(1, &all, none, &[(id(2, 1), false), (id(1, 3), false), (id(1, 2), true)]);
        check(0, &all, none, &[(id(2, 1), false), (id(1, 3), false), (id(1, 2), true), (id(1, 1), true)]);
        check(0, &all, id(2, 1), &[(id(1, 3), false), (id(1, 2), true), (id(1, 1), true)]);
    }

    #[test]
    fn bytes_are_bounded_for_one_session_and_for_all() {
        let one = length(b"{}");
        for (bytes, all_bytes, left) in [
            (3 * one, 100 * one, 3),
            (3 * one - 1, 100 * one, 2),
            (100 * one, 3 * one, 2),
            (100 * one, 0, 0),
            (0, 100 * one, 0),
        ] {
            let (limits, all) =
                (EventLimits { events: 100, bytes, all_bytes }, Arc::<AtomicUsize>::default());
            // Another session holds as much as one event.
            let mut other = EventLog::new(limits, Arc::clone(&all));
            other.push(id(1, 1), Event::new(id(1, 1), b"{}"), true);
            let mut log = EventLog::new(limits, Arc::clone(&all));
            for number in 1..=5 {
                log.push(id(1, number), Event::new(id(1, number), b"{}"), true);
                log.trim(|_| false, |_, _| ());
            }
            assert_eq!(log.count(1, 0), left, "{bytes} {all_bytes}");
            assert_eq!(all.load(Ordering::Relaxed), (left + 1) * one);
            log.forget(1);
            assert_eq!(all.load(Ordering::Relaxed), one);
        }
    }

    #[test]
    fn only_what_is_written_is_read() {
        let most = format!("{0}-{0}", u64::MAX);
        assert_eq!(most.len(), MAX_LENGTH);
        for (text, read) in [
            ("0-0", Some((0, 0))),
            ("12-345", Some((12, 345))),
            (most.as_str(), Some((u64::MAX, u64::MAX))),
            ("18446744073709551616-0", None),
            ("", None),
            ("-", None),
            ("1-", None),
            ("-1", None),
            ("1", None),
            ("1-2-3", None),
            ("01-2", None),
            ("1-02", None),
            ("+1-2", None),
            ("1-+2", None),
            ("1--2", None),
            (" 1-2", None),
            ("1-2 ", None),
            ("1-2\n", None),
            ("\u{661}-2", None),
            ("event-1", None),
        ] {
            let found = EventId::parse(text.as_bytes()).map(|id| (id.stream, id.number));
            assert_eq!(found, read, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_id_comes_back(stream: u64, number: u64) {
            let id = EventId { stream, number };
            prop_assert_eq!(EventId::parse(id.to_string().as_bytes()), Some(id));
        }

        /// No bytes make it fail, and none are read as what is not written so.
        #[test]
        fn any_bytes_are_read_or_not(bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            "[0-9+ -]{0,45}".prop_map(String::into_bytes),
        ]) {
            if let Some(id) = EventId::parse(&bytes) {
                prop_assert_eq!(id.to_string().into_bytes(), bytes);
            }
        }
    }
}
