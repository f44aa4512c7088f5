//! Questions that a handler returns instead of a result.

use crate::form::Form;
use antiphon_wire::{CreateMessageParams, ElicitRequest, FormSchema, InputRequest};
use serde::Serialize;
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
