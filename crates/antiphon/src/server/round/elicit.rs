//! A form, asked with `await`.

use super::{
    asking::{Fallback, RawAsk, Rendered},
    setters::setters,
};
use crate::{
    Form,
    server::{Answer, AskError, Ctx},
};
use antiphon_wire::{Action, AskSupport, ElicitRequest, InputRequest};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

impl Ctx {
    /// Asks the person to fill in a form, and waits for it:
    ///
    #[cfg_attr(feature = "macros", doc = "```")]
    #[cfg_attr(not(feature = "macros"), doc = "```ignore")]
    /// use antiphon::{Form, Result, server::Ctx};
    ///
    /// #[derive(serde::Deserialize, Form)]
    /// struct Place {
    ///     region: String,
    /// }
    ///
    /// async fn order(ctx: &Ctx, name: &str) -> Result<String> {
    ///     let place: Place = ctx.elicit("Which region should the database live in?").await?;
    ///     Ok(format!("{name} lives in {}.", place.region))
    /// }
    /// ```
    ///
    /// Where the answer is not known yet, this does not resolve: the request ends with the question, and the handler runs
    /// again, from its top, once the client comes back with the answer, on whichever instance that is. Everything before
    /// it therefore runs once more; what must not is a [`step`](Self::step).
    ///
    /// Someone who declines or goes away is an [`AskError`]; [`outcome`](Elicit::outcome) gives it as a value instead. An
    /// answer that does not fit the form never gets here: the question is asked again, with the reason.
    ///
    /// The key is the type's name in snake case; a second question of that type needs a [`key`](Elicit::key) of its own.
    #[track_caller]
    pub fn elicit<'a, T: Form + DeserializeOwned>(
        &'a self,
        message: impl Into<Cow<'a, str>>,
    ) -> Elicit<'a, T> {
        let form = AskedForm { message: message.into(), _answer: PhantomData };
        Elicit { raw: RawAsk::new(self, T::key()), form, default: None }
    }
}

struct AskedForm<'a, T> {
    message: Cow<'a, str>,
    _answer: PhantomData<fn() -> T>,
}

/// A form that is asked when it is awaited. See [`Ctx::elicit`].
#[must_use = "a question is asked when it is awaited"]
pub struct Elicit<'a, T> {
    raw: RawAsk<'a>,
    form: AskedForm<'a, T>,
    default: Option<T>,
}

/// The same, with decline and cancel as values. See [`Elicit::outcome`].
#[must_use = "a question is asked when it is awaited"]
pub struct ElicitOutcome<'a, T>(Elicit<'a, T>);

// Nothing in them is pinned.
impl<T> Unpin for Elicit<'_, T> {}
impl<T> Unpin for ElicitOutcome<'_, T> {}

setters! {
    Elicit<'a, T>,
    cannot: "show forms",
    within: "How long the person may take, in whole seconds, from the first time it is asked. No longer than the round it is asked \
             in: that is `answer_within` of the tool, or else of the server, ten minutes."
}

impl<'a, T> Elicit<'a, T> {
    /// What counts where the client cannot show forms. Never for a decline, a cancel or a bad answer.
    ///
    /// The caller chooses what it declares: this is your word that the value is harmless.
    pub fn or_default(mut self, value: T) -> Self {
        self.raw.fallback = Fallback::Value;
        self.default = Some(value);
        self
    }

    /// With decline and cancel as values.
    pub fn outcome(self) -> ElicitOutcome<'a, T> {
        ElicitOutcome(self)
    }
}

impl<T: Form + DeserializeOwned> Elicit<'_, T> {
    fn poll_outcome(&mut self, cx: &Context<'_>) -> Poll<Result<Answer<T>, AskError>> {
        let message = &self.form.message;
        let given = self.raw.poll(cx, AskSupport::FORM, |_| {
            let (message, requested_schema) = (message.to_string(), T::schema());
            let rendered =
                Rendered::of(InputRequest::Elicit(ElicitRequest::Form { message, requested_schema }))?;
            Ok(Rendered { decodes: Some(|answer| read::<T>(answer).map(drop)), ..rendered })
        });
        let answer = match std::task::ready!(given) {
            Ok(answer) => answer,
            Err(error) => {
                let stands_for_it = matches!(error, AskError::Unsupported { words: None, .. });
                let default = self.default.take().filter(|_| stands_for_it);
                return Poll::Ready(default.map(Answer::Accept).ok_or(error));
            }
        };
        match read(&answer) {
            Ok(answer) => {
                if let Some(refusal) = self.refusal(&answer) {
                    self.raw.ctx().flow().note_refusal(refusal);
                }
                Poll::Ready(Ok(answer))
            }
            // It was recorded by another version.
            Err(fault) => {
                let fault =
                    format!("the answer to `{}` fits its form but not its type: {fault}", self.raw.key);
                self.raw.ctx().flow().author_fault(self.raw.site(), fault);
                Poll::Pending
            }
        }
    }

    /// Who refused what, if they did.
    fn refusal<A>(&self, answer: &Answer<A>) -> Option<AskError> {
        let refused = match answer {
            Answer::Accept(_) => return None,
            Answer::Decline => AskError::declined,
            Answer::Cancel => AskError::cancelled,
        };
        self.raw.path().map(|path| refused(&path, &self.form.message))
    }
}

impl<T: Form + DeserializeOwned> Future for ElicitOutcome<'_, T> {
    type Output = Result<Answer<T>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_outcome(cx)
    }
}

impl<T: Form + DeserializeOwned> Future for Elicit<'_, T> {
    type Output = Result<T, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = std::task::ready!(self.poll_outcome(cx))?;
        match (self.refusal(&answer), answer) {
            (None, Answer::Accept(value)) => Poll::Ready(Ok(value)),
            (Some(refusal), _) => Poll::Ready(Err(refusal)),
            // The key is none: the leg ends.
            (None, _) => Poll::Pending,
        }
    }
}

/// A recorded answer, read straight into its type. The error says nothing of the value.
fn read<T: DeserializeOwned>(answer: &str) -> Result<Answer<T>, String> {
    #[derive(Deserialize)]
    struct Given<'a> {
        action: Action,
        #[serde(borrow, default)]
        content: Option<&'a RawValue>,
    }
    let given: Given<'_> = serde_json::from_str(answer).map_err(|fault| fault.to_string())?;
    Ok(match given.action {
        Action::Accept => {
            let content = given.content.map_or("{}", RawValue::get);
            Answer::Accept(
                serde_json::from_str(content).map_err(|fault| crate::server::ctx::without_value(&fault))?,
            )
        }
        Action::Decline => Answer::Decline,
        Action::Cancel => Answer::Cancel,
    })
}
