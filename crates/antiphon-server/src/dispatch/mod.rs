//! Dispatch: from a request to its reply. The table has one line per method.

mod calls;
mod extension;
mod find;
pub(crate) mod listen;
pub(crate) mod observe;
pub(crate) mod reply;

use crate::{
    call::leg::ConcurrencyPermit,
    errors::refusal::Refusal,
    identity::Caller,
    in_place::rare,
    offer::{
        completion::{Completing, Completions, RunCompleter},
        given::GivenItem,
        offers::{ListAccess, Offers, RegisteredTool},
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
    },
    reply::WithServerInfo,
    request::{
        RequestData,
        carrier::{HandlerPlace, is_notified_in_session},
        receive::Request,
    },
    runtime::{CAUSE, Runtime},
    session::InSession,
    trace::TraceContext,
};
use antiphon_wire::{CompleteParams, CompleteResult, CompletionReference, escaped, method};
use calls::{call_tool, get_prompt, read_resource};
use extension::extension;
use find::{Found, FoundResource, Lookup};
use reply::{Finished, encode, finish, write};
use std::{borrow::Cow, sync::Arc};

/// Answers a request by its method. `subscriptions/listen` is answered later: [`open`](listen::open).
pub(crate) async fn route(
    server: &Arc<Runtime>,
    offers: &Offers,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<Vec<u8>, Refusal> {
    let lookup = Lookup { server, offers, request, caller };
    // > Method not found: `-32601` (Capability not supported)
    if !offers.capabilities.has_method(&request.method) {
        return Err(Refusal::Method(request.method.to_string()));
    }
    match &*request.method {
        method::DISCOVER => encode(request, &offers.discover),
        method::TOOLS_LIST => page::<RegisteredTool>(lookup).await,
        method::PROMPTS_LIST => page::<Prompt>(lookup).await,
        method::RESOURCES_LIST => page::<Resource>(lookup).await,
        method::RESOURCE_TEMPLATES_LIST => page::<ResourceTemplate>(lookup).await,
        method::COMPLETION_COMPLETE => {
            let result = complete(lookup).await?;
            write(request, &WithServerInfo { result: &result, server_info: &server.server_info.raw })
        }
        method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ => {
            let finished = match &*request.method {
                method::TOOLS_CALL => finish(server, request, call_tool(lookup).await?),
                method::PROMPTS_GET => finish(server, request, get_prompt(lookup).await?),
                _ => finish(server, request, read_resource(lookup).await?),
            };
            match finished {
                Finished::Written(body) => body,
                Finished::Commits(commit) => commit.await,
            }
        }
        other => match offers.profile.extensions.method(other) {
            Some(method) => Box::pin(extension(server, offers, method, request, caller)).await,
            None => Err(Refusal::Method(other.to_owned())),
        },
    }
}

/// > Invalid cursors **SHOULD** result in an error with code -32602 (Invalid params).
async fn page<T: ListAccess + GivenItem>(lookup: Lookup<'_>) -> Result<Vec<u8>, Refusal> {
    let Lookup { offers, request, .. } = lookup;
    let (list, profile) = (T::of(&offers.lists), &*offers.profile);
    let is_per_caller = list.is_per_caller() || lookup.has_given(T::KIND);
    if is_per_caller || (profile.list_changed && is_notified_in_session(request)) {
        return rare(page_of_caller::<T>(lookup, is_per_caller)).await;
    }
    let cursor = request.params.cursor;
    match &request.session {
        None => encode(request, &list.page(cursor, profile).ok_or_else(invalid_cursor)?),
        Some(session) => {
            let part = list.part(cursor, profile).ok_or_else(invalid_cursor)?;
            encode(request, &InSession { version: session.version(), result: &part })
        }
    }
}

/// Answers for a list that depends on its caller, or to a session, whose later notifications are for the caller that read a list last.
async fn page_of_caller<T: ListAccess + GivenItem>(
    lookup: Lookup<'_>,
    is_per_caller: bool,
) -> Result<Vec<u8>, Refusal> {
    let Lookup { offers, request, .. } = lookup;
    let (list, profile, cursor) = (T::of(&offers.lists), &*offers.profile, request.params.cursor);
    let info = lookup.caller_info()?;
    if let Some(session) = &request.session {
        session.listed_for(&info);
    }
    let part = if is_per_caller {
        let given = lookup.given_entries::<T>(&info).await?;
        list.part_for(cursor, profile, &info, given)
    } else {
        list.part(cursor, profile)
    };
    let part = part.ok_or_else(invalid_cursor)?;
    match &request.session {
        None => encode(request, &part),
        Some(session) => encode(request, &InSession { version: session.version(), result: &part }),
    }
}

fn invalid_cursor() -> Refusal {
    Refusal::params("Invalid cursor")
}

/// Answers `completion/complete`.
async fn complete(lookup: Lookup<'_>) -> Result<CompleteResult, Refusal> {
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
