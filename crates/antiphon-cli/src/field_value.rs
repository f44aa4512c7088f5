//! The value of a form field, parsed from a text.

use antiphon::wire::forms::{Choice, FieldKind, FormField, FormSchema};
use serde_json::{Map, Number, Value};

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
    use serde_json::json;

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
