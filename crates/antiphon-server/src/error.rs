//! The error of a handler.

use crate::{AskError, StepError};
use std::{any::Any, error::Error as StdError, fmt};

/// The result of a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a handler: either a text for the caller, or the error of a library.
///
/// It converts from any error with `?`. The error of a library may contain data that a caller must not see (paths,
/// hosts, queries), so its text is logged, and the caller receives only the information that the tool failed. A text
/// for the caller is made with [`Error::user_facing`], or with an error type of your own: a handler may return
/// `Result<_, E>` for any `E` with `Display`, and the caller receives that text.
///
/// ```
/// use antiphon::Error;
///
/// fn half(text: &str) -> antiphon::Result<u32> {
///     let number: u32 = text.parse()?; // logged
///     if number % 2 == 1 {
///         return Err(Error::user_facing(format!("{number} is odd"))); // shown
///     }
///     Ok(number / 2)
/// }
/// assert_eq!(half("7").unwrap_err().user_facing_text(), Some("7 is odd"));
/// assert_eq!(half("x").unwrap_err().user_facing_text(), None);
/// ```
///
/// `Box<dyn Error>` and the error of `anyhow` do not implement `std::error::Error`. Wrapped in an error that does, they
/// are logged:
///
/// ```
/// fn load() -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
///     Err("no such table".into())
/// }
///
/// fn read() -> antiphon::Result<u32> {
///     Ok(load().map_err(std::io::Error::other)?)
/// }
/// assert_eq!(read().unwrap_err().to_string(), "no such table");
/// ```
pub struct Error(Box<Kind>);

const NOT_FOUND: &str = "Resource not found";

enum Kind {
    UserFacing(String),
    NotFound,
    /// The error of a library, for the log; with a text, if it has one for the caller.
    Foreign(Box<dyn StdError + Send + Sync>, Option<String>),
}

impl Error {
    /// Returns an error with a text for the caller.
    pub fn user_facing(text: impl Into<String>) -> Self {
        Self(Box::new(Kind::UserFacing(text.into())))
    }

    /// Returns the error of a resource that does not exist: for a handler of a template, whose pattern matches more
    /// URIs than there are resources. Elsewhere it is an error with this text.
    ///
    /// > If the requested resource does not exist, servers **MUST** return a JSON-RPC error with code `-32602`
    pub fn resource_not_found() -> Self {
        Self(Box::new(Kind::NotFound))
    }

    /// Returns whether this is [`resource_not_found`](Self::resource_not_found).
    pub fn is_resource_not_found(&self) -> bool {
        matches!(&*self.0, Kind::NotFound)
    }

    /// Returns the text for the caller, if there is one.
    pub fn user_facing_text(&self) -> Option<&str> {
        match &*self.0 {
            Kind::UserFacing(text) => Some(text),
            Kind::NotFound => Some(NOT_FOUND),
            Kind::Foreign(_, words) => words.as_deref(),
        }
    }

    /// Returns the inner error, if it has this type.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match &*self.0 {
            Kind::Foreign(error, _) => error.downcast_ref(),
            Kind::UserFacing(_) | Kind::NotFound => None,
        }
    }

    pub(crate) fn downcast<E: StdError + 'static>(self) -> Result<E, Self> {
        match *self.0 {
            Kind::Foreign(error, words) => match error.downcast() {
                Ok(error) => Ok(*error),
                Err(error) => Err(Self(Box::new(Kind::Foreign(error, words)))),
            },
            other => Err(Self(Box::new(other))),
        }
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let any = &error as &dyn Any;
        // The errors of this crate have a text for the caller.
        let words = match any.downcast_ref::<StepError>() {
            Some(step) => step.user_facing.then(|| step.message.clone()),
            None => any.downcast_ref::<AskError>().map(ToString::to_string),
        };
        Self(Box::new(Kind::Foreign(Box::new(error), words)))
    }
}

impl fmt::Display for Error {
    /// Writes the whole text, causes included, for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::UserFacing(text) => f.write_str(text),
            Kind::NotFound => f.write_str(NOT_FOUND),
            Kind::Foreign(error, _) => {
                write!(f, "{error}")?;
                let mut cause = error.source();
                while let Some(error) = cause {
                    write!(f, ": {error}")?;
                    cause = error.source();
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An error that requests another attempt of a step. It is not an outcome.
pub(crate) struct RetryRequested(pub(crate) Error);

impl StepError {
    /// Requests another attempt instead of an outcome: the step runs again, at once if
    /// [`step_retry`](crate::Ctx::step_retry) allows it, or when the client sends the request again. Use it for
    /// temporary failures: a timeout, a 503.
    pub fn retry(error: impl Into<Error>) -> Error {
        Error::from(RetryRequested(error.into()))
    }

    /// Converts the error of a step's function.
    pub(crate) fn of(error: Error) -> Result<Self, RetryRequested> {
        let error = match error.downcast::<RetryRequested>() {
            Ok(again) => return Err(again),
            Err(error) => error,
        };
        match error.downcast::<Self>() {
            Ok(own) => Ok(own),
            Err(error) => Ok(Self {
                user_facing: error.user_facing_text().is_some(),
                message: error.user_facing_text().map_or_else(|| error.to_string(), str::to_owned),
                code: None,
                data: None,
            }),
        }
    }
}

impl fmt::Display for RetryRequested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for RetryRequested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl StdError for RetryRequested {}
