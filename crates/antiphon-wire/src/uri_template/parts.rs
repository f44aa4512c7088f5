//! The parts of a template, the checks of a template, and percent-encoding (RFC 3986).

use crate::escaped;
use std::{
    error,
    fmt::{self, Write as _},
};

/// A text, or an expression in braces.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Literal(String),
    Expression(Operator, Vec<Variable>),
}

/// A variable. One with `*` is a list.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) is_list: bool,
}

/// The operator of an expression: what is written before its first value, and between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operator {
    pub(super) first: Option<u8>,
    pub(super) separator: u8,
    /// Values are written with their names.
    pub(super) is_named: bool,
    /// Values keep the characters that RFC 3986 reserves, such as `/`.
    pub(super) is_reserved: bool,
}

impl Operator {
    /// Returns the operator at the beginning of an expression, and the rest.
    ///
    /// # Errors
    /// If RFC 6570 reserves the operator, and gives it no meaning.
    fn read(expression: &str) -> Result<(Self, &str), InvalidTemplate> {
        let of = |first, separator, is_named, is_reserved| Self { first, separator, is_named, is_reserved };
        let operator = match expression.bytes().next() {
            Some(b'+') => of(None, b',', false, true),
            Some(b'#') => of(Some(b'#'), b',', false, true),
            Some(b'.') => of(Some(b'.'), b'.', false, false),
            Some(b'/') => of(Some(b'/'), b'/', false, false),
            Some(b';') => of(Some(b';'), b';', true, false),
            Some(b'?') => of(Some(b'?'), b'&', true, false),
            Some(b'&') => of(Some(b'&'), b'&', true, false),
            Some(b'=' | b',' | b'!' | b'@' | b'|') => {
                return fault(format!(
                    "RFC 6570 gives the operator of `{{{}}}` no meaning yet",
                    escaped(expression)
                ));
            }
            _ => return Ok((of(None, b',', false, false), expression)),
        };
        Ok((operator, expression.get(1..).unwrap_or_default()))
    }

    /// Returns whether the expression of this operator ends before this byte. Only expressions with named values end by a byte.
    pub(super) fn ends_at(self, byte: u8) -> bool {
        byte == self.separator || byte == b'#' || self.separator == b';' && matches!(byte, b'/' | b'?')
    }
}

/// Parses a template.
pub(super) fn parse(template: &str) -> Result<Vec<Part>, InvalidTemplate> {
    let (mut parts, mut rest) = (Vec::new(), template);
    while let Some(at) = rest.find(['{', '}']) {
        let (literal, after) = rest.split_at(at);
        let Some(after) = after.strip_prefix('{') else { return fault("a `}` has no `{`") };
        let Some((expression, after)) = after.split_once('}') else { return fault("a `{` has no `}`") };
        if !literal.is_empty() {
            parts.push(Part::Literal(encoded(literal, true)));
        }
        let (operator, variables) = Operator::read(expression)?;
        let variables = variables.split(',').map(|one| Variable::read(expression, one));
        parts.push(Part::Expression(operator, variables.collect::<Result<_, _>>()?));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(encoded(rest, true)));
    }
    check(&parts)?;
    Ok(parts)
}

/// The maximum number of variables of a template that are read by position, so not those of `{?q}`, `{&q}` and `{;q}`.
const MAX_POSITIONS: usize = 16;

impl Variable {
    fn read(expression: &str, text: &str) -> Result<Self, InvalidTemplate> {
        let (name, is_list) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        let expression = escaped(expression);
        if name.contains(':') {
            return fault(format!(
                "`{{{expression}}}` has a prefix, which is of level 4 of RFC 6570: a part of a value does not give back the value"
            ));
        }
        if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
        {
            return fault(format!(
                "`{{{expression}}}` is not an expression of RFC 6570: names have letters, digits, `_` and `.`, and are separated by `,`"
            ));
        }
        Ok(Self { name: name.to_owned(), is_list })
    }
}

pub(super) fn variables(parts: &[Part]) -> impl Iterator<Item = &Variable> {
    parts.iter().flat_map(|part| match part {
        Part::Literal(_) => &[][..],
        Part::Expression(_, variables) => variables,
    })
}

/// Checks that each name occurs once, and that each value has an end.
fn check(parts: &[Part]) -> Result<(), InvalidTemplate> {
    let names: Vec<&str> = variables(parts).map(|variable| variable.name.as_str()).collect();
    if let Some((_, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return fault(format!("`{name}` occurs twice"));
    }
    let by_position = parts.iter().map(|part| match part {
        Part::Expression(operator, variables) if !operator.is_named => variables.len(),
        _ => 0,
    });
    if by_position.sum::<usize>() > MAX_POSITIONS {
        return fault(format!("there are more than {MAX_POSITIONS} variables besides parameters by name"));
    }
    for pair in parts.windows(2) {
        let [Part::Expression(before, _), after] = pair else { continue };
        let first = match after {
            Part::Literal(text) => text.bytes().next(),
            Part::Expression(operator, _) => operator.first,
        };
        match first {
            None => return fault("nothing separates an expression from the one before it"),
            Some(first) if before.is_named && !before.ends_at(first) => {
                return fault(format!(
                    "the parameters of an expression do not end before `{}`",
                    char::from(first).escape_default()
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

pub(super) fn fault<T>(text: impl Into<String>) -> Result<T, InvalidTemplate> {
    Err(InvalidTemplate(text.into()))
}

/// An error from a URI template that cannot be used, or from values that it does not take. The author of the template or of the values can correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTemplate(String);

impl fmt::Display for InvalidTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for InvalidTemplate {}

/// Percent-encodes what is not unreserved. `is_reserved` keeps reserved characters and the percent-encoding that the text has.
pub(super) fn encoded(text: &str, is_reserved: bool) -> String {
    let (mut out, bytes) = (String::with_capacity(text.len()), text.as_bytes());
    for (at, &byte) in bytes.iter().enumerate() {
        let is_kept = match byte {
            b'-' | b'.' | b'_' | b'~' => true,
            b'%' => {
                is_reserved
                    && bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
            }
            _ => byte.is_ascii_alphanumeric() || is_reserved && b":/?#[]@!$&'()*+,;=".contains(&byte),
        };
        if is_kept {
            out.push(char::from(byte));
        } else {
            // A `String` can always be written to.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Decodes percent-encoding; `None` if a percent sign is not followed by two hexadecimal digits, or if the bytes are not UTF-8.
pub(super) fn decoded(text: &[u8]) -> Option<String> {
    let (mut bytes, mut input) = (Vec::with_capacity(text.len()), text.iter());
    while let Some(&byte) = input.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(*input.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
