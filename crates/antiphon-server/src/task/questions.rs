//! The open questions of a task, and their keys on the wire.
//!
//! ```text
//!  asked while a leg runs, or in its round ──▶ open ── answered ─────────────────────────▶ gone
//!                                               │ ├─── asked with another text ──────────▶ superseded
//!                                               │ └─── not in the record of an ended leg ▶ withdrawn
//!                                               └ asked again with its text: the same key
//! ```
//!
//! A leg that runs has not reached all of its questions yet. So it only adds questions, and the end of a leg replaces them.

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

    /// Adds questions. One that is open with the same text keeps its key; any other gets a new one, and replaces one with the same
    /// path. A question that was asked again with a reason stays as it is when a leg without an answer to it has no reason.
    ///
    /// > Each request key in `inputRequests` **MUST** be unique over the lifetime of a single task.
    ///
    /// `elicitation_ids` are the ids that the author gave to URL questions, by path. At most `at_most` questions are open.
    pub(super) fn add<'a>(
        &mut self,
        asked: impl IntoIterator<Item = (&'a str, &'a InputRequest)>,
        elicitation_ids: &[(String, String)],
        at_most: usize,
    ) {
        for (path, request) in asked {
            // A question is written as it was received from the engine: there is nothing in it that cannot be written.
            let Ok(text) = to_raw_value(request) else { continue };
            let is_same = |open: &str| open == text.get() || has_reason(open, request, text.get());
            if self.open.iter().any(|open| open.path == path && is_same(open.request.get())) {
                continue;
            }
            self.open.retain(|open| open.path != path);
            if self.open.len() >= at_most {
                continue;
            }
            let elicitation_id = elicitation_ids.iter().find(|(of, _)| of == path).map(|(_, id)| id.clone());
            let (key, path) = (self.new_key(path), path.to_owned());
            self.open.push(OpenQuestion { key, path, request: text, elicitation_id });
        }
    }

    /// Replaces the open questions with those of a round, in its order, and those of the `kept` paths that are open.
    pub(super) fn replace<'a>(
        &mut self,
        round: impl IntoIterator<Item = (&'a str, &'a InputRequest)>,
        kept: &[String],
        elicitation_ids: &[(String, String)],
        at_most: usize,
    ) {
        let round: Vec<_> = round.into_iter().collect();
        let place = |path: &str| round.iter().position(|(of, _)| *of == path);
        self.open.retain(|open| place(&open.path).is_some() || kept.contains(&open.path));
        self.add(round.iter().copied(), elicitation_ids, at_most);
        self.open.sort_by_key(|open| place(&open.path).unwrap_or(usize::MAX));
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

    /// The moment at which questions come.
    enum Moment<'a> {
        /// While a leg runs.
        Runs,
        /// At the end of a leg, whose record has these paths besides.
        Ends(&'a [&'a str]),
    }
    use Moment::{Ends, Runs};

    /// The moment, the paths and texts of the questions that come, and the keys that are open then.
    type Step<'a> = (Moment<'a>, &'a [(&'a str, &'a str)], &'a [&'a str]);

    fn check(steps: &[Step<'_>]) {
        let mut questions = Questions::default();
        for (moment, asked, expected) in steps {
            let asked: Vec<(&str, InputRequest)> = asked
                .iter()
                .map(|(path, text)| {
                    let request = serde_json::json!({"method": "elicitation/create", "params": {"mode": "url", "message": text, "url": "https://a.example", "elicitationId": "x"}});
                    (*path, serde_json::from_str(&request.to_string()).unwrap())
                })
                .collect();
            let asked = asked.iter().map(|(path, request)| (*path, request));
            match moment {
                Runs => questions.add(asked, &[], 3),
                Ends(kept) => {
                    let kept: Vec<String> = kept.iter().map(|path| (*path).to_owned()).collect();
                    questions.replace(asked, &kept, &[], 3);
                }
            }
            let requests = questions.to_requests();
            let keys: Vec<&str> = requests.iter().map(|(key, _)| key).collect();
            assert_eq!(&keys, expected);
        }
    }

    #[test]
    fn a_key_belongs_to_one_question_for_ever() {
        check(&[
            (Ends(&[]), &[("a", "1"), ("b", "1")], &["a", "b"]),
            (Ends(&[]), &[("b", "1")], &["b"]),
            (Ends(&[]), &[("a", "1")], &["a~2"]),
        ]);
        check(&[
            (Ends(&[]), &[("a", "1")], &["a"]),
            (Ends(&[]), &[("a", "2")], &["a~2"]),
            (Ends(&[]), &[("a", "2"), ("a~2", "1")], &["a~2", "a~2~2"]),
        ]);
        // Asked again with a reason, and then without it, as another question was answered.
        check(&[
            (Ends(&[]), &[("a", "1"), ("b", "1")], &["a", "b"]),
            (Ends(&[]), &[("a", "1\n\nWhy"), ("b", "1")], &["a~2", "b"]),
            (Ends(&[]), &[("a", "1")], &["a~2"]),
            (Ends(&[]), &[("a", "1\n\nWhy not")], &["a~3"]),
        ]);
    }

    #[test]
    fn a_leg_that_runs_only_adds_questions() {
        check(&[
            (Ends(&[]), &[("a", "1"), ("b", "1")], &["a", "b"]),
            (Runs, &[], &["a", "b"]),
            (Runs, &[("c", "1")], &["a", "b", "c"]),
            // No more than three are open.
            (Runs, &[("d", "1"), ("a", "1"), ("b", "2")], &["a", "c", "b~2"]),
            (Ends(&[]), &[("b", "2"), ("a", "1")], &["b~2", "a"]),
        ]);
    }

    #[test]
    fn a_question_that_a_leg_did_not_reach_stays_open_if_its_record_has_it() {
        check(&[
            (Ends(&[]), &[("a", "1"), ("b", "1")], &["a", "b"]),
            (Ends(&["a"]), &[("c", "1")], &["c", "a"]),
            // Never open.
            (Ends(&["a", "d"]), &[], &["a"]),
            (Ends(&["a"]), &[("a", "2")], &["a~2"]),
            (Ends(&[]), &[("c", "1")], &["c~2"]),
        ]);
    }

    #[test]
    fn an_answered_question_is_asked_again_under_another_key() {
        let mut questions = Questions::default();
        let request: InputRequest = serde_json::from_str(r#"{"method":"roots/list"}"#).unwrap();
        questions.add([("a", &request)], &[], 3);
        assert_eq!(questions.answer("a").as_deref(), Some("a"));
        assert_eq!(questions.answer("a"), None);
        questions.replace([("a", &request)], &["a".to_owned()], &[], 3);
        assert!(questions.answer("a").is_none() && questions.answer("a~2").is_some());
        assert!(questions.is_empty());
    }
}
