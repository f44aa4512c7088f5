//! The rules of a field. The text of a rule says what a person must correct, and never contains the value.

use super::field::{Choice, FieldKind, FormField, TextFormat};
use crate::members::name_used_twice;
use serde_json::{Number, Value};

/// Returns the rule that `value` breaks, if any.
pub(super) fn rule_broken_by(kind: &FieldKind, value: &Value) -> Option<String> {
    match (kind, value) {
        (FieldKind::Text { min_length, max_length, format, .. }, Value::String(text)) => {
            let length = text.chars().count() as u64;
            if let Some(least) = min_length.filter(|least| length < *least) {
                return Some(format!("must have at least {least} characters"));
            }
            if let Some(most) = max_length.filter(|most| length > *most) {
                return Some(format!("must have at most {most} characters"));
            }
            format.filter(|format| !fits(*format, text)).map(|format| format!("must be {}", in_words(format)))
        }
        (FieldKind::Text { .. }, _) => Some("must be text".into()),
        (FieldKind::Number { integer, minimum, maximum, .. }, Value::Number(number)) => {
            if *integer && !is_whole(number) {
                return Some("must be a whole number".into());
            }
            if let Some(least) = minimum.as_ref().filter(|least| less(number, least)) {
                return Some(format!("must be at least {least}"));
            }
            if let Some(most) = maximum.as_ref().filter(|most| less(most, number)) {
                return Some(format!("must be at most {most}"));
            }
            number.as_f64().filter(|_| *integer && number.is_f64()).and_then(beyond_whole_numbers)
        }
        (FieldKind::Number { integer: true, .. }, _) => Some("must be a whole number".into()),
        (FieldKind::Number { .. }, _) => Some("must be a number".into()),
        (FieldKind::Boolean { .. }, Value::Bool(_)) => None,
        (FieldKind::Boolean { .. }, _) => Some("must be yes or no".into()),
        (FieldKind::One { choices, .. }, value) => {
            let known = value.as_str().is_some_and(|value| is_choice(choices, value));
            (!known).then(|| format!("must be one of: {}", labels(choices)))
        }
        (FieldKind::Many { choices, min_items, max_items, .. }, Value::Array(values)) => {
            if !values.iter().all(|value| value.as_str().is_some_and(|value| is_choice(choices, value))) {
                return Some(format!("must only hold: {}", labels(choices)));
            }
            if let Some(least) = min_items.filter(|least| (values.len() as u64) < *least) {
                return Some(format!("must hold at least {least}"));
            }
            max_items
                .filter(|most| values.len() as u64 > *most)
                .map(|most| format!("must hold at most {most}"))
        }
        (FieldKind::Many { .. }, _) => Some("must be a list".into()),
        (FieldKind::Other, _) => None,
    }
}

fn is_choice(choices: &[Choice], value: &str) -> bool {
    choices.iter().any(|choice| choice.value == value)
}

/// Returns the labels of the first choices. The list is cut so that the rule stays one sentence.
fn labels(choices: &[Choice]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<&str> = choices.iter().take(SHOWN).map(Choice::label).collect();
    let more = if choices.len() > SHOWN { ", ..." } else { "" };
    shown.join(", ") + more
}

/// The first float from which floats are not exact. The rewritten whole number would not be exact either.
const INEXACT: f64 = 9_007_199_254_740_992.0;

/// Returns a valid value in the type of its field: `3.0` is a whole number, and decodes as one after it is
/// written as `3`.
pub(super) fn as_asked(kind: &FieldKind, value: Value) -> Value {
    match (kind, value.as_f64()) {
        (FieldKind::Number { integer: true, .. }, Some(float)) if value.is_f64() && float.abs() < INEXACT => {
            Value::from(float as i64)
        }
        _ => value,
    }
}

/// Returns the reason why no type for whole numbers can hold a whole number that was read as a float, if no
/// type can.
fn beyond_whole_numbers(float: f64) -> Option<String> {
    // The floats next to the bounds, beyond them.
    match float {
        _ if float >= u64::MAX as f64 => Some(format!("must be at most {}", u64::MAX)),
        _ if float < i64::MIN as f64 => Some(format!("must be at least {}", i64::MIN)),
        _ if float.abs() >= INEXACT => Some("must be written in digits only".into()),
        _ => None,
    }
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn less(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a < b,
        _ => a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a < b),
    }
}

fn in_words(format: TextFormat) -> &'static str {
    match format {
        TextFormat::Email => "an email address",
        TextFormat::Uri => "a URI",
        TextFormat::Date => "a date like 2026-07-28",
        TextFormat::DateTime => "a time like 2026-07-28T12:00:00Z",
    }
}

fn fits(format: TextFormat, text: &str) -> bool {
    match format {
        TextFormat::Email => is_email(text),
        TextFormat::Uri => is_uri(text),
        TextFormat::Date => is_date(text),
        TextFormat::DateTime => is_date_time(text),
    }
}

/// Returns true for one `@`, text on each side, and no spaces. The check finds typing errors; it is no proof.
fn is_email(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty() && !local.contains('@'))
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Returns true for a scheme, a colon, and text without spaces (RFC 3986, section 3).
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control() || "<>\"{}|\\^`".contains(c))
}

/// Returns true for a `full-date` of RFC 3339.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) =
        (digits(&bytes[..4]), digits(&bytes[5..7]), digits(&bytes[8..]))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Returns true for a `date-time` of RFC 3339.
fn is_date_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 20 || !text.is_ascii() || !is_date(&text[..10]) || !matches!(bytes[10], b'T' | b't') {
        return false;
    }
    let clock = |part: &[u8]| {
        part[2] == b':'
            && digits(&part[..2]).is_some_and(|h| h < 24)
            && digits(&part[3..5]).is_some_and(|m| m < 60)
    };
    // A leap second is 60.
    let seconds = bytes[16] == b':' && digits(&bytes[17..19]).is_some_and(|second| second <= 60);
    let mut rest = &bytes[19..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    let offset = match rest {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', offset @ ..] => offset.len() == 5 && clock(offset),
        _ => false,
    };
    clock(&bytes[11..16]) && seconds && offset
}

fn digits(bytes: &[u8]) -> Option<u32> {
    bytes
        .iter()
        .try_fold(0, |sum: u32, byte| byte.is_ascii_digit().then(|| sum * 10 + u32::from(byte - b'0')))
}

/// Returns the first fault of the fields' choices, with the name of the field.
pub(super) fn fault_of(fields: &[FormField]) -> Option<String> {
    fields.iter().find_map(|field| match &field.kind {
        FieldKind::One { choices, default } => fault(&field.name, choices, default.as_slice()),
        FieldKind::Many { choices, default, .. } => {
            fault(&field.name, choices, default.as_deref().unwrap_or_default())
        }
        _ => None,
    })
}

fn fault(field: &str, choices: &[Choice], defaults: &[String]) -> Option<String> {
    if choices.is_empty() {
        return Some(format!("field `{field}` has no choices"));
    }
    let values = || choices.iter().map(|choice| choice.value.as_str());
    if let Some(twice) = name_used_twice(values()) {
        return Some(format!("field `{field}` has the choice `{twice}` twice"));
    }
    let foreign = defaults.iter().find(|default| !values().any(|value| value == default.as_str()))?;
    Some(format!("the default `{foreign}` of field `{field}` is not among its choices"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FormField, FormSchema};
    use serde_json::json;
    use std::borrow::Cow;

    #[test]
    fn formats() {
        for (format, good, bad) in [
            (TextFormat::Email, vec!["a@b.c", "a.b+c@d"], vec!["", "a", "@b", "a@", "a b@c", "a@b@c"]),
            (
                TextFormat::Uri,
                vec!["https://a.b/c?d=e#f", "urn:x:y", "mailto:a@b"],
                vec!["", "a", ":b", "1a:b", "a:b c"],
            ),
            (
                TextFormat::Date,
                vec!["2026-07-28", "2024-02-29"],
                vec![
                    "2026-02-29",
                    "2026-13-01",
                    "2026-00-10",
                    "2026-1-1",
                    "1900-02-29",
                    "20260728",
                    "２０２６-07-28",
                ],
            ),
            (
                TextFormat::DateTime,
                vec!["2026-07-28T12:00:00Z", "2026-07-28t23:59:60.123+05:30"],
                vec![
                    "2026-07-28",
                    "2026-07-28T12:00:00",
                    "2026-07-28T24:00:00Z",
                    "2026-07-28T12:00:00.Z",
                    "2026-07-28T12:00Z     ",
                ],
            ),
        ] {
            good.iter().for_each(|text| assert!(fits(format, text), "{format:?} {text:?}"));
            bad.iter().for_each(|text| assert!(!fits(format, text), "{format:?} {text:?}"));
        }
    }

    #[test]
    fn rules_name_the_field_and_never_the_value() {
        let schema: FormSchema = serde_json::from_value(json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Full name", "minLength": 2, "maxLength": 5},
                "age": {"type": "integer", "minimum": 18, "maximum": 99},
                "id": {"type": "integer"},
                "share": {"type": "number", "maximum": 0.5},
                "agree": {"type": "boolean"},
                "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
                "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b", "c"]}},
                "note": {"type": "string", "default": "none"}
            },
            "required": ["name"]
        }))
        .unwrap();
        assert_eq!(schema.beyond_subset(), None);
        for (content, expected) in [
            (json!({"name": "Ada", "x": 1}), Ok(json!({"name": "Ada", "note": "none"}))),
            (
                json!({"name": "Ada", "age": 18.0, "tags": ["a", "b"], "size": "s"}),
                Ok(json!({"name": "Ada", "age": 18, "tags": ["a", "b"], "size": "s", "note": "none"})),
            ),
            (json!({}), Err("Full name must be filled in")),
            (json!({"name": null}), Err("Full name must be filled in")),
            (json!({"name": "SECRET"}), Err("Full name must have at most 5 characters")),
            (json!({"name": "é"}), Err("Full name must have at least 2 characters")),
            (json!({"name": 7}), Err("Full name must be text")),
            (json!({"name": "Ada", "age": 17}), Err("Age must be at least 18")),
            (json!({"name": "Ada", "age": 18.5}), Err("Age must be a whole number")),
            (json!({"name": "Ada", "age": "18"}), Err("Age must be a whole number")),
            (
                json!({"name": "Ada", "id": u64::MAX}),
                Ok(json!({"name": "Ada", "id": u64::MAX, "note": "none"})),
            ),
            (json!({"name": "Ada", "id": 1e30}), Err("Id must be at most 18446744073709551615")),
            (json!({"name": "Ada", "id": -1e30}), Err("Id must be at least -9223372036854775808")),
            (json!({"name": "Ada", "id": 1e16}), Err("Id must be written in digits only")),
            (json!({"name": "Ada", "id": 9_007_199_254_740_992.0}), Err("Id must be written in digits only")),
            (json!({"name": "Ada", "share": 0.75}), Err("Share must be at most 0.5")),
            (json!({"name": "Ada", "agree": "yes"}), Err("Agree must be yes or no")),
            (json!({"name": "Ada", "size": "Small"}), Err("Size must be one of: Small, Large")),
            (json!({"name": "Ada", "tags": []}), Err("Tags must hold at least 1")),
            (json!({"name": "Ada", "tags": ["a", "b", "c"]}), Err("Tags must hold at most 2")),
            (json!({"name": "Ada", "tags": ["z"]}), Err("Tags must only hold: a, b, c")),
        ] {
            let checked = schema.check(content.as_object().unwrap().clone());
            match expected {
                Ok(filled) => assert_eq!(Value::Object(checked.unwrap()), filled, "{content}"),
                Err(text) => {
                    let faults = checked.unwrap_err();
                    assert_eq!(faults[0].to_string(), text, "{content}");
                    assert!(!faults[0].to_string().contains("SECRET"));
                }
            }
        }
    }

    #[test]
    fn every_field_that_is_sent_has_a_title() {
        let check = |field: FormField, title: &str| {
            let form = FormSchema::new(vec![field]);
            let text: Value = serde_json::from_str(form.text()).unwrap();
            let name = &form.fields()[0].name;
            assert_eq!(text["properties"][name]["title"], title, "{text}");
            // A form that is built again, as with a title for the answer, or read by the client, is the same question.
            assert_eq!(FormSchema::new(form.fields().to_vec()).text(), form.text());
            let read: FormSchema = serde_json::from_str(form.text()).unwrap();
            assert_eq!(read.fields(), form.fields());
        };
        check(FormField::boolean("accept_alternative"), "Accept alternative");
        check(FormField::text("value"), "Value");
        check(FormField::integer("partySize").optional(), "Party size");
        check(FormField::number("unit-price").description("in EUR"), "Unit price");
        check(FormField::one("seat", ["window", "aisle"]), "Seat");
        check(FormField::many("zones", [("a", "Zone A")]), "Zones");
        check(FormField::text("__"), "__");
        // An explicit title wins, whatever it is.
        check(FormField::text("date").title("date"), "date");
        check(FormField::boolean("accept_alternative").title("Another day?"), "Another day?");
        check(FormField::text("note").title(""), "");
    }

    #[test]
    fn a_form_that_is_built_is_written_in_the_subset_and_in_order() {
        let schema = FormSchema::new(vec![
            FormField::text("zone").title("Zone"),
            FormField::many("b", [("x", "Ex"), ("y", "Why")]).optional(),
            FormField::one("a", ["Fixed", "Won't Fix"]).description("How?"),
            FormField::integer("n"),
        ]);
        let text = r#"{"type":"object","properties":{"zone":{"type":"string","title":"Zone"},"b":{"type":"array","title":"B","items":{"anyOf":[{"const":"x","title":"Ex"},{"const":"y","title":"Why"}]}},"a":{"type":"string","title":"A","description":"How?","enum":["Fixed","Won't Fix"]},"n":{"type":"integer","title":"N"}},"required":["zone","a","n"]}"#;
        assert_eq!(schema.text(), text);
        let read: FormSchema = serde_json::from_str(text).unwrap();
        assert_eq!((read.fields(), read.beyond_subset()), (schema.fields(), None));
    }

    #[test]
    fn what_lies_outside_the_subset_is_named() {
        for (properties, expected) in [
            (json!({"a": {"type": "object"}}), "field `a` is not"),
            (json!({"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}), "field `a` is not"),
            (json!({"a": {"type": "array", "items": {"type": "string"}}}), "field `a` is not"),
            (json!({"a": {"type": "string", "format": "password"}}), "field `a` has the format `password`"),
            (json!({"a": {"type": "string", "pattern": "x"}}), "field `a` has the keyword `pattern`"),
        ] {
            let schema: FormSchema =
                serde_json::from_value(json!({"type": "object", "properties": properties})).unwrap();
            assert!(schema.beyond_subset().unwrap().starts_with(expected), "{:?}", schema.beyond_subset());
        }
        assert!(serde_json::from_str::<FormSchema>(r#"{"type":"string"}"#).is_err());
        assert!(
            serde_json::from_str::<FormSchema>(r#"{"type":"object","properties":{"a":{},"a":{}}}"#).is_err()
        );
    }

    #[test]
    fn choices_are_made_of_many_types() {
        let names = vec!["a".to_owned(), "b".to_owned()];
        let expected = FormField::one("x", ["a", "b"]);
        for field in [
            FormField::one("x", &names),
            FormField::one("x", names.iter().map(String::as_str)),
            FormField::one("x", ["a", "b"].iter()),
            FormField::one("x", names.iter().map(Cow::from)),
            FormField::one("x", names.iter().map(Choice::from)),
            FormField::one("x", names),
        ] {
            assert_eq!(field, expected);
        }
        let rows: Vec<(String, String)> = vec![("a".to_owned(), "Ay".to_owned())];
        assert_eq!(FormField::many("x", rows), FormField::many("x", [("a", "Ay")]));
    }

    #[test]
    fn a_choice_that_nobody_could_make_is_a_fault() {
        let none: [&str; 0] = [];
        for (field, expected) in [
            (FormField::one("file", none), Some("field `file` has no choices")),
            (FormField::many("file", none), Some("field `file` has no choices")),
            (FormField::one("file", ["a", "b", "a"]), Some("field `file` has the choice `a` twice")),
            (
                FormField::many("file", [("a", "x"), ("a", "y")]),
                Some("field `file` has the choice `a` twice"),
            ),
            (FormField::one("file", [("a", "x"), ("b", "x")]), None),
        ] {
            let built = FormSchema::new(vec![field]);
            assert_eq!(built.unaskable().as_deref(), expected);
            let read: FormSchema = serde_json::from_str(built.text()).unwrap();
            assert_eq!(read.unaskable().as_deref(), expected);
            // A peer may send it.
            assert_eq!(read.beyond_subset(), None);
        }
    }

    #[test]
    fn a_default_is_one_of_the_choices() {
        let read = |property| {
            let schema = json!({"type": "object", "properties": {"file": property}});
            let schema: FormSchema = serde_json::from_value(schema).unwrap();
            schema.unaskable()
        };
        let fault = Some("the default `c` of field `file` is not among its choices".to_owned());
        assert_eq!(read(json!({"type": "string", "enum": ["a", "b"], "default": "b"})), None);
        assert_eq!(read(json!({"type": "string", "enum": ["a", "b"], "default": "c"})), fault);
        let items = json!({"type": "string", "enum": ["a", "b"]});
        assert_eq!(read(json!({"type": "array", "items": items, "default": ["a", "c"]})), fault);
    }
}
