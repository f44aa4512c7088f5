//! The tables of `interop/legacy`: calls, answers and expected outcomes.

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
    /// Keys of the questions in their order; keys of one round are in one list.
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
    /// Replacement of this case for antiphon's client, which opens the URLs of the error -32042 and then repeats the
    /// call.
    pub(crate) antiphon: Option<Box<Case>>,
}

/// Expected end of a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Text(String),
    ToolErrorEnds(String),
    /// An error of the protocol or of the tool, with a message that contains this text.
    Refused(String),
    /// The error -32042 with these URLs.
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
    /// The fields and their values, as written in the table.
    Content(Vec<(String, String)>),
}

impl Case {
    /// Keys of the expected questions, one list per round.
    pub(crate) fn rounds(&self) -> Vec<Vec<String>> {
        let kinds = [("sample", self.sample.is_some()), ("roots", self.roots.is_some())];
        let alone =
            || kinds.into_iter().filter(|(_, is)| *is).map(|(kind, _)| vec![kind.to_owned()]).collect();
        self.asks.clone().unwrap_or_else(alone)
    }

    /// The key of the question with this message.
    pub(crate) fn key_of(&self, message: &str) -> Option<&str> {
        self.messages.iter().find(|(_, written)| *written == message).map(|(key, _)| key.as_str())
    }

    pub(crate) fn answer(&self, key: &str) -> Answer {
        let lines: Vec<&str> = self.answers.iter().filter_map(|line| line.strip_prefix(key)).collect();
        let is = |action: &&str| lines.iter().any(|rest| rest.strip_prefix('=') == Some(action));
        match ["accept", "decline", "cancel"].into_iter().find(is) {
            Some(action) => Answer::Action(action),
            None => {
                let fields = lines.iter().filter_map(|rest| rest.strip_prefix('.')?.split_once('='));
                Answer::Content(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
            }
        }
    }
}
