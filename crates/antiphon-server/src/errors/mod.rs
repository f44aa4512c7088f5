//! The errors of handlers, of a request, and of a server that cannot be built.

pub(crate) mod awaited;
pub(crate) mod refusal;
pub(crate) mod refusal_log;

use antiphon_seal::EntropyError;
use antiphon_wire::extension::InvalidExtension;
use awaited::{AskError, StepError};
use std::{any::Any, borrow::Cow, error::Error as StdError, fmt};

/// The result of a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a handler: a text for the caller, or a foreign error.
///
/// One rule decides what a caller may read, for every handler, step, resolver and completer, and for every type of
/// error that they return, because each is converted to this one:
///
/// * A text that was made for the caller is shown: [`Error::user_facing`], a `String` or `&'static str`,
///   [`StepError::new`](crate::StepError::new), [`AskError`](crate::AskError).
/// * Any other error is foreign. Its text may contain data that a caller must not see (paths, hosts, queries), so it is
///   logged, with its causes, and the caller receives only the information that the tool failed.
/// * A foreign error is shown where the author says so: [`.show()`](ShowError::show) on a `Result`, [`Error::show`] on
///   an error.
/// * During development, [`ServerBuilder::show_errors`](crate::ServerBuilder::show_errors) shows all of them.
///
/// `?` converts any error that converts to `Box<dyn std::error::Error + Send + Sync>`: every [`std::error::Error`], that
/// box, and the errors of `anyhow` and `eyre`.
///
/// ```
/// use antiphon::{Error, ShowError};
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
///
/// fn number(text: &str) -> antiphon::Result<u32> {
///     text.parse().show() // shown
/// }
/// assert_eq!(number("x").unwrap_err().user_facing_text(), Some("invalid digit found in string"));
/// ```
///
/// An error type of your own is foreign too, unless it says otherwise with a conversion. It must not implement
/// `std::error::Error` then:
///
/// ```
/// enum Failure {
///     NoSuchTown,
///     Database(std::io::Error),
/// }
///
/// impl From<Failure> for antiphon::Error {
///     fn from(failure: Failure) -> Self {
///         match failure {
///             Failure::NoSuchTown => Self::user_facing("There is no such town."),
///             Failure::Database(error) => error.into(), // logged
///         }
///     }
/// }
/// ```
///
/// With the feature `anyhow`, an [`AskError`](crate::AskError) or a [`StepError`](crate::StepError) inside of an
/// `anyhow::Error` keeps its text for the caller.
pub struct Error(Box<Kind>);

const NOT_FOUND: &str = "Resource not found";

type BoxError = Box<dyn StdError + Send + Sync>;

enum Kind {
    UserFacing(String),
    NotFound,
    /// A foreign error, for the log; with a text, if it has one for the caller.
    Foreign(BoxError, Option<String>),
}

impl Error {
    /// Returns an error with a text for the caller.
    pub fn user_facing(text: impl Into<String>) -> Self {
        Self(Box::new(Kind::UserFacing(text.into())))
    }

    /// Returns this error with its text, causes included, as a text for the caller: for `.map_err(Error::show)`. Use it
    /// only for errors whose text contains nothing secret. See [`ShowError`].
    pub fn show(error: impl Into<Self>) -> Self {
        let error = error.into();
        if error.user_facing_text().is_some() {
            return error;
        }
        let text = error.to_string();
        match *error.0 {
            Kind::Foreign(error, _) => Self(Box::new(Kind::Foreign(error, Some(text)))),
            other => Self(Box::new(other)),
        }
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
            Kind::Foreign(_, text) => text.as_deref(),
        }
    }

    /// Returns the inner error, if it has this type.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match &*self.0 {
            Kind::Foreign(error, _) => error.downcast_ref(),
            Kind::UserFacing(_) | Kind::NotFound => None,
        }
    }

    /// Returns true if the foreign error, or one of its causes, fulfils `test`.
    pub(crate) fn has_cause(&self, test: impl Fn(&(dyn StdError + 'static)) -> bool) -> bool {
        self.causes().any(test)
    }

    /// Returns the name of a limit and a text for the caller, if the result of a step exceeds the limit and that is the cause.
    pub(crate) fn over_limit(&self) -> Option<(&'static str, String)> {
        let limit_of = |error: &StepError| Some((error.limit()?, format!("A limit was reached: {error}")));
        self.causes().find_map(|error| error.downcast_ref().and_then(limit_of))
    }

    /// Returns the foreign error, and its causes.
    fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let first = match &*self.0 {
            Kind::Foreign(error, _) => Some(&**error as &(dyn StdError + 'static)),
            Kind::UserFacing(_) | Kind::NotFound => None,
        };
        std::iter::successors(first, |&error| error.source())
    }

    pub(crate) fn downcast<E: StdError + 'static>(self) -> Result<E, Self> {
        match *self.0 {
            Kind::Foreign(error, text) => match error.downcast() {
                Ok(error) => Ok(*error),
                Err(error) => Err(Self(Box::new(Kind::Foreign(error, text)))),
            },
            other => Err(Self(Box::new(other))),
        }
    }
}

impl<E: Into<BoxError> + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        if let Some(text) = plain_text(&error) {
            return Self::user_facing(text);
        }
        let inner = own_text_inside(&error);
        let error = error.into();
        let text = own_text(&*error).or(inner);
        Self(Box::new(Kind::Foreign(error, text)))
    }
}

/// Returns the text of an error that is a text: its author wrote it for the caller.
fn plain_text(error: &dyn Any) -> Option<String> {
    let owned = error.downcast_ref::<String>().cloned();
    owned
        .or_else(|| error.downcast_ref::<&'static str>().map(ToString::to_string))
        .or_else(|| error.downcast_ref::<Cow<'static, str>>().map(ToString::to_string))
}

/// Returns the text for the caller of an error of this crate.
fn own_text(error: &(dyn StdError + 'static)) -> Option<String> {
    match error.downcast_ref::<StepError>() {
        Some(step) => step.user_facing.then(|| step.message.clone()),
        None => error.downcast_ref::<AskError>().map(ToString::to_string),
    }
}

/// Returns the text for the caller of an error of this crate that another library's error contains.
fn own_text_inside(error: &dyn Any) -> Option<String> {
    #[cfg(feature = "anyhow")]
    if let Some(error) = error.downcast_ref::<anyhow::Error>() {
        let step = error.downcast_ref::<StepError>().map(|step| step as &(dyn StdError + 'static));
        let ask = error.downcast_ref::<AskError>().map(|ask| ask as &(dyn StdError + 'static));
        return step.or(ask).and_then(own_text);
    }
    let _ = error;
    None
}

/// Shows the error of a `Result` to the caller.
///
/// ```
/// use antiphon::{ShowError, server::Ctx, tool};
///
/// /// Reads a file that the user named.
/// #[tool]
/// async fn read(path: String) -> antiphon::Result<String> {
///     // The model reads "No such file or directory (os error 2)", and can correct the path.
///     Ok(std::fs::read_to_string(path).show()?)
/// }
/// ```
pub trait ShowError<T> {
    /// Returns the value, or the error with its text, causes included, as a text for the caller. Without it, the text of
    /// a foreign error is logged and not shown. Use it only for errors whose text contains nothing secret.
    ///
    /// # Errors
    /// The same error, to be shown.
    fn show(self) -> Result<T, Error>;
}

impl<T, E: Into<Error>> ShowError<T> for Result<T, E> {
    fn show(self) -> Result<T, Error> {
        self.map_err(Error::show)
    }
}

impl fmt::Display for Error {
    /// Writes the whole text, causes included, for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::UserFacing(text) => f.write_str(text),
            Kind::NotFound => f.write_str(NOT_FOUND),
            Kind::Foreign(error, _) => {
                let mut text = error.to_string();
                let mut cause = error.source();
                while let Some(error) = cause {
                    // Some errors repeat their cause in their own text.
                    let of_cause = error.to_string();
                    if !text.ends_with(&of_cause) {
                        text = format!("{text}: {of_cause}");
                    }
                    cause = error.source();
                }
                f.write_str(&text)
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

/// An error of building a server, or of adding something to one. The text says what to change.
#[derive(Debug)]
pub struct BuildError(pub(crate) String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for BuildError {}

impl From<InvalidExtension> for BuildError {
    fn from(error: InvalidExtension) -> Self {
        Self(error.to_string())
    }
}

impl From<EntropyError> for BuildError {
    fn from(error: EntropyError) -> Self {
        Self(error.to_string())
    }
}
