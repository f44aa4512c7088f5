//! A walk over JSON text: from one byte to the next, without a value for each part.
//!
//! A walk, by JSON's grammar (RFC 8259), makes no errors. What is wrong or unusual ends it with `None`, and is left to serde.
//!
//! Long texts that hardly ever need an escape, such as base64, are written with the same search: serde_json looks at each byte of
//! a string by itself. Here the text is searched for a byte that needs an escape in whole blocks. Without such a byte, the text is
//! written between its quotes, as raw JSON.

use crate::MAX_DEPTH;
use serde::{
    Deserialize, Deserializer, Serialize as _, Serializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor, value::BorrowedStrDeserializer},
    forward_to_deserialize_any,
};
use serde_json::{Value, value::RawValue};

/// Returns the members of an object by their names, each value as its text. `None` for anything unusual, such as a name with an
/// escape or a name that the object has twice.
pub(crate) fn walked_members(text: &str) -> Option<Vec<(String, Box<RawValue>)>> {
    let (mut walk, mut members) = (Walk::new(text), Vec::new());
    walk.object(|walk, name| {
        let start = walk.begin()?;
        walk.skip()?;
        members.push((name.to_owned(), walked(walk.since(start)?)?.to_owned()));
        Some(())
    })?;
    walk.end()?;
    Some(members)
}

// Text that was walked, as the `RawValue` of serde_json.
//
// `RawValue` is made by `Deserialize` only, and serde_json would walk the text again for that. A deserializer gives the
// text to `RawValue` in a map of one entry, under a name that `RawValue` itself asks for. The deserializer here does so
// with text that was walked before. If a later `RawValue` expects something else, there is no value, and the message is
// read without this reader; a test of the reader fails then.

type Fault = serde::de::value::Error;

/// Makes a raw value of the text of one JSON value without white space around it.
pub(crate) fn walked(text: &str) -> Option<&RawValue> {
    <&RawValue>::deserialize(Walked(text)).ok()
}

struct Walked<'de>(&'de str);

impl<'de> Deserializer<'de> for Walked<'de> {
    type Error = Fault;

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_map(Entry { name: Some(name), text: self.0 })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(Fault::custom("only for raw values"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A map of one entry.
struct Entry<'de> {
    name: Option<&'static str>,
    text: &'de str,
}

impl<'de> MapAccess<'de> for Entry<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.name.take().map(|name| seed.deserialize(BorrowedStrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        seed.deserialize(BorrowedStrDeserializer::new(self.text))
    }
}

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
struct Names {
    hashes: Vec<u64>,
}

impl Names {
    fn new() -> Self {
        Self { hashes: Vec::with_capacity(32) }
    }

    /// Begins an object; returns its place, which the other two methods take.
    fn open(&self) -> usize {
        self.hashes.len()
    }

    /// Adds a name to the innermost object; `None` if the object has the name already.
    fn add(&mut self, place: usize, name: &str) -> Option<()> {
        let hash = hash(name.as_bytes());
        let before = self.hashes.get(place..)?;
        if before.len() < COMPARED && before.contains(&hash) {
            return None;
        }
        self.hashes.push(hash);
        Some(())
    }

    /// Ends the innermost object; `None` if the object has a name twice.
    fn close(&mut self, place: usize) -> Option<()> {
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

/// Writes the text, with the same result as its own `serialize`.
pub(crate) fn write_text<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    if let Some(text) = text
        && plain(text.as_bytes()) == text.len()
        && let Some(raw) = walked(&quoted(text))
    {
        return raw.serialize(serializer);
    }
    text.serialize(serializer)
}

/// Appends the text as a JSON string, as serde_json writes it.
pub(crate) fn push_text(json: &mut String, text: &str) {
    if plain(text.as_bytes()) == text.len() {
        push_quoted(json, text);
    } else {
        json.push_str(&Value::from(text).to_string());
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_quoted(&mut quoted, text);
    quoted
}

fn push_quoted(json: &mut String, text: &str) {
    json.push('"');
    json.push_str(text);
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Serialize;

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

    #[derive(Serialize)]
    struct Written {
        #[serde(serialize_with = "crate::walk::write_text")]
        text: Option<String>,
    }

    fn is_written_as_usual(text: Option<String>) {
        let usual = serde_json::json!({"text": text});
        let written = Written { text };
        assert_eq!(serde_json::to_string(&written).unwrap(), usual.to_string());
        assert_eq!(serde_json::to_value(&written).unwrap(), usual);
    }

    #[test]
    fn every_character_is_written_as_usual() {
        is_written_as_usual(None);
        is_written_as_usual(Some(String::new()));
        for character in (0..0x3000).filter_map(char::from_u32) {
            for before in [0, 7, 100] {
                is_written_as_usual(Some(format!("{}{character}A", "a".repeat(before))));
            }
        }
    }

    proptest! {
        #[test]
        fn texts_are_written_as_usual(text in "(?s).{0,200}") {
            is_written_as_usual(Some(text));
        }
    }
}
