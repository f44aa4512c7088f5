//! The arguments of a tool, one line each, for `tools`.

use crate::sanitize;
use serde_json::Value;

/// The maximum length of a shown description, in characters.
const SHOWN: usize = 200;
/// The maximum number of shown values of an `enum`.
const VALUES: usize = 12;

/// Returns a line for each argument: the required ones first.
pub(crate) fn lines(schema: &Value) -> Vec<String> {
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    let (first, rest): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| required(name));
    first
        .into_iter()
        .chain(rest)
        .map(|(name, property)| line(schema, name, property, required(name)))
        .collect()
}

fn line(schema: &Value, name: &str, property: &Value, is_required: bool) -> String {
    let target = resolved(schema, property);
    let mut about = vec![kind(schema, target)];
    if is_required {
        about.push("required".to_owned());
    }
    if let Some(default) = property.get("default") {
        about.push(format!("default {default}"));
    }
    let text = [property, target].iter().find_map(|place| place["description"].as_str()).unwrap_or_default();
    let line = format!("    {name} ({})  {}", about.join(", "), sanitize::truncated(text, SHOWN));
    let cut: String = sanitize::line(&line);
    cut.trim_end().to_owned()
}

/// Follows one reference into the definitions of the schema.
fn resolved<'a>(schema: &'a Value, property: &'a Value) -> &'a Value {
    let pointer = property["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| schema.pointer(pointer)).unwrap_or(property)
}

/// Describes the type of a value.
fn kind(schema: &Value, property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let shown: Vec<String> = values.iter().take(VALUES).map(text).collect();
        let more = if values.len() > VALUES { " | .." } else { "" };
        return format!("{}{more}", shown.join(" | "));
    }
    if let Some(value) = property.get("const") {
        return text(value);
    }
    match &property["type"] {
        Value::String(name) if name == "array" && property["items"].is_object() => {
            let items = resolved(schema, &property["items"]);
            let of = items["type"].as_str().unwrap_or("any value");
            format!("array of {of}")
        }
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<&str> =
                names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
            names.join(" or ")
        }
        _ => "any value".to_owned(),
    }
}

/// Returns a text as it is, and other values as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_described() {
        let schema = json!({
            "type": "object",
            "required": ["when", "size"],
            "properties": {
                "count": {"type": "integer", "default": 3, "description": "How\nmany."},
                "size": {"$ref": "#/$defs/Size"},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}},
                "when": {"type": ["string", "null"]},
                "x": true,
                "y\u{1b}": {"const": 1},
                "z": {"$ref": "#"},
            },
            "$defs": {"Size": {"enum": ["small", 2], "description": "The size."}, "Tag": {"type": "string"}},
        });
        let expected = [
            "    size (small | 2, required)  The size.",
            "    when (string, required)",
            "    count (integer, default 3)  How many.",
            "    tags (array of string)",
            "    x (any value)",
            "    y\\u{1b} (1)",
            "    z (object)",
        ];
        assert_eq!(lines(&schema), expected);
        for none in [json!(true), json!({"type": "object"}), json!({"properties": []})] {
            assert_eq!(lines(&none), Vec::<String>::new(), "{none}");
        }
        let many = json!({"properties": {"a": {"enum": (0..13).collect::<Vec<_>>()}}});
        assert_eq!(lines(&many), ["    a (0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | ..)"]);
    }
}
