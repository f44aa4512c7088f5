//! Halves of surrogate pairs.

use crate::MAX_DEPTH;
use std::borrow::Cow;

/// The members whose strings go back to the peer, or name something. They are never changed.
const IDENTIFIERS: [&[u8]; 20] = [
    b"$anchor",
    b"$id",
    b"$ref",
    b"const",
    b"cursor",
    b"elicitationId",
    b"enum",
    b"id",
    b"method",
    b"name",
    b"nextCursor",
    b"progressToken",
    b"requestId",
    b"requestState",
    b"required",
    b"taskId",
    b"toolUseId",
    b"uri",
    b"uriTemplate",
    b"url",
];

/// The part of a message that a member is in. It decides which strings are never changed.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Protocol,
    /// A schema. No name inside begins another part: properties may have any name.
    Schema,
    /// Content of a result and the server's identity: a name is for people only.
    Content,
    /// `_meta`, which has progress tokens and the identifiers of tasks.
    Meta,
    /// The `data` of an error, which may have URLs to open, or of a log message.
    Data,
    /// `structuredContent`, which is the author's own.
    Free,
}

impl Part {
    /// Returns the part that the value of this member is in.
    fn inside(self, name: &[u8]) -> Self {
        match (self, name) {
            (Self::Schema | Self::Free, _) => self,
            (_, b"structuredContent") => Self::Free,
            (_, b"_meta") => Self::Meta,
            (Self::Meta | Self::Data, _) => self,
            (_, b"inputSchema" | b"outputSchema" | b"requestedSchema") => Self::Schema,
            (_, b"data") => Self::Data,
            (_, b"content" | b"contents" | b"messages" | b"serverInfo") => Self::Content,
            _ => self,
        }
    }

    /// Returns `true` if the strings of this member go back to the peer, or name something.
    fn identifies(self, name: &[u8]) -> bool {
        match self {
            Self::Protocol | Self::Schema => IDENTIFIERS.contains(&name),
            Self::Content => IDENTIFIERS.contains(&name) && name != b"name",
            Self::Meta => matches!(name, b"progressToken" | b"taskId"),
            Self::Data => matches!(name, b"elicitationId" | b"requestState" | b"url"),
            Self::Free => false,
        }
    }

    /// Returns `true` if the names of members are the author's own.
    fn has_free_names(self) -> bool {
        matches!(self, Self::Meta | Self::Data | Self::Free)
    }
}

/// The number of bytes that are searched at once.
const CHUNK: usize = 512;

/// Returns the message with U+FFFD in the place of each escape that is half of a surrogate pair, as JavaScript's
/// `JSON.stringify` writes a text that was cut in the middle of such a pair. Names of members, and the values of members such as
/// `name`, `uri`, `requestState` and `enum`, stay as they are: serde refuses them. In `structuredContent`, in `_meta` and in the
/// `data` of an error, names are the author's own, and are texts.
///
/// A message without such an escape is returned unchanged, after one search.
pub fn repaired(message: &[u8]) -> Cow<'_, [u8]> {
    match next_half(message, 0, message.len()) {
        Some(_) => repair(message).map_or(Cow::Borrowed(message), Cow::Owned),
        None => Cow::Borrowed(message),
    }
}

/// Returns JSON text with U+FFFD in the place of each such escape, also in names and identifiers: for a reader that sends nothing of
/// it back.
pub(crate) fn all_replaced(text: &str) -> Vec<u8> {
    let mut replaced = text.as_bytes().to_vec();
    replace_halves(&mut replaced, 0, text.len());
    replaced
}

/// Returns `true` if JSON text has such an escape.
pub(crate) fn has_half(text: &str) -> bool {
    next_half(text.as_bytes(), 0, text.len()).is_some()
}

/// An open array or object.
#[derive(Clone, Copy)]
struct Open {
    is_object: bool,
    /// `true` if the strings of an array are identifiers.
    identifies: bool,
    part: Part,
}

/// Returns `None` for a message that nests too deeply to be read.
fn repair(message: &[u8]) -> Option<Vec<u8>> {
    let mut repaired = message.to_vec();
    let mut open: Vec<Open> = Vec::new();
    // The member that is read: whether its strings are identifiers, and the part that its value is in.
    let (mut awaits_name, mut identifies, mut value_part) = (false, false, None);
    let mut at = 0;
    while let Some(byte) = message.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(message, at);
                let text = message.get(at + 1..end).unwrap_or_default();
                let part = open.last().map_or(Part::Protocol, |object| object.part);
                if awaits_name {
                    let name = unescaped(text);
                    identifies = part.identifies(&name);
                    value_part = Some(part.inside(&name));
                }
                let is_text = if awaits_name { part.has_free_names() } else { !identifies };
                if is_text {
                    replace_halves(&mut repaired, at + 1, end);
                }
                at = end;
            }
            b'{' | b'[' => {
                // A batch is an array around its messages.
                if open.len() > MAX_DEPTH {
                    return None;
                }
                let is_object = *byte == b'{';
                let around = open.last().map_or(Part::Protocol, |object| object.part);
                let part = value_part.take().unwrap_or(around);
                identifies = identifies && !is_object;
                open.push(Open { is_object, identifies, part });
                awaits_name = is_object;
            }
            b'}' | b']' => {
                open.pop();
            }
            b':' => awaits_name = false,
            b',' => {
                let around = open.last();
                awaits_name = around.is_some_and(|object| object.is_object);
                identifies = around.is_some_and(|object| object.identifies);
                value_part = None;
            }
            _ => {}
        }
        at += 1;
    }
    Some(repaired)
}

/// Returns the place of the quote that ends the string that begins at `start`.
fn end_of_string(message: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = message.get(at) {
        match byte {
            b'"' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at.min(message.len())
}

/// Returns the name of a member without its escapes.
fn unescaped(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.contains(&b'\\') {
        return Cow::Borrowed(name);
    }
    let quoted = [b"\"", name, b"\""].concat();
    serde_json::from_slice::<String>(&quoted)
        .map_or(Cow::Borrowed(name), |name| Cow::Owned(name.into_bytes()))
}

fn replace_halves(message: &mut [u8], mut start: usize, end: usize) {
    while let Some(half) = next_half(message, start, end) {
        if let Some(escape) = message.get_mut(half..half + 6) {
            escape.copy_from_slice(b"\\ufffd");
        }
        start = half + 6;
    }
}

/// Returns the place of the first escape that is half of a surrogate pair. `start` is not inside of an escape.
fn next_half(message: &[u8], start: usize, end: usize) -> Option<usize> {
    let text = message.get(..end)?;
    let mut at = start;
    while at < end {
        // A beginning may be in two chunks.
        let (chunk_end, searched) = (at + CHUNK, end.min(at + CHUNK + BEGINNING - 1));
        if text.get(at..searched).is_some_and(has_beginning) {
            while let Some(offset) = text.get(at..searched).and_then(first_beginning) {
                at += offset;
                match surrogate(text, at) {
                    Some(0xD800..=0xDBFF) if matches!(surrogate(text, at + 6), Some(0xDC00..=0xDFFF)) => {
                        at += 12
                    }
                    Some(_) => return Some(at),
                    None => at += 2,
                }
            }
        }
        at = at.max(chunk_end);
    }
    None
}

/// The length of the beginning of an escape that may be a surrogate, in bytes.
const BEGINNING: usize = 4;

/// Returns `true` if the text has such a beginning. The loop has no branches, so the compiler uses vector instructions.
fn has_beginning(text: &[u8]) -> bool {
    let of_two = text.iter().zip(text.iter().skip(1));
    let of_four = of_two.zip(text.iter().skip(2).zip(text.iter().skip(3)));
    of_four.fold(false, |found, ((a, b), (c, d))| found | is_beginning(*a, *b, *c, *d))
}

fn first_beginning(text: &[u8]) -> Option<usize> {
    text.windows(BEGINNING).position(|four| matches!(four, [a, b, c, d] if is_beginning(*a, *b, *c, *d)))
}

fn is_beginning(a: u8, b: u8, c: u8, d: u8) -> bool {
    // The hexadecimal digits from 8 have the codes from 8.
    (a == b'\\') & (b == b'u') & ((c | 0x20) == b'd') & (d >= b'8')
}

/// Returns the surrogate that is escaped here.
fn surrogate(text: &[u8], at: usize) -> Option<u16> {
    let escape = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    if !matches!(escape, [b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', _, _]) {
        return None;
    }
    // After an odd number of backslashes, this one is no beginning of an escape. Runs of backslashes are counted once each.
    let before = text.get(..at)?.iter().rev().take_while(|byte| **byte == b'\\').count();
    if before % 2 == 1 {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
}
