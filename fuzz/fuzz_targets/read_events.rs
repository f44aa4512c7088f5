//! Any bytes decode as events, for any split into chunks, as a second decoder confirms that reads the whole stream.

#![no_main]

use antiphon_wire::sse::{Event, EventTooLong, SseDecoder};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

/// The state of the second decoder at the end of a stream.
#[derive(Debug, Default, PartialEq)]
struct DecodedEvents {
    events: Vec<Result<Event, EventTooLong>>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (limit, piece, stream) = input;
    let limit = usize::from(limit);
    let whole = decode([stream], limit);
    assert_eq!(decode(stream.chunks(usize::from(piece).max(1)), limit), whole);
    assert_eq!(second_opinion(stream, limit), whole);
    assert!(whole.events.iter().flatten().all(|event| event.data.len() <= limit));
});

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> DecodedEvents {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    DecodedEvents { events, last_id: decoder.last_id().map(str::to_owned), retry: decoder.retry() }
}

/// The algorithm of the HTML standard (section 9.2.6), with the documented limits of this decoder.
fn second_opinion(stream: &[u8], limit: usize) -> DecodedEvents {
    let mut decoded = DecodedEvents::default();
    let (mut kind, mut data, mut id) = (Vec::new(), Vec::new(), None);
    let mut rest = stream;
    let mut is_first = true;
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let line = &rest[..end.unwrap_or(rest.len())];
        if line.len() + data.len() > limit {
            decoded.events.push(Err(EventTooLong { limit }));
            return decoded;
        }
        let Some(end) = end else { return decoded };
        rest = &rest[end + if rest[end..].starts_with(b"\r\n") { 2 } else { 1 }..];
        let line = if is_first { line.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(line) } else { line };
        is_first = false;
        if line.is_empty() {
            if let Some(id) = id.take() {
                decoded.last_id = Some(id).filter(|id: &String| !id.is_empty());
            }
            let kind = Some(std::mem::take(&mut kind)).filter(|kind| !kind.is_empty());
            let kind = kind.map_or("message".into(), |kind| String::from_utf8_lossy(&kind).into_owned());
            let mut data: Vec<u8> = std::mem::take(&mut data);
            if data.pop().is_some() {
                decoded.events.push(Ok(Event { kind, data }));
            }
            continue;
        }
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = std::str::from_utf8(value).ok();
        match (name, text) {
            (b"event", _) => kind = value.to_vec(),
            (b"data", _) => data = [&data, value, b"\n"].concat(),
            // An id that is not a valid header value is ignored.
            (b"id", Some(text)) if !text.contains('\0') && text.len() <= 1024 => id = Some(text.to_owned()),
            (b"retry", Some(text)) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                let hour = Duration::from_secs(60 * 60);
                let retry = text.parse().map_or(hour, Duration::from_millis);
                decoded.retry = Some(retry.min(hour));
            }
            _ => {}
        }
    }
}
