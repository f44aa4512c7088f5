//! `completion/complete`: suggestions for the arguments of prompts and the variables of templates, while they are typed.

use crate::{BuildError, Completing, Completions, Error, IntoCompletions};
use futures_util::future::BoxFuture;
use std::future::Future;

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
