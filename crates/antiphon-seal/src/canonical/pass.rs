//! One pass over a JSON text: the position in the text, and the canonical form written so far; its strings: unescaping, and comparison
//! of names without unescaping them first; and its numbers: the exact decimal value as sign, digits without outer zeros, and exponent.

use std::{cmp::Ordering, fmt, io::Write as _, ops::Range};

/// The state of a pass. Numbers and strings add a method each, next to the rules of their form.
pub(super) struct Pass<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
    /// The canonical form so far; `None` if the pass only checks.
    pub(super) out: Option<Vec<u8>>,
}

impl<'t> Pass<'t> {
    pub(super) fn new(text: &'t str, out: Option<Vec<u8>>) -> Self {
        Self { text: text.as_bytes(), at: 0, out }
    }

    /// Takes `null`, `true` or `false`, and writes its tag.
    pub(super) fn word(&mut self, word: &[u8], tag: u8) -> Result<(), TextFault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(TextFault::Malformed);
        }
        self.at += word.len();
        self.write(&[tag]);
        Ok(())
    }

    /// Takes a comma (`false`) or the closing bracket (`true`).
    pub(super) fn separator(&mut self, close: u8) -> Result<bool, TextFault> {
        let token = self.token();
        self.at += 1;
        match token {
            Some(b',') => Ok(false),
            Some(byte) if byte == close => Ok(true),
            _ => Err(TextFault::Malformed),
        }
    }

    /// Returns the next byte that is not white space, and does not take it.
    pub(super) fn token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn written(&self) -> usize {
        self.out.as_ref().map_or(0, Vec::len)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if let Some(out) = &mut self.out {
            out.extend_from_slice(bytes);
        }
    }

    /// Writes a tag and leaves room for a length; [`finish`](Self::finish) writes the length.
    pub(super) fn begin(&mut self, tag: u8) -> usize {
        self.write(&[tag]);
        let length = self.written();
        self.write(&[0; 8]);
        length
    }

    /// Writes the length behind the tag.
    pub(super) fn finish(&mut self, length: usize, value: usize) {
        if let Some(out) = &mut self.out {
            out[length..length + 8].copy_from_slice(&(value as u64).to_be_bytes());
        }
    }

    /// Does the same as [`finish`](Self::finish), with the number of bytes written since
    /// [`begin`](Self::begin).
    pub(super) fn finish_bytes(&mut self, length: usize) {
        self.finish(length, self.written().saturating_sub(length + 8));
    }
}

/// The maximum number of arrays and objects that may be open at once.
///
/// Deeper text is rejected and not walked, so that the walk's own recursion is bounded.
pub const MAX_DEPTH: usize = 128;

/// The reason that a JSON text has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextFault {
    /// An object names one member twice, after unescaping: two decoders could read two different values.
    ///
    /// Holds the name, cut after 64 characters; it comes from the peer, so print it escaped.
    DuplicateName(String),
    /// More than [`MAX_DEPTH`] arrays and objects are open at once.
    TooDeep,
    /// The text is not JSON.
    Malformed,
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateName(name) => write!(f, "duplicate member name {name:?}"),
            Self::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels"),
            Self::Malformed => f.write_str("not well-formed JSON"),
        }
    }
}

impl std::error::Error for TextFault {}

impl Pass<'_> {
    /// Takes the string whose opening quote is the next byte.
    ///
    /// Returns the range of its raw text, without the quotes, and `true` if the text holds an escape.
    pub(super) fn string(&mut self) -> Result<((usize, usize), bool), TextFault> {
        self.at += 1;
        let start = self.at;
        let escaped = self.raw_string()?;
        let raw = (start, self.at);
        self.at += 1;

        let length = self.begin(b's');
        if let Some(out) = &mut self.out {
            let text = &self.text[raw.0..raw.1];
            if escaped {
                CodePoints(text).for_each(|point| push_code_point(out, point));
            } else {
                out.extend_from_slice(text);
            }
        }
        self.finish_bytes(length);
        Ok((raw, escaped))
    }

    /// Moves to the closing quote; returns `true` if it passed an escape.
    fn raw_string(&mut self) -> Result<bool, TextFault> {
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => return Ok(escaped),
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0x20..) => {
                    let rest = &self.text[self.at..];
                    self.at += plain(rest);
                }
                Some(_) | None => return Err(TextFault::Malformed),
            }
        }
    }

    fn escape(&mut self) -> Result<(), TextFault> {
        let rest = &self.text[self.at + 1..];
        self.at += match rest {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [b'u', digits @ ..] if hex4(digits).is_some() => 6,
            _ => return Err(TextFault::Malformed),
        };
        Ok(())
    }
}

/// Returns how many bytes come before the first quote, backslash or control character.
fn plain(bytes: &[u8]) -> usize {
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
    let short = bytes.iter().take(32).take_while(|byte| !is_special(byte)).count();
    if short < 32 {
        return short;
    }
    // A long string: whole blocks, which the compiler compares with vector instructions.
    let (blocks, _) = bytes[short..].as_chunks::<64>();
    let is_plain = |block: &&[u8; 64]| !block.iter().fold(false, |found, byte| found | is_special(byte));
    let plain = short + blocks.iter().take_while(is_plain).count() * 64;
    plain + bytes[plain..].iter().take_while(|byte| !is_special(byte)).count()
}

/// Orders two raw names by their code points.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    CodePoints(a).cmp(CodePoints(b))
}

/// Returns the first 64 characters of a raw name, for a message.
pub(super) fn lossy(raw: &[u8]) -> String {
    CodePoints(raw)
        .take(64)
        .map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// The code points of a string's raw text that has been walked before; a surrogate escape without its other
/// half stands for itself.
struct CodePoints<'t>(&'t [u8]);

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (point, taken) = match self.0 {
            [] => return None,
            [b'\\', b'u', rest @ ..] => unicode_escape(rest),
            [b'\\', letter, ..] => (unescaped(*letter), 2),
            rest => literal(rest),
        };
        self.0 = self.0.get(taken..).unwrap_or_default();
        Some(point)
    }
}

/// Returns the code point of `XXXX` or `XXXX\uXXXX` behind a `\u`, and the length of the whole escape.
fn unicode_escape(rest: &[u8]) -> (u32, usize) {
    let first = hex4(rest).unwrap_or_default();
    if let (0xD800..=0xDBFF, Some([b'\\', b'u', second @ ..])) = (first, rest.get(4..))
        && let Some(second @ 0xDC00..=0xDFFF) = hex4(second)
    {
        return (0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00), 12);
    }
    (first, 6)
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.get(..4)?.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
}

fn unescaped(letter: u8) -> u32 {
    u32::from(match letter {
        b'b' => 0x08,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other => other,
    })
}

/// Returns the code point at the start of UTF-8 text, and its length in bytes.
fn literal(text: &[u8]) -> (u32, usize) {
    let lead = text[0];
    let (bits, length) = match lead {
        0x00..=0x7F => (lead, 1),
        0x80..=0xDF => (lead & 0x1F, 2),
        0xE0..=0xEF => (lead & 0x0F, 3),
        0xF0..=0xFF => (lead & 0x07, 4),
    };
    // The text came as `&str`, so the continuation bytes are there.
    let point =
        text.iter().take(length).skip(1).fold(u32::from(bits), |point, &b| point << 6 | u32::from(b & 0x3F));
    (point, length)
}

/// Writes a code point as UTF-8, a lone surrogate by the same rule.
fn push_code_point(out: &mut Vec<u8>, point: u32) {
    match char::from_u32(point) {
        Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        // Only surrogates are left, and they take three bytes; real text never holds these.
        None => out.extend([
            0xE0 | (point >> 12) as u8,
            0x80 | (point >> 6 & 0x3F) as u8,
            0x80 | (point & 0x3F) as u8,
        ]),
    }
}

/// A number's parts, as they lie in the text.
struct Parts {
    negative: bool,
    whole: Range<usize>,
    fraction: Range<usize>,
    exponent_negative: bool,
    /// The digits without leading zeros; empty if there is none or it is zero.
    exponent: Range<usize>,
}

impl Pass<'_> {
    pub(super) fn number(&mut self) -> Result<(), TextFault> {
        let parts = self.parts()?;
        if let Some(mut out) = self.out.take() {
            out.push(b'd');
            let length = out.len();
            out.extend([0; 8]);
            write(&mut out, self.text, &parts);
            self.out = Some(out);
            self.finish_bytes(length);
        }
        Ok(())
    }

    fn parts(&mut self) -> Result<Parts, TextFault> {
        let negative = self.take(b"-").is_some();
        let whole = self.digits()?;
        if whole.len() > 1 && self.text[whole.start] == b'0' {
            return Err(TextFault::Malformed);
        }
        let fraction = match self.take(b".") {
            Some(_) => self.digits()?,
            None => self.at..self.at,
        };
        let mut exponent_negative = false;
        let mut exponent = self.at..self.at;
        if self.take(b"eE").is_some() {
            exponent_negative = self.take(b"+-") == Some(b'-');
            exponent = self.digits()?;
            while exponent.start < exponent.end && self.text[exponent.start] == b'0' {
                exponent.start += 1;
            }
        }
        Ok(Parts { negative, whole, fraction, exponent_negative, exponent })
    }

    fn take(&mut self, any: &[u8]) -> Option<u8> {
        let byte = self.peek().filter(|byte| any.contains(byte))?;
        self.at += 1;
        Some(byte)
    }

    /// Takes one digit or more.
    fn digits(&mut self) -> Result<Range<usize>, TextFault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if start == self.at { Err(TextFault::Malformed) } else { Ok(start..self.at) }
    }
}

/// Writes `[-]digits e exponent`, the value being `digits * 10^exponent` and the digits a whole number.
fn write(out: &mut Vec<u8>, text: &[u8], parts: &Parts) {
    let start = out.len();
    if parts.negative {
        out.push(b'-');
    }
    let first = out.len();
    let all = text[parts.whole.clone()].iter().chain(&text[parts.fraction.clone()]);
    out.extend(all.copied().skip_while(|&digit| digit == b'0'));

    let mut stripped = 0;
    while out.len() > first && out.last() == Some(&b'0') {
        out.pop();
        stripped += 1;
    }
    if out.len() == first {
        // All zeros: neither sign nor exponent counts.
        out.truncate(start);
        out.push(b'0');
        return;
    }
    write_exponent(out, text, parts, stripped);
}

/// Writes the exponent. An exponent of up to 36 digits is computed; a longer one keeps its spelling, with the
/// shift beside it. Each form stands for exactly one value (only the long one has an `x`), so different
/// numbers never have the same form.
fn write_exponent(out: &mut Vec<u8>, text: &[u8], parts: &Parts, stripped: usize) {
    // Both lengths are below 2^63, so the difference fits easily.
    let shift = stripped as i128 - parts.fraction.len() as i128;
    let spelled = &text[parts.exponent.clone()];
    out.push(b'e');
    let written = if spelled.len() <= 36 {
        // 36 digits and the shift stay below 2^127.
        let magnitude = spelled.iter().fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        let exponent = if parts.exponent_negative { -magnitude } else { magnitude };
        write!(out, "{}", exponent + shift)
    } else {
        out.extend_from_slice(if parts.exponent_negative { b"-" } else { b"" });
        out.extend_from_slice(spelled);
        write!(out, "x{shift}")
    };
    debug_assert!(written.is_ok(), "writing to a vector cannot fail");
}
