//! `completion/complete`: suggestions for the arguments of prompts and the variables of templates, while they are typed.

use super::{
    BuildError, Caller, Completing, Completions, IntoCompletions, Request,
    bearer::require_scopes,
    refusal::Refusal,
    registry::{Registry, twice},
    serve::Inner,
};
use crate::Error;
use antiphon_wire::{CompleteParams, CompleteResult, CompletionReference};
use futures_util::future::BoxFuture;
use std::future::Future;

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
    request.unique_names()?;
    let params: CompleteParams =
        serde_json::from_str(text).map_err(|fault| Refusal::params(format!("params: {fault}")))?;
    // A completer would take them for an anonymous caller.
    let principal = server.identified(request, caller)?;
    let Some(completer) = find(registry, &params, caller)? else {
        return Ok(CompleteResult::new(Completions::default().into_wire()));
    };
    let Some(_slot) = server.slot(request, principal.as_ref()) else { return Err(Refusal::Busy) };
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
/// Suggestions tell what is there: they need what their prompt or template needs.
fn find<'a>(
    registry: &'a Registry,
    params: &CompleteParams,
    caller: &Caller<'_>,
) -> Result<Option<&'a RunCompleter>, Refusal> {
    let argument = params.argument.name.as_str();
    let unknown = || Refusal::params(format!("Unknown argument: {argument}"));
    let lists = &registry.lists;
    match &params.reference {
        CompletionReference::Prompt { name, .. } => {
            // > Invalid prompt name: `-32602` (Invalid params)
            let prompt =
                lists.prompts.get(name).ok_or_else(|| Refusal::params(format!("Unknown prompt: {name}")))?;
            require_scopes(&prompt.settings.scopes, caller)?;
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
            if let Some(template) = template {
                require_scopes(&template.settings.scopes, caller)?;
            }
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
