//! The dispatch table: one line per method.

use crate::{
    at_most_once::{ClaimedLeg, StoredReply, StoredTask},
    call::{
        claim::{ClaimResult, claim},
        leg,
        result::{LegReply, LegResult},
    },
    dispatch::{
        complete::complete,
        encode::encode,
        listen::{self, Subscription},
        tasks::{tasks, write_created},
    },
    errors::{
        error::Error,
        refusal::{Refusal, StepsKept},
    },
    identity::caller::Caller,
    in_place::boxed,
    offer::{
        cache::CacheHint,
        list::{List, ListItem},
        profile::Profile,
        registry::{Lists, RegisteredTool, Registry},
    },
    options::settings::TaskMode,
    reply::{HasMeta, WithServerInfo},
    request::{admit::LegRequest, receive::Request},
    runtime::{CAUSE, Runtime},
    session::{InSession, SessionResult},
    task,
};
use antiphon_seal::Principal;
use antiphon_wire::{CacheScope, CallToolResult, GetPromptResult, ReadResourceResult, Ttl, escaped, method};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use std::sync::Arc;

/// The outcome of a routed request.
pub(crate) enum RouteOutcome {
    /// The body of the response.
    Body(Vec<u8>),
    /// An open subscription, which is answered when it ends. Boxed, because nearly every outcome is a body.
    Open(Box<Subscription>),
}

/// Answers a request by its method.
pub(crate) async fn route(
    server: &Arc<Runtime>,
    now: &Registry,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<RouteOutcome, Refusal> {
    let Lists { tools, prompts, resources, templates } = &now.lists;
    // > Method not found: `-32601` (Capability not supported)
    if !now.capabilities.has_method(&request.method) {
        return Err(Refusal::Method(request.method.to_string()));
    }
    let body = match &*request.method {
        method::DISCOVER => encode(request, &now.discover),
        method::TOOLS_LIST => page(request, tools, &now.profile),
        method::PROMPTS_LIST => page(request, prompts, &now.profile),
        method::RESOURCES_LIST => page(request, resources, &now.profile),
        method::RESOURCE_TEMPLATES_LIST => page(request, templates, &now.profile),
        method::COMPLETION_COMPLETE => {
            let result = complete(server, now, request, caller).await?;
            write(request, &WithServerInfo { result: &result, server_info: &server.server_info.raw })
        }
        method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ => {
            let finished = match &*request.method {
                method::TOOLS_CALL => finish(server, request, call_tool(server, now, request, caller).await?),
                method::PROMPTS_GET => {
                    finish(server, request, get_prompt(server, now, request, caller).await?)
                }
                _ => finish(server, request, read_resource(server, now, request, caller).await?),
            };
            match finished {
                Finished::Written(body) => body,
                Finished::Commits(commit) => commit.await,
            }
        }
        method::SUBSCRIPTIONS_LISTEN => {
            // Boxed, because it would enlarge the future of every request.
            let opened = Box::pin(listen::open(server, now, request, caller));
            return opened.await.map(|subscription| RouteOutcome::Open(Box::new(subscription)));
        }
        method::TASKS_GET
        | method::TASKS_UPDATE
        | method::TASKS_CANCEL
        | method::TASKS_RESULT
        | method::TASKS_LIST
        | method::TASKS_INPUT_RESPONSE => Box::pin(tasks(server, now, request, caller)).await,
        other => Err(Refusal::Method(other.to_owned())),
    };
    body.map(RouteOutcome::Body)
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

async fn call_tool(
    server: &Arc<Runtime>,
    offered: &Registry,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<LegReply<CallToolResult>, Refusal> {
    let name = target(request, "name")?;
    let registered =
        offered.lists.tools.get(name).ok_or_else(|| Refusal::params(format!("Unknown tool: {name}")))?;
    let tool = &registered.tool;
    let logs = offered.profile.logging;
    let leg = LegRequest {
        request,
        target: name,
        arguments: request.params.arguments,
        settings: &tool.settings,
        caller,
        logs,
    };
    let mut admitted = leg::admit(server, leg)?;
    let arguments = request.params.arguments.map_or("{}", RawValue::get);
    // > Malformed requests (requests that fail to satisfy CallToolRequest schema)
    if !arguments.starts_with('{') {
        return Err(Refusal::params("params.arguments must be an object"));
    }
    // > Tool Execution Errors [...] Input validation errors
    if let Some(faults) = registered.input.faults(arguments) {
        return Ok(LegResult::Complete(CallToolResult::error(format!(
            "Invalid arguments for tool {name}: {faults}"
        )))
        .into());
    }
    if task::required(server, admitted.leg())? {
        admitted.require(tool.settings.needs)?;
        // Boxed, because it would enlarge the future of every call.
        let created = Box::pin(task::start(server, request, name, admitted.principal())).await?;
        return Ok(LegResult::Task(created).into());
    }
    let claim = match claim(server, &mut admitted).await {
        Ok(ClaimResult::Run(claim)) => claim,
        Ok(ClaimResult::Replied(reply)) if reply.is_task() && !request.meta.tasks => {
            return Err(Refusal::TaskExtension);
        }
        Ok(ClaimResult::Replied(reply)) => {
            if let StoredReply::Task(stored) = &reply {
                Box::pin(task::create_again(server, &admitted, stored)).await?;
            }
            return Ok(LegResult::Again(reply).into());
        }
        Err(Refusal::Used) => {
            let created = Box::pin(task::created_before(server, &admitted)).await?;
            return created.map(|task| LegResult::Task(task).into()).ok_or(Refusal::Used);
        }
        Err(refusal) => return Err(refusal),
    };
    let principal = admitted.principal().filter(|_| tool.settings.task != TaskMode::Never).cloned();
    let run = |ctx| (tool.run)(ctx, arguments).map_err(|fault| fault.to_string());
    // In a box of its own: an allocator is fast for up to a kilobyte, and the future of a request is larger.
    let mut result = Box::into_pin(boxed(|| leg::run(server, &mut admitted, claim.as_ref(), run))).await;
    if let Ok(LegResult::Promoted(key, round)) = result {
        let fingerprint = claim.as_ref().map(|claim| claim.claim.row.fingerprint);
        let promoted = task::Promoted { key, round, fingerprint };
        return Box::pin(promote(server, request, (name, principal.as_ref()), promoted, claim)).await;
    }
    if let Ok(result) = &mut result
        && let Some(error) = tool_error(server, registered, name, result)
    {
        *result = LegResult::Complete(error);
    }
    Ok(LegReply { result, claim })
}

/// Makes a call that has begun a task. If the task cannot be created now, the round leaves in its place: the client comes back with
/// the state, and the call tries again to become a task.
///
/// The reply is committed before the task exists. Otherwise a process that died in between would leave a task, and a leg that runs
/// again and may go further than the task knows.
async fn promote(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    (name, principal): (&str, Option<&Principal>),
    promoted: task::Promoted,
    claim: Option<Arc<ClaimedLeg>>,
) -> Result<LegReply<CallToolResult>, Refusal> {
    let task = match task::promoted(server, request, name, principal, &promoted) {
        Ok(task) => task,
        // The cause is in the log.
        Err(_) => return Ok(LegReply { result: Ok(LegResult::InputRequired(promoted.round)), claim }),
    };
    if let Some(claim) = claim {
        let body = write_created(server, request, task.created.clone())?;
        let round = WithServerInfo { result: &promoted.round, server_info: &server.server_info.raw };
        let round = to_raw_value(&round).map_err(|_| Refusal::Internal)?;
        claim.commit(&StoredReply::Task(StoredTask { round, reply: result_of(&body)? })).await?;
    }
    let result = match task::create(server, request, name, task).await {
        Ok(created) => LegResult::Task(created),
        Err(_) => LegResult::InputRequired(promoted.round),
    };
    Ok(LegReply { result: Ok(result), claim: None })
}

/// Returns the result in the place of a failure of a tool, or of a result that does not fit the tool's output schema.
fn tool_error(
    server: &Runtime,
    registered: &RegisteredTool,
    name: &str,
    result: &mut LegResult<CallToolResult>,
) -> Option<CallToolResult> {
    match result {
        LegResult::BadArguments(text) => {
            Some(CallToolResult::error(format!("Invalid arguments for tool {name}: {text}")))
        }
        LegResult::Failed(text) => Some(text.take().map_or_else(|| failed(name), CallToolResult::error)),
        LegResult::NotFound => Some(CallToolResult::error(Error::resource_not_found().to_string())),
        LegResult::Complete(result) => {
            let faults = registered.output.as_ref()?.faults(result)?;
            tracing::error!(tool = ?escaped(name), faults = ?escaped(&faults).limit(CAUSE), "a result does not fit the output schema of its tool");
            let shown = || {
                CallToolResult::error(format!(
                    "The result of the tool {name} does not fit its output schema: {faults}"
                ))
            };
            Some(if server.show_errors { shown() } else { failed(name) })
        }
        LegResult::InputRequired(_) | LegResult::Promoted(..) | LegResult::Task(_) | LegResult::Again(_) => {
            None
        }
    }
}

fn failed(tool: &str) -> CallToolResult {
    CallToolResult::error(format!("The tool {tool} failed; the reason is in the server's log"))
}

async fn get_prompt(
    server: &Arc<Runtime>,
    offered: &Registry,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<LegReply<GetPromptResult>, Refusal> {
    let name = target(request, "name")?;
    let prompt =
        offered.lists.prompts.get(name).ok_or_else(|| Refusal::params(format!("Unknown prompt: {name}")))?;
    let leg = LegRequest {
        request,
        target: name,
        arguments: request.params.arguments,
        settings: &prompt.settings,
        caller,
        logs: offered.profile.logging,
    };
    let mut admitted = leg::admit(server, leg)?;
    let text = request.params.arguments.map_or("{}", RawValue::get);
    let arguments: Map<String, Value> =
        serde_json::from_str(text).map_err(|_| Refusal::params("arguments must be an object of strings"))?;
    if let Some(name) = arguments.iter().find(|(_, value)| !value.is_string()).map(|(name, _)| name) {
        return Err(Refusal::params(format!("The argument `{name}` must be a string")));
    }
    let missing = |argument: &&antiphon_wire::PromptArgument| {
        argument.required == Some(true) && !arguments.contains_key(&argument.name)
    };
    if let Some(argument) = prompt.definition.arguments.iter().find(missing) {
        return Err(Refusal::params(format!("The argument `{}` is missing", argument.name)));
    }
    let claim = match claim(server, &mut admitted).await? {
        ClaimResult::Run(claim) => claim,
        ClaimResult::Replied(reply) => return Ok(LegResult::Again(reply).into()),
    };
    let run = |ctx| (prompt.run)(ctx, text).map_err(|fault| fault.to_string());
    let result = Box::into_pin(boxed(|| leg::run(server, &mut admitted, claim.as_ref(), run))).await;
    Ok(LegReply { result, claim }.map(failing))
}

async fn read_resource(
    server: &Arc<Runtime>,
    offered: &Registry,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<LegReply<ReadResourceResult>, Refusal> {
    let uri = target(request, "uri")?;
    let lists = &offered.lists;
    let logs = offered.profile.logging;
    let leg = |settings| LegRequest { request, target: uri, arguments: None, settings, caller, logs };
    if let Some(resource) = lists.resources.get(uri) {
        let mut admitted = leg::admit(server, leg(&resource.settings))?;
        let claim = match claim(server, &mut admitted).await? {
            ClaimResult::Run(claim) => claim,
            ClaimResult::Replied(reply) => return Ok(LegResult::Again(reply).into()),
        };
        let run = |ctx| Ok((resource.run)(ctx));
        let result = Box::into_pin(boxed(|| leg::run(server, &mut admitted, claim.as_ref(), run))).await;
        return Ok(LegReply { result, claim }
            .map(|result| failing(found(with_cache_hint(request, result, resource.cache), uri)?)));
    }
    for template in lists.templates.iter() {
        let Some(variables) = template.variables(uri) else { continue };
        let mut admitted = leg::admit(server, leg(&template.settings))?;
        let run = |ctx| (template.run)(ctx, variables.clone()).map_err(|fault| fault.to_string());
        let claim = match claim(server, &mut admitted).await? {
            ClaimResult::Run(claim) => claim,
            ClaimResult::Replied(reply) => return Ok(LegResult::Again(reply).into()),
        };
        let result = Box::into_pin(boxed(|| leg::run(server, &mut admitted, claim.as_ref(), run))).await;
        return Ok(LegReply { result, claim }
            .map(|result| failing(found(with_cache_hint(request, result, template.cache), uri)?)));
    }
    Err(Refusal::NotFound { uri: uri.to_owned() })
}

/// > If the requested resource does not exist, servers **MUST** return a JSON-RPC error with code `-32602`
fn found(result: LegResult<ReadResourceResult>, uri: &str) -> Result<LegResult<ReadResourceResult>, Refusal> {
    match result {
        LegResult::NotFound => Err(Refusal::NotFound { uri: uri.to_owned() }),
        other => Ok(other),
    }
}

/// Adds the resource's cache hint to a result whose handler set none.
fn with_cache_hint(
    request: &Request<'_>,
    mut result: LegResult<ReadResourceResult>,
    hint: CacheHint,
) -> LegResult<ReadResourceResult> {
    // > requests carrying `inputResponses` or `requestState` [...] **MUST NOT** be cached
    let retried = request.params.input_responses.is_some() || request.params.request_state.is_some();
    if let LegResult::Complete(read) = &mut result
        && !retried
        && (read.ttl_ms, read.cache_scope) == (Ttl::default(), CacheScope::default())
    {
        (read.ttl_ms, read.cache_scope) = (hint.ttl, hint.scope);
    }
    result
}

/// Converts a failure to an error: results of prompts and resources have no `isError`.
fn failing<T>(result: LegResult<T>) -> Result<LegResult<T>, Refusal> {
    match result {
        LegResult::BadArguments(text) => Err(Refusal::params(format!("Invalid arguments: {text}"))),
        LegResult::Failed(Some(text)) => Err(Refusal::UserFacing(text)),
        LegResult::Failed(None) => Err(Refusal::Internal),
        LegResult::NotFound => Err(Refusal::UserFacing(Error::resource_not_found().to_string())),
        other => Ok(other),
    }
}

fn target<'a>(request: &'a Request<'_>, member: &'static str) -> Result<&'a str, Refusal> {
    let value = request.target().ok_or_else(|| Refusal::params(format!("params.{member} is missing")))?;
    value.text().ok_or_else(|| Refusal::params(format!("params.{member} must be a string")))
}

/// Writes the reply of a leg. The reply of a claimed leg is committed before it leaves.
fn finish<'a, T: HasMeta + Serialize + SessionResult + Send + 'a>(
    server: &'a Arc<Runtime>,
    request: &'a Request<'_>,
    reply: LegReply<T>,
) -> Finished<'a> {
    let LegReply { result, claim } = reply;
    match claim {
        None => Finished::Written(result.and_then(|result| write_leg(server, request, result))),
        Some(claim) => Finished::Commits(Box::pin(async move {
            match result {
                Ok(result) => committed(server, request, &claim, result).await,
                Err(refusal) => {
                    let refusal = refusal.of_the_only_run(claim.has_effects_of_its_own());
                    refused_after_claim(&claim, &refusal).await?;
                    Err(refusal)
                }
            }
        })),
    }
}

/// The written reply of a leg. An enum and no async function: the future of a request that is not claimed stays small.
enum Finished<'a> {
    Written(Result<Vec<u8>, Refusal>),
    Commits(BoxFuture<'a, Result<Vec<u8>, Refusal>>),
}

/// Writes and commits the reply of a claimed leg.
async fn committed<T: HasMeta + Serialize + SessionResult>(
    server: &Runtime,
    request: &Request<'_>,
    claim: &ClaimedLeg,
    result: LegResult<T>,
) -> Result<Vec<u8>, Refusal> {
    let asks = matches!(result, LegResult::InputRequired(_));
    let body = write_leg(server, request, result)?;
    let result = result_of(&body)?;
    let reply = if asks { StoredReply::Questions(result) } else { StoredReply::Result(result) };
    claim.commit(&reply).await?;
    Ok(body)
}

/// Gives a claimed leg back that failed, or commits its error if steps have run whose record is lost.
async fn refused_after_claim(claim: &ClaimedLeg, refusal: &Refusal) -> Result<(), Refusal> {
    match refusal {
        Refusal::AfterSteps { kept: StepsKept::Nowhere, .. } => {
            let error = to_raw_value(&refusal.to_error()).map_err(|_| Refusal::Internal)?;
            claim.commit(&StoredReply::Error(error)).await
        }
        _ => {
            claim.release().await;
            Ok(())
        }
    }
}

/// Returns the result in the body of a response.
pub(crate) fn result_of(body: &[u8]) -> Result<Box<RawValue>, Refusal> {
    #[derive(serde::Deserialize)]
    struct Response {
        result: Box<RawValue>,
    }
    serde_json::from_slice::<Response>(body).map(|response| response.result).map_err(|_| Refusal::Internal)
}

fn write_leg<T: HasMeta + Serialize + SessionResult>(
    server: &Runtime,
    request: &Request<'_>,
    result: LegResult<T>,
) -> Result<Vec<u8>, Refusal> {
    let server_info = &*server.server_info.raw;
    match result {
        LegResult::Complete(mut result) => match result.meta_mut() {
            None => write(request, &WithServerInfo { result: &result, server_info }),
            Some(members) => {
                if request.session.is_none() {
                    server.server_info.join(members);
                }
                write(request, &result)
            }
        },
        LegResult::InputRequired(result) => encode(request, &WithServerInfo { result: &result, server_info }),
        LegResult::Task(created) => write_created(server, request, created),
        LegResult::Again(StoredReply::Result(text) | StoredReply::Questions(text)) => encode(request, &text),
        LegResult::Again(StoredReply::Task(task)) => encode(request, &task.reply),
        LegResult::Again(StoredReply::Error(text)) => {
            let error = serde_json::from_str(text.get()).map_err(|_| Refusal::Internal)?;
            Err(Refusal::Again(Box::new(error)))
        }
        // The caller has converted these variants already.
        LegResult::Promoted(..) | LegResult::BadArguments(_) | LegResult::Failed(_) | LegResult::NotFound => {
            Err(Refusal::Internal)
        }
    }
}

/// Writes a result in the form of the request's version.
fn write(request: &Request<'_>, result: &(impl Serialize + SessionResult)) -> Result<Vec<u8>, Refusal> {
    match &request.session {
        None => encode(request, result),
        Some(session) => encode(request, &InSession { version: session.version(), result }),
    }
}
