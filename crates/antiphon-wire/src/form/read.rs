//! Reads the fields of a form from its schema. Additions of peers are tolerated.

use super::field::{Choice, FieldKind, FormField, TextFormat};
use crate::{
    lenient::{has_half, list, optional_object_or_empty},
    members::{Members, Object, whole},
};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use std::{borrow::Cow, collections::HashSet};

#[derive(Deserialize)]
struct SchemaIn<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, deserialize_with = "optional_object_or_empty")]
    properties: Option<Members>,
    #[serde(default, deserialize_with = "list")]
    required: Vec<String>,
}

/// Returns the fields in order, and the part of the schema that is outside the protocol's subset.
pub(super) fn fields(text: &str) -> Result<(Vec<FormField>, Option<String>), String> {
    let Object(schema) = serde_json::from_str::<Object<SchemaIn<'_>>>(text)
        .map_err(|fault| format!("not the schema of a form: {fault}"))?;
    if schema.kind != "object" {
        return Err(format!("the schema of a form has the type `object`, not `{}`", schema.kind));
    }
    let properties = schema.properties.unwrap_or_default();
    let names = Names::of(properties.0.iter().map(|(name, _)| name.as_str()));
    let required = Names::of(schema.required.iter().map(String::as_str));
    let mut beyond = schema
        .required
        .iter()
        .find(|name| !names.contain(name))
        .map(|name| format!("`{name}` is required, but is not a field"));
    let mut fields = Vec::with_capacity(properties.0.len());
    for (name, property) in properties.0 {
        let required = required.contain(&name);
        let (field, outside) = field(name, required, &property)?;
        beyond = beyond.or(outside);
        fields.push(field);
    }
    Ok((fields, beyond))
}

/// Names of fields: compared one after the other while they are few, as in most forms.
enum Names<'a> {
    Few(Vec<&'a str>),
    Many(HashSet<&'a str>),
}

impl<'a> Names<'a> {
    const FEW: usize = 16;

    fn of(names: impl ExactSizeIterator<Item = &'a str>) -> Self {
        if names.len() <= Self::FEW { Self::Few(names.collect()) } else { Self::Many(names.collect()) }
    }

    fn contain(&self, name: &str) -> bool {
        match self {
            Self::Few(names) => names.contains(&name),
            Self::Many(names) => names.contains(name),
        }
    }
}

/// The keywords of the subset. `$schema` only appears at the root; `enumNames` is the legacy form of titles.
const KNOWN: [&str; 15] = [
    "type",
    "title",
    "description",
    "minLength",
    "maxLength",
    "format",
    "default",
    "minimum",
    "maximum",
    "enum",
    "enumNames",
    "oneOf",
    "items",
    "minItems",
    "maxItems",
];

fn field(name: String, required: bool, property: &RawValue) -> Result<(FormField, Option<String>), String> {
    let mut members: Map<String, Value> = serde_json::from_str(property.get()).map_err(|fault| {
        // An answer could not have the choice as the server wrote it.
        let half = if has_half(property.get()) { "a choice has half of a surrogate pair: " } else { "" };
        format!("field `{name}`: {half}{fault}")
    })?;
    members.retain(|_, keyword| !keyword.is_null());
    let text = |key: &str| members.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = kind(&members);
    let beyond = if kind == FieldKind::Other {
        Some(no_kind_of_field(&name))
    } else {
        let unknown = members.keys().find(|key| !KNOWN.contains(&key.as_str()));
        let foreign = text("format").filter(|name| format(name).is_none());
        unknown.map(|key| format!("field `{name}` has the keyword `{key}`, which forms do not have")).or_else(
            || {
                foreign.map(|format| {
                    format!("field `{name}` has the format `{format}`, which forms do not have")
                })
            },
        )
    };
    let field = FormField { name, title: text("title"), description: text("description"), required, kind };
    Ok((field, beyond))
}

pub(super) fn no_kind_of_field(name: &str) -> String {
    format!("field `{name}` is not a string, number, boolean, choice or list of choices")
}

fn kind(members: &Map<String, Value>) -> FieldKind {
    let count = |key: &str| members.get(key).and_then(Value::as_number).and_then(whole);
    let number = |key: &str| members.get(key).and_then(Value::as_number).cloned();
    let default = members.get("default");
    match members.get("type").and_then(Value::as_str) {
        Some("string") => match single_choices(members) {
            Some(choices) => {
                FieldKind::One { choices, default: default.and_then(Value::as_str).map(str::to_owned) }
            }
            None => FieldKind::Text {
                min_length: count("minLength"),
                max_length: count("maxLength"),
                format: members.get("format").and_then(Value::as_str).and_then(format),
                default: default.and_then(Value::as_str).map(str::to_owned),
            },
        },
        Some(kind @ ("number" | "integer")) => FieldKind::Number {
            integer: kind == "integer",
            minimum: number("minimum"),
            maximum: number("maximum"),
            default: default.and_then(Value::as_number).cloned(),
        },
        Some("boolean") => FieldKind::Boolean { default: default.and_then(Value::as_bool) },
        Some("array") => match members.get("items").and_then(item_choices) {
            Some(choices) => FieldKind::Many {
                choices,
                min_items: count("minItems"),
                max_items: count("maxItems"),
                default: default.and_then(strings),
            },
            None => FieldKind::Other,
        },
        _ => FieldKind::Other,
    }
}

fn format(name: &str) -> Option<TextFormat> {
    [TextFormat::Email, TextFormat::Uri, TextFormat::Date, TextFormat::DateTime]
        .into_iter()
        .find(|format| format.name() == name)
}

fn single_choices(members: &Map<String, Value>) -> Option<Vec<Choice>> {
    if let Some(titled) = members.get("oneOf") {
        return titled_choices(titled);
    }
    let values = strings(members.get("enum")?)?;
    let titles = members.get("enumNames").and_then(strings).unwrap_or_default();
    let titles = titles.into_iter().map(Some).chain(std::iter::repeat(None));
    Some(values.into_iter().zip(titles).map(|(value, title)| Choice { value, title }).collect())
}

fn item_choices(items: &Value) -> Option<Vec<Choice>> {
    let keyword = |name: &str| items.get(name).filter(|keyword| !keyword.is_null());
    match (keyword("anyOf"), keyword("enum")) {
        (Some(titled), _) => titled_choices(titled),
        (None, Some(values)) => {
            Some(strings(values)?.into_iter().map(|value| Choice { value, title: None }).collect())
        }
        (None, None) => None,
    }
}

fn titled_choices(list: &Value) -> Option<Vec<Choice>> {
    let choice = |entry: &Value| {
        let value = entry.get("const")?.as_str()?.to_owned();
        Some(Choice { value, title: entry.get("title").and_then(Value::as_str).map(str::to_owned) })
    };
    list.as_array()?.iter().map(choice).collect()
}

fn strings(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|entry| entry.as_str().map(str::to_owned)).collect()
}
