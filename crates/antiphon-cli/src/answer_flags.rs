//! The flags `--answer`, `--sample` and `--root`. An `--answer` stays a text until its question is known, because keys
//! and fields may contain dots.

use crate::args::ClientArgs;
use crate::{console, failure::Failure, field_value, sanitize};
use antiphon::wire::{
    Action, AskSupport, CreateMessageResult, FormSchema, InputRequest, ListRootsResult, Root,
};
use serde_json::{Map, Value};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// The answers on the command line. Clones share the record of used answers.
#[derive(Clone)]
pub(crate) struct AnswerFlags {
    given: Arc<Mutex<Vec<AnswerFlag>>>,
    sample: Option<String>,
    roots: Vec<String>,
    /// The text about the first question of a session that has no answer.
    unanswered: Arc<Mutex<Option<String>>>,
    /// `true` once questions that come during the call have keys.
    keyed: Arc<AtomicBool>,
}

/// The name of the model in the message of `--sample`.
const MODEL: &str = "command line";

struct AnswerFlag {
    text: String,
    used: bool,
}

/// The answer of the command line to one question.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FlagAnswer {
    /// The action of `KEY=accept|decline|cancel`.
    pub(crate) action: Option<Action>,
    /// The fields of `KEY.FIELD=VALUE`.
    pub(crate) fields: Map<String, Value>,
}

impl AnswerFlags {
    pub(crate) fn new(texts: Vec<String>) -> Result<Self, Failure> {
        match texts.iter().find(|text| !text.contains('=')) {
            Some(text) => Err(Failure::usage(format!(
                "`--answer {text}` has no `=`: write KEY.FIELD=VALUE or KEY=accept|decline|cancel"
            ))),
            None => {
                let given = texts.into_iter().map(|text| AnswerFlag { text, used: false }).collect();
                Ok(Self {
                    given: Arc::new(Mutex::new(given)),
                    sample: None,
                    roots: Vec::new(),
                    unanswered: Arc::default(),
                    keyed: Arc::default(),
                })
            }
        }
    }

    /// Adds the answers of the client itself: `--sample` and `--root`.
    pub(crate) fn with_client_answers(self, args: ClientArgs) -> Self {
        Self { sample: args.sample, roots: args.roots, ..self }
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

    /// Returns the answer to the question with this key. `asked` has the keys of all questions of the round, and `form`
    /// the fields of this one.
    pub(crate) fn to(
        &self,
        key: &str,
        asked: &[&str],
        form: Option<&FormSchema>,
    ) -> Result<FlagAnswer, Failure> {
        let mut scripted = FlagAnswer::default();
        for given in self.given.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            let Some(rest) = after_key(&given.text, key) else { continue };
            if asked.iter().any(|other| other.len() > key.len() && after_key(&given.text, other).is_some()) {
                continue;
            }
            if let Some(word) = rest.strip_prefix('=') {
                // An invalid answer is an error, so it must not cause a warning too.
                given.used = true;
                scripted.action = Some(action(word).ok_or_else(|| not_an_action(key, form))?);
            } else if let Some(found) = form.and_then(|form| field(form, key, &rest[1..])) {
                given.used = true;
                let (name, value) = found?;
                scripted.fields.insert(name, value);
            }
        }
        Ok(scripted)
    }

    /// Warns of unused answers. The warning contains the key and no value, because values may be private.
    pub(crate) fn warn_unused(&self) {
        for text in self.unused() {
            let name = text.split('=').next().unwrap_or_default();
            console::hint(&format!("warning: `--answer {}=..` was not used", sanitize::line(name)));
        }
    }

    fn unused(&self) -> Vec<String> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.iter().filter(|given| !given.used).map(|given| given.text.clone()).collect()
    }

    /// Sets that the questions that come during the call have keys: they are those of a task.
    pub(crate) fn set_keyed(&self) {
        self.keyed.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the questions that come during the call have keys.
    pub(crate) fn is_keyed(&self) -> bool {
        self.keyed.load(Ordering::Relaxed)
    }

    /// Records that a question of a session has no answer.
    pub(crate) fn note_unanswered(&self, text: &str) {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| text.to_owned());
    }

    /// Removes and returns the text about the first question that has no answer.
    pub(crate) fn take_unanswered(&self) -> Option<String> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).take()
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

/// Returns the text after the key: `=..` or `.FIELD=..`.
fn after_key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.strip_prefix(key).filter(|rest| rest.starts_with(['.', '=']))
}

fn action(word: &str) -> Option<Action> {
    match word {
        "accept" => Some(Action::Accept),
        "decline" => Some(Action::Decline),
        "cancel" => Some(Action::Cancel),
        _ => None,
    }
}

fn not_an_action(key: &str, form: Option<&FormSchema>) -> Failure {
    let fields = form.map(|form| form.fields()).unwrap_or_default();
    let fields: Vec<String> = fields.iter().map(|field| format!(", or {key}.{}=VALUE", field.name)).collect();
    Failure::usage(format!("`--answer {key}=..` must be accept, decline or cancel{}", fields.concat()))
}

/// Parses `FIELD=VALUE`. If several fields match, the one with the longest name counts.
fn field(form: &FormSchema, key: &str, text: &str) -> Option<Result<(String, Value), Failure>> {
    let fits = form.fields().iter().filter_map(|field| {
        let value = text.strip_prefix(field.name.as_str())?.strip_prefix('=')?;
        Some((field, value))
    });
    let (field, text) = fits.max_by_key(|(field, _)| field.name.len())?;
    let value = field_value::parse(form, field, text).and_then(|value| {
        match field_value::broken_rule(field, &value) {
            None => Ok(value),
            Some(rule) => Err(rule),
        }
    });
    Some(match value {
        Ok(value) => Ok((field.name.clone(), value)),
        Err(rule) => Err(Failure::usage(format!("the answer for {key}.{} {rule}", field.name))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon::wire::FormField;
    use serde_json::json;

    fn check(
        answers: &[&str],
        key: &str,
        asked: &[&str],
        expected: Result<(Option<Action>, Value), &str>,
    ) -> Vec<String> {
        let form =
            FormSchema::new(vec![FormField::text("f"), FormField::text("f=g"), FormField::integer("n.m")]);
        let given = AnswerFlags::new(answers.iter().map(ToString::to_string).collect()).unwrap();
        let scripted = given.to(key, asked, Some(&form));
        let scripted =
            scripted.map(|it| (it.action, Value::Object(it.fields))).map_err(|failure| failure.message);
        assert_eq!(scripted, expected.map_err(String::from), "{answers:?} to {key}");
        given.unused()
    }

    #[test]
    fn the_key_comes_first() {
        let keys = ["a", "a.b", "__main__:x.<locals>.y#1"];
        for (answers, key, expected, unused) in [
            (&["a.f=1=2.3"][..], "a", Ok((None, json!({"f": "1=2.3"}))), 0),
            (&["a.f=g=x"], "a", Ok((None, json!({"f=g": "x"}))), 0),
            (&["a.n.m=7"], "a", Ok((None, json!({"n.m": 7}))), 0),
            (&["a.b.f=x"], "a", Ok((None, json!({}))), 1),
            (&["a.b.f=x"], "a.b", Ok((None, json!({"f": "x"}))), 0),
            (&["__main__:x.<locals>.y#1.f=x"], keys[2], Ok((None, json!({"f": "x"}))), 0),
            (&["a=decline"], "a", Ok((Some(Action::Decline), json!({}))), 0),
            (&["a=accept", "a.f="], "a", Ok((Some(Action::Accept), json!({"f": ""}))), 0),
            (&["ab=decline", "b=decline", "a.x=1"], "a", Ok((None, json!({}))), 3),
            (&["a.n.m=x"], "a", Err("the answer for a.n.m must be a whole number"), 0),
            (
                &["a=eu"],
                "a",
                Err(
                    "`--answer a=..` must be accept, decline or cancel, or a.f=VALUE, or a.f=g=VALUE, or a.n.m=VALUE",
                ),
                0,
            ),
        ] {
            assert_eq!(check(answers, key, &keys, expected).len(), unused, "{answers:?}");
        }
        assert!(AnswerFlags::new(vec!["region".into()]).is_err());
    }
}
