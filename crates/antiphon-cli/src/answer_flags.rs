//! The flags `--answer`, `--sample` and `--root`, and the questions of one call: their numbers, and the answers that are used up.
//!
//! A call has one count of questions, whatever way they come: in rounds, as requests of a session, with the error -32042, or from a
//! task. An answer is for one question. A page that is asked again in its call is the same question.

use crate::{
    args::ClientArgs,
    console,
    failure::Failure,
    flag_text::{self, Asked, FlagAction, FlagPart, OpenQuestion},
};
use antiphon::wire::{
    AskSupport, ElicitRequest, InputRequest, InputRequests,
    forms::FormSchema,
    sampling::{CreateMessageResult, ListRootsResult, Root},
};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The answers on the command line. Clones share the questions and the record of used answers.
#[derive(Clone)]
pub(crate) struct AnswerFlags {
    questions: Arc<Mutex<Questions>>,
    /// Held while one question is answered: there is one terminal.
    turn: Arc<Mutex<()>>,
    sample: Option<String>,
    roots: Vec<String>,
    has_terminal: bool,
}

/// The name of the model in the message of `--sample`.
const MODEL: &str = "command line";

/// The questions of a call, and the answers to them.
struct Questions {
    given: Vec<AnswerFlag>,
    /// The number of questions so far.
    asked: u32,
    pages: Vec<Page>,
    /// The latest round.
    round: Vec<OpenQuestion>,
    /// `true` once questions that come during the call have keys.
    are_keyed: bool,
    /// The text about the first question of a session that has no answer.
    unanswered: Option<String>,
}

struct AnswerFlag {
    text: String,
    /// `true` if it is for the present call only.
    is_of_call: bool,
    /// `true` if a question of this call has used the answer up.
    is_used_up: bool,
    /// `true` if any call has used the answer.
    was_used: bool,
}

/// A page of this call.
struct Page {
    url: String,
    number: u32,
    /// `true` if the person agreed to it on the command line.
    is_agreed: bool,
}

/// The answer of the command line to one question.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FlagAnswer {
    /// The action of `KEY=..`.
    pub(crate) action: Option<FlagAction>,
    /// The fields of `KEY.FIELD=VALUE`.
    pub(crate) fields: Map<String, Value>,
}

fn flags(texts: Vec<String>, is_of_call: bool) -> Result<Vec<AnswerFlag>, Failure> {
    if let Some(text) = texts.iter().find(|text| !text.contains('=')) {
        return Err(Failure::usage(format!(
            "`--answer {text}` has no `=`: write KEY.FIELD=VALUE, KEY=accept|decline|cancel or KEY=accept@HOST"
        )));
    }
    let flag = |text| AnswerFlag { text, is_of_call, is_used_up: false, was_used: false };
    Ok(texts.into_iter().map(flag).collect())
}

impl AnswerFlags {
    pub(crate) fn new(texts: Vec<String>) -> Result<Self, Failure> {
        let questions = Questions {
            given: flags(texts, false)?,
            asked: 0,
            pages: Vec::new(),
            round: Vec::new(),
            are_keyed: false,
            unanswered: None,
        };
        Ok(Self {
            questions: Arc::new(Mutex::new(questions)),
            turn: Arc::default(),
            sample: None,
            roots: Vec::new(),
            has_terminal: console::has_terminal(),
        })
    }

    /// Adds the answers of the client itself: `--sample` and `--root`.
    pub(crate) fn with_client_answers(self, args: ClientArgs) -> Self {
        Self { sample: args.sample, roots: args.roots, ..self }
    }

    #[cfg(test)]
    pub(crate) fn without_terminal(self) -> Self {
        Self { has_terminal: false, ..self }
    }

    /// Returns `true` if a person can be asked.
    pub(crate) fn has_terminal(&self) -> bool {
        self.has_terminal
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other question is being answered.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the answers that are for one call only. They have precedence over the others.
    pub(crate) fn set_for_call(&self, texts: Vec<String>) -> Result<(), Failure> {
        let mut given = flags(texts, true)?;
        let mut questions = self.questions();
        given.extend(questions.given.drain(..).filter(|flag| !flag.is_of_call));
        questions.given = given;
        Ok(())
    }

    /// Begins another call: its first question has the number 1, and every answer can be used again.
    pub(crate) fn begin_call(&self) {
        let mut questions = self.questions();
        questions.given.iter_mut().for_each(|given| given.is_used_up = false);
        (questions.asked, questions.are_keyed, questions.unanswered) = (0, false, None);
        questions.pages.clear();
        questions.round.clear();
    }

    /// Begins a round of questions.
    pub(crate) fn begin_round(&self, asks: &InputRequests) {
        let fields = |ask: &InputRequest| match ask {
            InputRequest::Elicit(ElicitRequest::Form { requested_schema, .. }) => {
                requested_schema.fields().iter().map(|field| field.name.clone()).collect()
            }
            _ => Vec::new(),
        };
        let round = asks.iter().map(|(key, ask)| OpenQuestion { key: key.to_owned(), fields: fields(ask) });
        self.questions().round = round.collect();
    }

    /// Returns the number of a question of the person. A page of this call keeps its number.
    pub(crate) fn number(&self, page: Option<&str>) -> u32 {
        let mut questions = self.questions();
        if let Some(known) = questions.pages.iter().find(|known| Some(known.url.as_str()) == page) {
            return known.number;
        }
        questions.asked = questions.asked.saturating_add(1);
        let number = questions.asked;
        let page = page.map(|url| Page { url: url.to_owned(), number, is_agreed: false });
        questions.pages.extend(page);
        number
    }

    /// Returns `true` if this call has asked the person nothing.
    pub(crate) fn is_silent(&self) -> bool {
        self.questions().asked == 0
    }

    /// Records that the person agreed to this page on the command line.
    pub(crate) fn agree(&self, page: &str) {
        self.questions()
            .pages
            .iter_mut()
            .filter(|known| known.url == page)
            .for_each(|it| it.is_agreed = true);
    }

    /// Returns `true` if the person agreed to this page on the command line, in this call.
    pub(crate) fn has_agreed(&self, page: &str) -> bool {
        self.questions().pages.iter().any(|known| known.url == page && known.is_agreed)
    }

    /// Returns the kinds of questions that the flags can answer, besides forms and URLs.
    pub(crate) fn asks(&self) -> AskSupport {
        let sampling = if self.sample.is_some() { AskSupport::SAMPLING } else { AskSupport::NONE };
        if self.roots.is_empty() { sampling } else { sampling.and(AskSupport::ROOTS) }
    }

    /// Returns the answer of `--sample` or `--root` to a question for the client itself.
    pub(crate) fn client_answer(&self, ask: &InputRequest) -> Option<Value> {
        let answer = match ask {
            InputRequest::CreateMessage(_) => serde_json::to_value(self.sample()?),
            InputRequest::ListRoots { .. } => serde_json::to_value(self.roots()?),
            _ => return None,
        };
        answer.ok()
    }

    /// Returns the answer to the question with this number and key, and uses it up. A second answer of the same kind is for a
    /// later question.
    pub(crate) fn take(
        &self,
        number: u32,
        key: &str,
        form: Option<&FormSchema>,
    ) -> Result<FlagAnswer, Failure> {
        let mut questions = self.questions();
        let Questions { given, round, .. } = &mut *questions;
        let others: Vec<&OpenQuestion> = round.iter().filter(|other| other.key != key).collect();
        let asked = Asked { number, key, form, others: &others };
        let mut answer = FlagAnswer::default();
        for given in given.iter_mut().filter(|given| !given.is_used_up) {
            let Some(part) = flag_text::read(&given.text, &asked) else { continue };
            match &part {
                Ok(FlagPart::Action(_)) if answer.action.is_some() => continue,
                Ok(FlagPart::Field(name, _)) if answer.fields.contains_key(name) => continue,
                _ => {}
            }
            // An invalid answer is an error, so it must not cause a warning too.
            (given.is_used_up, given.was_used) = (true, true);
            match part? {
                FlagPart::Action(action) => answer.action = Some(action),
                FlagPart::Field(name, value) => {
                    answer.fields.insert(name, value);
                }
            }
        }
        Ok(answer)
    }

    /// Returns `true` if an answer that is not used up names this key.
    pub(crate) fn names(&self, key: &str) -> bool {
        let questions = self.questions();
        let names =
            |given: &AnswerFlag| !given.is_used_up && flag_text::after_key(&given.text, key).is_some();
        questions.given.iter().any(names)
    }

    /// Warns of unused answers. The warning contains the key and no value, because values may be private.
    pub(crate) fn warn_unused(&self) {
        for text in self.unused() {
            let name = text.split('=').next().unwrap_or_default();
            console::hint(&format!("warning: `--answer {}=..` was not used", console::line(name)));
        }
    }

    fn unused(&self) -> Vec<String> {
        let questions = self.questions();
        questions.given.iter().filter(|given| !given.was_used).map(|given| given.text.clone()).collect()
    }

    /// Sets that the questions that come during the call have keys: they are those of a task.
    pub(crate) fn set_keyed(&self) {
        self.questions().are_keyed = true;
    }

    /// Returns `true` if the questions that come during the call have keys.
    pub(crate) fn is_keyed(&self) -> bool {
        self.questions().are_keyed
    }

    /// Records that a question of a session has no answer.
    pub(crate) fn note_unanswered(&self, text: &str) {
        self.questions().unanswered.get_or_insert_with(|| text.to_owned());
    }

    /// Removes and returns the text about the first question that has no answer.
    pub(crate) fn take_unanswered(&self) -> Option<String> {
        self.questions().unanswered.take()
    }

    /// Returns the message of `--sample`.
    pub(crate) fn sample(&self) -> Option<CreateMessageResult> {
        self.sample.as_ref().map(|text| CreateMessageResult::text(MODEL, text))
    }

    /// Returns the directories of `--root`, if there are any.
    pub(crate) fn roots(&self) -> Option<ListRootsResult> {
        (!self.roots.is_empty()).then(|| ListRootsResult::new(self.roots.iter().map(Root::new).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon::wire::forms::FormField;
    use serde_json::json;

    /// Asks a form with the field `f` for each key, and checks the answers. Returns the number of unused texts.
    fn check(texts: &[&str], keys: &[&str], expected: &[(Option<FlagAction>, Value)]) -> usize {
        let form = FormSchema::new(vec![FormField::text("f")]);
        let flags = AnswerFlags::new(texts.iter().map(ToString::to_string).collect()).unwrap();
        let found: Vec<_> = keys
            .iter()
            .map(|key| flags.take(flags.number(None), key, Some(&form)).unwrap())
            .map(|answer| (answer.action, Value::Object(answer.fields)))
            .collect();
        assert_eq!(found, expected, "{texts:?} to {keys:?}");
        flags.unused().len()
    }

    #[test]
    fn an_answer_is_used_up_by_its_question() {
        let (none, accept, decline) = (None, Some(FlagAction::Accept), Some(FlagAction::Decline));
        for (texts, keys, expected, unused) in [
            (&["a.f=x"][..], &["a", "a"][..], &[(none.clone(), json!({"f": "x"})), (None, json!({}))][..], 0),
            (&["1.f=x"], &["a", "a"], &[(None, json!({"f": "x"})), (None, json!({}))], 0),
            (&["f=x"], &["a", "b"], &[(None, json!({"f": "x"})), (None, json!({}))], 0),
            // A second answer for the same key is for the next question with the key.
            (
                &["a=accept", "a=decline"],
                &["a", "a"],
                &[(accept.clone(), json!({})), (decline.clone(), json!({}))],
                0,
            ),
            (&["a.f=x", "a.f=y"], &["a", "a"], &[(None, json!({"f": "x"})), (None, json!({"f": "y"}))], 0),
            (&["a=accept", "1.f=x"], &["a"], &[(accept, json!({"f": "x"}))], 0),
            (
                &["2=decline"],
                &["a", "1", "2"],
                &[(None, json!({})), (decline, json!({})), (None, json!({}))],
                0,
            ),
            (&["1.f=x", "2.f=y", "3.f=z"], &["a"], &[(None, json!({"f": "x"}))], 2),
        ] {
            assert_eq!(check(texts, keys, expected), unused, "{texts:?}");
        }
        assert!(AnswerFlags::new(vec!["region".into()]).is_err());
    }

    #[test]
    fn each_call_begins_with_the_first_question() {
        let flags = AnswerFlags::new(vec!["1=decline".into()]).unwrap();
        for _ in 0..2 {
            flags.begin_call();
            let number = flags.number(Some("https://a.example/"));
            assert_eq!((number, flags.number(Some("https://a.example/")), flags.number(None)), (1, 1, 2));
            assert_eq!(flags.take(number, "k", None).unwrap().action, Some(FlagAction::Decline));
            assert_eq!(flags.take(number, "k", None).unwrap().action, None);
            flags.agree("https://a.example/");
            assert!(flags.has_agreed("https://a.example/") && !flags.has_agreed("https://b.example/"));
        }
        flags.begin_call();
        assert!(!flags.has_agreed("https://a.example/"));
    }
}
