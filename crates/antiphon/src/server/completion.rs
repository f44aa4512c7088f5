//! Suggestions for the arguments of prompts and the variables of templates, while they are typed.

use super::{
    BuildError, Caller, Request,
    refusal::Refusal,
    registry::{Registry, twice},
    serve::Inner,
};
use crate::Error;
use antiphon_seal::Principal;
use antiphon_wire::{CompleteParams, CompleteResult, Completion, CompletionReference};
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
    argument: String,
    value: String,
    known: BTreeMap<String, String>,
    principal: Option<Principal>,
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

    fn into_wire(self) -> Completion {
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
                Err(ours.map_or_else(|_| Error::told(text), |ours| *ours))
            }
        }
    }
}

type RunCompleter = dyn Fn(Completing) -> BoxFuture<'static, Result<Completions, Error>> + Send + Sync;

/// The completers of one prompt or template, by the argument that each completes.
#[derive(Default)]
pub(super) struct Completers(Vec<(String, Box<RunCompleter>)>);

impl Completers {
    pub(super) fn add<F, Fut>(&mut self, argument: String, complete: F)
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

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether each completes an argument of its own that there is.
    pub(super) fn check(&self, of: &str, what: &str, known: &[&str]) -> Result<(), BuildError> {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(name) = twice(&names) {
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

    fn get(&self, argument: &str) -> Option<&RunCompleter> {
        self.0.iter().find(|(name, _)| name == argument).map(|(_, run)| &**run)
    }
}

/// Answers `completion/complete`.
pub(super) async fn complete(
    server: &Inner,
    registry: &Registry,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<CompleteResult, Refusal> {
    let text = request.text.get();
    // > Validate all completion inputs
    antiphon_seal::canonical::check(text).map_err(|fault| Refusal::params(format!("params: {fault}")))?;
    let params: CompleteParams =
        serde_json::from_str(text).map_err(|fault| Refusal::params(format!("params: {fault}")))?;
    // A completer would take them for an anonymous caller.
    let principal = server.identified(request, caller)?;
    let Some(completer) = find(registry, &params)? else {
        return Ok(CompleteResult::new(Completions::default().into_wire()));
    };
    let Some(_slot) = server.slot() else { return Err(Refusal::Busy) };
    let completing = Completing {
        argument: params.argument.name,
        value: params.argument.value,
        known: params.context.and_then(|context| context.arguments).unwrap_or_default(),
        principal,
    };
    let suggestions = tokio::time::timeout(server.limits.handler_time, completer(completing)).await;
    let suggestions = suggestions.map_err(|_elapsed| {
        tracing::error!(limit = ?server.limits.handler_time, "a completer took too long and was dropped");
        Refusal::Internal
    })?;
    match suggestions {
        Ok(suggestions) => Ok(CompleteResult::new(suggestions.into_wire())),
        Err(error) => Err(match error.told_text() {
            Some(text) => Refusal::Told(text.to_owned()),
            None => {
                tracing::error!(cause = %error, "a completer failed");
                Refusal::Internal
            }
        }),
    }
}

/// The completer of the argument; `None` if it has none.
fn find<'a>(registry: &'a Registry, params: &CompleteParams) -> Result<Option<&'a RunCompleter>, Refusal> {
    let argument = params.argument.name.as_str();
    let unknown = || Refusal::params(format!("Unknown argument: {argument}"));
    let lists = &registry.lists;
    match &params.reference {
        CompletionReference::Prompt { name, .. } => {
            // > Invalid prompt name: `-32602` (Invalid params)
            let prompt =
                lists.prompts.get(name).ok_or_else(|| Refusal::params(format!("Unknown prompt: {name}")))?;
            let is_known = prompt.definition.arguments.iter().any(|known| known.name == argument);
            if is_known { Ok(prompt.completers.get(argument)) } else { Err(unknown()) }
        }
        // > For `ResourceTemplateReference`, `uri` is a URI or URI template.
        CompletionReference::Resource { uri } => {
            let template = lists.templates.get(uri).or_else(|| {
                if lists.resources.get(uri).is_some() {
                    return None;
                }
                lists.templates.iter().find(|template| template.variables(uri).is_some())
            });
            match template {
                Some(template) if template.has_variable(argument) => Ok(template.completers.get(argument)),
                Some(_) => Err(unknown()),
                // A URI that stands for itself has nothing to fill in.
                None if lists.resources.get(uri).is_some() => Ok(None),
                None => Err(Refusal::NotFound { uri: uri.clone() }),
            }
        }
        _ => Err(Refusal::params("params.ref is of an unknown type")),
    }
}
