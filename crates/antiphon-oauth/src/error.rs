//! The error of every operation, and texts without secrets.

use antiphon_wire::escaped;
use std::{error::Error as StdError, fmt, sync::Arc};

/// An error of authorization. Its text says which side is at fault, and what to do; it holds no token, code or secret.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    text: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting of this program cannot be used.
    Setting,
    /// The metadata of the server or of its authorization server is missing, cannot be used, or is about something else.
    Discovery,
    /// The authorization server is not the one that it should be: another issuer, in its metadata, in its answer, or compared
    /// with the one of the credentials.
    Issuer,
    /// The authorization server did not register this client, or has no way for it to get a client id.
    Registration,
    /// A person must sign in, and this program cannot ask one.
    SignIn,
    /// The answer to the sign-in cannot be believed: it belongs to no flow of this program.
    Callback,
    /// The person or the authorization server refused.
    Denied,
    /// The authorization server did not issue a token.
    Token,
    /// The resource server refuses a token that was just issued, or asks for more scopes again and again.
    Refused,
    /// A request could not be sent, or the authorization server could not answer it: later it may.
    Network,
    /// The store of tokens failed.
    Store,
}

impl Error {
    /// Returns an error with a text of one sentence, for handlers and stores. Text from elsewhere is escaped by the caller.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self(Arc::new(Inner { kind, text: text.into(), source: None }))
    }

    /// Returns an error with its cause.
    pub fn caused(
        kind: ErrorKind,
        text: impl Into<String>,
        cause: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self(Arc::new(Inner { kind, text: text.into(), source: Some(cause.into()) }))
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("text", &self.0.text)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// A text that is shown nowhere.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Returns a URL for a text: without its query, escaped.
pub(crate) fn shown(url: &str) -> String {
    escaped(place(url)).to_string()
}

/// Returns a URL without its query.
pub(crate) fn place(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}
