//! Answers: the entries of `inputResponses`. Each answer is read as the kind of its input request, never
//! guessed from its shape.

use crate::{Meta, members::Members, walk::walked_members};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::fmt;

/// The person's response to a form or a URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// The action that the person chose.
    pub action: Action,
    /// The values of the form's fields; present if a form was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ElicitResult {
    /// Returns the response of a person who filled in the form.
    pub fn accept(content: Map<String, Value>) -> Self {
        Self { action: Action::Accept, content: Some(content), meta: None, extra: Map::new() }
    }

    /// Returns the response of a person who agreed to open the URL. The response does not mean that the
    /// person is finished at the URL.
    pub fn consent() -> Self {
        Self { action: Action::Accept, content: None, meta: None, extra: Map::new() }
    }

    /// Returns the response of a person who refused.
    pub fn decline() -> Self {
        Self { action: Action::Decline, content: None, meta: None, extra: Map::new() }
    }

    /// Returns the response of a person who left without a choice.
    pub fn cancel() -> Self {
        Self { action: Action::Cancel, content: None, meta: None, extra: Map::new() }
    }
}

/// The three actions that a person can choose in response to a form or a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The person submitted the form, or agreed to open the URL.
    Accept,
    /// The person refused.
    Decline,
    /// The person left without a choice.
    Cancel,
}

/// The client's root directories: the result of `roots/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// The roots in the client's order.
    pub roots: Vec<Root>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ListRootsResult {
    /// Returns a result with these roots.
    pub fn new(roots: Vec<Root>) -> Self {
        Self { roots, meta: None, extra: Map::new() }
    }
}

/// A root directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// The root's `file://` URI.
    pub uri: String,
    /// The name to display to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Root {
    /// Returns a root without a name.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, meta: None, extra: Map::new() }
    }
}

/// The answers of one leg by their keys, as the text that was sent. An answer is decoded once its input
/// request is found.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputResponses(Members);

impl InputResponses {
    /// Returns an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the answers from the text of an object that names no member twice.
    ///
    /// # Errors
    /// An error if the text is no object, or names a member twice.
    pub fn read(text: &RawValue) -> Result<Self, serde_json::Error> {
        match walked_members(text.get()) {
            Some(members) => Ok(Self(Members(members))),
            // A name with an escape, or an error.
            None => serde_json::from_str(text.get()),
        }
    }

    /// Sets the answer for this key.
    ///
    /// # Errors
    /// An error only if `answer` cannot be written as JSON.
    pub fn insert(
        &mut self,
        key: impl Into<String>,
        answer: &impl Serialize,
    ) -> Result<(), serde_json::Error> {
        let (key, answer) = (key.into(), serde_json::value::to_raw_value(answer)?);
        match self.0.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = answer,
            None => self.0.0.push((key, answer)),
        }
        Ok(())
    }

    /// Returns the answer for this key, as text.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.get(key)
    }

    /// Returns the answers in the order in which they were sent.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &RawValue)> {
        self.0.0.iter().map(|(key, answer)| (key.as_str(), &**answer))
    }

    /// Returns the number of answers.
    pub fn len(&self) -> usize {
        self.0.0.len()
    }

    /// Returns true if there are no answers.
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }
}

impl fmt::Debug for InputResponses {
    /// Writes the keys only: answers do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(key, _)| key)).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    /// Reading in one walk and reading with serde give the same answers, or no answers.
    #[test]
    fn answers_are_read_as_serde_reads_them() {
        for text in [
            "{}",
            " { } ",
            r#"{"a":{"action":"accept"}}"#,
            r#"{"a" : [1, {"b":null}] ,"":"x\"y"}"#,
            r#"{"\u0061":1}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            "[]",
            "null",
            "1",
        ] {
            let text: &RawValue = serde_json::from_str(text).unwrap();
            let by_serde = serde_json::from_str::<InputResponses>(text.get()).ok();
            let read = InputResponses::read(text).ok();
            let shown = |all: Option<InputResponses>| {
                all.map(|all| {
                    all.iter().map(|(key, text)| (key.to_owned(), text.get().to_owned())).collect::<Vec<_>>()
                })
            };
            assert_eq!(shown(read), shown(by_serde), "{text}");
        }
    }
}
