//! One pass over a JSON text: the position in the text, and the canonical form written so far.

use std::fmt;

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
