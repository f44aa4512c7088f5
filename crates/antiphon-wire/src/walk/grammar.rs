//! The walk: JSON's grammar (RFC 8259), from one byte to the next.
//!
//! `None` ends the walk: the text is wrong, or unusual.

use crate::MAX_DEPTH;

/// A position in a text. Everything before it is valid JSON.
pub(crate) struct Walk<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    names: Names,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, names: Names::new() }
    }

    /// Moves to the next byte that is not white space, and returns it.
    pub(crate) fn token(&mut self) -> Option<u8> {
        loop {
            match self.peek()? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Moves to the next value, and returns where it begins.
    pub(crate) fn begin(&mut self) -> Option<usize> {
        self.token().map(|_| self.at)
    }

    /// The text from there to here.
    pub(crate) fn since(&self, start: usize) -> Option<&'a str> {
        self.text.get(start..self.at)
    }

    /// Walks to the end of the text, where there is nothing more.
    pub(crate) fn end(&mut self) -> Option<()> {
        self.token().is_none().then_some(())
    }

    /// Walks over an object. `member` walks over the value of each member, and gets its name.
    pub(crate) fn object(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        self.open()?;
        let place = self.names.open();
        if self.token()? == b'}' {
            self.at += 1;
        } else {
            loop {
                let name = self.plain_string()?;
                self.names.add(place, name)?;
                self.take(b':')?;
                member(self, name)?;
                if self.is_last(b'}')? {
                    break;
                }
            }
        }
        self.names.close(place)?;
        self.depth -= 1;
        Some(())
    }

    /// Walks over an object of which nothing is wanted.
    pub(crate) fn skip_object(&mut self) -> Option<()> {
        self.object(|walk, _| walk.skip())
    }

    /// Walks over any value.
    pub(crate) fn skip(&mut self) -> Option<()> {
        match self.token()? {
            b'"' => self.string().map(drop),
            b'{' => self.skip_object(),
            b'[' => self.array(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number().map(drop),
        }
    }

    /// Walks over a string without escapes, and returns what is between its quotes.
    pub(crate) fn plain_string(&mut self) -> Option<&'a str> {
        if self.token()? != b'"' {
            return None;
        }
        match self.string()? {
            (text, false) => Some(text),
            (_, true) => None,
        }
    }

    fn array(&mut self) -> Option<()> {
        self.take(b'[')?;
        self.open()?;
        if self.token()? == b']' {
            self.at += 1;
        } else {
            loop {
                self.skip()?;
                if self.is_last(b']')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Some(())
    }

    fn open(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= MAX_DEPTH).then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += word.len();
        rest.starts_with(word.as_bytes()).then_some(())
    }

    /// Walks over the string whose quote is the next byte. Returns what is between its quotes, and whether it has escapes.
    fn string(&mut self) -> Option<(&'a str, bool)> {
        self.at += 1;
        let (start, mut has_escapes) = (self.at, false);
        loop {
            self.at += plain(self.text.as_bytes().get(self.at..)?);
            match self.peek()? {
                b'"' => {
                    let inside = self.since(start)?;
                    self.at += 1;
                    return Some((inside, has_escapes));
                }
                b'\\' => {
                    self.escape()?;
                    has_escapes = true;
                }
                _ => return None,
            }
        }
    }

    /// Walks over an escape. Half of a surrogate pair passes, as in any text that is not decoded.
    fn escape(&mut self) -> Option<()> {
        self.at += match self.text.as_bytes().get(self.at + 1..)? {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [b'u', a, b, c, d, ..] if [a, b, c, d].into_iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        Some(())
    }

    /// Walks over the number that begins with the next byte, and returns its text.
    pub(crate) fn number(&mut self) -> Option<&'a str> {
        let start = self.at;
        if self.peek()? == b'-' {
            self.at += 1;
        }
        let first = self.peek()?;
        let whole = self.digits()?;
        if first == b'0' && whole > 1 {
            return None;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        self.since(start)
    }

    /// Walks over one digit or more, and returns how many.
    fn digits(&mut self) -> Option<usize> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }

    /// Takes this byte.
    fn take(&mut self, byte: u8) -> Option<()> {
        let is_there = self.token()? == byte;
        self.at += 1;
        is_there.then_some(())
    }

    /// Takes what follows a member or an element: a comma, or the bracket that ends them, for which it returns `true`.
    fn is_last(&mut self, close: u8) -> Option<bool> {
        let token = self.token()?;
        self.at += 1;
        match token {
            b',' => Some(false),
            _ if token == close => Some(true),
            _ => None,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Returns how many bytes come before the first that means something in a string: a quote, a backslash, or a control
/// character, which must not be there.
pub(crate) fn plain(bytes: &[u8]) -> usize {
    const SHORT: usize = 32;
    let Some((head, rest)) = bytes.split_first_chunk::<SHORT>() else { return plain_words(bytes) };
    match plain_words(head) {
        SHORT => {}
        found => return found,
    }
    // A long string: whole blocks, which the compiler compares with vector instructions.
    let (blocks, _) = rest.as_chunks::<64>();
    let is_plain = |block: &&[u8; 64]| !block.iter().fold(false, |found, byte| found | is_special(*byte));
    let skipped = blocks.iter().take_while(is_plain).count() * 64;
    SHORT + skipped + plain_words(rest.get(skipped..).unwrap_or_default())
}

/// Does the same as [`plain`], eight bytes at a time.
fn plain_words(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    /// A high bit in the lowest byte that is zero; what is above it may be wrong.
    fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGHS
    }
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The same for the lowest byte that is below 32.
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let found = zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5C)) | controls;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let found = rest.iter().position(|byte| is_special(*byte));
    words.len() * 8 + found.unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The number of members up to which a new name is compared with all before it. The names of a larger object are sorted
/// at its end.
const COMPARED: usize = 32;

/// The hashes of the names of all open objects, innermost last.
///
/// Different hashes are different names. Equal hashes count as one name twice: if the names differ after all, the message is
/// only read more slowly. A peer who searches for collisions gains nothing else, so the hash has no key.
pub(super) struct Names {
    hashes: Vec<u64>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { hashes: Vec::with_capacity(32) }
    }

    /// Begins an object; returns its place, which the other two methods take.
    pub(super) fn open(&self) -> usize {
        self.hashes.len()
    }

    /// Adds a name to the innermost object; `None` if the object has the name already.
    pub(super) fn add(&mut self, place: usize, name: &str) -> Option<()> {
        let hash = hash(name.as_bytes());
        let before = self.hashes.get(place..)?;
        if before.len() < COMPARED && before.contains(&hash) {
            return None;
        }
        self.hashes.push(hash);
        Some(())
    }

    /// Ends the innermost object; `None` if the object has a name twice.
    pub(super) fn close(&mut self, place: usize) -> Option<()> {
        let all = self.hashes.get_mut(place..)?;
        if all.len() > COMPARED {
            all.sort_unstable();
            if all.windows(2).any(|pair| pair[0] == pair[1]) {
                return None;
            }
        }
        self.hashes.truncate(place);
        Some(())
    }
}

/// Returns the same number for the same name, and nearly always another for another.
fn hash(name: &[u8]) -> u64 {
    // Odd and without a pattern: the first digits of the golden ratio and of the square root of 2.
    const ONE: u64 = 0x9E37_79B9_7F4A_7C15;
    const TWO: u64 = 0x6A09_E667_F3BC_C909;
    let word = if let Some(last) = name.last_chunk::<8>() {
        let (words, _) = name.as_chunks::<8>();
        let all = words.iter().fold(ONE, |hash, word| mix(hash ^ u64::from_le_bytes(*word), TWO));
        all ^ u64::from_le_bytes(*last)
    } else if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
    } else {
        name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    mix(word ^ ONE, name.len() as u64 ^ TWO)
}

/// Returns both halves of the product, combined.
fn mix(one: u64, two: u64) -> u64 {
    let product = u128::from(one) * u128::from(two);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_special_byte_is_found_wherever_it_is() {
        for length in (0..140).chain([1000]) {
            let text = vec![b'~'; length];
            assert_eq!(plain(&text), length);
            for place in 0..length {
                for special in [b'"', b'\\', 0, 0x1F, b'\n'] {
                    let mut text = text.clone();
                    text[place] = special;
                    // What follows does not count.
                    text[place + 1..].fill(b'"');
                    assert_eq!(plain(&text), place, "{special} at {place} of {length}");
                }
            }
        }
        // Bytes that are near to special ones, and the halves of characters.
        for byte in (0..=255).filter(|byte| !is_special(*byte)) {
            for place in 0..100 {
                let mut text = vec![byte; 100];
                text[place] = b'"';
                assert_eq!(plain(&text), place, "{byte} before a quote at {place}");
            }
        }
    }

    /// Adds the names to one object. Returns whether each of them was new.
    fn are_new(names: &[String]) -> bool {
        let mut all = Names::new();
        let place = all.open();
        names.iter().all(|name| all.add(place, name).is_some()) && all.close(place).is_some()
    }

    #[test]
    fn a_name_is_found_twice_wherever_it_is() {
        for count in [1, 2, 31, 32, 33, 34, 1000] {
            let names: Vec<String> = (0..count).map(|number| format!("name{number}")).collect();
            assert!(are_new(&names), "{count}");
            for twice in [0, count / 2, count - 1] {
                let mut names = names.clone();
                names.push(names[twice].clone());
                assert!(!are_new(&names), "{twice} of {count}");
            }
        }
    }

    #[test]
    fn names_that_are_nearly_alike_are_different() {
        let mut names = vec![String::new()];
        for length in 1..40 {
            names.push("a".repeat(length));
            names.push("\0".repeat(length));
            for place in 0..length {
                let mut name = "a".repeat(length).into_bytes();
                name[place] = b'b';
                names.push(String::from_utf8(name).unwrap());
            }
        }
        assert!(are_new(&names));
    }

    #[test]
    fn objects_have_names_of_their_own() {
        let mut names = Names::new();
        let outer = names.open();
        names.add(outer, "a").unwrap();
        let inner = names.open();
        assert!(names.add(inner, "a").is_some());
        names.close(inner).unwrap();
        assert!(names.add(outer, "a").is_none());
    }
}
