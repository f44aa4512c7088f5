//! The text of one `--answer`, read for one question. It stays a text until then, because keys and fields may contain dots.
//!
//! ```text
//! KEY.FIELD=VALUE    KEY=accept|decline|cancel    KEY=accept@HOST    FIELD=VALUE
//! ```
//!
//! KEY is the key of the question or its number. A whole number is always the number: a server that names a question `2` does
//! not get the answer to the second one.

use crate::{console, failure::Failure};
use antiphon::{
    client::asks::consent::show_url,
    wire::forms::{Choice, FieldKind, FormField, FormSchema},
};
use serde_json::{Map, Number, Value};

/// A question, as the texts name it.
pub(crate) struct Asked<'a> {
    /// The number of the question in its call. The first is 1.
    pub(crate) number: u32,
    pub(crate) key: &'a str,
    /// The form; none if the question is a page.
    pub(crate) form: Option<&'a FormSchema>,
    /// The other questions of the round.
    pub(crate) others: &'a [&'a OpenQuestion],
}

/// The key of a question, and the names of its fields.
pub(crate) struct OpenQuestion {
    pub(crate) key: String,
    pub(crate) fields: Vec<String>,
}

/// The part of an answer that one text gives.
#[derive(Debug, PartialEq)]
pub(crate) enum FlagPart {
    Action(FlagAction),
    Field(String, Value),
}

/// An answer to a whole question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FlagAction {
    Accept,
    /// The person agrees to open a page of this host.
    AcceptAt(String),
    Decline,
    Cancel,
}

/// Returns the part of the answer to this question that the text gives; none if it is for another question.
pub(crate) fn read(text: &str, asked: &Asked<'_>) -> Option<Result<FlagPart, Failure>> {
    if let Some((number, rest)) = numbered(text) {
        if number == Some(asked.number)
            && let Some(part) = part(text, rest, asked.form)
        {
            return Some(part);
        }
        if rest.starts_with('=') {
            return None;
        }
    }
    let Some(rest) = after_key(text, asked.key) else { return bare(text, asked) };
    let is_closer =
        |other: &OpenQuestion| other.key.len() > asked.key.len() && after_key(text, &other.key).is_some();
    if asked.others.iter().any(|other| is_closer(other)) { None } else { part(text, rest, asked.form) }
}

/// Returns the text after the key: `=..` or `.FIELD=..`.
pub(crate) fn after_key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let is_number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
    text.strip_prefix(key).filter(|rest| !is_number && rest.starts_with(['.', '=']))
}

/// Returns the number at the beginning and the text after it. A number that no question can have is none.
fn numbered(text: &str) -> Option<(Option<u32>, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    (digits > 0 && rest.starts_with(['.', '='])).then(|| (number.parse().ok(), rest))
}

/// Reads the text after the key. None if the form has no such field.
fn part(text: &str, rest: &str, form: Option<&FormSchema>) -> Option<Result<FlagPart, Failure>> {
    let name = &text[..text.len() - rest.len()];
    match rest.strip_prefix('=') {
        Some(word) => Some(action(name, word, form)),
        None => field(form?, &format!("{name}."), &rest[1..]),
    }
}

/// Reads `FIELD=VALUE`, if this is the only open question with such a field.
fn bare(text: &str, asked: &Asked<'_>) -> Option<Result<FlagPart, Failure>> {
    let (name, word) = text.split_once('=')?;
    // The word of a whole answer is never a value here: the answer is for a question that comes later.
    if name.contains('.') || matches!(word, "accept" | "decline" | "cancel") || word.starts_with("accept@") {
        return None;
    }
    let is_for = |other: &OpenQuestion| {
        let has_field =
            |field: &String| text.strip_prefix(field.as_str()).is_some_and(|rest| rest.starts_with('='));
        after_key(text, &other.key).is_some() || other.fields.iter().any(has_field)
    };
    if asked.others.iter().any(|other| is_for(other)) { None } else { field(asked.form?, "", text) }
}

fn action(name: &str, word: &str, form: Option<&FormSchema>) -> Result<FlagPart, Failure> {
    let action = match (word, word.strip_prefix("accept@")) {
        ("accept", _) => FlagAction::Accept,
        ("decline", _) => FlagAction::Decline,
        ("cancel", _) => FlagAction::Cancel,
        (_, Some(_)) if form.is_some() => {
            let text = format!("`--answer {name}=accept@..` agrees to a page, and the question is a form");
            return Err(Failure::usage(text));
        }
        (_, Some(text)) => FlagAction::AcceptAt(host(text).ok_or_else(|| {
            Failure::usage(format!(
                "`--answer {name}=accept@..` must end with the name of a host and nothing else"
            ))
        })?),
        _ => return Err(not_an_action(name, form)),
    };
    Ok(FlagPart::Action(action))
}

/// Returns the host as a page shows it: in ASCII and lower case.
fn host(text: &str) -> Option<String> {
    let shown = show_url(&format!("https://{text}/")).ok()?;
    (shown.full == format!("https://{}/", shown.host)).then_some(shown.host)
}

fn not_an_action(name: &str, form: Option<&FormSchema>) -> Failure {
    let words = match form {
        Some(form) => {
            let field = |name_of_field: &str| format!(", or {name}.{}=VALUE", console::line(name_of_field));
            let fields: Vec<String> = form.fields().iter().map(|it| field(&it.name)).collect();
            format!("accept, decline or cancel{}", fields.concat())
        }
        None => "accept@HOST, decline or cancel".to_owned(),
    };
    Failure::usage(format!("`--answer {name}=..` must be {words}"))
}

/// Parses `FIELD=VALUE`. If several fields match, the one with the longest name counts.
fn field(form: &FormSchema, prefix: &str, text: &str) -> Option<Result<FlagPart, Failure>> {
    let fits = form.fields().iter().filter_map(|field| {
        let value = text.strip_prefix(field.name.as_str())?.strip_prefix('=')?;
        Some((field, value))
    });
    let (field, text) = fits.max_by_key(|(field, _)| field.name.len())?;
    let value = parse(form, field, text).and_then(|value| match broken_rule(field, &value) {
        None => Ok(value),
        Some(rule) => Err(rule),
    });
    Some(match value {
        Ok(value) => Ok(FlagPart::Field(field.name.clone(), value)),
        Err(rule) => Err(Failure::usage(format!("the answer for {prefix}{} {rule}", field.name))),
    })
}

/// Parses the value of a field.
///
/// # Errors
/// The rule that the text breaks. Lengths, bounds and formats are validated later, with the whole form.
pub(crate) fn parse(schema: &FormSchema, field: &FormField, text: &str) -> Result<Value, String> {
    match &field.kind {
        FieldKind::Text { .. } => Ok(text.into()),
        FieldKind::Number { integer, .. } => serde_json::from_str::<Number>(text.trim())
            .map(Value::Number)
            .map_err(|_| if *integer { "must be a whole number".into() } else { "must be a number".into() }),
        FieldKind::Boolean { .. } => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "y" => Ok(true.into()),
            "false" | "no" | "n" => Ok(false.into()),
            _ => Err("must be true or false".into()),
        },
        FieldKind::One { choices, .. } => choose(choices, text).map(Value::from),
        FieldKind::Many { choices, .. } => list(text)?
            .iter()
            .map(|entry| choose(choices, entry))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::from),
        _ => Ok(guess(schema, &field.name, text)),
    }
}

/// Returns the rule of the form that this value breaks, if any.
pub(crate) fn broken_rule(field: &FormField, value: &Value) -> Option<String> {
    let content = Map::from_iter([(field.name.clone(), value.clone())]);
    let alone = FormSchema::new(vec![field.clone()]);
    alone.check(content).err().and_then(|faults| faults.into_iter().next()).map(|fault| fault.rule)
}

/// Returns a value as a text for the person who chose it.
pub(crate) fn shown(kind: &FieldKind, value: &Value) -> String {
    let label = |value: &Value| match (value, kind) {
        (Value::String(text), FieldKind::One { choices, .. } | FieldKind::Many { choices, .. }) => choices
            .iter()
            .find(|choice| choice.value == *text)
            .map_or(text.as_str(), Choice::label)
            .to_owned(),
        (Value::String(text), _) => text.clone(),
        (Value::Bool(value), _) => if *value { "yes" } else { "no" }.to_owned(),
        (other, _) => other.to_string(),
    };
    match value {
        Value::Array(values) => values.iter().map(label).collect::<Vec<_>>().join(", "),
        value => label(value),
    }
}

/// Returns the choice with this value, or else the choice with this title.
fn choose(choices: &[Choice], text: &str) -> Result<String, String> {
    let by_value = choices.iter().find(|choice| choice.value == text);
    let chosen = by_value.or_else(|| choices.iter().find(|choice| choice.label() == text));
    chosen.map(|choice| choice.value.clone()).ok_or_else(|| {
        let labels: Vec<&str> = choices.iter().map(Choice::label).collect();
        format!("must be one of: {}", labels.join(", "))
    })
}

/// Parses a list: a JSON array of strings, or texts separated by commas.
fn list(text: &str) -> Result<Vec<String>, String> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text)
            .map_err(|_| "must be a JSON array of strings, or a list with commas".into());
    }
    Ok(text.split(',').map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty()).collect())
}

/// Parses a field that the protocol does not define: JSON of a type of the field, or else a text.
fn guess(schema: &FormSchema, name: &str, text: &str) -> Value {
    let types = types(schema, name);
    let json = serde_json::from_str::<Value>(text).ok();
    let fits = |value: &Value| match value {
        Value::Bool(_) => types.contains(&"boolean".into()),
        Value::Number(_) => types.iter().any(|name| name == "number" || name == "integer"),
        Value::Array(_) => types.contains(&"array".into()),
        Value::Object(_) => types.contains(&"object".into()),
        Value::String(_) => false,
        Value::Null => !types.contains(&"string".into()),
    };
    match json.filter(|value| types.is_empty() || fits(value)) {
        Some(value) => value,
        None if types.contains(&"array".into()) && !types.contains(&"string".into()) => {
            list(text).map_or_else(|_| text.into(), Value::from)
        }
        None => text.into(),
    }
}

/// Returns the types of a property, with those of its alternatives.
fn types(schema: &FormSchema, name: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema.text()).unwrap_or_default();
    let Some(property) = schema.get("properties").and_then(|properties| properties.get(name)) else {
        return Vec::new();
    };
    let alternatives = ["anyOf", "oneOf"].iter().filter_map(|key| property.get(key)?.as_array()).flatten();
    let named = std::iter::once(property).chain(alternatives).filter_map(|part| part.get("type"));
    named
        .flat_map(|kind| kind.as_array().cloned().unwrap_or_else(|| vec![kind.clone()]))
        .filter_map(|kind| kind.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon::wire::forms::FormField;
    use serde_json::json;

    /// Reads a text for the second question of a call, whose form has the fields `f`, `f=g`, `n.m` and `who`.
    fn check(text: &str, key: &str, others: &[(&str, &[&str])], expected: Option<Result<FlagPart, &str>>) {
        let form = FormSchema::new(vec![
            FormField::text("f"),
            FormField::text("f=g"),
            FormField::integer("n.m"),
            FormField::text("who"),
        ]);
        let others: Vec<OpenQuestion> = others
            .iter()
            .map(|(key, fields)| OpenQuestion {
                key: (*key).to_owned(),
                fields: fields.iter().map(ToString::to_string).collect(),
            })
            .collect();
        let others: Vec<&OpenQuestion> = others.iter().collect();
        let found = read(text, &Asked { number: 2, key, form: Some(&form), others: &others });
        let found = found.map(|found| found.map_err(|failure| failure.message));
        assert_eq!(found, expected.map(|expected| expected.map_err(str::to_owned)), "{text} to {key}");
    }

    fn value(name: &str, value: Value) -> Option<Result<FlagPart, &'static str>> {
        Some(Ok(FlagPart::Field(name.to_owned(), value)))
    }

    fn whole(action: FlagAction) -> Option<Result<FlagPart, &'static str>> {
        Some(Ok(FlagPart::Action(action)))
    }

    #[test]
    fn the_key_or_the_number_comes_first() {
        let dotted: &[(&str, &[&str])] = &[("a.b", &[])];
        let resolver = "__main__:x.<locals>.y#1";
        for (text, key, others, expected) in [
            ("a.f=1=2.3", "a", dotted, value("f", json!("1=2.3"))),
            ("a.f=g=x", "a", dotted, value("f=g", json!("x"))),
            ("a.n.m=7", "a", dotted, value("n.m", json!(7))),
            ("a.b.f=x", "a", dotted, None),
            ("a.b.f=x", "a.b", &[("a", &[])], value("f", json!("x"))),
            ("__main__:x.<locals>.y#1.f=x", resolver, &[], value("f", json!("x"))),
            ("a=decline", "a", dotted, whole(FlagAction::Decline)),
            ("ab=decline", "a", &[], None),
            ("b=decline", "a", &[], None),
            ("a.x=1", "a", &[], None),
            ("a.n.m=x", "a", &[], Some(Err("the answer for a.n.m must be a whole number"))),
            ("2.f=x", "a", &[], value("f", json!("x"))),
            ("2.n.m=7", "7f3a:9c", &[], value("n.m", json!(7))),
            ("2=cancel", "a", &[], whole(FlagAction::Cancel)),
            ("1=decline", "a", &[], None),
            ("22=decline", "a", &[], None),
            ("99999999999=decline", "a", &[], None),
            ("2.n.m=x", "a", &[], Some(Err("the answer for 2.n.m must be a whole number"))),
            // A server cannot take the answer to another question by its key.
            ("1=accept", "1", &[], None),
            ("1.f=x", "1", &[], None),
            ("3=decline", "3", &[], None),
            ("2=decline", "3", &[], whole(FlagAction::Decline)),
            ("3.1.f=x", "3.1", &[], value("f", json!("x"))),
            // A whole word is for a page or a form.
            (
                "a=accept@h.example",
                "a",
                &[],
                Some(Err("`--answer a=accept@..` agrees to a page, and the question is a form")),
            ),
            (
                "a=eu",
                "a",
                &[],
                Some(Err(
                    "`--answer a=..` must be accept, decline or cancel, or a.f=VALUE, or a.f=g=VALUE, or a.n.m=VALUE, or a.who=VALUE",
                )),
            ),
        ] {
            check(text, key, others, expected);
        }
    }

    #[test]
    fn a_field_alone_is_enough_where_one_question_has_it() {
        for (text, key, others, expected) in [
            ("who=Ada", "a", &[][..], value("who", json!("Ada"))),
            ("who=Ada", "a", &[("b", &["other"][..])][..], value("who", json!("Ada"))),
            ("who=a=b", "a", &[], value("who", json!("a=b"))),
            // Two open questions have the field, or another question has the key.
            ("who=Ada", "a", &[("b", &["who"])], None),
            ("who=Ada", "a", &[("who", &[])], None),
            ("who=decline", "a", &[], None),
            ("who=accept@h.example", "a", &[], None),
            ("n.m=7", "a", &[], None),
            ("whom=Ada", "a", &[], None),
        ] {
            check(text, key, others, expected);
        }
    }

    #[test]
    fn a_page_is_agreed_to_with_its_host() {
        for (text, expected) in [
            ("1=accept@login.example", Ok(FlagAction::AcceptAt("login.example".to_owned()))),
            ("k=accept@Login.Example", Ok(FlagAction::AcceptAt("login.example".to_owned()))),
            ("1=accept@p\u{430}ypal.com", Ok(FlagAction::AcceptAt("xn--pypal-4ve.com".to_owned()))),
            ("1=accept@[::1]", Ok(FlagAction::AcceptAt("[::1]".to_owned()))),
            ("1=accept", Ok(FlagAction::Accept)),
            ("1=accept@", Err("must end with the name of a host")),
            ("1=accept@good.example/evil", Err("must end with the name of a host")),
            ("1=accept@good.example@evil.example", Err("must end with the name of a host")),
            ("1=accept@good.example:8443", Err("must end with the name of a host")),
            ("1=accept@good.example\\evil", Err("must end with the name of a host")),
            ("1=yes", Err("must be accept@HOST, decline or cancel")),
        ] {
            let found = read(text, &Asked { number: 1, key: "k", form: None, others: &[] }).unwrap();
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, FlagPart::Action(expected), "{text}"),
                (Err(failure), Err(says)) => assert!(failure.message.contains(says), "{text}: {failure:?}"),
                (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn texts_become_values() {
        let schema: FormSchema = serde_json::from_value(json!({"type": "object", "properties": {
            "text": {"type": "string"},
            "whole": {"type": "integer"},
            "number": {"type": "number"},
            "yes": {"type": "boolean"},
            "one": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "Small", "title": "s"}]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b, c"]}},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "either": {"type": ["string", "integer"]},
            "any": {},
            "titled": {"type": "array", "items": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]}},
            "free": {"type": ["array", "null"], "items": {"type": "string"}},
            "mixed": {"type": ["array", "string"]},
        }}))
        .unwrap();
        for (name, text, expected) in [
            ("text", "a=b.c ", Ok(json!("a=b.c "))),
            ("whole", "36", Ok(json!(36))),
            ("whole", "x", Err("must be a whole number")),
            ("number", "1.5", Ok(json!(1.5))),
            ("number", "", Err("must be a number")),
            ("yes", "true", Ok(json!(true))),
            ("yes", "No", Ok(json!(false))),
            ("yes", "1", Err("must be true or false")),
            ("one", "s", Ok(json!("s"))),
            ("one", "Small", Ok(json!("Small"))),
            ("one", "Large", Err("must be one of: Small, s")),
            ("many", "a", Ok(json!(["a"]))),
            ("many", r#"["a", "b, c"]"#, Ok(json!(["a", "b, c"]))),
            ("many", "", Ok(json!([]))),
            ("many", "a, z", Err("must be one of: a, b, c")),
            ("many", "[1]", Err("must be a JSON array of strings, or a list with commas")),
            ("maybe", "42", Ok(json!("42"))),
            ("maybe", "null", Ok(json!("null"))),
            ("either", "42", Ok(json!(42))),
            ("either", "true", Ok(json!("true"))),
            ("any", "{\"a\": 1}", Ok(json!({"a": 1}))),
            ("any", "words", Ok(json!("words"))),
            ("titled", "a", Ok(json!(["a"]))),
            ("titled", "[\"a\"]", Ok(json!(["a"]))),
            ("free", "a, b", Ok(json!(["a", "b"]))),
            ("free", "null", Ok(json!(null))),
            ("mixed", "a, b", Ok(json!("a, b"))),
        ] {
            let field = schema.fields().iter().find(|field| field.name == name).unwrap();
            assert_eq!(parse(&schema, field, text), expected.map_err(String::from), "{name}={text}");
        }
    }
}
