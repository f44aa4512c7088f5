//! `completion/complete`: runs the completer of an argument.

use crate::{
    call::in_flight::ConcurrencyPermit,
    errors::refusal::Refusal,
    identity::Caller,
    offer::{
        completion::{Completing, Completions, RunCompleter},
        offers::Offers,
    },
    request::{carrier::HandlerPlace, receive::Request},
    runtime::{CAUSE, Runtime},
};
use antiphon_wire::{CompleteParams, CompleteResult, CompletionReference, escaped};
use std::sync::Arc;

/// Answers `completion/complete`.
pub(crate) async fn complete(
    server: &Arc<Runtime>,
    offers: &Offers,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<CompleteResult, Refusal> {
    let text = request.text.get();
    // > Validate all completion inputs
    request.unique_names()?;
    let params: CompleteParams =
        serde_json::from_str(text).map_err(|fault| Refusal::params(format!("params: {fault}")))?;
    // A completer would take the caller for an anonymous one.
    let principal = server.identified(&request.method, caller)?;
    let Some(completer) = find(server, offers, &params, caller)? else {
        return Ok(CompleteResult::new(Completions::default().into_wire()));
    };
    let Some(_slot) = ConcurrencyPermit::take(server, HandlerPlace::of(request), caller, principal.as_ref())
    else {
        return Err(Refusal::Busy);
    };
    let completing = Completing {
        argument: params.argument.name,
        value: params.argument.value,
        known: params.context.and_then(|context| context.arguments).unwrap_or_default(),
        principal,
    };
    let suggestions = tokio::time::timeout(server.limits.handler_timeout, completer(completing)).await;
    let suggestions = suggestions.map_err(|_elapsed| {
        tracing::error!(limit = ?server.limits.handler_timeout, "a completer took too long and was dropped");
        Refusal::Internal
    })?;
    match suggestions {
        Ok(suggestions) => Ok(CompleteResult::new(suggestions.into_wire())),
        Err(error) => Err(match error.user_facing_text() {
            Some(text) => Refusal::UserFacing(text.to_owned()),
            None => {
                tracing::error!(cause = %escaped(&error).limit(CAUSE), "a completer failed");
                server.hidden(&error.to_string())
            }
        }),
    }
}

/// Returns the completer of the argument; `None` if it has none. Suggestions reveal data, so they require the scopes of
/// their prompt or template.
fn find<'a>(
    server: &Runtime,
    offers: &'a Offers,
    params: &CompleteParams,
    caller: &Caller<'_>,
) -> Result<Option<&'a RunCompleter>, Refusal> {
    let argument = params.argument.name.as_str();
    let unknown = || Refusal::params(format!("Unknown argument: {argument}"));
    let lists = &offers.lists;
    match &params.reference {
        CompletionReference::Prompt { name, .. } => {
            // > Invalid prompt name: `-32602` (Invalid params)
            let prompt =
                lists.prompts.get(name).ok_or_else(|| Refusal::params(format!("Unknown prompt: {name}")))?;
            server.require_scopes(&prompt.settings.scopes, caller)?;
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
                server.require_scopes(&template.settings.scopes, caller)?;
            }
            match template {
                Some(template) if template.has_variable(argument) => Ok(template.completers.get(argument)),
                Some(_) => Err(unknown()),
                // The URI of a resource has no variables to complete.
                None if lists.resources.get(uri).is_some() => Ok(None),
                None => Err(Refusal::NotFound { uri: uri.clone() }),
            }
        }
        _ => Err(Refusal::params("params.ref is of an unknown type")),
    }
}
