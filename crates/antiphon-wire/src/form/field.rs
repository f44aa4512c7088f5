//! The fields of a form: kinds, formats, choices, and the fault of one field.

use crate::foreign_text::escaped;
use serde_json::{Number, Value};
use std::{borrow::Cow, fmt};

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
    /// The text to display to a person: the field's title, or else its name in words.
    pub label: String,
    /// The broken rule, for example "must be a whole number".
    pub rule: String,
}

impl FieldFault {
    pub(super) fn new(field: &FormField, rule: String) -> Self {
        Self { field: field.name.clone(), label: field.label().into_owned(), rule }
    }
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", escaped(&self.label), escaped(&self.rule))
    }
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
    /// assert_eq!((&*file.label(), &*size.label()), ("File", "Size"));
    /// ```
    ///
    /// A server cannot send a form with a field that has no choices, or the same choice twice:
    /// [`FormSchema::unaskable`](crate::FormSchema::unaskable) returns the reason.
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

    /// Returns the text to display to a person: the title, or else the name in words. The schema of a form has this text as
    /// the title of the field.
    ///
    /// ```
    /// use antiphon_wire::FormField;
    ///
    /// assert_eq!(FormField::boolean("accept_alternative").label(), "Accept alternative");
    /// assert_eq!(FormField::boolean("accept_alternative").title("Other day?").label(), "Other day?");
    /// ```
    pub fn label(&self) -> Cow<'_, str> {
        self.title.as_deref().map_or_else(|| Cow::Owned(in_words(&self.name)), Cow::Borrowed)
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

/// Returns a name in any casing as words, the first of them with a capital letter. A name without letters and digits stays
/// as it is.
pub(super) fn in_words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut letters = name.chars().peekable();
    let mut last = ' ';
    while let Some(letter) = letters.next() {
        let is_word = last.is_lowercase() && letter.is_uppercase();
        let is_gap = !letter.is_alphanumeric() || is_word;
        if is_gap && !words.is_empty() && !words.ends_with(' ') {
            words.push(' ');
        }
        // Several capitals in a row are an abbreviation.
        let is_abbreviation = letters.peek().is_none_or(|next| !next.is_lowercase());
        match letter {
            _ if !letter.is_alphanumeric() => {}
            _ if words.is_empty() => words.extend(letter.to_uppercase()),
            _ if is_word && !is_abbreviation => words.extend(letter.to_lowercase()),
            _ => words.push(letter),
        }
        last = letter;
    }
    words.truncate(words.trim_end().len());
    if words.is_empty() { name.to_owned() } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_in_words() {
        for (name, words) in [
            ("accept_alternative", "Accept alternative"),
            ("duplicateOfId", "Duplicate of id"),
            ("userID", "User ID"),
            ("URL", "URL"),
            ("kebab-case.name", "Kebab case name"),
            ("_private__name_", "Private name"),
            ("line2", "Line2"),
            ("Already in words", "Already in words"),
            ("\u{e9}tat_civil", "\u{c9}tat civil"),
            ("x", "X"),
            ("__", "__"),
            ("", ""),
        ] {
            assert_eq!(FormField::text(name).label(), words, "{name}");
        }
    }
}
