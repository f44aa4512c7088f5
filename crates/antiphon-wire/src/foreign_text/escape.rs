//! Writes a text escaped and cut.

use super::classes::{Class, class_of};
use std::fmt;

/// The number of combining marks in a row that are printed as they are. Written languages use at most three or four.
const MARKS: u32 = 4;

/// Writes a text to `out`, piece by piece: escaped, and at most `left` characters of it.
pub(super) struct Escaper<'a, W> {
    out: &'a mut W,
    left: usize,
    bytes: usize,
    cut: bool,
    multiline: bool,
    quoted: bool,
    marks: u32,
    /// A carriage return that may belong to a line break.
    carriage_return: bool,
}

impl<'a, W: fmt::Write> Escaper<'a, W> {
    pub(super) fn new(out: &'a mut W, limit: usize, multiline: bool, quoted: bool) -> Self {
        Self { out, left: limit, bytes: 0, cut: false, multiline, quoted, marks: 0, carriage_return: false }
    }

    /// Writes what is left. If the text was cut, a mark says so.
    pub(super) fn finish(mut self) -> fmt::Result {
        if std::mem::take(&mut self.carriage_return) {
            self.escape('\r')?;
        }
        if self.cut { write!(self.out, "… ({} bytes)", self.bytes) } else { Ok(()) }
    }

    fn push(&mut self, c: char) -> fmt::Result {
        if std::mem::take(&mut self.carriage_return) && c != '\n' {
            self.escape('\r')?;
        }
        let class = class_of(c);
        self.marks = if class == Class::Mark { self.marks.saturating_add(1) } else { 0 };
        match c {
            '\r' if self.multiline => {
                self.carriage_return = true;
                Ok(())
            }
            '\n' | '\t' if self.multiline => self.print(c),
            '"' | '\\' if self.quoted => self.escape(c),
            _ if class == Class::Escaped || self.marks > MARKS => self.escape(c),
            _ => self.print(c),
        }
    }

    fn print(&mut self, c: char) -> fmt::Result {
        if self.takes(1) { self.out.write_char(c) } else { Ok(()) }
    }

    fn escape(&mut self, c: char) -> fmt::Result {
        match c {
            '\n' | '\r' | '\t' | '"' | '\\' => {
                let escape = c.escape_default();
                if self.takes(escape.len()) { write!(self.out, "{escape}") } else { Ok(()) }
            }
            _ => {
                let escape = c.escape_unicode();
                if self.takes(escape.len()) { write!(self.out, "{escape}") } else { Ok(()) }
            }
        }
    }

    /// Returns `true` if so many more characters may be written, and counts them. Behind the first ones that do not fit,
    /// nothing is written.
    fn takes(&mut self, characters: usize) -> bool {
        self.cut |= characters > self.left;
        if !self.cut {
            self.left -= characters;
        }
        !self.cut
    }
}

impl<W: fmt::Write> fmt::Write for Escaper<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes = self.bytes.saturating_add(text.len());
        let mut rest = text;
        while !self.cut && !rest.is_empty() {
            // Plain ASCII needs no look at each character.
            let plain = rest.bytes().take(self.left).take_while(|byte| matches!(byte, b' '..=b'~')).count();
            if plain > 0 && !self.carriage_return && !self.quoted {
                self.out.write_str(&rest[..plain])?;
                (self.left, self.marks) = (self.left - plain, 0);
                rest = &rest[plain..];
            } else if let Some(c) = rest.chars().next() {
                self.push(c)?;
                rest = &rest[c.len_utf8()..];
            }
        }
        Ok(())
    }
}
