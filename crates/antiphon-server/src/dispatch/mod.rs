//! Dispatch: from a request to its reply. The table has one line per method.

mod calls;
mod complete;
pub(crate) mod encode;
mod extension;
pub(crate) mod listen;
pub(crate) mod observe;
pub(crate) mod reply;
mod seen;
mod tasks;

use crate::{
    errors::refusal::Refusal,
    identity::Caller,
    offer::{
        Profile,
        list::{List, ListItem},
        offers::{Lists, Offers},
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
use reply::{Finished, finish};
use seen::caller_info;
use std::sync::Arc;

/// Answers a request by its method. `subscriptions/listen` is answered later: [`open`](listen::open).
pub(crate) async fn route(
    server: &Arc<Runtime>,
    offers: &Offers,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<Vec<u8>, Refusal> {
    let Lists { tools, prompts, resources, templates } = &offers.lists;
    // > Method not found: `-32601` (Capability not supported)
    if !offers.capabilities.has_method(&request.method) {
        return Err(Refusal::Method(request.method.to_string()));
    }
    match &*request.method {
        method::DISCOVER => encode(request, &offers.discover),
        method::TOOLS_LIST => page(server, request, caller, tools, &offers.profile),
        method::PROMPTS_LIST => page(server, request, caller, prompts, &offers.profile),
        method::RESOURCES_LIST => page(server, request, caller, resources, &offers.profile),
        method::RESOURCE_TEMPLATES_LIST => page(server, request, caller, templates, &offers.profile),
        method::COMPLETION_COMPLETE => {
            let result = complete(server, offers, request, caller).await?;
            write(request, &WithServerInfo { result: &result, server_info: &server.server_info.raw })
        }
        method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ => {
            let finished = match &*request.method {
                method::TOOLS_CALL => {
                    finish(server, request, call_tool(server, offers, request, caller).await?)
                }
                method::PROMPTS_GET => {
                    finish(server, request, get_prompt(server, offers, request, caller).await?)
                }
                _ => finish(server, request, read_resource(server, offers, request, caller).await?),
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
fn page<T: ListItem>(
    server: &Runtime,
    request: &Request<'_>,
    caller: &Caller<'_>,
    list: &List<T>,
    profile: &Profile,
) -> Result<Vec<u8>, Refusal> {
    let invalid = || Refusal::params("Invalid cursor");
    let cursor = request.params.cursor;
    let info = is_kept_for(request, profile) || list.is_per_caller();
    let info = info.then(|| caller_info(server, request, caller)).transpose()?;
    if let (Some(session), Some(info)) = (&request.session, &info) {
        session.listed_for(info);
    }
    match (&request.session, info.filter(|_| list.is_per_caller())) {
        (None, None) => encode(request, &list.page(cursor, profile).ok_or_else(invalid)?),
        (None, Some(info)) => {
            encode(request, &list.part_for(cursor, profile, &info, Vec::new()).ok_or_else(invalid)?)
        }
        (Some(session), info) => {
            let part = match &info {
                None => list.part(cursor, profile),
                Some(info) => list.part_for(cursor, profile, info, Vec::new()),
            };
            let part = part.ok_or_else(invalid)?;
            encode(request, &InSession { version: session.version(), result: &part })
        }
    }
}

/// Returns whether a session keeps the caller of this request: the notifications of its lists are for the caller that read a list last.
fn is_kept_for(request: &Request<'_>, profile: &Profile) -> bool {
    profile.list_changed && is_notified_in_session(request)
}
