//! The scripted user at the client.

use antiphon_wire::{AskSupport, CreateMessageResult, ElicitResult, InputRequest, ListRootsResult, Root};
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// A user with a script: the answers to each question, by the question's key.
///
/// Several answers for one key are used in order, one each time the question is asked; the last one is repeated. A user
/// whose first answer is invalid:
///
/// ```
/// use antiphon::testing::{ScriptedUser, UserAnswer};
/// use serde_json::json;
///
/// let user = ScriptedUser::new()
///     .accept("guests", json!({"guests": -3}))
///     .accept("guests", json!({"guests": 3}))
///     .answer("date", UserAnswer::none()) // no answer in the first round
///     .accept("date", json!({"date": "2025-12-27"}))
///     .decline("newsletter");
/// ```
///
/// The client declares support for every kind of ask. Use [`declares`](Self::declares) to change that.
#[derive(Clone)]
pub struct ScriptedUser {
    script: BTreeMap<String, Vec<Line>>,
    declared: AskSupport,
}

#[derive(Clone)]
enum Line {
    Fixed(UserAnswer),
    Computed(Arc<dyn Fn(&Question<'_>) -> UserAnswer + Send + Sync>),
}

/// A question that the user has to answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The key of the question on the wire.
    pub key: &'a str,
    /// The request of the server.
    pub request: &'a InputRequest,
    /// The number of times the question was asked, including this time.
    pub times: usize,
}

/// One answer of a [`ScriptedUser`].
#[derive(Clone, Debug)]
pub struct UserAnswer {
    pub(super) answer: Option<Value>,
    pub(super) after: Duration,
}

impl UserAnswer {
    /// Submits the form with `content`.
    pub fn accept(content: impl Serialize) -> Self {
        Self::raw(json!({ "action": "accept", "content": written(content) }))
    }

    /// Declines the elicitation.
    pub fn decline() -> Self {
        Self::raw(written(ElicitResult::decline()))
    }

    /// Cancels the elicitation: dismisses it without a choice.
    pub fn cancel() -> Self {
        Self::raw(written(ElicitResult::cancel()))
    }

    /// Consents to open the URL.
    pub fn consent() -> Self {
        Self::raw(written(ElicitResult::consent()))
    }

    /// Answers a sampling request with this text of the model.
    pub fn sample(text: impl Into<String>) -> Self {
        Self::raw(written(CreateMessageResult::text("scripted", text)))
    }

    /// Answers a roots request with these URIs.
    pub fn roots<U: Into<String>>(uris: impl IntoIterator<Item = U>) -> Self {
        Self::raw(written(ListRootsResult::new(uris.into_iter().map(Root::new).collect())))
    }

    /// Leaves the question unanswered. Other questions of the round are still answered.
    pub fn none() -> Self {
        Self { answer: None, after: Duration::ZERO }
    }

    /// Sends `answer` as the raw result, valid or not.
    pub fn raw(answer: Value) -> Self {
        Self { answer: Some(answer), after: Duration::ZERO }
    }

    /// Delays the answer by `time` of the servers' clock, in a session of tokio's clock. A round takes as long as its slowest
    /// answer. Default: no delay.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Self {
        self.after = time;
        self
    }
}

/// Serializes an answer.
///
/// # Panics
/// If `answer` cannot be represented in JSON.
fn written(answer: impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_else(|fault| panic!("an answer is not JSON: {fault}"))
}

impl Default for ScriptedUser {
    fn default() -> Self {
        Self::new()
    }
}

impl ScriptedUser {
    /// Creates a user without answers, at a client that supports every kind of ask.
    pub fn new() -> Self {
        Self { script: BTreeMap::new(), declared: AskSupport::ALL }
    }

    /// Adds an answer: submits the form of this key with `content`.
    #[must_use]
    pub fn accept(self, key: impl Into<String>, content: impl Serialize) -> Self {
        self.answer(key, UserAnswer::accept(content))
    }

    /// Adds an answer: declines the elicitation of this key.
    #[must_use]
    pub fn decline(self, key: impl Into<String>) -> Self {
        self.answer(key, UserAnswer::decline())
    }

    /// Adds an answer: cancels the elicitation of this key.
    #[must_use]
    pub fn cancel(self, key: impl Into<String>) -> Self {
        self.answer(key, UserAnswer::cancel())
    }

    /// Adds an answer: consents to open the URL of this key.
    #[must_use]
    pub fn consent(self, key: impl Into<String>) -> Self {
        self.answer(key, UserAnswer::consent())
    }

    /// Adds an answer: returns `text` for the sampling request of this key.
    #[must_use]
    pub fn sample(self, key: impl Into<String>, text: impl Into<String>) -> Self {
        self.answer(key, UserAnswer::sample(text))
    }

    /// Adds an answer: returns `uris` for the roots request of this key.
    #[must_use]
    pub fn roots<U: Into<String>>(self, key: impl Into<String>, uris: impl IntoIterator<Item = U>) -> Self {
        self.answer(key, UserAnswer::roots(uris))
    }

    /// Adds an answer to the question of this key.
    #[must_use]
    pub fn answer(mut self, key: impl Into<String>, answer: UserAnswer) -> Self {
        self.script.entry(key.into()).or_default().push(Line::Fixed(answer));
        self
    }

    /// Adds an answer that `answer` computes from the question. The closure must return the same answer for the same
    /// question, because the bench compares runs with faults to the run without.
    #[must_use]
    pub fn answer_with(
        mut self,
        key: impl Into<String>,
        answer: impl Fn(&Question<'_>) -> UserAnswer + Send + Sync + 'static,
    ) -> Self {
        self.script.entry(key.into()).or_default().push(Line::Computed(Arc::new(answer)));
        self
    }

    /// Sets the kinds of asks that the client declares support for. Default: all.
    #[must_use]
    pub fn declares(mut self, asks: AskSupport) -> Self {
        self.declared = asks;
        self
    }

    pub(super) fn declared(&self) -> AskSupport {
        self.declared
    }

    /// Returns the next answer to this question; `None` if the script has no answer for the key.
    pub(super) fn next_answer(
        &self,
        key: &str,
        request: &InputRequest,
        asked: &mut AskCounts,
    ) -> Option<UserAnswer> {
        let lines = self.script.get(key)?;
        let times = asked.0.entry(key.to_owned()).or_insert(0);
        *times += 1;
        Some(match lines.get(*times - 1).or(lines.last())? {
            Line::Fixed(answer) => answer.clone(),
            Line::Computed(answer) => answer(&Question { key, request, times: *times }),
        })
    }
}

/// The message for a script without an answer to this key.
pub(super) fn no_answer(key: &str) -> String {
    format!("the scripted user has no answer to `{key}`: add one, such as `.accept({key:?}, ..)`")
}

/// The number of times each question was asked so far.
#[derive(Clone, Debug, Default)]
pub(super) struct AskCounts(BTreeMap<String, usize>);

impl fmt::Debug for ScriptedUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedUser").field("answers", &self.script.keys()).finish_non_exhaustive()
    }
}
