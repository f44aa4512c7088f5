//! The open questions of a task, and their keys on the wire.

use antiphon_store::mutant::is_mutant;
use antiphon_wire::{Action, InputRequest, InputRequests};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// The open questions of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Questions {
    open: Vec<OpenQuestion>,
    /// All keys that the task has used.
    used: Vec<String>,
}

/// A question without an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OpenQuestion {
    /// The key on the wire.
    key: String,
    /// The path of the question in the call.
    path: String,
    /// The question, as JSON.
    request: Box<RawValue>,
    /// The id that the author gave to a URL question. Sessions see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    elicitation_id: Option<String>,
}

impl Questions {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Replaces the open questions. One that was open with the same text keeps its key; any other gets a new one. A question that was
    /// asked again with a reason stays as it is when a leg without an answer to it has no reason.
    ///
    /// > Each request key in `inputRequests` **MUST** be unique over the lifetime of a single task.
    ///
    /// `elicitation_ids` are the ids that the author gave to URL questions, by path.
    pub(super) fn replace<'a>(
        &mut self,
        asked: impl IntoIterator<Item = (&'a str, &'a InputRequest)>,
        elicitation_ids: &[(String, String)],
    ) {
        let mut before = std::mem::take(&mut self.open);
        for (path, request) in asked {
            // A question is written as it was received from the engine: there is nothing in it that cannot be written.
            let Ok(text) = to_raw_value(request) else { continue };
            let is_same = |open: &str| open == text.get() || has_reason(open, request, text.get());
            let same = |open: &OpenQuestion| open.path == path && is_same(open.request.get());
            let given = elicitation_ids.iter().find(|(of, _)| of == path).map(|(_, id)| id.clone());
            let question = match before.iter().position(same) {
                Some(at) => before.swap_remove(at),
                None => {
                    let (key, path) = (self.new_key(path), path.to_owned());
                    OpenQuestion { key, path, request: text, elicitation_id: given }
                }
            };
            self.open.push(question);
        }
    }

    fn new_key(&mut self, path: &str) -> String {
        let is_used = |key: &String| self.used.contains(key) && !is_mutant("task_key_reused");
        let numbered = (2_u32..).map(|number| format!("{path}~{number}"));
        // The iterator does not end.
        let key =
            std::iter::once(path.to_owned()).chain(numbered).find(|key| !is_used(key)).unwrap_or_default();
        self.used.push(key.clone());
        key
    }

    /// Takes the question with this key out. Returns its path.
    pub(super) fn answer(&mut self, key: &str) -> Option<String> {
        let at = self.open.iter().position(|open| open.key == key)?;
        Some(self.open.remove(at).path)
    }

    /// Takes all questions to a person out, and returns their cancellations.
    pub(super) fn cancel(&mut self) -> Vec<(String, Box<RawValue>)> {
        let is_elicitation = |open: &OpenQuestion| {
            serde_json::from_str::<InputRequest>(open.request.get())
                .is_ok_and(|request| matches!(request, InputRequest::Elicit(_)))
        };
        let cancelled = serde_json::json!({ "action": Action::Cancel });
        let Ok(cancelled) = to_raw_value(&cancelled) else { return Vec::new() };
        let (asked, open) = std::mem::take(&mut self.open).into_iter().partition(is_elicitation);
        self.open = open;
        let asked: Vec<OpenQuestion> = asked;
        asked.into_iter().map(|open| (open.path, cancelled.clone())).collect()
    }

    /// Returns the id that the author gave to the open question with this key.
    pub(super) fn elicitation_id(&self, key: &str) -> Option<&str> {
        self.open.iter().find(|open| open.key == key)?.elicitation_id.as_deref()
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Returns the open questions for the client.
    pub(super) fn to_requests(&self) -> InputRequests {
        let mut requests = InputRequests::new();
        for open in &self.open {
            if let Ok(request) = serde_json::from_str(open.request.get()) {
                // Each key is used once.
                let _ = requests.insert(&*open.key, request);
            }
        }
        requests
    }
}

/// Returns true if an open question is this one with a reason behind its message: that for which an answer was not valid.
fn has_reason(open: &str, request: &InputRequest, text: &str) -> bool {
    let (InputRequest::Elicit(request), Ok(InputRequest::Elicit(open))) =
        (request, serde_json::from_str(open))
    else {
        return false;
    };
    let reason = open.message().strip_prefix(request.message());
    let is_question = |open| to_raw_value(&InputRequest::Elicit(open)).is_ok_and(|open| open.get() == text);
    reason.is_some_and(|reason| reason.starts_with("\n\n"))
        && is_question(open.with_message(request.message().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths and texts of the questions of a round, and their keys.
    type Round<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

    fn check(rounds: &[Round<'_>]) {
        let mut questions = Questions::default();
        for (asked, expected) in rounds {
            let asked: Vec<(&str, InputRequest)> = asked
                .iter()
                .map(|(path, text)| {
                    let request = serde_json::json!({"method": "elicitation/create", "params": {"mode": "url", "message": text, "url": "https://a.example", "elicitationId": "x"}});
                    (*path, serde_json::from_str(&request.to_string()).unwrap())
                })
                .collect();
            questions.replace(asked.iter().map(|(path, request)| (*path, request)), &[]);
            let requests = questions.to_requests();
            let keys: Vec<&str> = requests.iter().map(|(key, _)| key).collect();
            assert_eq!(&keys, expected);
        }
    }

    #[test]
    fn a_key_belongs_to_one_question_for_ever() {
        check(&[
            (&[("a", "1"), ("b", "1")], &["a", "b"]),
            (&[("b", "1")], &["b"]),
            (&[("a", "1")], &["a~2"]),
        ]);
        check(&[
            (&[("a", "1")], &["a"]),
            (&[("a", "2")], &["a~2"]),
            (&[("a", "2"), ("a~2", "1")], &["a~2", "a~2~2"]),
        ]);
        // Asked again with a reason, and then without it, as another question was answered.
        check(&[
            (&[("a", "1"), ("b", "1")], &["a", "b"]),
            (&[("a", "1\n\nWhy"), ("b", "1")], &["a~2", "b"]),
            (&[("a", "1")], &["a~2"]),
            (&[("a", "1\n\nWhy not")], &["a~3"]),
        ]);
    }

    #[test]
    fn an_answered_question_is_asked_again_under_another_key() {
        let mut questions = Questions::default();
        let request: InputRequest = serde_json::from_str(r#"{"method":"roots/list"}"#).unwrap();
        questions.replace([("a", &request)], &[]);
        assert_eq!(questions.answer("a").as_deref(), Some("a"));
        assert_eq!(questions.answer("a"), None);
        questions.replace([("a", &request)], &[]);
        assert!(questions.answer("a").is_none() && questions.answer("a~2").is_some());
        assert!(questions.is_empty());
    }
}
