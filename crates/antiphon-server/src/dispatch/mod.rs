//! Dispatch: from a request to its reply. The table has one line per method.

mod calls;
mod complete;
pub(crate) mod encode;
mod extension;
mod find;
pub(crate) mod listen;
pub(crate) mod observe;
pub(crate) mod reply;
mod tasks;

use crate::{
    errors::refusal::Refusal,
    identity::Caller,
    in_place::rare,
    offer::{
        given::GivenItem,
        offers::{ListAccess, Offers, RegisteredTool},
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
    },
    reply::WithServerInfo,
    request::{carrier::is_notified_in_session, receive::Request},
    runtime::Runtime,
    session::InSession,
};
use antiphon_wire::method;
use calls::{call_tool, get_prompt, read_resource};
use complete::complete;
use encode::{encode, write};
use extension::extension;
use find::Lookup;
use reply::{Finished, finish};
use std::sync::Arc;

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
