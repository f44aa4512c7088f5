//! Dispatch: from a request to its reply. The table has one line per method.

mod calls;
mod complete;
pub(crate) mod encode;
mod extension;
pub(crate) mod listen;
pub(crate) mod observe;
pub(crate) mod reply;
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
    request::receive::Request,
    runtime::Runtime,
    session::InSession,
};
use antiphon_wire::method;
use calls::{call_tool, get_prompt, read_resource};
use complete::complete;
use encode::{encode, write};
use extension::extension;
use reply::{Finished, finish};
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
        method::TOOLS_LIST => page(request, tools, &offers.profile),
        method::PROMPTS_LIST => page(request, prompts, &offers.profile),
        method::RESOURCES_LIST => page(request, resources, &offers.profile),
        method::RESOURCE_TEMPLATES_LIST => page(request, templates, &offers.profile),
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
fn page<T: ListItem>(request: &Request<'_>, list: &List<T>, profile: &Profile) -> Result<Vec<u8>, Refusal> {
    let invalid = || Refusal::params("Invalid cursor");
    let cursor = request.params.cursor;
    match &request.session {
        None => encode(request, &list.page(cursor, profile).ok_or_else(invalid)?),
        Some(session) => {
            let part = list.part(cursor, profile).ok_or_else(invalid)?;
            encode(request, &InSession { version: session.version(), result: &part })
        }
    }
}
