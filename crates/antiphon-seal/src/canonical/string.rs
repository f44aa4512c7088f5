//! Strings: unescaping, and comparison of names without unescaping them first.

use super::pass::{Pass, TextFault};
use std::cmp::Ordering;

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
