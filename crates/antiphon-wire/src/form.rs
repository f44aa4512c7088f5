//! Forms: the flat subset of JSON Schema that the client can present to a person.
//!
//! > form mode elicitation schemas are limited to flat objects with primitive properties only.

mod check;
mod field;
mod secret;

pub use field::{Choice, FieldFault, FieldKind, FormField, TextFormat};

use crate::{
    lenient::{has_half, list, optional_object_or_empty},
    members::{Members, Object, name_used_twice, whole},
};
use field::in_words;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};
use serde_json::{Map, Value, json, value::RawValue};
use std::{borrow::Cow, collections::HashSet, mem, sync::Arc};

/// Returns the word in the name, or in another text of a form's field, that suggests a secret. A server must not send a form
/// with such a field, and a client warns of it.
///
/// > Servers **MUST NOT** use form mode elicitation to request sensitive information such as passwords, API keys,
/// > access tokens, or payment credentials
pub fn secret_in(name: &str) -> Option<&'static str> {
    secret::secret_in(name)
}

/// The schema of a form: its original text, and the fields read from the text, in their original order.
/// Clones share it: a server asks the form of a type again and again.
#[derive(Clone, Debug)]
pub struct FormSchema(Arc<SchemaParts>);

#[derive(Clone, Debug)]
struct SchemaParts {
    text: Box<RawValue>,
    fields: Vec<FormField>,
    beyond: Option<String>,
    /// The fields whose names suggest a secret. `None` for a form that was read, until somebody asks: clients read more
    /// forms than they send.
    secrets: Option<Vec<String>>,
}

impl FormSchema {
    /// Returns a form with these fields, in this order. Each field has a title in the schema: its own, or else its name in
    /// words, which is its [label](FormField::label). [`unaskable`](Self::unaskable) returns the reason if a server cannot
    /// send the form, for example because two fields have the same name.
    pub fn new(mut fields: Vec<FormField>) -> Self {
        // Without a title, a peer shows the name as it is.
        for field in &mut fields {
            field.title.get_or_insert_with(|| in_words(&field.name));
        }
        let required: Vec<&str> =
            fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
        let text = raw(&SchemaOut { kind: "object", properties: Properties(&fields), required });
        let twice = name_used_twice(fields.iter().map(|field| field.name.as_str()));
        let beyond = twice.map(|name| format!("two fields have the name `{name}`")).or_else(|| {
            let other = fields.iter().find(|field| field.kind == FieldKind::Other)?;
            Some(no_kind_of_field(&other.name))
        });
        let secrets = Some(secrets_among(&fields));
        Self(Arc::new(SchemaParts { text, fields, beyond, secrets }))
    }

    /// Permits a field whose name suggests a secret, such as a field `token` for a token of a game: the form is then
    /// [askable](Self::unaskable).
    ///
    /// ```
    /// use antiphon_wire::{FormField, FormSchema};
    ///
    /// let form = FormSchema::new(vec![FormField::text("card"), FormField::integer("player")]);
    /// assert!(form.unaskable().is_some());
    /// assert_eq!(form.not_secret("card").unaskable(), None);
    /// ```
    #[must_use]
    pub fn not_secret(mut self, field: &str) -> Self {
        let SchemaParts { fields, secrets, .. } = Arc::make_mut(&mut self.0);
        secrets.get_or_insert_with(|| secrets_among(fields)).retain(|name| name != field);
        self
    }

    /// Returns the fields, in order.
    pub fn fields(&self) -> &[FormField] {
        &self.0.fields
    }

    /// Returns the schema, as text.
    pub fn text(&self) -> &str {
        self.0.text.get()
    }

    /// Returns the part of the schema that is outside the protocol's subset, with the name of the field.
    /// Peers may send such a schema; a server must not.
    pub fn beyond_subset(&self) -> Option<&str> {
        self.0.beyond.as_deref()
    }

    /// Returns the reason why a server cannot send this form, with the name of the field: a part of the form
    /// is [`beyond_subset`](Self::beyond_subset), or a field has no choices, the same choice twice, a default
    /// that is not among its choices, or a name that suggests a secret. `None` if there is no such reason.
    ///
    /// > Servers **MUST NOT** use form mode elicitation to request sensitive information such as passwords, API
    /// > keys, access tokens, or payment credentials
    pub fn unaskable(&self) -> Option<String> {
        let secret = || {
            let of_read = || secrets_among(self.fields());
            let secrets = self.0.secrets.as_ref().map_or_else(|| Cow::Owned(of_read()), Cow::Borrowed);
            secrets.first().map(|name| {
                format!(
                    "field `{name}`: a secret must not pass through the client; ask with a URL, and let the \
                     person enter it on a page of yours. If it is no secret, say \
                     `FormSchema::not_secret(\"{name}\")`"
                )
            })
        };
        self.0.beyond.clone().or_else(|| check::fault_of(self.fields())).or_else(secret)
    }

    /// Checks the values that were filled in. Defaults are added, unknown fields and `null`s are removed, and
    /// a whole number that was written with a fraction of zero is written without the fraction.
    ///
    /// # Errors
    /// The fault of every field that breaks a rule, in the form's order.
    pub fn check(&self, mut content: Map<String, Value>) -> Result<Map<String, Value>, Vec<FieldFault>> {
        let is_known = |name: &str| self.fields().iter().any(|field| field.name == name);
        content.retain(|name, value| !value.is_null() && is_known(name));
        let mut faults = Vec::new();
        for field in self.fields() {
            if let Some(value) = content.get_mut(&field.name) {
                match check::rule_broken_by(&field.kind, value) {
                    None => *value = check::as_asked(&field.kind, mem::take(value)),
                    Some(rule) => faults.push(FieldFault::new(field, rule)),
                }
                continue;
            }
            match field.default_value() {
                Some(value) => match check::rule_broken_by(&field.kind, &value) {
                    None => {
                        content.insert(field.name.clone(), check::as_asked(&field.kind, value));
                    }
                    Some(rule) => faults.push(FieldFault::new(field, rule)),
                },
                None if field.required => faults.push(FieldFault::new(field, "must be filled in".into())),
                None => {}
            }
        }
        if faults.is_empty() { Ok(content) } else { Err(faults) }
    }
}

fn secrets_among(fields: &[FormField]) -> Vec<String> {
    let secrets = fields.iter().filter(|field| secret_in(&field.name).is_some());
    secrets.map(|field| field.name.clone()).collect()
}

/// Returns the JSON text of a value made here: strings, numbers, maps of those.
fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[derive(Serialize)]
struct SchemaOut<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: Properties<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<&'a str>,
}

struct Properties<'a>(&'a [FormField]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|field| (&field.name, Property(field))))
    }
}

/// The schema of one field, in a fixed order: type, title, description, rules, default.
struct Property<'a>(&'a FormField);

impl Serialize for Property<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let field = self.0;
        let mut out = Optional(serializer.serialize_map(None)?);
        out.put("type", type_of(&field.kind))?;
        out.put("title", field.title.as_deref())?;
        out.put("description", field.description.as_deref())?;
        match &field.kind {
            FieldKind::Text { min_length, max_length, format, .. } => {
                out.put("minLength", *min_length)?;
                out.put("maxLength", *max_length)?;
                out.put("format", format.map(TextFormat::name))?;
            }
            FieldKind::Number { minimum, maximum, .. } => {
                out.put("minimum", minimum.as_ref())?;
                out.put("maximum", maximum.as_ref())?;
            }
            FieldKind::One { choices, .. } => match untitled(choices) {
                Some(values) => out.put("enum", Some(values))?,
                None => out.put("oneOf", Some(titled(choices)))?,
            },
            FieldKind::Many { choices, min_items, max_items, .. } => {
                out.put("minItems", *min_items)?;
                out.put("maxItems", *max_items)?;
                let items = match untitled(choices) {
                    Some(values) => json!({"type": "string", "enum": values}),
                    None => json!({"anyOf": titled(choices)}),
                };
                out.put("items", Some(items))?;
            }
            FieldKind::Boolean { .. } | FieldKind::Other => {}
        }
        out.put("default", field.default_value())?;
        out.0.end()
    }
}

fn type_of(kind: &FieldKind) -> Option<&'static str> {
    match kind {
        FieldKind::Text { .. } | FieldKind::One { .. } => Some("string"),
        FieldKind::Number { integer: true, .. } => Some("integer"),
        FieldKind::Number { integer: false, .. } => Some("number"),
        FieldKind::Boolean { .. } => Some("boolean"),
        FieldKind::Many { .. } => Some("array"),
        FieldKind::Other => None,
    }
}

/// A map serializer that writes only the members with a value.
struct Optional<M>(M);

impl<M: SerializeMap> Optional<M> {
    fn put(&mut self, name: &str, value: Option<impl Serialize>) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.0.serialize_entry(name, &value))
    }
}

fn untitled(choices: &[Choice]) -> Option<Value> {
    choices
        .iter()
        .all(|choice| choice.title.is_none())
        .then(|| choices.iter().map(|choice| &*choice.value).collect())
}

fn titled(choices: &[Choice]) -> Value {
    choices.iter().map(|choice| json!({"const": choice.value, "title": choice.label()})).collect()
}

impl Serialize for FormSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FormSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, RawValue>>::deserialize(deserializer)?;
        let (fields, beyond) = fields(text.get()).map_err(de::Error::custom)?;
        Ok(Self(Arc::new(SchemaParts { text: text.into_owned(), fields, beyond, secrets: None })))
    }
}

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
fn fields(text: &str) -> Result<(Vec<FormField>, Option<String>), String> {
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

fn no_kind_of_field(name: &str) -> String {
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
