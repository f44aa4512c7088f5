//! The form of JSON text that a request digest is computed over.
//!
//! ```text
//! text ── walk ──┬─ value   null | true | false | number | string | array | object
//!                ├─ number  -> sign, digits, exponent         (canonical/number.rs)
//!                └─ string  -> code points                    (canonical/string.rs)
//! ```
//!
//! The walk reads the text itself and never a parsed value: the handler decodes the same text, and a parser
//! that uses floats would treat two different account numbers as equal.
//!
//! Every value is written as a tag, then (where its length is not fixed) a length of eight bytes, big-endian,
//! so no two different values share an encoding:
//!
//! | value | encoding |
//! |---|---|
//! | `null`, `true`, `false` | `n`, `t`, `f` |
//! | number | `d`, length, sign, digits, `e`, exponent; zero is `0` |
//! | string | `s`, length, the code points as UTF-8; a lone surrogate as the three bytes UTF-8 would give it |
//! | array | `a`, number of elements, the elements |
//! | object | `o`, number of members, then name (as a string) and value of each, sorted by the names' bytes |

mod number;
mod pass;
mod string;

pub use self::pass::{MAX_DEPTH, TextFault};

use self::{
    pass::Pass,
    string::{compare, lossy},
};
use std::cmp::Ordering;

/// Returns the canonical form of `text`, one complete JSON value.
///
/// Two texts have the same form exactly if they mean the same: member order, white space, escapes and the
/// spelling of a number do not count; the order of elements, `null` members and the exact decimal value of a
/// number do. (One exception, on the safe side: numbers whose exponent has more than 36 digits are the same
/// only if they are spelled alike.)
///
/// # Errors
///
/// [`TextFault`] on a duplicate member name, on too deep nesting, and on anything that is not JSON. Never
/// panics.
pub fn canonical(text: &str) -> Result<Vec<u8>, TextFault> {
    // Arguments of usual size fit without a second allocation: a value takes nine bytes more than its text.
    let mut walk = Walk::new(text, Some(Vec::with_capacity(2 * text.len() + 64)));
    walk.document()?;
    Ok(walk.pass.out.unwrap_or_default())
}

/// Checks that `text` has a canonical form; the same walk as [`canonical`], without its output.
///
/// # Errors
///
/// As [`canonical`].
pub fn check(text: &str) -> Result<(), TextFault> {
    Walk::new(text, None).document()
}

/// One member of an object that is being walked.
struct Member {
    /// The range of the name's raw text, without its quotes.
    raw: (usize, usize),
    /// `true` if the raw text holds an escape; without an escape the raw bytes are the code points.
    escaped: bool,
    /// The range of the member's name and value in the output.
    written: (usize, usize),
}

struct Walk<'t> {
    pass: Pass<'t>,
    depth: usize,
    /// The members of all open objects that have more than one, innermost last: one allocation serves the
    /// whole text.
    members: Vec<Member>,
}

impl<'t> Walk<'t> {
    fn new(text: &'t str, out: Option<Vec<u8>>) -> Self {
        Self { pass: Pass::new(text, out), depth: 0, members: Vec::new() }
    }

    fn document(&mut self) -> Result<(), TextFault> {
        self.value()?;
        match self.pass.token() {
            None => Ok(()),
            Some(_) => Err(TextFault::Malformed),
        }
    }

    fn value(&mut self) -> Result<(), TextFault> {
        match self.pass.token() {
            Some(b'n') => self.pass.word(b"null", b'n'),
            Some(b't') => self.pass.word(b"true", b't'),
            Some(b'f') => self.pass.word(b"false", b'f'),
            Some(b'"') => self.pass.string().map(drop),
            Some(b'[') => self.array(),
            Some(b'{') => self.object(),
            Some(b'-' | b'0'..=b'9') => self.pass.number(),
            _ => Err(TextFault::Malformed),
        }
    }

    fn array(&mut self) -> Result<(), TextFault> {
        self.open()?;
        let length = self.pass.begin(b'a');
        let mut count = 0;
        if self.pass.token() == Some(b']') {
            self.pass.at += 1;
        } else {
            loop {
                self.value()?;
                count += 1;
                if self.pass.separator(b']')? {
                    break;
                }
            }
        }
        self.pass.finish(length, count);
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self) -> Result<(), TextFault> {
        self.open()?;
        let length = self.pass.begin(b'o');
        let first = self.members.len();
        let mut count = 0;
        if self.pass.token() == Some(b'}') {
            self.pass.at += 1;
        } else {
            loop {
                let member = self.member()?;
                count += 1;
                let is_last = self.pass.separator(b'}')?;
                // An only member is in order, and the list is not allocated for it.
                if count > 1 || !is_last {
                    // Most objects fit without a second allocation.
                    if self.members.is_empty() {
                        self.members.reserve(8);
                    }
                    self.members.push(member);
                }
                if is_last {
                    break;
                }
            }
        }
        self.sort(first)?;
        self.pass.finish(length, count);
        self.depth -= 1;
        Ok(())
    }

    fn member(&mut self) -> Result<Member, TextFault> {
        if self.pass.token() != Some(b'"') {
            return Err(TextFault::Malformed);
        }
        let start = self.pass.written();
        let (raw, escaped) = self.pass.string()?;
        if self.pass.token() != Some(b':') {
            return Err(TextFault::Malformed);
        }
        self.pass.at += 1;
        self.value()?;
        Ok(Member { raw, escaped, written: (start, self.pass.written()) })
    }

    /// Closes an object: sorts its members by their names and takes them off the stack.
    fn sort(&mut self, first: usize) -> Result<(), TextFault> {
        let text = self.pass.text;
        let order = |a: &Member, b: &Member| {
            let name = |m: &Member| &text[m.raw.0..m.raw.1];
            if a.escaped || b.escaped { compare(name(a), name(b)) } else { name(a).cmp(name(b)) }
        };
        let members = &mut self.members[first..];
        members.sort_unstable_by(order);
        if let Some(pair) = members.windows(2).find(|pair| order(&pair[0], &pair[1]) == Ordering::Equal) {
            let (start, end) = pair[0].raw;
            return Err(TextFault::DuplicateName(lossy(&text[start..end])));
        }
        if let Some(out) = &mut self.pass.out
            && !members.is_sorted_by_key(|member| member.written.0)
        {
            let start = members.iter().map(|member| member.written.0).min().unwrap_or(out.len());
            let unsorted = out.split_off(start);
            for member in &*members {
                out.extend_from_slice(&unsorted[member.written.0 - start..member.written.1 - start]);
            }
        }
        self.members.truncate(first);
        Ok(())
    }

    /// Enters an array or object, whose bracket is the next byte.
    fn open(&mut self) -> Result<(), TextFault> {
        if self.depth == MAX_DEPTH {
            return Err(TextFault::TooDeep);
        }
        self.depth += 1;
        self.pass.at += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
