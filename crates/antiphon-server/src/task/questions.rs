//! The open questions of a task, and their keys on the wire.
//!
//! ```text
//!  asked while a leg runs, or in its round ──▶ open ── answered ─────────────────────────▶ gone
//!                                               │ ├─── asked with another text ──────────▶ superseded
//!                                               │ └─── not in the record of an ended leg ▶ withdrawn
//!                                               ├ asked again with its text: the same key
//!                                               └ answered, and the answer is not valid: not shown until the leg asks again
//! ```
//!
//! A leg that runs has not reached all of its questions yet. So it only adds questions, and the end of a leg replaces them.

use crate::task::sealed::ShownQuestion;
use antiphon_seal::Digest;
use antiphon_wire::{Action, InputRequest};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::{collections::HashMap, sync::Arc};

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
    /// The question, as JSON. It is in the content of the snapshot.
    #[serde(skip)]
    request: String,
    /// The id that the author gave to a URL question. Sessions see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    elicitation_id: Option<String>,
    /// True if its answer is not valid, and with the leg that asks again.
    #[serde(default)]
    is_refused: bool,
    /// The digest for the engine, if a leg has shown the question while it ran: the record of the leg is not there yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<[u8; 16]>,
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
            if self.open.iter().any(|open| open.path == path && !open.is_refused && is_same(&open.request)) {
                continue;
            }
            self.open.retain(|open| open.path != path);
            if self.open.len() >= at_most {
                continue;
            }
            let elicitation_id = elicitation_ids.iter().find(|(of, _)| of == path).map(|(_, id)| id.clone());
            let (key, path, request) = (self.new_key(path), path.to_owned(), text.get().to_owned());
            self.open.push(OpenQuestion {
                key,
                path,
                request,
                elicitation_id,
                is_refused: false,
                digest: None,
            });
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

    /// Notes the digests of questions that a leg shows while it runs.
    pub(super) fn note_digests<'a>(&mut self, digests: impl IntoIterator<Item = (&'a str, Digest)>) {
        for (path, digest) in digests {
            for open in self.open.iter_mut().filter(|open| open.path == path) {
                open.digest = Some(digest.to_bytes());
            }
        }
    }

    /// Returns the open questions of a leg that runs again which its earlier run has shown, by their paths.
    pub(super) fn shown_by_earlier_run(&self) -> Vec<(Arc<str>, Digest)> {
        let open = self.open.iter().filter(|open| !open.is_refused);
        open.filter_map(|open| Some((Arc::from(&*open.path), Digest::from_bytes(open.digest?)))).collect()
    }

    fn new_key(&mut self, path: &str) -> String {
        let is_used = |key: &String| self.used.contains(key);
        let numbered = (2_u32..).map(|number| format!("{path}~{number}"));
        // The iterator does not end.
        let key =
            std::iter::once(path.to_owned()).chain(numbered).find(|key| !is_used(key)).unwrap_or_default();
        self.used.push(key.clone());
        key
    }

    /// Takes the question with this key out. Returns its path. If the answer is not valid, the question stays open for the client,
    /// until the leg with the answer has asked again.
    pub(super) fn answer(&mut self, key: &str, is_valid: bool) -> Option<String> {
        let at = self.open.iter().position(|open| open.key == key && !open.is_refused)?;
        if is_valid {
            return Some(self.open.remove(at).path);
        }
        self.open[at].is_refused = true;
        Some(self.open[at].path.clone())
    }

    /// Takes all questions to a person out, and returns their cancellations.
    pub(super) fn cancel(&mut self) -> Vec<(String, Box<RawValue>)> {
        let is_elicitation = |open: &OpenQuestion| {
            serde_json::from_str::<InputRequest>(&open.request)
                .is_ok_and(|request| matches!(request, InputRequest::Elicit(_)))
        };
        let cancelled = serde_json::json!({ "action": Action::Cancel });
        let Ok(cancelled) = to_raw_value(&cancelled) else { return Vec::new() };
        let (asked, open) = std::mem::take(&mut self.open).into_iter().partition(is_elicitation);
        self.open = open;
        let asked: Vec<OpenQuestion> = asked;
        asked.into_iter().map(|open| (open.path, cancelled.clone())).collect()
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Returns the open questions, without their texts.
    pub(super) fn to_shown(&self) -> Vec<ShownQuestion> {
        let shown = self.open.iter().map(|open| ShownQuestion {
            key: open.key.clone(),
            elicitation_id: open.elicitation_id.clone(),
            is_refused: open.is_refused,
        });
        shown.collect()
    }

    /// Returns the open questions for the client, as a JSON object by key.
    pub(super) fn to_json(&self) -> String {
        let mut json = String::from("{");
        for (number, open) in self.open.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            // A string becomes its JSON text.
            json += &format!("{comma}{}:{}", serde_json::Value::from(&*open.key), open.request);
        }
        json.push('}');
        json
    }

    /// Takes the texts of the open questions from the JSON object. `None` if it is not that of these questions.
    pub(super) fn read_json(&mut self, json: &[u8]) -> Option<()> {
        let mut texts: HashMap<String, Box<RawValue>> = serde_json::from_slice(json).ok()?;
        for open in &mut self.open {
            open.request = String::from(Box::<str>::from(texts.remove(&open.key)?));
        }
        Some(())
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
            let shown = questions.to_shown();
            let keys: Vec<&str> = shown.iter().map(|question| &*question.key).collect();
            assert_eq!(&keys, expected);
            // The texts are stored apart.
            let (text, mut read) = (questions.to_json(), questions.clone());
            read.open.iter_mut().for_each(|open| open.request.clear());
            read.read_json(text.as_bytes()).unwrap();
            assert_eq!(read.to_json(), text);
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
        assert_eq!(questions.answer("a", true).as_deref(), Some("a"));
        assert_eq!(questions.answer("a", true), None);
        questions.replace([("a", &request)], &["a".to_owned()], &[], 3);
        assert!(questions.answer("a", true).is_none() && questions.answer("a~2", true).is_some());
        assert!(questions.is_empty());
    }

    #[test]
    fn a_question_with_a_wrong_answer_is_open_until_it_is_asked_again() {
        let request: InputRequest = serde_json::from_str(r#"{"method":"roots/list"}"#).unwrap();
        for (kept, round, expected) in [
            // Asked again with the same text: a client answers each key once.
            (&[][..], &["a"][..], &["a~2"][..]),
            (&["a".to_owned()], &["b"], &["a", "b"]),
            (&[], &["b"], &["b"]),
        ] {
            let mut questions = Questions::default();
            questions.add([("a", &request)], &[], 3);
            assert_eq!(questions.answer("a", false).as_deref(), Some("a"));
            assert!(!questions.is_empty() && questions.answer("a", true).is_none());
            questions.replace(round.iter().map(|path| (*path, &request)), kept, &[], 3);
            let shown = questions.to_shown();
            let mut keys: Vec<&str> = shown.iter().map(|question| &*question.key).collect();
            keys.sort_unstable();
            assert_eq!(keys, expected);
        }
    }
}
