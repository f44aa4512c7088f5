//! The error a handler may end with.

use crate::{AskError, StepError};
use std::{any::Any, error::Error as StdError, fmt};

/// The result of a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a handler could not do what was asked: either words for the caller, or an error of some library.
///
/// It takes any error by `?`. A library's error may hold what a caller must not learn (paths, hosts, queries), so its
/// text goes to the server's log, and the caller reads only that the tool failed. What the caller should read, say
/// with [`Error::user_facing`], or with an error type of your own: a handler may return `Result<_, E>` for any `E` that can
/// be displayed, and that text is shown.
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
/// A `Box<dyn Error>`, and an error of `anyhow`, are no `std::error::Error` themselves. Put into one they are logged:
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
    /// A library's, for the log; or one made for the caller, with its words.
    Foreign(Box<dyn StdError + Send + Sync>, Option<String>),
}

impl Error {
    /// An error in words for the caller.
    pub fn user_facing(text: impl Into<String>) -> Self {
        Self(Box::new(Kind::UserFacing(text.into())))
    }

    /// The resource that is read does not exist: for a handler of a template, whose URIs fit more than there is.
    /// Elsewhere it is an error in these words.
    ///
    /// > If the requested resource does not exist, servers **MUST** return a JSON-RPC error with code `-32602`
    pub fn resource_not_found() -> Self {
        Self(Box::new(Kind::NotFound))
    }

    /// Whether this is [`resource_not_found`](Self::resource_not_found).
    pub fn is_resource_not_found(&self) -> bool {
        matches!(&*self.0, Kind::NotFound)
    }

    /// The words for the caller, if there are any.
    pub fn user_facing_text(&self) -> Option<&str> {
        match &*self.0 {
            Kind::UserFacing(text) => Some(text),
            Kind::NotFound => Some(NOT_FOUND),
            Kind::Foreign(_, words) => words.as_deref(),
        }
    }

    /// The error inside, if it is of this type.
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
        // Those of ours say themselves what the caller reads.
        let words = match any.downcast_ref::<StepError>() {
            Some(step) => step.user_facing.then(|| step.message.clone()),
            None => any.downcast_ref::<AskError>().map(ToString::to_string),
        };
        Self(Box::new(Kind::Foreign(Box::new(error), words)))
    }
}

impl fmt::Display for Error {
    /// The whole text, causes included: for the log.
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

/// An error after which a step may be run again. It is no outcome.
pub(crate) struct RetryRequested(pub(crate) Error);

impl StepError {
    /// Not an outcome: the step is to run again, now as [`step_retry`](crate::Ctx::step_retry) says, or when the client
    /// sends the request again. For what passes: a timeout, a 503.
    pub fn retry(error: impl Into<Error>) -> Error {
        Error::from(RetryRequested(error.into()))
    }

    /// As what a closure gave. `None` if it is no outcome.
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
