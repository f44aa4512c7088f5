//! Answers: the entries of `inputResponses`. Each is read as the kind of ask it answers, never guessed by its shape.

use crate::{Meta, members::Members};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::fmt;

/// What the person did with a form or a URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// What the person chose.
    pub action: Action,
    /// The form's fields: there if a form was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ElicitResult {
    /// The person filled in the form.
    pub fn accept(content: Map<String, Value>) -> Self {
        Self { action: Action::Accept, content: Some(content), meta: None, extra: Map::new() }
    }

    /// The person agreed to open the URL. It does not say that they are done there.
    pub fn consent() -> Self {
        Self { action: Action::Accept, content: None, meta: None, extra: Map::new() }
    }

    /// The person said no.
    pub fn decline() -> Self {
        Self { action: Action::Decline, content: None, meta: None, extra: Map::new() }
    }

    /// The person went away without choosing.
    pub fn cancel() -> Self {
        Self { action: Action::Cancel, content: None, meta: None, extra: Map::new() }
    }
}

/// The three things a person can do when asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Submit, or agree.
    Accept,
    /// Say no.
    Decline,
    /// Go away without choosing.
    Cancel,
}

/// The client's root directories.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// In the client's order.
    pub roots: Vec<Root>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ListRootsResult {
    /// These roots.
    pub fn new(roots: Vec<Root>) -> Self {
        Self { roots, meta: None, extra: Map::new() }
    }
}

/// A root directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Root {
    /// A root without a name.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, meta: None, extra: Map::new() }
    }
}

/// The answers of one leg by their keys, as the text that was sent. What each says is read once its ask is known.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputResponses(Members);

impl InputResponses {
    /// No answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the answer to this key.
    ///
    /// # Errors
    /// Only if `answer` cannot be written as JSON.
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

    /// The answer to this key, as text.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.get(key)
    }

    /// The answers in the order they were sent.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &RawValue)> {
        self.0.0.iter().map(|(key, answer)| (key.as_str(), &**answer))
    }

    /// How many answers there are.
    pub fn len(&self) -> usize {
        self.0.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }
}

impl fmt::Debug for InputResponses {
    /// Names the keys only: answers do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(key, _)| key)).finish()
    }
}
