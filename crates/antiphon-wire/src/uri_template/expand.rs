//! The expansion of a template.

use super::{InvalidTemplate, Operator, Part, Variable, fault};
use serde_json::{Map, Value};
use std::fmt::Write as _;

pub(super) fn expand(parts: &[Part], values: &Map<String, Value>) -> Result<String, InvalidTemplate> {
    let mut uri = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => uri.push_str(text),
            Part::Expression(operator, variables) => {
                let mut is_first = true;
                for variable in variables {
                    let given = values.get(&variable.name).unwrap_or(&Value::Null);
                    for text in texts(*operator, variable, given)? {
                        match operator.first {
                            first if is_first => uri.extend(first.map(char::from)),
                            _ => uri.push(char::from(operator.separator)),
                        }
                        uri.push_str(&text);
                        is_first = false;
                    }
                }
            }
        }
    }
    Ok(uri)
}

/// Returns the encoded texts of one variable: one for each item of a list with `*`, none without a value.
fn texts(operator: Operator, variable: &Variable, given: &Value) -> Result<Vec<String>, InvalidTemplate> {
    let encode = |value: &Value| match value {
        Value::String(text) => Ok(encoded(text, operator.is_reserved)),
        Value::Number(_) | Value::Bool(_) => Ok(encoded(&value.to_string(), operator.is_reserved)),
        _ => fault(format!(
            "the value of `{}` is neither a text, number or boolean nor a list of them",
            variable.name
        )),
    };
    let named = |text: String| match (operator.is_named, text.is_empty() && operator.separator == b';') {
        (false, _) => text,
        (true, true) => variable.name.clone(),
        (true, false) => format!("{}={text}", variable.name),
    };
    match given {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(encode).collect::<Result<_, _>>()?;
            match items.as_slice() {
                [] => Ok(Vec::new()),
                _ if variable.is_list => Ok(items.into_iter().map(named).collect()),
                _ => Ok(vec![named(items.join(","))]),
            }
        }
        one => Ok(vec![named(encode(one)?)]),
    }
}

/// Returns a text of the template itself, in which a URI may have reserved characters.
pub(super) fn literal(text: &str) -> String {
    encoded(text, true)
}

/// Percent-encodes what is not unreserved. `is_reserved` keeps reserved characters and the percent-encoding that the text has.
fn encoded(text: &str, is_reserved: bool) -> String {
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
