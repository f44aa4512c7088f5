//! `completion/complete`: runs the completer of an argument.

use crate::{
    call::in_flight::ConcurrencyPermit,
    dispatch::seen::is_seen,
    errors::refusal::Refusal,
    identity::Caller,
    offer::{
        completion::{Completing, Completions, RunCompleter},
        offers::Offers,
        resource::ResourceTemplate,
    },
    request::{RequestData, carrier::HandlerPlace, receive::Request},
    runtime::{CAUSE, Runtime},
    trace::TraceContext,
};
use antiphon_wire::{CompleteParams, CompleteResult, CompletionReference, escaped, method};
use std::{borrow::Cow, sync::Arc};

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
    let Some(completer) = find(server, offers, request, &params, caller)? else {
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
        request: Arc::new(RequestData::new(Cow::Borrowed(method::COMPLETION_COMPLETE), request, caller)),
        trace: TraceContext::of(request.params.meta),
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
    request: &Request<'_>,
    params: &CompleteParams,
    caller: &Caller<'_>,
) -> Result<Option<&'a RunCompleter>, Refusal> {
    let argument = params.argument.name.as_str();
    let unknown = || Refusal::params(format!("Unknown argument: {argument}"));
    let lists = &offers.lists;
    match &params.reference {
        CompletionReference::Prompt { name, .. } => {
            // > Invalid prompt name: `-32602` (Invalid params)
            let prompt = lists.prompts.get(name).filter(|prompt| is_seen(server, *prompt, request, caller));
            let prompt = prompt.ok_or_else(|| Refusal::params(format!("Unknown prompt: {name}")))?;
            server.require_scopes(&prompt.settings.scopes, caller)?;
            let is_known = prompt.definition.arguments.iter().any(|known| known.name == argument);
            if is_known { Ok(prompt.completers.get(argument)) } else { Err(unknown()) }
        }
        // > For `ResourceTemplateReference`, `uri` is a URI or URI template.
        CompletionReference::Resource { uri } => {
            let resource =
                lists.resources.get(uri).filter(|resource| is_seen(server, *resource, request, caller));
            let is_template = |template: &&ResourceTemplate| is_seen(server, *template, request, caller);
            let template = lists.templates.get(uri).filter(is_template).or_else(|| {
                let fits = |template: &&ResourceTemplate| template.variables(uri).is_some();
                let mut others = lists.templates.iter().filter(|_| resource.is_none());
                others.find(|template| fits(template) && is_template(template))
            });
            if let Some(template) = template {
                server.require_scopes(&template.settings.scopes, caller)?;
            }
            match template {
                Some(template) if template.has_variable(argument) => Ok(template.completers.get(argument)),
                Some(_) => Err(unknown()),
                // The URI of a resource has no variables to complete.
                None if resource.is_some() => Ok(None),
                None => Err(Refusal::NotFound { uri: uri.clone() }),
            }
        }
        _ => Err(Refusal::params("params.ref is of an unknown type")),
    }
}
