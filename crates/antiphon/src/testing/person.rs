//! The person at the client, by script.

use antiphon_wire::{AskSupport, CreateMessageResult, ElicitResult, InputRequest, ListRootsResult, Root};
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// Who answers: what they say to each question, by its key.
///
/// Several lines for one key are said one after the other, each time the question is asked anew; the last one again and
/// again. So a person who is wrong first, then right:
///
/// ```
/// use antiphon::testing::{Person, Says};
/// use serde_json::json;
///
/// let person = Person::new()
///     .accept("guests", json!({"guests": -3}))
///     .accept("guests", json!({"guests": 3}))
///     .says("date", Says::nothing()) // the first time, this question is left open
///     .accept("date", json!({"date": "2025-12-27"}))
///     .decline("newsletter");
/// ```
///
/// The client declares that everything can be asked of them; [`declares`](Self::declares) says otherwise.
#[derive(Clone)]
pub struct Person {
    script: BTreeMap<String, Vec<Line>>,
    declared: AskSupport,
}

#[derive(Clone)]
enum Line {
    Says(Says),
    Answers(Arc<dyn Fn(&Question<'_>) -> Says + Send + Sync>),
}

/// A question as the person meets it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// Its key on the wire.
    pub key: &'a str,
    /// What is asked.
    pub request: &'a InputRequest,
    /// How often it was asked, this time included.
    pub times: usize,
}

/// What the person does with one question.
#[derive(Clone, Debug)]
pub struct Says {
    pub(super) answer: Option<Value>,
    pub(super) after: Duration,
}

impl Says {
    /// Fills in the form.
    pub fn accept(content: impl Serialize) -> Self {
        Self::raw(json!({ "action": "accept", "content": written(content) }))
    }

    /// Says no.
    pub fn decline() -> Self {
        Self::raw(written(ElicitResult::decline()))
    }

    /// Goes away without choosing.
    pub fn cancel() -> Self {
        Self::raw(written(ElicitResult::cancel()))
    }

    /// Agrees to open the URL.
    pub fn consent() -> Self {
        Self::raw(written(ElicitResult::consent()))
    }

    /// The model says this.
    pub fn sample(text: impl Into<String>) -> Self {
        Self::raw(written(CreateMessageResult::text("scripted", text)))
    }

    /// These directories.
    pub fn roots<U: Into<String>>(uris: impl IntoIterator<Item = U>) -> Self {
        Self::raw(written(ListRootsResult::new(uris.into_iter().map(Root::new).collect())))
    }

    /// Does not answer this question, whatever becomes of the others of the round.
    pub fn nothing() -> Self {
        Self { answer: None, after: Duration::ZERO }
    }

    /// Sends this, fit or not.
    pub fn raw(answer: Value) -> Self {
        Self { answer: Some(answer), after: Duration::ZERO }
    }

    /// So much later, by the servers' clock. A round takes as long as its slowest answer.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Self {
        self.after = time;
        self
    }
}

/// What is written here is made of strings, numbers and lists of them.
fn written(answer: impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_else(|fault| panic!("an answer is not JSON: {fault}"))
}

impl Default for Person {
    fn default() -> Self {
        Self::new()
    }
}

impl Person {
    /// Somebody who has no answer yet, at a client that can ask everything.
    pub fn new() -> Self {
        Self { script: BTreeMap::new(), declared: AskSupport::ALL }
    }

    /// Fills in the form of this key.
    #[must_use]
    pub fn accept(self, key: impl Into<String>, content: impl Serialize) -> Self {
        self.says(key, Says::accept(content))
    }

    /// Says no to the question of this key.
    #[must_use]
    pub fn decline(self, key: impl Into<String>) -> Self {
        self.says(key, Says::decline())
    }

    /// Goes away from the question of this key.
    #[must_use]
    pub fn cancel(self, key: impl Into<String>) -> Self {
        self.says(key, Says::cancel())
    }

    /// Agrees to open the URL of this key.
    #[must_use]
    pub fn consent(self, key: impl Into<String>) -> Self {
        self.says(key, Says::consent())
    }

    /// The model says this to the messages of this key.
    #[must_use]
    pub fn sample(self, key: impl Into<String>, text: impl Into<String>) -> Self {
        self.says(key, Says::sample(text))
    }

    /// The client tells these directories for this key.
    #[must_use]
    pub fn roots<U: Into<String>>(self, key: impl Into<String>, uris: impl IntoIterator<Item = U>) -> Self {
        self.says(key, Says::roots(uris))
    }

    /// Does this with the question of this key, the next time it is asked.
    #[must_use]
    pub fn says(mut self, key: impl Into<String>, says: Says) -> Self {
        self.script.entry(key.into()).or_default().push(Line::Says(says));
        self
    }

    /// Reads the question of this key before answering. It must say the same to the same question: a call that is
    /// disturbed is compared with one that is not.
    #[must_use]
    pub fn answers(
        mut self,
        key: impl Into<String>,
        answer: impl Fn(&Question<'_>) -> Says + Send + Sync + 'static,
    ) -> Self {
        self.script.entry(key.into()).or_default().push(Line::Answers(Arc::new(answer)));
        self
    }

    /// What the client declares it can ask.
    #[must_use]
    pub fn declares(mut self, asks: AskSupport) -> Self {
        self.declared = asks;
        self
    }

    pub(super) fn declared(&self) -> AskSupport {
        self.declared
    }

    /// What they say to this question; `None` if the script does not have it.
    pub(super) fn answer(&self, key: &str, request: &InputRequest, asked: &mut Asked) -> Option<Says> {
        let lines = self.script.get(key)?;
        let times = asked.0.entry(key.to_owned()).or_insert(0);
        *times += 1;
        Some(match lines.get(*times - 1).or(lines.last())? {
            Line::Says(says) => says.clone(),
            Line::Answers(answer) => answer(&Question { key, request, times: *times }),
        })
    }
}

/// What a script without this key is told.
pub(super) fn no_answer(key: &str) -> String {
    format!("the person has no answer to `{key}`: give them one, such as `.accept({key:?}, ..)`")
}

/// How often each question was asked of the person by now.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked(BTreeMap<String, usize>);

impl fmt::Debug for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Person").field("answers", &self.script.keys()).finish_non_exhaustive()
    }
}
