//! Forms: the flat subset of JSON Schema that a person can be asked to fill in.
//!
//! > form mode elicitation schemas are limited to flat objects with primitive properties only.

mod check;
mod choices;
mod read;

use crate::members::name_used_twice;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};
use serde_json::{Map, Number, Value, json, value::RawValue};
use std::{borrow::Cow, fmt};

/// The schema of a form: the text it was written in, and the fields read from it, in the order they were written.
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
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What to fill in.
    pub description: Option<String>,
    /// Whether the person must fill it in. A field with a default need not be.
    pub required: bool,
    /// What can be filled in.
    pub kind: FieldKind,
}

/// What can be filled into a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// Text.
    Text {
        /// In characters.
        min_length: Option<u64>,
        /// In characters.
        max_length: Option<u64>,
        /// What the text must be.
        format: Option<TextFormat>,
        /// Filled in beforehand.
        default: Option<String>,
    },
    /// A number, whole or not.
    Number {
        /// Whether it must be whole.
        integer: bool,
        /// The least allowed.
        minimum: Option<Number>,
        /// The most allowed.
        maximum: Option<Number>,
        /// Filled in beforehand.
        default: Option<Number>,
    },
    /// Yes or no.
    Boolean {
        /// Filled in beforehand.
        default: Option<bool>,
    },
    /// One of several.
    One {
        /// What to choose from.
        choices: Vec<Choice>,
        /// Chosen beforehand.
        default: Option<String>,
    },
    /// Several of several.
    Many {
        /// What to choose from.
        choices: Vec<Choice>,
        /// The fewest allowed.
        min_items: Option<u64>,
        /// The most allowed.
        max_items: Option<u64>,
        /// Chosen beforehand.
        default: Option<Vec<String>>,
    },
    /// Something outside the subset, from a peer: anything can be filled in.
    Other,
}

/// What a text must be.
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

/// Something to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// For programs: what the answer holds.
    pub value: String,
    /// For people.
    pub title: Option<String>,
}

impl Choice {
    /// What a person should read: the title, or else the value.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

/// A value that people read as it is.
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

/// The items of `["a", "b"].iter()`.
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

/// A value and its title.
impl<V: Into<String>, T: Into<String>> From<(V, T)> for Choice {
    fn from((value, title): (V, T)) -> Self {
        Self { value: value.into(), title: Some(title.into()) }
    }
}

/// What is wrong with one field of an answer. Never holds the value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldFault {
    /// The field's name.
    pub field: String,
    /// What a person should read: the field's title, or else its name.
    pub label: String,
    /// The broken rule: "must be a whole number".
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

    /// A required text.
    pub fn text(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Text { min_length: None, max_length: None, format: None, default: None })
    }

    /// A required number.
    pub fn number(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Number { integer: false, minimum: None, maximum: None, default: None })
    }

    /// A required whole number.
    pub fn integer(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Number { integer: true, minimum: None, maximum: None, default: None })
    }

    /// A required yes or no.
    pub fn boolean(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Boolean { default: None })
    }

    /// A required choice of one. The choices are values (`String`, `&str`), pairs of value and title, or [`Choice`]s:
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
    /// A form with a field that has no choices, or the same choice twice, cannot be asked:
    /// [`FormSchema::unaskable`] says so.
    pub fn one<C: Into<Choice>>(name: impl Into<String>, choices: impl IntoIterator<Item = C>) -> Self {
        Self::new(
            name,
            FieldKind::One { choices: choices.into_iter().map(Into::into).collect(), default: None },
        )
    }

    /// A required choice of one, from values that are also what a person reads: names from a database, for example. With
    /// titles apart from the values, it is [`one`](Self::one).
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

    /// A required choice of several, from the same kinds of choices as [`one`](Self::one).
    pub fn many<C: Into<Choice>>(name: impl Into<String>, choices: impl IntoIterator<Item = C>) -> Self {
        let choices = choices.into_iter().map(Into::into).collect();
        Self::new(name, FieldKind::Many { choices, min_items: None, max_items: None, default: None })
    }

    /// The same field, with this title.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The same field, with this description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The same field, which may be left empty.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// What a person should read: the title, or else the name.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// What is filled in beforehand.
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
    /// A form of these fields, in this order. [`unaskable`](Self::unaskable) returns the reason if the form cannot be asked,
    /// for example because two fields have the same name.
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

    /// The fields, in order.
    pub fn fields(&self) -> &[FormField] {
        &self.fields
    }

    /// The schema, as text.
    pub fn text(&self) -> &str {
        self.text.get()
    }

    /// What of the schema lies outside the protocol's subset, naming the field. Peers may send such a schema; a
    /// server must not.
    pub fn beyond_subset(&self) -> Option<&str> {
        self.beyond.as_deref()
    }

    /// The reason why a server cannot ask this form, with the name of the field: a part of it is
    /// [`beyond_subset`](Self::beyond_subset), or a field has no choices, the same choice twice, or a default that is not
    /// among its choices. `None` if there is no such reason.
    pub fn unaskable(&self) -> Option<String> {
        self.beyond.clone().or_else(|| choices::fault_of(&self.fields))
    }

    /// Checks what was filled in: defaults come in, unknown fields and `null`s go out, a whole number that was written
    /// with a fraction of zero is written without.
    ///
    /// # Errors
    /// Every field that breaks a rule, in the form's order.
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

/// Values made here: strings, numbers, maps of those.
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

/// Writes the members that are there.
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
    /// Its name in a schema.
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
