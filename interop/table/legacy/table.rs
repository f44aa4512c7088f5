//! The tables of `interop/legacy`: what is called, what is answered, what is to come of it.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashMap;

#[derive(Deserialize)]
pub(crate) struct Table {
    pub(crate) cases: Vec<Case>,
}

/// One call.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    #[serde(default)]
    answers: Vec<String>,
    /// The keys in the order in which they come; those that come together in one list.
    asks: Option<Vec<Vec<String>>>,
    #[serde(default)]
    messages: HashMap<String, String>,
    pub(crate) sample: Option<String>,
    pub(crate) roots: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) progress: usize,
    #[serde(default)]
    pub(crate) logs: usize,
    #[serde(default)]
    pub(crate) completed: Vec<String>,
    pub(crate) outcome: Outcome,
    /// What is otherwise with this client, which opens the URLs of the error -32042 and then calls again.
    pub(crate) antiphon: Option<Box<Case>>,
}

/// What comes of a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Text(String),
    ToolErrorEnds(String),
    /// An error of the protocol, or of the tool.
    Refused(String),
    /// The error -32042 with these.
    Urls(serde::de::IgnoredAny),
}

impl Default for Outcome {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// An answer to one question.
pub(crate) enum Answer {
    Action(&'static str),
    /// The fields and their values, as they are written.
    Content(Vec<(String, String)>),
}

impl Case {
    /// The keys that come, those that come together in one list.
    pub(crate) fn rounds(&self) -> Vec<Vec<String>> {
        let kinds = [("sample", self.sample.is_some()), ("roots", self.roots.is_some())];
        let alone =
            || kinds.into_iter().filter(|(_, is)| *is).map(|(kind, _)| vec![kind.to_owned()]).collect();
        self.asks.clone().unwrap_or_else(alone)
    }

    /// Which question this is.
    pub(crate) fn key_of(&self, message: &str) -> Option<&str> {
        self.messages.iter().find(|(_, written)| *written == message).map(|(key, _)| key.as_str())
    }

    pub(crate) fn answer(&self, key: &str) -> Answer {
        let of_key: Vec<&str> = self.answers.iter().filter_map(|line| line.strip_prefix(key)).collect();
        let is = |action: &&str| of_key.iter().any(|rest| rest.strip_prefix('=') == Some(action));
        match ["accept", "decline", "cancel"].into_iter().find(is) {
            Some(action) => Answer::Action(action),
            None => {
                let fields = of_key.iter().filter_map(|rest| rest.strip_prefix('.')?.split_once('='));
                Answer::Content(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
            }
        }
    }
}
