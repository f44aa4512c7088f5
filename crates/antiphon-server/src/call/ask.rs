//! Questions that a handler returns instead of a result, and its way to their answers and to its state.

use crate::{
    call::{
        self, InputResponse,
        ctx::{Answer, Ctx, without_value},
    },
    errors::Error,
    form::{self, Form},
};
use antiphon_engine::AnsweredAsk;
use antiphon_wire::{
    Action, CreateMessageParams, CreateMessageResult, ElicitRequest, ElicitResult, FormSchema, InputRequest,
    InputResponses, ListRootsResult,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Map;
use std::fmt;

/// One question, with the key of its answer.
///
/// ```
/// use antiphon::server::Ask;
/// use antiphon::wire::forms::{FormField, FormSchema};
///
/// let ask = Ask::form(
///     "region",
///     "Which region should the database live in?",
///     FormSchema::new(vec![FormField::text("region")]),
/// );
/// assert_eq!(ask.key(), "region");
/// ```
#[derive(Clone, Debug)]
pub struct Ask {
    key: String,
    request: InputRequest,
    pub(crate) elicitation_id: Option<String>,
}

impl Ask {
    /// Asks the person to fill in a form. Do not use it for passwords, tokens or card numbers: those go through
    /// [`Ask::url`].
    ///
    /// > Servers **MUST NOT** use form mode elicitation to request sensitive information
    pub fn form(key: impl Into<String>, message: impl Into<String>, schema: FormSchema) -> Self {
        let request = ElicitRequest::Form { message: message.into(), requested_schema: schema };
        Self::new(key, InputRequest::Elicit(request))
    }

    /// Asks the person to fill in the form of a type. The answer is read with [`ByHand::form`](crate::ByHand::form), as that
    /// type. A `String`, a `bool` or a number is a form of [one field](crate::OneField).
    ///
    /// ```
    /// use antiphon::server::Ask;
    ///
    /// #[derive(serde::Deserialize, antiphon::Form)]
    /// struct Place {
    ///     region: String,
    /// }
    ///
    /// let ask = Ask::of::<Place>("region", "Which region should the database live in?");
    /// assert_eq!(ask.key(), "region");
    /// ```
    pub fn of<F: Form>(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::form(key, message, F::schema())
    }

    /// Asks the person to open a URL. An accepted answer means consent; it does not mean that the person has finished
    /// there.
    ///
    /// [`Ctx::elicit_url`](crate::Ctx::elicit_url) asks the same with `await`. It also provides the reference with
    /// which the page verifies its visitor, as every such page must, and it can wait until the person has finished. An
    /// `Ask` has neither: the handler must provide both.
    ///
    /// > The MCP Server **MUST** verify the identity of the user who opens the URL before accepting information.
    ///
    /// > **MUST NOT** provide a URL which is pre-authenticated to access a protected resource
    pub fn url(key: impl Into<String>, message: impl Into<String>, url: impl Into<String>) -> Self {
        let request = ElicitRequest::Url { message: message.into(), url: url.into() };
        Self::new(key, InputRequest::Elicit(request))
    }

    /// Asks the client's model for a message. Deprecated in 2026-07-28: call a model provider instead.
    pub fn sample(key: impl Into<String>, params: CreateMessageParams) -> Self {
        Self::new(key, InputRequest::CreateMessage(Box::new(params)))
    }

    /// Asks for the client's root directories. Deprecated in 2026-07-28: take them as arguments instead.
    pub fn roots(key: impl Into<String>) -> Self {
        Self::new(key, InputRequest::ListRoots { meta: None })
    }

    fn new(key: impl Into<String>, request: InputRequest) -> Self {
        Self { key: key.into(), request, elicitation_id: None }
    }

    /// Sets the `elicitationId` of a URL question for clients of 2025-11-25.
    /// [`elicitation_complete`](crate::Server::elicitation_complete) takes the same id. Default: a generated id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.elicitation_id = Some(id.into());
        self
    }

    /// The key and the question.
    pub(crate) fn into_parts(self) -> (String, InputRequest) {
        (self.key, self.request)
    }

    /// Returns the key of the answer.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the question as it is sent.
    pub fn request(&self) -> &InputRequest {
        &self.request
    }
}

/// Questions, state, or both: the result of a handler that is not finished. It holds at least one of them.
///
/// The state is the handler's own: plain text for the handler, a sealed token on the wire, bound to this call and this
/// caller. Each answer is delivered once: put an answer that a later leg needs into the state, with its question. The guide's
/// chapter `by_hand` has an example.
pub struct InputRequired {
    pub(crate) asks: Vec<Ask>,
    pub(crate) state: Option<String>,
    /// True if a client of 2025-11-25 receives the error that names the URLs.
    pub(crate) urls_first: bool,
}

impl InputRequired {
    /// Returns a round with this question.
    pub fn ask(ask: Ask) -> Self {
        Self { asks: vec![ask], state: None, urls_first: false }
    }

    /// Returns a round without a question: the client calls again at once with this state, perhaps at another instance.
    pub fn state_only(state: impl Into<String>) -> Self {
        Self { asks: Vec::new(), state: Some(state.into()), urls_first: false }
    }

    /// Adds a question to the round. Keys are unique: a second use ends the call with an internal error.
    #[must_use]
    pub fn and(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
        self
    }

    /// Ends the call with the error -32042 in a session of 2025-11-25, instead of keeping the call open: the client
    /// opens these URLs and calls again from the beginning, without answers and without state. It suits a handler that
    /// learns from its own records that the work behind the URL is finished. All asks must be URLs. On other versions
    /// this setting has no effect, nor after a completed step, which a call from the beginning would repeat.
    ///
    /// > Servers **MAY** return a `URLElicitationRequiredError` (code `-32042`) when a request cannot be processed until one
    /// > or more URL mode elicitations are completed.
    #[must_use]
    pub fn urls_first(mut self) -> Self {
        self.urls_first = true;
        self
    }

    /// Sets the state, which the next leg reads with [`ByHand::state`](crate::ByHand::state).
    #[must_use]
    pub fn with_state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// Sets the state as JSON, which the next leg reads with [`ByHand::state_as`](crate::ByHand::state_as).
    ///
    /// # Errors
    /// If the state cannot be written as JSON.
    pub fn with_json_state(self, state: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_string(state).map(|text| self.with_state(text))
    }
}

impl fmt::Debug for InputRequired {
    /// Omits the state: it does not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputRequired").field("asks", &self.asks).finish_non_exhaustive()
    }
}

/// The return type of a handler that may ask: the result, or questions.
#[derive(Debug)]
pub enum Reply<T> {
    /// The result.
    Complete(T),
    /// Questions or state: the handler is not finished.
    InputRequired(InputRequired),
}

impl<T> From<InputRequired> for Reply<T> {
    fn from(required: InputRequired) -> Self {
        Self::InputRequired(required)
    }
}

impl<T> From<Ask> for Reply<T> {
    fn from(ask: Ask) -> Self {
        Self::InputRequired(InputRequired::ask(ask))
    }
}

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
