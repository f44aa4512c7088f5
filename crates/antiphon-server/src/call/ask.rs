//! Asking by hand: what a handler returns instead of a result.

use crate::Form;
use antiphon_wire::{CreateMessageParams, ElicitRequest, FormSchema, InputRequest};
use serde::Serialize;
use std::fmt;

/// One question, with the key its answer comes back under.
///
/// ```
/// use antiphon::server::Ask;
/// use antiphon::wire::{FormField, FormSchema};
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
    /// A form for the person. Not for passwords, tokens or card numbers: those go through [`Ask::url`].
    ///
    /// > Servers **MUST NOT** use form mode elicitation to request sensitive information
    pub fn form(key: impl Into<String>, message: impl Into<String>, schema: FormSchema) -> Self {
        let request = ElicitRequest::Form { message: message.into(), requested_schema: schema };
        Self::new(key, InputRequest::Elicit(request))
    }

    /// The form of a type, for the person. Its answer is read with [`Ctx::form`](super::Ctx::form), as that type. A
    /// `String`, a `bool` or a number is a form of [one field](crate::OneField).
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

    /// A URL for the person to open. An accepted answer means consent, not that they are done there.
    ///
    /// [`Ctx::elicit_url`](super::Ctx::elicit_url) asks the same with `await`. It brings what a page needs to find out who
    /// opens it, which every such page must, and it can wait until they are done. By hand both are yours to make.
    ///
    /// > The MCP Server **MUST** verify the identity of the user who opens the URL before accepting information.
    ///
    /// > **MUST NOT** provide a URL which is pre-authenticated to access a protected resource
    pub fn url(key: impl Into<String>, message: impl Into<String>, url: impl Into<String>) -> Self {
        let request = ElicitRequest::Url { message: message.into(), url: url.into() };
        Self::new(key, InputRequest::Elicit(request))
    }

    /// A message of the client's model. Deprecated in 2026-07-28: call a model provider instead.
    pub fn sample(key: impl Into<String>, params: CreateMessageParams) -> Self {
        Self::new(key, InputRequest::CreateMessage(Box::new(params)))
    }

    /// The client's root directories. Deprecated in 2026-07-28: take them as arguments instead.
    pub fn roots(key: impl Into<String>) -> Self {
        Self::new(key, InputRequest::ListRoots { meta: None })
    }

    fn new(key: impl Into<String>, request: InputRequest) -> Self {
        Self { key: key.into(), request, elicitation_id: None }
    }

    /// The `elicitationId` under which a client of 2025-11-25 is asked to open a URL, and told by
    /// [`elicitation_complete`](super::Server::elicitation_complete) that it is finished. Default: one that is made up.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.elicitation_id = Some(id.into());
        self
    }

    /// The key and the question.
    pub(crate) fn into_parts(self) -> (String, InputRequest) {
        (self.key, self.request)
    }

    /// The key its answer comes back under.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The question as it goes out.
    pub fn request(&self) -> &InputRequest {
        &self.request
    }
}

/// "Not yet": questions, state, or both. It cannot be made without either.
///
/// The state is yours: plain text for you, a sealed token on the wire, bound to this call and this caller. Answers do
/// not come back a second time: what you will need later goes into the state, under a name of your own.
pub struct InputRequired {
    pub(crate) asks: Vec<Ask>,
    pub(crate) state: Option<String>,
    /// In a session of 2025-11-25: an error that names the URLs.
    pub(crate) urls_first: bool,
}

impl InputRequired {
    /// A round with this question.
    pub fn ask(ask: Ask) -> Self {
        Self { asks: vec![ask], state: None, urls_first: false }
    }

    /// No question: the client is to call again at once, perhaps at another instance, with this state.
    pub fn state_only(state: impl Into<String>) -> Self {
        Self { asks: Vec::new(), state: Some(state.into()), urls_first: false }
    }

    /// One more question in the same round. Keys are unique: a second use ends the call with an internal error.
    #[must_use]
    pub fn and(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
        self
    }

    /// In a session of 2025-11-25, ends the call with the error -32042 instead of holding it: the client opens these URLs,
    /// and calls again from the beginning, without answers and without state. For handlers that know elsewhere, from their
    /// own records, that what happens behind the URL is finished. All asks must be URLs. Elsewhere it changes nothing.
    ///
    /// > Servers **MAY** return a `URLElicitationRequiredError` (code `-32042`) when a request cannot be processed until one
    /// > or more URL mode elicitations are completed.
    #[must_use]
    pub fn urls_first(mut self) -> Self {
        self.urls_first = true;
        self
    }

    /// With this state, which the next leg reads with [`Ctx::state`](super::Ctx::state).
    #[must_use]
    pub fn with_state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// With this state as JSON, which the next leg reads with [`Ctx::state_as`](super::Ctx::state_as).
    ///
    /// # Errors
    /// If the state cannot be written as JSON.
    pub fn with_json_state(self, state: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_string(state).map(|text| self.with_state(text))
    }
}

impl fmt::Debug for InputRequired {
    /// Not the state: it does not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputRequired").field("asks", &self.asks).finish_non_exhaustive()
    }
}

/// What a handler that may ask returns: the result, or "not yet".
#[derive(Debug)]
pub enum Reply<T> {
    /// The result.
    Complete(T),
    /// Not yet.
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
