//! The form of JSON text that a request digest is computed over.
//!
//! ```text
//! text ── walk ──┬─ value   null | true | false | number | string | array | object
//!                ├─ number  -> sign, digits, exponent         (canonical/pass.rs)
//!                └─ string  -> code points                    (canonical/pass.rs)
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

mod pass;

pub use self::pass::{MAX_DEPTH, TextFault};

use self::pass::{Pass, compare, lossy};
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
mod tests {
    use super::*;

    fn form(text: &str) -> Vec<u8> {
        let form = canonical(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        assert_eq!(check(text), Ok(()), "{text}");
        form
    }

    fn fault(text: &str) -> TextFault {
        let fault = canonical(text).expect_err(text);
        assert_eq!(check(text), Err(fault.clone()), "{text}");
        fault
    }

    /// Checks that all texts of a row are the same value, and that texts of different rows are different values.
    fn rows(rows: &[&[&str]]) {
        let forms: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|text| form(text)).collect()).collect();
        for (row, of_row) in forms.iter().enumerate() {
            for (column, one) in of_row.iter().enumerate() {
                assert_eq!(one, &of_row[0], "{} and {}", rows[row][column], rows[row][0]);
            }
            for (other, of_other) in forms.iter().enumerate().skip(row + 1) {
                assert_ne!(of_row[0], of_other[0], "{} and {}", rows[row][0], rows[other][0]);
            }
        }
    }

    #[test]
    fn numbers_count_by_exact_value() {
        rows(&[
            &["1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "1.000", "100e-2", "0.001e3", "1e-0"],
            &["-1", "-1.0", "-10e-1"],
            &["0", "-0", "0.0", "0e5", "-0.0e-7", "0e99999999999999999999999999999999999999999999999"],
            &["10", "1e1", "1.0e1", "1e01", "1e+0000000000000000000000000000000000000000000001"],
            &["9007199254740992"],
            &["9007199254740993", "9007199254740993.0", "9.007199254740993e15"],
            &["18446744073709551617"],
            &["18446744073709551618"],
            &["0.1"],
            &["0.10000000000000001"],
            &["1e999999999999", "10e999999999998", "0.1e1000000000000"],
            &["1e-999999999999"],
            &["1e999999999998"],
            &["1e170141183460469231731687303715884105728"],
            &["1e170141183460469231731687303715884105729"],
            &["1e-170141183460469231731687303715884105728"],
            &["11e170141183460469231731687303715884105728"],
            &["1e999999999999999999999999999999999999", "10e999999999999999999999999999999999998"],
        ]);
    }

    #[test]
    fn strings_count_by_code_points() {
        rows(&[
            &[r#""a""#, r#""\u0061""#],
            &[r#""/""#, r#""\/""#, r#""\u002f""#, r#""\u002F""#],
            &["\"\u{e9}\"", r#""\u00e9""#, r#""\u00E9""#],
            &["\"e\u{301}\""],
            &["\"\u{1d11e}\"", r#""\ud834\udd1e""#, r#""\uD834\uDD1E""#],
            &["\"\u{10ffff}\"", r#""\udbff\udfff""#],
            &["\"\u{10000}\"", r#""\ud800\udc00""#],
            &[r#""\ud834""#],
            &[r#""\udd1e""#],
            &[r#""\udd1e\ud834""#],
            &[r#""\ud834\ud834\udd1e""#],
            &[r#""\ud834x\udd1e""#],
            &["\"\u{fffd}\""],
            &[r#""\n""#, r#""\u000a""#],
            &[r#""\b\f\n\r\t\"\\""#, r#""\u0008\u000c\u000a\u000d\u0009\u0022\u005c""#],
            &[r#""""#],
            &[r#""1""#],
            &["1"],
            &["\"\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\"", r#""\u007f\u0080\u07ff\u0800\uffff""#],
        ]);
    }

    /// Long strings are walked in blocks.
    #[test]
    fn strings_count_by_code_points_however_long_they_are() {
        for length in (0..170).chain([1000]) {
            for place in [0, length / 3, length / 2, length - length / 9, length] {
                let (before, behind) = ("~".repeat(place), "\u{e9}".repeat(length - place));
                for (escape, point) in [("\\\"", "\""), ("\\\\", "\\"), ("\\u001f", "\u{1f}")] {
                    let points = format!("{before}{point}{behind}");
                    let length = (points.len() as u64).to_be_bytes();
                    let expected = [b"s".as_slice(), &length, points.as_bytes()].concat();
                    assert_eq!(form(&format!("\"{before}{escape}{behind}\"")), expected);
                }
                assert_eq!(fault(&format!("\"{before}\u{1f}{behind}\"")), TextFault::Malformed);
                assert_eq!(fault(&format!("\"{before}\"{behind}\"")), TextFault::Malformed);
                assert_eq!(fault(&format!("\"{before}{behind}")), TextFault::Malformed);
            }
        }
    }

    #[test]
    fn objects_count_by_members_and_arrays_by_order() {
        rows(&[
            &[r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, "\r\n{ \"b\" : 2.0 ,\t\"\\u0061\":1 } "],
            &[r#"{"a":2,"b":1}"#],
            &[r#"{"a":{"c":1,"d":2},"b":[{"e":1,"f":2}]}"#, r#"{"b":[{"f":2,"e":1}],"a":{"d":2,"c":1}}"#],
            &[r#"{"\ud834":1,"z":2,"\udd1e":3}"#, r#"{"\udd1e":3,"\uD834":1,"z":2}"#],
            &["[1,2]", "[ 1 , 2 ]"],
            &["[2,1]"],
            &["[[1],2]"],
            &["[[1,2]]"],
            &["[12]"],
            &["[]", "[ ]"],
            &["{}", "{ }"],
            &["[{}]"],
            &["[[]]"],
            &["[[],[]]"],
            &[r#"{"a":null}"#],
            &["null"],
            &["true"],
            &["false"],
            &[r#"{"":0}"#],
            &[r#"{"ab":"c"}"#],
            &[r#"{"a":"bc"}"#],
        ]);
    }

    #[test]
    fn a_name_is_given_once() {
        let check =
            |text: &str, name: &str| assert_eq!(fault(text), TextFault::DuplicateName(name.into()), "{text}");
        check(r#"{"a":1,"a":1}"#, "a");
        check(r#"{"a":1,"b":2,"\u0061":3}"#, "a");
        check(r#"{"\u0061":1,"\u0061":1}"#, "a");
        check(r#"[{"x":[{"k":{"a":1,"b":{"":1,"":2}}}]}]"#, "");
        check("{\"\u{1d11e}\":1,\"\\ud834\\udd1e\":2}", "\u{1d11e}");
        check(r#"{"\ud834":1,"\uD834":2}"#, "\u{fffd}");
        check(&format!(r#"{{"{0}":1,"{0}":2}}"#, "n".repeat(100)), &"n".repeat(64));
        // One name at two levels, or in two siblings, is given once in each.
        form(r#"{"a":{"a":[{"a":1},{"a":2}]}}"#);
    }

    #[test]
    fn depth_ends_at_128() {
        let nested = |depth: usize, open: &str, close: &str| open.repeat(depth) + "1" + &close.repeat(depth);
        form(&nested(128, "[", "]"));
        form(&nested(128, r#"{"a":"#, "}"));
        assert_eq!(fault(&nested(129, "[", "]")), TextFault::TooDeep);
        assert_eq!(fault(&nested(129, r#"{"a":"#, "}")), TextFault::TooDeep);
        assert_eq!(fault(&"[".repeat(1_000_000)), TextFault::TooDeep);
        // Siblings are not nested.
        form(&format!("[{}1]", "[[]],".repeat(1000)));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        let texts = [
            "",
            " ",
            "nul",
            "nulll",
            "True",
            "+1",
            "01",
            "-",
            "-01",
            "1.",
            ".1",
            "1e",
            "1e+",
            "1 2",
            "--1",
            "0x1",
            "NaN",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "]",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "{\"a\" 1}",
            "\"",
            "\"a",
            "\"\\",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\u+123\"",
            "\"\n\"",
            "\"\u{0}\"",
            "'a'",
            "[1]]",
            "{}{}",
            "\u{feff}1",
            "\u{a0}1",
            "/**/1",
            "1,",
        ];
        for text in texts {
            assert_eq!(fault(text), TextFault::Malformed, "{text}");
        }
    }

    #[test]
    fn checking_agrees_on_every_prefix() {
        let text = "{\"b\\ud834\\udd1e\":[-1.5e+3,true,null,\"\u{e9}\\n\"],\"a\":{\"c\":{},\"d\":[]}}";
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            assert_eq!(fault(&text[..end]), TextFault::Malformed);
        }
        form(text);
    }
}
