//! The callbacks of a client, boxed.

use crate::{
    asks::questions::{FormAsk, RootsAsk, Round, RoundDecision, SampleAsk, UrlAsk},
    identity::ServerIdentity,
};
use antiphon_wire::{AskSupport, CreateMessageResult, ElicitResult, ListRootsResult};
use futures_util::future::BoxFuture;
use std::{error::Error as StdError, fmt, sync::Arc};

/// The result of a callback.
pub(crate) type CallbackResult<T> = Result<T, CallbackError>;
/// A callback for one kind of ask.
pub(crate) type Callback<Ask, T> = Arc<dyn Fn(Ask) -> BoxFuture<'static, T> + Send + Sync>;

/// The callbacks of a client, and the rules for their use.
pub(crate) struct AskHandlers {
    pub(crate) callbacks: Callbacks,
    /// The asks that are answered here, by hand or by a callback.
    pub(crate) declared: AskSupport,
    pub(crate) one_at_a_time: bool,
    /// `true` if callbacks receive URLs of any scheme, and texts that are no URL.
    pub(crate) any_url_scheme: bool,
}

/// The person finished an interaction behind a URL.
///
/// > Servers **MAY** send a `notifications/elicitation/complete` notification when an out-of-band interaction started by URL
/// > mode elicitation is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElicitComplete {
    /// The server that sent the notification.
    pub server: ServerIdentity,
    /// The key of the [`UrlAsk`](crate::UrlAsk).
    pub elicitation_id: String,
}

/// A callback for finished interactions.
pub(crate) type OnElicitComplete = Arc<dyn Fn(ElicitComplete) + Send + Sync>;

/// The attached callbacks. Exactly their asks are declared to servers.
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    pub(crate) form: Option<Callback<FormAsk, CallbackResult<ElicitResult>>>,
    pub(crate) url: Option<Callback<UrlAsk, CallbackResult<ElicitResult>>>,
    pub(crate) sample: Option<Callback<SampleAsk, CallbackResult<CreateMessageResult>>>,
    pub(crate) sampling_tools: bool,
    pub(crate) sampling_context: bool,
    pub(crate) roots: Option<Callback<RootsAsk, CallbackResult<ListRootsResult>>>,
    pub(crate) round: Option<Callback<Round, RoundDecision>>,
    pub(crate) elicit_complete: Option<OnElicitComplete>,
}

impl Callbacks {
    /// The asks that have a callback.
    pub(crate) fn declared(&self) -> AskSupport {
        let mut asks = AskSupport::NONE;
        asks.form = self.form.is_some();
        asks.url = self.url.is_some();
        asks.sampling = self.sample.is_some();
        asks.sampling_tools = asks.sampling && self.sampling_tools;
        asks.sampling_context = asks.sampling && self.sampling_context;
        asks.roots = self.roots.is_some();
        asks
    }
}

/// The reason why a callback has no answer. It ends the call. To send the server a "no", answer with a decline instead.
///
/// Made from any error with `?`, and from a `String` or a `&str`, which is the whole text: `Err("no screen".into())`. Does not
/// implement [`std::error::Error`] itself, so that this works.
pub struct CallbackError(Box<dyn StdError + Send + Sync>);

impl CallbackError {
    /// An error that is only a sentence.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    pub(crate) fn from_box(source: Box<dyn StdError + Send + Sync>) -> Self {
        Self(source)
    }

    /// The error it was made from.
    pub fn get_ref(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }

    /// The error it was made from.
    pub fn into_inner(self) -> Box<dyn StdError + Send + Sync> {
        self.0
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for CallbackError {
    fn from(source: E) -> Self {
        Self(source.into())
    }
}

impl fmt::Debug for CallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for CallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_fails_with_a_text_or_an_error() {
        let foreign: Box<dyn StdError + Send + Sync> = "boxed".into();
        for (error, text) in [
            (CallbackError::from("no screen"), "no screen"),
            (format!("no {}", "screen").into(), "no screen"),
            (std::borrow::Cow::Borrowed("no screen").into(), "no screen"),
            (std::io::Error::other("no terminal").into(), "no terminal"),
            (foreign.into(), "boxed"),
        ] {
            assert_eq!(error.to_string(), text);
        }
        let failed = || -> Result<(), CallbackError> { Err("no screen")? };
        assert_eq!(failed().unwrap_err().to_string(), "no screen");
        let error = CallbackError::from(fmt::Error);
        assert!(error.get_ref().downcast_ref::<fmt::Error>().is_some());
    }
}
