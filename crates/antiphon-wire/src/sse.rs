//! A decoder of server-sent events, without I/O.

use std::{collections::VecDeque, fmt, time::Duration};

/// The default maximum size of an event, in bytes: 16 MiB.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;
/// The maximum length of an `id`, in bytes. A longer one is ignored, because it must fit into a header.
const MAX_ID: usize = 1024;
/// The maximum `retry`, in milliseconds: one hour. A longer one is reduced to this.
const MAX_RETRY: u64 = 60 * 60 * 1000;

/// A decoder that splits bytes into events.
///
/// Lines end with LF, CR or CRLF. The decoder skips a byte order mark at the start and ignores comments. It stores the last
/// `id` and `retry`, also from events without data. It does not return an event that the end of the stream cuts off.
#[derive(Debug)]
pub struct SseDecoder {
    /// The incomplete line.
    line: Vec<u8>,
    /// The type of the incomplete event.
    event: Vec<u8>,
    data: Vec<u8>,
    ready: VecDeque<Event>,
    /// The last `id:` line. It becomes `last_id` at the end of its event.
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    limit: usize,
    /// True if the last line ended with CR: a following LF belongs to that line end.
    after_cr: bool,
    /// True before the end of the first line, which may begin with a byte order mark.
    first_line: bool,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// An event is too long, and the error was not returned yet.
    Overflowing,
    /// An event is too long, and the error was returned.
    Overflown,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The type of the event. Default: `message`.
    pub kind: String,
    /// The `data` lines, joined by LF.
    pub data: Vec<u8>,
}

/// An error: an event is longer than the limit. The decoder returns no events after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTooLong {
    /// The limit of the decoder, in bytes.
    pub limit: usize,
}

impl fmt::Display for EventTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event is longer than {} bytes", self.limit)
    }
}

impl std::error::Error for EventTooLong {}

impl SseDecoder {
    /// Creates a decoder for events of at most `limit` bytes. The limit applies to each line and to the whole event.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            event: Vec::new(),
            data: Vec::new(),
            ready: VecDeque::new(),
            id: None,
            last_id: None,
            retry: None,
            limit,
            after_cr: false,
            first_line: true,
            state: State::Reading,
        }
    }

    /// Adds bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.state == State::Reading {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + self.data.len() + piece.len() > self.limit {
                (self.line, self.event, self.data) = (Vec::new(), Vec::new(), Vec::new());
                self.state = State::Overflowing;
                return;
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { return };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line();
        }
    }

    /// Returns the next event; `None` if more bytes are needed.
    pub fn next_event(&mut self) -> Option<Result<Event, EventTooLong>> {
        if let Some(event) = self.ready.pop_front() {
            return Some(Ok(event));
        }
        if self.state == State::Overflowing {
            self.state = State::Overflown;
            return Some(Err(EventTooLong { limit: self.limit }));
        }
        None
    }

    /// The id of the last complete event among all pushed bytes, with or without data. A stream can be resumed after this
    /// event.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The last `retry` of the stream: the delay before the stream is opened again. Default: none.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let mut text = &line[..];
        if std::mem::take(&mut self.first_line) {
            text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        }
        if text.is_empty() {
            self.end_event();
        } else {
            let (name, value) = match text.iter().position(|byte| *byte == b':') {
                Some(colon) => (&text[..colon], &text[colon + 1..]),
                None => (text, &b""[..]),
            };
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match name {
                b"data" => {
                    self.data.extend_from_slice(value);
                    self.data.push(b'\n');
                }
                b"event" => self.event = value.to_vec(),
                b"id" if value.len() <= MAX_ID && !value.contains(&0) => {
                    self.id = String::from_utf8(value.to_vec()).ok().or(self.id.take());
                }
                b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                    let told = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                    self.retry = Some(Duration::from_millis(told.unwrap_or(MAX_RETRY).min(MAX_RETRY)));
                }
                // > any line beginning with a colon is a comment that carries no event data; clients must ignore
                // > such lines and must not treat them as malformed input.
                _ => {}
            }
        }
        // The next line reuses the allocation, unless the allocation is very large.
        if line.capacity() <= 64 * 1024 {
            self.line = line;
            self.line.clear();
        }
    }

    fn end_event(&mut self) {
        if let Some(id) = self.id.take() {
            // An empty id resets the last one.
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let kind = std::mem::take(&mut self.event);
        let mut data = std::mem::take(&mut self.data);
        if data.pop().is_none() {
            return;
        }
        let kind =
            if kind.is_empty() { "message".into() } else { String::from_utf8_lossy(&kind).into_owned() };
        self.ready.push_back(Event { kind, data });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events_of(pieces: &[&[u8]], limit: usize) -> Vec<Result<(String, String), EventTooLong>> {
        let mut decoder = SseDecoder::new(limit);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(event) = decoder.next_event() {
                events.push(event.map(|event| (event.kind, String::from_utf8(event.data).unwrap())));
            }
        }
        events
    }

    /// Decodes the input whole, split at every position, and byte by byte.
    fn check(stream: &str, limit: usize, expected: &[Result<(&str, &str), EventTooLong>]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|event| event.map(|(kind, data)| (kind.to_owned(), data.to_owned())))
            .collect();
        let stream = stream.as_bytes();
        for at in 0..=stream.len() {
            assert_eq!(events_of(&[&stream[..at], &stream[at..]], limit), expected, "split at {at}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(events_of(&bytes, limit), expected, "byte by byte");
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_split() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = [
                "\u{FEFF}data: one",
                "",
                ": a comment",
                "",
                "id: 7",
                "retry: 10",
                "event: other",
                "data:two",
                "data:  lines",
                "data",
                "",
                "event: without data",
                "",
                "unknown: field",
                "data: {\"ü\":\u{FEFF}\"世\"}",
                "",
                "data: cut off",
                "",
            ]
            .join(end);
            check(
                &stream,
                100,
                &[
                    Ok(("message", "one")),
                    Ok(("other", "two\n lines\n")),
                    Ok(("message", "{\"ü\":\u{FEFF}\"世\"}")),
                ],
            );
        }
    }

    #[test]
    fn the_examples_of_the_standard() {
        let message = |data| Ok(("message", data));
        check("data: YHOO\ndata: +2\ndata: 10\n\n", 100, &[message("YHOO\n+2\n10")]);
        check(
            ": test\n\ndata: first\nid: 1\n\ndata:second\nid\n\ndata:  third\n",
            100,
            &[message("first"), message("second")],
        );
        check("data\n\ndata\ndata\n\ndata:", 100, &[message(""), message("\n")]);
        check("data:test\n\ndata: test\n\n", 100, &[message("test"), message("test")]);
        check("data: one\r\r\ndata: two\r\n\r\n", 100, &[message("one"), message("two")]);
    }

    #[test]
    fn where_and_when_a_stream_can_be_resumed() {
        for (stream, last_id, retry) in [
            ("data: x\n\n", None, None),
            ("id: 7\nretry: 500\ndata: \n\n", Some("7"), Some(500)),
            ("id: 7\n\n", Some("7"), None),
            ("id: 7\nretry: 10\n", None, Some(10)),
            ("id: 7\n\nid\n\n", None, None),
            ("id: 7\n\nid: a\0b\ndata: x\n\n", Some("7"), None),
            ("id: 7\n\ndata: x\n\n", Some("7"), None),
            ("retry: -1\nretry: 1.5\nretry:\nretry: 1s\n\n", None, None),
            ("retry: 99999999999999999999999\n\n", None, Some(MAX_RETRY)),
        ] {
            let mut decoder = SseDecoder::new(100);
            decoder.push(stream.as_bytes());
            assert_eq!(
                (decoder.last_id(), decoder.retry()),
                (last_id, retry.map(Duration::from_millis)),
                "{stream}"
            );
        }
    }

    #[test]
    fn an_id_that_could_not_be_sent_back_does_not_count() {
        for wrong in [&b"\xFF"[..], b"a\0b", &[b'x'; MAX_ID + 1]] {
            let mut decoder = SseDecoder::new(2 * MAX_ID);
            decoder.push(&[b"id: 7\nid: ", wrong, b"\ndata: x\n\n"].concat());
            assert_eq!(decoder.last_id(), Some("7"), "{wrong:?}");
        }
    }

    #[test]
    fn an_event_that_is_too_long_is_the_last() {
        let too_long = Err(EventTooLong { limit: 20 });
        check(
            "data: ok\n\ndata: 0123456789012345678\n\ndata: never\n\n",
            20,
            &[Ok(("message", "ok")), too_long],
        );
        check("data: 12345\ndata: 12345\ndata: 12345\n\n", 20, &[too_long]);
        check(":123456789012345678901", 20, &[too_long]);
    }

    #[test]
    fn an_event_that_never_ends_takes_no_more_than_the_limit() {
        let mut decoder = SseDecoder::new(100);
        let mut faults = 0;
        for _ in 0..1000 {
            decoder.push(&[b'x'; 64]);
            faults += decoder.next_event().into_iter().filter(Result::is_err).count();
            assert!(decoder.line.len() <= 100 && decoder.ready.is_empty());
        }
        assert_eq!(faults, 1);
    }
}
