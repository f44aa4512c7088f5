//! The tables of `../../legacy`: calls, answers and expected outcomes.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::{collections::HashMap, error::Error, fs, path::Path};

/// One call.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) arguments: Option<Map<String, Value>>,
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
    pub(crate) outcome: Map<String, Value>,
}

/// A case of `examples.json`.
#[derive(Deserialize)]
struct Example {
    case: String,
    tool: String,
    arguments: Map<String, Value>,
    answers: Vec<String>,
    asked: Vec<Vec<String>>,
    #[serde(default)]
    messages: Vec<String>,
    sample: Option<String>,
    roots: Option<Vec<String>>,
    text: Value,
    #[serde(default)]
    is_error: bool,
    /// Other members. Some of them mark cases that need a fleet and its backend.
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// Reads the cases of a table. Of `examples.json`, cases that need a fleet are left out.
pub(crate) fn read(path: &Path) -> Result<Vec<Case>, Box<dyn Error + Send + Sync>> {
    let mut table: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    if table.is_object() {
        return Ok(serde_json::from_value(table["cases"].take())?);
    }
    let examples: Vec<Example> = serde_json::from_value(table)?;
    let fleet_members = ["before", "page", "bearer", "deploy"];
    let needs_fleet = |one: &Example| {
        fleet_members.iter().any(|need| one.more.contains_key(*need)) || one.tool == "deposit_status"
    };
    let standalone = examples.into_iter().filter(|one| !needs_fleet(one));
    Ok(standalone.map(Case::from).collect())
}

impl From<Example> for Case {
    fn from(one: Example) -> Self {
        let outcome = if one.is_error { "tool_error" } else { "text" };
        Self {
            id: one.case,
            kind: "tool".to_owned(),
            name: one.tool,
            arguments: Some(one.arguments),
            answers: one.answers,
            messages: one.asked.iter().flatten().cloned().zip(one.messages).collect(),
            asks: Some(one.asked),
            sample: one.sample,
            roots: one.roots,
            outcome: Map::from_iter([(outcome.to_owned(), one.text)]),
            ..Self::default()
        }
    }
}

impl Case {
    /// Keys of the expected questions, one list per round.
    pub(crate) fn rounds(&self) -> Vec<Vec<String>> {
        let kinds = [("sample", self.sample.is_some()), ("roots", self.roots.is_some())];
        let standalone =
            || kinds.into_iter().filter(|(_, is)| *is).map(|(kind, _)| vec![kind.to_owned()]).collect();
        self.asks.clone().unwrap_or_else(standalone)
    }

    /// The key of a question. A question whose message is not in the table is identified by its fields.
    pub(crate) fn key_of(
        &self,
        message: &str,
        fields: &Map<String, Value>,
        asked: &[String],
    ) -> Option<String> {
        let matches = |key: &&String| match self.messages.get(*key) {
            Some(written) => written == message,
            None => self.lines(key).all(|(field, _)| fields.contains_key(field)),
        };
        let rounds = self.rounds();
        let candidates: Vec<&String> =
            rounds.iter().flatten().filter(|key| !asked.contains(key)).filter(matches).collect();
        let message = message.to_lowercase();
        let in_message = |key: &&&String| message.contains(key.split('_').next().unwrap_or_default());
        // A case that answers with an action only would match any form.
        let has_fields = |key: &&&String| self.lines(key).next().is_some();
        let found = candidates
            .iter()
            .find(in_message)
            .or_else(|| candidates.iter().find(has_fields))
            .or(candidates.first());
        found.map(|key| (*key).clone())
    }

    pub(crate) fn action(&self, key: &str) -> Option<&'static str> {
        let is = |action: &&str| self.answers.iter().any(|line| *line == format!("{key}={action}"));
        ["accept", "decline", "cancel"].into_iter().find(is)
    }

    /// The content for a form, with the types of its fields.
    pub(crate) fn content(&self, key: &str, fields: &Map<String, Value>) -> Value {
        let typed = |field: &str, text: &str| match fields.get(field) {
            Some(schema) if schema["type"] != "string" => serde_json::from_str(text).unwrap_or_default(),
            _ => Value::from(text),
        };
        self.lines(key).map(|(field, text)| (field.to_owned(), typed(field, text))).collect()
    }

    fn lines(&self, key: &str) -> impl Iterator<Item = (&str, &str)> {
        let own = self.answers.iter().filter_map(move |line| line.strip_prefix(key)?.strip_prefix('.'));
        own.filter_map(|line| line.split_once('='))
    }
}
