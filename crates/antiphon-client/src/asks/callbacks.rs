//! The callbacks of a client, boxed, and the reasons why an ask has no answer.

use crate::asks::{
    answers::AnswerError,
    questions::{FormAsk, RootsAsk, Round, RoundDecision, SampleAsk, ServerIdentity, UrlAsk},
};
use antiphon_wire::{
    AskKind, AskSupport, CreateMessageResult, ElicitResult, KnownKind, ListRootsResult, escaped,
};
use futures_util::future::BoxFuture;
use std::{error::Error as StdError, fmt, sync::Arc};

/// The result of a callback.
type CallbackResult<T> = Result<T, CallbackError>;
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
type OnElicitComplete = Arc<dyn Fn(ElicitComplete) + Send + Sync>;

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

/// The reason why an ask of the server was not answered. It ends the call.
#[derive(Debug)]
#[non_exhaustive]
pub enum AskFault {
    /// The server asked for something that no callback is attached for: the server's fault, unless it was declared to
    /// be answered by hand.
    NoCallback {
        /// The key of the ask.
        key: String,
        /// The kind of the ask.
        kind: AskKind,
        /// The part that was not declared, such as tools for the model; none if nothing of the kind was.
        part: Option<&'static str>,
        /// `true` if the ask was declared with [`declare`](crate::ClientBuilder::declare), but the program left the
        /// call to the callbacks.
        by_hand: bool,
    },
    /// The server asked for something that this version does not know, or cannot read. A round is sent only when each of its
    /// asks has an answer, so no callback of the round ran: nobody is asked in vain. The other asks of the round are not lost.
    /// [`on_round`](crate::ClientBuilder::on_round) may decline an elicitation that cannot be read, and the callbacks then answer the
    /// others; or a program refuses or answers the ask in [`ClientError::pending`](crate::ClientError::pending), and continues with
    /// [`drive`](crate::Client::drive).
    UnknownKind {
        /// The key of the ask.
        key: String,
        /// The method that the server wrote.
        method: String,
        /// The mode that the server wrote, if the ask is an elicitation.
        mode: Option<String>,
        /// The reason why the ask cannot be read; none if its method or its mode is unknown.
        unreadable: Option<String>,
    },
    /// A round holds more asks than [`max_asks`](crate::ClientBuilder::max_asks) allows.
    TooManyAsks {
        /// The number of asks that arrived.
        asks: usize,
        /// The number of asks that are allowed.
        limit: usize,
    },
    /// [`on_round`](crate::ClientBuilder::on_round) refused the round.
    Refused {
        /// The ask that caused the refusal; none if the round as a whole caused it.
        key: Option<String>,
        /// The reason that `on_round` gave.
        reason: String,
    },
    /// The server asked the person to open a URL that is not valid, or neither `http` nor `https`: the server's fault. No
    /// callback was run; [`any_url_scheme`](crate::ClientBuilder::any_url_scheme) passes such URLs on.
    Url {
        /// The key of the ask.
        key: String,
        /// The URL, as the server wrote it.
        url: String,
    },
    /// A callback failed. The other callbacks of its round were dropped.
    Callback {
        /// The key of its ask.
        key: String,
        /// The error that the callback returned.
        source: CallbackError,
    },
    /// An answer does not fit its ask. It was not sent.
    Answer(AnswerError),
    /// The server asked in more rounds than [`max_rounds`](crate::ClientBuilder::max_rounds) allows.
    RoundLimit {
        /// The number of rounds that were answered.
        rounds: u32,
    },
}

impl fmt::Display for AskFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCallback { key, kind, part, by_hand } => {
                let (what, cure) = not_supported(*kind);
                let (with, cure) = match part {
                    Some(part) => (format!(" with {part}"), format!("`sampling_{part}`")),
                    None => (String::new(), cure.to_owned()),
                };
                let why = match by_hand {
                    true => ", and it was declared only to be answered by hand (`begin`, `resume`)",
                    false => " although it was not declared",
                };
                write!(
                    f,
                    "{what}{with} not supported: the server asked it as `{}`{why}; attach {cure} to answer it",
                    escaped(key)
                )
            }
            Self::UnknownKind { key, unreadable: Some(reason), .. } => write!(
                f,
                "the server's ask `{}` cannot be read: {}; nobody was asked. Decline it in `on_round`, or drive the call by \
                 hand (`begin`)",
                escaped(key),
                escaped(reason)
            ),
            Self::UnknownKind { key, method, mode, unreadable: None } => {
                let mode = mode.as_ref().map(|mode| format!(" of the mode `{}`", escaped(mode)));
                write!(
                    f,
                    "the server asked `{}` by `{}`{}, which is unknown here; drive the call by hand (`begin`) to refuse it",
                    escaped(key),
                    escaped(method),
                    mode.unwrap_or_default()
                )
            }
            Self::TooManyAsks { asks, limit } => {
                write!(f, "the server asked {asks} things at once; {limit} are allowed here (`max_asks`)")
            }
            Self::Refused { key: Some(key), reason } => {
                write!(f, "the ask `{}` was refused here: {}", escaped(key), escaped(reason))
            }
            Self::Refused { key: None, reason } => {
                write!(f, "the round was refused here: {}", escaped(reason))
            }
            Self::Url { key, url } => write!(
                f,
                "the server asked with `{}` to open {:?}, which is not a valid http or https URL; nobody was asked",
                escaped(key),
                escaped(url)
            ),
            Self::Callback { key, .. } => write!(f, "the callback for `{}` failed", escaped(key)),
            Self::Answer(error) => error.fmt(f),
            Self::RoundLimit { rounds } => {
                write!(f, "the server still asks after {rounds} answered rounds (`max_rounds`)")
            }
        }
    }
}

/// The name of this kind of ask in the specification, and the callback to attach.
fn not_supported(kind: AskKind) -> (&'static str, &'static str) {
    match kind.known() {
        Some(KnownKind::Form) => ("Elicitation", "`on_elicit` or `on_elicit_form`"),
        Some(KnownKind::Url) => ("Elicitation", "`on_elicit` or `on_elicit_url`"),
        Some(KnownKind::Sampling) => ("Sampling", "`on_sample`"),
        Some(KnownKind::Roots) => ("List roots", "`on_roots`"),
        None => ("This kind of ask", "a callback"),
    }
}

impl StdError for AskFault {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Callback { source, .. } => Some(source.get_ref()),
            _ => None,
        }
    }
}

/// Returns the callback that a program gave, behind one type.
pub(crate) fn boxed<Ask, T, F, Fut>(callback: F) -> Callback<Ask, T>
where
    F: Fn(Ask) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    Arc::new(move |ask| Box::pin(callback(ask)))
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
