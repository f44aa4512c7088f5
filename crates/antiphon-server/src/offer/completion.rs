//! What a completer is asked, and what it may say.

use crate::{BuildError, Error};
use antiphon_seal::Principal;
use antiphon_wire::Completion;
use futures_util::future::BoxFuture;
use std::{
    any::Any,
    collections::BTreeMap,
    fmt::{self, Display},
    future::Future,
};

/// What a completer is asked: an argument, as far as it is typed.
#[derive(Clone)]
pub struct Completing {
    pub(crate) argument: String,
    pub(crate) value: String,
    pub(crate) known: BTreeMap<String, String>,
    pub(crate) principal: Option<Principal>,
}

impl Completing {
    /// The name of the argument.
    pub fn argument(&self) -> &str {
        &self.argument
    }

    /// What is typed of it; empty at the beginning. Untrusted: any text of any length that a request may have.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Another argument, if it is known already. Untrusted, and unchecked.
    pub fn known(&self, argument: &str) -> Option<&str> {
        self.known.get(argument).map(String::as_str)
    }

    /// All arguments that are known already, by name.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.known.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Who is asking, as authenticated; `None` without authentication.
    ///
    /// > Control access to sensitive suggestions
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }
}

impl fmt::Debug for Completing {
    /// The name only: values of arguments do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completing").field("argument", &self.argument).finish_non_exhaustive()
    }
}

/// Suggestions, best first. A client is sent the first hundred, and how many there are in all.
#[derive(Clone, Default)]
pub struct Completions {
    /// At most [`Completion::MAX_VALUES`].
    values: Vec<String>,
    total: Option<u64>,
    has_more: bool,
}

impl Completions {
    /// There are this many in all; without this, as many as were given.
    #[must_use]
    pub fn total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self.has_more |= total > self.values.len() as u64;
        self
    }

    /// There are more than were given, nobody knows how many.
    #[must_use]
    pub fn and_more(mut self) -> Self {
        self.total = None;
        self.has_more = true;
        self
    }

    pub(crate) fn into_wire(self) -> Completion {
        let mut completion = Completion::new(self.values);
        completion.total = self.total;
        completion.has_more = Some(self.has_more);
        completion
    }
}

impl<T: Into<String>> FromIterator<T> for Completions {
    /// Walks to the end: what is beyond the first hundred is counted.
    fn from_iter<I: IntoIterator<Item = T>>(suggestions: I) -> Self {
        let mut suggestions = suggestions.into_iter();
        // > Maximum 100 items per response
        let values: Vec<String> = suggestions.by_ref().take(Completion::MAX_VALUES).map(Into::into).collect();
        let beyond = suggestions.count();
        Self { total: Some((values.len() + beyond) as u64), has_more: beyond > 0, values }
    }
}

impl<T: Into<String>> From<Vec<T>> for Completions {
    fn from(suggestions: Vec<T>) -> Self {
        suggestions.into_iter().collect()
    }
}

impl<T: Into<String>, const N: usize> From<[T; N]> for Completions {
    fn from(suggestions: [T; N]) -> Self {
        suggestions.into_iter().collect()
    }
}

impl fmt::Debug for Completions {
    /// How many: suggestions may be what only this caller may see.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completions").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

/// What a completer may return: [`Completions`], a list or array of text, or a `Result` of these.
#[diagnostic::on_unimplemented(
    message = "a completer cannot return `{Self}`",
    note = "it returns Completions, Vec<String>, Vec<&str> or an array of either; each may stand inside Result<.., E>"
)]
pub trait IntoCompletions {
    /// The suggestions.
    ///
    /// # Errors
    /// Why there are none: in words for the caller, or for the log.
    fn into_completions(self) -> Result<Completions, Error>;
}

impl IntoCompletions for Completions {
    fn into_completions(self) -> Result<Completions, Error> {
        Ok(self)
    }
}

impl<T: Into<String>> IntoCompletions for Vec<T> {
    fn into_completions(self) -> Result<Completions, Error> {
        Ok(self.into())
    }
}

impl<T: Into<String>, const N: usize> IntoCompletions for [T; N] {
    fn into_completions(self) -> Result<Completions, Error> {
        Ok(self.into())
    }
}

impl<C: IntoCompletions, E: Display + 'static> IntoCompletions for Result<C, E> {
    fn into_completions(self) -> Result<Completions, Error> {
        match self {
            Ok(suggestions) => suggestions.into_completions(),
            Err(error) => {
                let text = error.to_string();
                let ours = (Box::new(error) as Box<dyn Any>).downcast::<Error>();
                Err(ours.map_or_else(|_| Error::user_facing(text), |ours| *ours))
            }
        }
    }
}

pub(crate) type RunCompleter =
    dyn Fn(Completing) -> BoxFuture<'static, Result<Completions, Error>> + Send + Sync;

/// The completers of one prompt or template, by the argument that each completes.
#[derive(Default)]
pub(crate) struct Completers(Vec<(String, Box<RunCompleter>)>);

impl Completers {
    pub(crate) fn add<F, Fut>(&mut self, argument: String, complete: F)
    where
        F: Fn(Completing) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoCompletions> + Send + 'static,
    {
        let run = move |completing| -> BoxFuture<'static, _> {
            let suggestions = complete(completing);
            Box::pin(async move { suggestions.await.into_completions() })
        };
        self.0.push((argument, Box::new(run)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether each completes an argument of its own that there is.
    pub(crate) fn check(&self, of: &str, what: &str, known: &[&str]) -> Result<(), BuildError> {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(name) = first_duplicate(&names) {
            return Err(BuildError(format!("the {what} `{name}` of the {of} has two completers")));
        }
        match names.iter().find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => Err(BuildError(format!(
                "there is a completer for `{name}`, but the {of} has no such {what}; it has: {}",
                known.join(", ")
            ))),
        }
    }

    pub(crate) fn get(&self, argument: &str) -> Option<&RunCompleter> {
        self.0.iter().find(|(name, _)| name == argument).map(|(_, run)| &**run)
    }
}

/// The first name that stands in the list twice.
pub(crate) fn first_duplicate<'a>(names: &[&'a str]) -> Option<&'a str> {
    names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| *name)
}
