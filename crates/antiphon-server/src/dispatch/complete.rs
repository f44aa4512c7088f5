//! `completion/complete`: runs the completer of an argument.

use crate::{
    call::in_flight::ConcurrencyPermit,
    dispatch::find::{Found, FoundResource, Lookup},
    errors::refusal::Refusal,
    identity::Caller,
    offer::{
        completion::{Completing, Completions, RunCompleter},
        prompt::Prompt,
        resource::ResourceTemplate,
    },
    request::{RequestData, carrier::HandlerPlace},
    runtime::{CAUSE, Runtime},
    trace::TraceContext,
};
use antiphon_wire::{CompleteParams, CompleteResult, CompletionReference, escaped, method};
use std::{borrow::Cow, sync::Arc};

/// Answers `completion/complete`.
pub(super) async fn complete(lookup: Lookup<'_>) -> Result<CompleteResult, Refusal> {
    let Lookup { server, request, caller, .. } = lookup;
    let text = request.text.get();
    // > Validate all completion inputs
    request.unique_names()?;
    let params: CompleteParams =
        serde_json::from_str(text).map_err(|fault| Refusal::params(format!("params: {fault}")))?;
    // A completer would take the caller for an anonymous one.
    let principal = server.identified(&request.method, caller)?;
    let reference = find(lookup, &params.reference).await?;
    let Some(completer) = reference.completer(server, &params.argument.name, caller)? else {
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

/// The offer whose argument is completed.
enum Reference<'a> {
    Prompt(Found<'a, Prompt>),
    Template(Found<'a, ResourceTemplate>),
    /// The URI of a resource has no variables to complete.
    Resource,
}

/// Returns the offer that the request names.
async fn find<'a>(lookup: Lookup<'a>, reference: &CompletionReference) -> Result<Reference<'a>, Refusal> {
    match reference {
        // > Invalid prompt name: `-32602` (Invalid params)
        CompletionReference::Prompt { name, .. } => {
            let prompt = lookup.prompt(name).await?.map(Reference::Prompt);
            prompt.ok_or_else(|| Refusal::params(format!("Unknown prompt: {name}")))
        }
        // > For `ResourceTemplateReference`, `uri` is a URI or URI template.
        CompletionReference::Resource { uri } => {
            if let Some(template) = lookup.template(uri).await? {
                return Ok(Reference::Template(template));
            }
            match lookup.resource(uri).await? {
                Some(FoundResource::Resource(_)) => Ok(Reference::Resource),
                Some(FoundResource::Template(template, _)) => Ok(Reference::Template(template)),
                None => Err(Refusal::NotFound { uri: uri.clone() }),
            }
        }
        _ => Err(Refusal::params("params.ref is of an unknown type")),
    }
}

impl Reference<'_> {
    /// Returns the completer of the argument; `None` if it has none. Suggestions reveal data, so they require the scopes of
    /// their prompt or template.
    fn completer(
        &self,
        server: &Runtime,
        argument: &str,
        caller: &Caller<'_>,
    ) -> Result<Option<&RunCompleter>, Refusal> {
        let (settings, completers, is_known) = match self {
            Self::Prompt(prompt) => {
                let is_known = prompt.definition.arguments.iter().any(|known| known.name == argument);
                (&prompt.settings, &prompt.completers, is_known)
            }
            Self::Template(template) => {
                (&template.settings, &template.completers, template.has_variable(argument))
            }
            Self::Resource => return Ok(None),
        };
        server.require_scopes(&settings.scopes, caller)?;
        if is_known {
            Ok(completers.get(argument))
        } else {
            Err(Refusal::params(format!("Unknown argument: {argument}")))
        }
    }
}
