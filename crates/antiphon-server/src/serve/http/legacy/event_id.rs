//! The ids of events: `<stream>-<number>`, unique within a session.

use std::fmt;

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
