//! The answers and the state of a handler that returns its questions.

use crate::{
    call::{
        self, InputResponse,
        ask::Ask,
        ctx::{Answer, Ctx, without_value},
    },
    errors::Error,
    form,
};
use antiphon_engine::AnsweredAsk;
use antiphon_wire::{Action, CreateMessageResult, ElicitResult, InputResponses, ListRootsResult};
use serde::de::DeserializeOwned;
use serde_json::Map;
use std::fmt;

/// The answers and the state of a handler that returns its questions: see [`Ctx::by_hand`].
#[derive(Clone, Copy, Debug)]
pub struct ByHand<'a> {
    ctx: &'a Ctx,
}

impl Ctx {
    /// Returns the answers to questions that the handler returned, and the state that came with them.
    ///
    /// ```
    /// use antiphon::{Form, Result, server::{Answer, Ask, Ctx, Reply}, tool};
    ///
    /// #[derive(serde::Deserialize, Form)]
    /// struct Region {
    ///     region: String,
    /// }
    ///
    /// /// Provisions a database.
    /// #[tool]
    /// async fn provision(ctx: &Ctx) -> Result<Reply<String>> {
    ///     let ask = Ask::of::<Region>("region", "Which region?");
    ///     Ok(match ctx.by_hand().form(&ask)? {
    ///         None => ask.into(),
    ///         Some(Answer::Accept(Region { region })) => Reply::Complete(region),
    ///         Some(_) => Reply::Complete("Nothing was provisioned.".into()),
    ///     })
    /// }
    /// ```
    pub fn by_hand(&self) -> ByHand<'_> {
        ByHand { ctx: self }
    }
}

impl<'a> ByHand<'a> {
    /// Returns the person's answer to exactly this form, decoded; `None` if the form was not asked. The answer is there on each leg until
    /// the handler returns questions or state again.
    ///
    /// If the wording of a question has changed since it was asked, it has no answer: ask it again.
    ///
    /// # Errors
    /// If the content fits the form's schema but does not decode into `T`.
    pub fn form<T: DeserializeOwned>(&self, ask: &Ask) -> Result<Option<Answer<T>>, Error> {
        self.elicited(ask).map(|result| decoded(ask, result)).transpose()
    }

    /// Returns the person's answer to exactly this URL; `None` if the URL was not asked in the last leg. Accepted means
    /// that the person agreed to open it. [`elicit_url`](Ctx::elicit_url) can wait until they have finished, and lets
    /// the page verify who they are.
    pub fn url(&self, ask: &Ask) -> Option<Answer<()>> {
        Some(match self.elicited(ask)?.action {
            Action::Accept => Answer::Accept(()),
            Action::Decline => Answer::Decline,
            Action::Cancel => Answer::Cancel,
        })
    }

    /// Returns the model's message for exactly this ask; `None` if it was not asked in the last leg.
    pub fn sampled(&self, ask: &Ask) -> Option<&'a CreateMessageResult> {
        match self.answer_to(ask)? {
            AnsweredAsk { response: InputResponse::Sampling(result), .. } => Some(result),
            _ => None,
        }
    }

    /// Returns the client's roots; `None` if they were not requested in the last leg.
    pub fn listed_roots(&self, ask: &Ask) -> Option<&'a ListRootsResult> {
        match self.answer_to(ask)? {
            AnsweredAsk { response: InputResponse::Roots(result), .. } => Some(result),
            _ => None,
        }
    }

    /// Returns every answer of this leg with its key. Each answer was requested by the opened state, fits its question,
    /// and is decoded.
    pub fn input_responses(&self) -> impl ExactSizeIterator<Item = (&'a str, &'a InputResponse)> + use<'a> {
        let counts =
            |answered: &&AnsweredAsk| self.ctx.leg_runtime().with(|leg| leg.read_by_hand(&answered.key));
        let answered: Vec<&'a AnsweredAsk> = self.answered().iter().filter(counts).collect();
        answered.into_iter().map(|answered| (&*answered.key, &answered.response))
    }

    /// Returns answers that came without a state that asked for them, for example on a first leg; `None` if there are
    /// none.
    pub fn unverified_responses(&self) -> Option<Unverified<&'a InputResponses>> {
        self.ctx.leg.unverified.as_ref().map(Unverified)
    }

    /// Returns an answer to this form that came without a state that asked for it, decoded; `None` if there is none, or
    /// if it does not fit the form.
    ///
    /// A tool with one harmless question may complete from such an answer alone. A tool that needs a verified answer
    /// asks, and reads [`form`](Self::form).
    ///
    /// # Errors
    /// The same as those of [`form`](Self::form).
    pub fn unverified_form<T: DeserializeOwned>(
        &self,
        ask: &Ask,
    ) -> Result<Option<Unverified<Answer<T>>>, Error> {
        let sent = self.ctx.leg.unverified.as_ref().and_then(|responses| responses.get(ask.key()));
        match sent.and_then(|text| call::read_answer(ask.request(), text.get()).ok()) {
            Some(InputResponse::Elicit(result)) => {
                decoded(ask, &result).map(|answer| Some(Unverified(answer)))
            }
            _ => Ok(None),
        }
    }

    /// Returns the state that the last leg wrote; `None` on the first leg.
    pub fn state(&self) -> Option<&'a str> {
        self.ctx.leg.later.as_ref()?.state.as_deref()
    }

    /// Returns the state that the last leg wrote, decoded from JSON; `None` on the first leg.
    ///
    /// # Errors
    /// If the state is not the JSON of a `T`.
    pub fn state_as<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let mismatch =
            |fault| Mismatch("the state does not decode into the requested type".to_owned(), fault);
        Ok(self.state().map(serde_json::from_str).transpose().map_err(mismatch)?)
    }

    fn answered(&self) -> &'a [AnsweredAsk] {
        self.ctx.leg.later.as_ref().map_or(&[], |later| &later.answered)
    }

    fn answer_to(&self, ask: &Ask) -> Option<&'a AnsweredAsk> {
        let answered = self.answered().iter().find(|answered| &*answered.key == ask.key())?;
        // A question whose wording has changed was not asked.
        let is_it = serde_json::to_string(ask.request()).is_ok_and(|text| text == *answered.question);
        (is_it && self.ctx.leg_runtime().with(|leg| leg.read_by_hand(ask.key()))).then_some(answered)
    }

    fn elicited(&self, ask: &Ask) -> Option<&'a ElicitResult> {
        match self.answer_to(ask)? {
            AnsweredAsk { response: InputResponse::Elicit(result), .. } => Some(result),
            _ => None,
        }
    }
}

/// Answers that no opened state asked for. Anyone can send them, so a handler must call a method to use them.
pub struct Unverified<T>(T);

impl<T> Unverified<T> {
    /// Returns the answers without verification: it is not checked that they were asked for, or that their content
    /// fits.
    pub fn trust_without_verification(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Unverified<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unverified(..)")
    }
}

/// Reads a person's answer to a form.
fn decoded<T: DeserializeOwned>(ask: &Ask, result: &ElicitResult) -> Result<Answer<T>, Error> {
    Ok(match result.action {
        Action::Accept => {
            let empty = Map::new();
            let content = result.content.as_ref().unwrap_or(&empty);
            let mismatch = |fault| {
                Mismatch(format!("the answer to `{}` fits its form but not its type", ask.key()), fault)
            };
            Answer::Accept(form::read_map(content).map_err(mismatch)?)
        }
        Action::Decline => Answer::Decline,
        Action::Cancel => Answer::Cancel,
    })
}

/// The error of an answer or a state that does not decode. Its text is for the log, and omits the value, which serde
/// would quote.
struct Mismatch(String, serde_json::Error);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, without_value(&self.1))
    }
}

impl fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Mismatch {}
