//! Cursors: positions at which a list continues. A cursor holds all the data, so that any instance can continue, in 40
//! characters for names of any length.

use std::fmt::Write as _;

/// The length of a cursor in hexadecimal digits: a position, the digest of the last item's key, and a checksum.
const LENGTH: usize = 8 + 16 + 16;

/// A position in a list, after the last listed item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The number of items up to this position.
    pub(crate) seen: u32,
    /// The [`digest`] of the last item's key.
    pub(crate) last: u64,
}

impl Cursor {
    /// Returns the text for a client. `list` names the list; the cursor is not valid for another list.
    pub(crate) fn write(self, list: &str) -> String {
        let mut text = String::with_capacity(LENGTH);
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{:08x}{:016x}{:016x}", self.seen, self.last, self.check(list));
        text
    }

    /// Reads a cursor; `None` if the text is not a cursor of this list.
    pub(crate) fn read(text: &str, list: &str) -> Option<Self> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != LENGTH || !digits {
            return None;
        }
        let number = |from: usize, to: usize| u64::from_str_radix(&text[from..to], 16).ok();
        let cursor = Self { seen: u32::try_from(number(0, 8)?).ok()?, last: number(8, 24)? };
        // Zero is before the first item: no cursor has that position.
        (cursor.seen > 0 && number(24, LENGTH)? == cursor.check(list)).then_some(cursor)
    }

    /// Returns a checksum that distinguishes a cursor from other text. It is no secret: a cursor gives access to
    /// nothing that the list does not contain.
    fn check(self, list: &str) -> u64 {
        let place = [&self.seen.to_be_bytes()[..], &self.last.to_be_bytes()[..], list.as_bytes()].concat();
        digest(&place)
    }
}

/// FNV-1a: the same on every machine and in every release, unlike the hashes of the standard library.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_by_its_own_list_alone() {
        for (seen, key) in [(1, ""), (7, "name"), (u32::MAX, "a://\u{1f600}")] {
            let cursor = Cursor { seen, last: digest(key.as_bytes()) };
            let text = cursor.write("server tools");
            assert_eq!((text.len(), Cursor::read(&text, "server tools")), (LENGTH, Some(cursor)));
            for other in ["server prompts", "other tools", ""] {
                assert_eq!(Cursor::read(&text, other), None);
            }
            // A change of any digit is detected.
            for at in 0..LENGTH {
                let other = if &text[at..=at] == "0" { "1" } else { "0" };
                let bent = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                assert_eq!(Cursor::read(&bent, "server tools"), None, "{bent}");
            }
            for bent in
                [text.to_uppercase(), format!("{text}0"), text[1..].to_owned(), format!("+{}", &text[1..])]
            {
                assert_eq!(Cursor::read(&bent, "server tools"), None, "{bent}");
            }
        }
        for text in ["", "2", "ä", &"0".repeat(LENGTH), &"é".repeat(LENGTH / 2)] {
            assert_eq!(Cursor::read(text, "server tools"), None, "{text}");
        }
        let before_all = Cursor { seen: 0, last: 0 };
        assert_eq!(Cursor::read(&before_all.write("x"), "x"), None);
    }

    /// Other instances may run another release: the meaning of a cursor must not change.
    #[test]
    fn a_cursor_of_today_is_one_tomorrow() {
        let cursor = Cursor { seen: 2, last: digest(b"b") };
        assert_eq!(cursor.write("server tools"), "00000002af63df4c8601f1a57b1318d985f4bc41");
    }
}
