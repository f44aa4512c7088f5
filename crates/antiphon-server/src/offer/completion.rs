//! Completions: the request to a completer, its suggestions, and the table of completers.

use crate::{
    call::handler::Failure,
    errors::{BuildError, Error},
    request::{RequestData, RequestInfo},
    trace::TraceContext,
};
use antiphon_seal::Principal;
use antiphon_wire::Completion;
use futures_util::future::BoxFuture;
use std::{collections::BTreeMap, fmt, future::Future, sync::Arc};

/// The request to a completer: an argument that is being typed.
#[derive(Clone)]
pub struct Completing {
    pub(crate) argument: String,
    pub(crate) value: String,
    pub(crate) known: BTreeMap<String, String>,
    pub(crate) principal: Option<Principal>,
    pub(crate) request: Arc<RequestData>,
    pub(crate) trace: Option<TraceContext>,
}

impl Completing {
    /// Returns the name of the argument.
    pub fn argument(&self) -> &str {
        &self.argument
    }

    /// Returns the typed part of the value; empty at the beginning. Untrusted: any text, up to the size of a request.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns another argument, if it is already known. Untrusted and unchecked.
    pub fn known(&self, argument: &str) -> Option<&str> {
        self.known.get(argument).map(String::as_str)
    }

    /// Returns all arguments that are already known, by name.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.known.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the authenticated caller; `None` without authentication.
    ///
    /// > Control access to sensitive suggestions
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Returns the request: headers, peer, `_meta`, and values of layers.
    pub fn request(&self) -> RequestInfo<'_> {
        RequestInfo { data: &self.request, trace: self.trace.as_ref() }
    }
}

impl fmt::Debug for Completing {
    /// Writes the name only: values of arguments do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completing").field("argument", &self.argument).finish_non_exhaustive()
    }
}

/// Suggestions, best first. The client receives the first hundred, and the total number.
#[derive(Clone, Default)]
pub struct Completions {
    /// The first suggestions, at most [`Completion::MAX_VALUES`].
    values: Vec<String>,
    total: Option<u64>,
    has_more: bool,
}

impl Completions {
    /// Sets the total number. Default: the number of given suggestions.
    #[must_use]
    pub fn total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self.has_more |= total > self.values.len() as u64;
        self
    }

    /// Declares that there are more suggestions, without a total number.
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
    /// Reads the iterator to its end: suggestions after the first hundred are counted only.
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
    /// Writes the number only: only this caller may see the suggestions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completions").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

/// The return type of a completer: [`Completions`], a list or array of text, or a `Result` of these.
#[diagnostic::on_unimplemented(
    message = "a completer cannot return `{Self}`",
    note = "it returns Completions, Vec<String>, Vec<&str> or an array of either; each may stand inside Result<.., E>"
)]
pub trait IntoCompletions {
    /// Returns the suggestions.
    ///
    /// # Errors
    /// The reason for which there are none: a text for the caller, or for the log.
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

impl<C: IntoCompletions, E: Failure> IntoCompletions for Result<C, E> {
    fn into_completions(self) -> Result<Completions, Error> {
        self.map_err(Into::into)?.into_completions()
    }
}

pub(crate) type RunCompleter =
    dyn Fn(Completing) -> BoxFuture<'static, Result<Completions, Error>> + Send + Sync;

/// The completers of one prompt or template, by argument.
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

    /// Checks that each completer belongs to an existing argument, and each argument has at most one.
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

/// Returns the first name that occurs twice.
pub(crate) fn first_duplicate<'a>(names: &[&'a str]) -> Option<&'a str> {
    names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| *name)
}
