//! Forms: the flat subset of JSON Schema that the client can present to a person.
//!
//! > form mode elicitation schemas are limited to flat objects with primitive properties only.

mod check;
mod choices;
mod read;

use crate::members::name_used_twice;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};
use serde_json::{Map, Number, Value, json, value::RawValue};
use std::{borrow::Cow, fmt};

/// The schema of a form: its original text, and the fields read from the text, in their original order.
#[derive(Clone, Debug)]
pub struct FormSchema {
    text: Box<RawValue>,
    fields: Vec<FormField>,
    beyond: Option<String>,
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FormField {
    /// The name for programs.
    pub name: String,
    /// The title to display to people.
    pub title: Option<String>,
    /// The description of the value to fill in.
    pub description: Option<String>,
    /// True if the person must fill in the field. A field with a default may stay empty.
    pub required: bool,
    /// The kind of value that can be filled in.
    pub kind: FieldKind,
}

/// The kind of value that can be filled into a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// Text.
    Text {
        /// The minimum length, in characters.
        min_length: Option<u64>,
        /// The maximum length, in characters.
        max_length: Option<u64>,
        /// The format that the text must have.
        format: Option<TextFormat>,
        /// The value that is filled in beforehand.
        default: Option<String>,
    },
    /// A number, whole or not.
    Number {
        /// True if the number must be whole.
        integer: bool,
        /// The minimum.
        minimum: Option<Number>,
        /// The maximum.
        maximum: Option<Number>,
        /// The value that is filled in beforehand.
        default: Option<Number>,
    },
    /// Yes or no.
    Boolean {
        /// The value that is filled in beforehand.
        default: Option<bool>,
    },
    /// A choice of one value.
    One {
        /// The choices.
        choices: Vec<Choice>,
        /// The value that is chosen beforehand.
        default: Option<String>,
    },
    /// A choice of several values.
    Many {
        /// The choices.
        choices: Vec<Choice>,
        /// The minimum number of chosen values.
        min_items: Option<u64>,
        /// The maximum number of chosen values.
        max_items: Option<u64>,
        /// The values that are chosen beforehand.
        default: Option<Vec<String>>,
    },
    /// A field of a peer that is outside the subset: any value can be filled in.
    Other,
}

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextFormat {
    /// An email address.
    Email,
    /// An absolute URI.
    Uri,
    /// A date: `2026-07-28`.
    Date,
    /// A point in time with its offset: `2026-07-28T12:00:00Z` (RFC 3339).
    DateTime,
}

/// A value to choose, and its title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The value for programs: the answer contains this value.
    pub value: String,
    /// The title to display to people.
    pub title: Option<String>,
}

impl Choice {
    /// Returns the text to display to a person: the title, or else the value.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

/// Returns a choice without a title: the value is displayed to people.
impl From<String> for Choice {
    fn from(value: String) -> Self {
        Self { value, title: None }
    }
}

impl From<&String> for Choice {
    fn from(value: &String) -> Self {
        value.clone().into()
    }
}

impl From<&str> for Choice {
    fn from(value: &str) -> Self {
        value.to_owned().into()
    }
}

/// Converts the items of `["a", "b"].iter()`.
impl From<&&str> for Choice {
    fn from(value: &&str) -> Self {
        (*value).into()
    }
}

impl From<Cow<'_, str>> for Choice {
    fn from(value: Cow<'_, str>) -> Self {
        value.into_owned().into()
    }
}

/// Converts a pair of value and title.
impl<V: Into<String>, T: Into<String>> From<(V, T)> for Choice {
    fn from((value, title): (V, T)) -> Self {
        Self { value: value.into(), title: Some(title.into()) }
    }
}

/// A fault of one field of an answer. Never contains the value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldFault {
    /// The field's name.
    pub field: String,
    /// The text to display to a person: the field's title, or else its name.
    pub label: String,
    /// The broken rule, for example "must be a whole number".
    pub rule: String,
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.label, self.rule)
    }
}

impl FormField {
    fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self { name: name.into(), title: None, description: None, required: true, kind }
    }

    /// Returns a required text field.
    pub fn text(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Text { min_length: None, max_length: None, format: None, default: None })
    }

    /// Returns a required number field.
    pub fn number(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Number { integer: false, minimum: None, maximum: None, default: None })
    }

    /// Returns a required field for a whole number.
    pub fn integer(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Number { integer: true, minimum: None, maximum: None, default: None })
    }

    /// Returns a required yes or no field.
    pub fn boolean(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Boolean { default: None })
    }

    /// Returns a required field with a choice of one. The choices are values (`String`, `&str`), pairs of
    /// value and title, or [`Choice`]s:
    ///
    /// ```
    /// use antiphon_wire::FormField;
    ///
    /// let names: Vec<String> = vec!["a.txt".to_owned(), "b.txt".to_owned()];
    /// let file = FormField::one("file", &names).title("File");
    /// let size = FormField::one("size", [("s", "Small"), ("l", "Large")]);
    /// assert_eq!((file.label(), size.label()), ("File", "size"));
    /// ```
    ///
    /// A server cannot send a form with a field that has no choices, or the same choice twice:
    /// [`FormSchema::unaskable`] returns the reason.
    pub fn one<C: Into<Choice>>(name: impl Into<String>, choices: impl IntoIterator<Item = C>) -> Self {
        Self::new(
            name,
            FieldKind::One { choices: choices.into_iter().map(Into::into).collect(), default: None },
        )
    }

    /// Returns a required field with a choice of one, from values that are also displayed to a person: names
    /// from a database, for example. For titles apart from the values, use [`one`](Self::one).
    ///
    /// ```
    /// use antiphon_wire::FormField;
    ///
    /// let names: Vec<String> = vec!["a.txt".to_owned(), "b.txt".to_owned()];
    /// assert_eq!(FormField::one_of("file", &names), FormField::one("file", ["a.txt", "b.txt"]));
    /// ```
    pub fn one_of<S: Into<String>>(name: impl Into<String>, values: impl IntoIterator<Item = S>) -> Self {
        Self::one(name, values.into_iter().map(|value| Choice::from(value.into())))
    }

    /// Returns a required field with a choice of several, from the same kinds of choices as
    /// [`one`](Self::one).
    pub fn many<C: Into<Choice>>(name: impl Into<String>, choices: impl IntoIterator<Item = C>) -> Self {
        let choices = choices.into_iter().map(Into::into).collect();
        Self::new(name, FieldKind::Many { choices, min_items: None, max_items: None, default: None })
    }

    /// Returns the same field with this title.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Returns the same field with this description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Returns the same field, which may be left empty.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// Returns the text to display to a person: the title, or else the name.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Returns the value that is filled in beforehand.
    pub fn default_value(&self) -> Option<Value> {
        match &self.kind {
            FieldKind::Text { default, .. } | FieldKind::One { default, .. } => {
                default.clone().map(Value::from)
            }
            FieldKind::Number { default, .. } => default.clone().map(Value::from),
            FieldKind::Boolean { default } => default.map(Value::from),
            FieldKind::Many { default, .. } => default.clone().map(Value::from),
            FieldKind::Other => None,
        }
    }
}

impl FormSchema {
    /// Returns a form with these fields, in this order. [`unaskable`](Self::unaskable) returns the reason if
    /// a server cannot send the form, for example because two fields have the same name.
    pub fn new(fields: Vec<FormField>) -> Self {
        let required: Vec<&str> =
            fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
        let text = raw(&SchemaOut { kind: "object", properties: Properties(&fields), required });
        let twice = name_used_twice(fields.iter().map(|field| field.name.as_str()));
        let beyond = twice.map(|name| format!("two fields have the name `{name}`")).or_else(|| {
            let other = fields.iter().find(|field| field.kind == FieldKind::Other)?;
            Some(read::no_kind_of_field(&other.name))
        });
        Self { text, fields, beyond }
    }

    /// Returns the fields, in order.
    pub fn fields(&self) -> &[FormField] {
        &self.fields
    }

    /// Returns the schema, as text.
    pub fn text(&self) -> &str {
        self.text.get()
    }

    /// Returns the part of the schema that is outside the protocol's subset, with the name of the field.
    /// Peers may send such a schema; a server must not.
    pub fn beyond_subset(&self) -> Option<&str> {
        self.beyond.as_deref()
    }

    /// Returns the reason why a server cannot send this form, with the name of the field: a part of the form
    /// is [`beyond_subset`](Self::beyond_subset), or a field has no choices, the same choice twice, or a
    /// default that is not among its choices. `None` if there is no such reason.
    pub fn unaskable(&self) -> Option<String> {
        self.beyond.clone().or_else(|| choices::fault_of(&self.fields))
    }

    /// Checks the values that were filled in. Defaults are added, unknown fields and `null`s are removed, and
    /// a whole number that was written with a fraction of zero is written without the fraction.
    ///
    /// # Errors
    /// The fault of every field that breaks a rule, in the form's order.
    pub fn check(&self, content: &Map<String, Value>) -> Result<Map<String, Value>, Vec<FieldFault>> {
        let (mut checked, mut faults) = (Map::new(), Vec::new());
        for field in &self.fields {
            let value = content.get(&field.name).filter(|value| !value.is_null()).cloned();
            match value.or_else(|| field.default_value()) {
                Some(value) => match check::rule_broken_by(&field.kind, &value) {
                    None => {
                        checked.insert(field.name.clone(), check::as_asked(&field.kind, value));
                    }
                    Some(rule) => faults.push(fault(field, rule)),
                },
                None if field.required => faults.push(fault(field, "must be filled in".into())),
                None => {}
            }
        }
        if faults.is_empty() { Ok(checked) } else { Err(faults) }
    }
}

fn fault(field: &FormField, rule: String) -> FieldFault {
    FieldFault { field: field.name.clone(), label: field.label().to_owned(), rule }
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

impl TextFormat {
    /// Returns the name of the format in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Date => "date",
            Self::DateTime => "date-time",
        }
    }
}

impl Serialize for FormSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FormSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, RawValue>>::deserialize(deserializer)?;
        let (fields, beyond) = read::fields(text.get()).map_err(de::Error::custom)?;
        Ok(Self { text: text.into_owned(), fields, beyond })
    }
}
