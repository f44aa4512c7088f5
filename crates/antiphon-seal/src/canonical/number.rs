//! Numbers: the exact decimal value as sign, digits without outer zeros, and exponent.

use super::pass::{Pass, TextFault};
use std::{io::Write as _, ops::Range};

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
