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
}

impl Ask {
    /// A form for the person. Not for passwords, tokens or card numbers: those go through [`Ask::url`].
    ///
    /// > Servers **MUST NOT** use form mode elicitation to request sensitive information
    pub fn form(key: impl Into<String>, message: impl Into<String>, schema: FormSchema) -> Self {
        let request = ElicitRequest::Form { message: message.into(), requested_schema: schema };
        Self { key: key.into(), request: InputRequest::Elicit(request) }
    }

    /// The form of a type, for the person. Its answer is read with [`Ctx::form`](super::Ctx::form), as that type.
    ///
    #[cfg_attr(feature = "macros", doc = "```")]
    #[cfg_attr(not(feature = "macros"), doc = "```ignore")]
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
        Self { key: key.into(), request: InputRequest::Elicit(request) }
    }

    /// A message of the client's model. Deprecated in 2026-07-28: call a model provider instead.
    pub fn sample(key: impl Into<String>, params: CreateMessageParams) -> Self {
        Self { key: key.into(), request: InputRequest::CreateMessage(Box::new(params)) }
    }

    /// The client's root directories. Deprecated in 2026-07-28: take them as arguments instead.
    pub fn roots(key: impl Into<String>) -> Self {
        Self { key: key.into(), request: InputRequest::ListRoots { meta: None } }
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
}

impl InputRequired {
    /// A round with this question.
    pub fn ask(ask: Ask) -> Self {
        Self { asks: vec![ask], state: None }
    }

    /// No question: the client is to call again at once, perhaps at another instance, with this state.
    pub fn state_only(state: impl Into<String>) -> Self {
        Self { asks: Vec::new(), state: Some(state.into()) }
    }

    /// One more question in the same round. Keys are unique: a second use ends the call with an internal error.
    #[must_use]
    pub fn and(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
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
