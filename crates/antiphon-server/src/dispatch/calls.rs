//! Calls: one function runs every offer. The offers differ in their arguments, and in the form of a failure.

use crate::{
    at_most_once::{ClaimResult, ClaimedLeg, StoredReply, StoredTask, claim},
    call::{
        ctx::Ctx,
        leg,
        leg_end::{CallEnd, HandlerFuture, LegResult},
    },
    dispatch::{
        find::{FoundResource, Lookup, check_hidden_params},
        observe,
        reply::{CallReply, UnsentReply, result_of, write_created},
    },
    errors::{Error, refusal::Refusal},
    in_place::{boxed, rare},
    offer::{CacheHint, offers::RegisteredTool},
    reply::{HasMeta, WithServerInfo},
    request::{
        LegRequest,
        admit::{Admitted, admit},
        receive::Request,
    },
    runtime::{CAUSE, Runtime},
    task,
};
use antiphon_wire::{CacheScope, CallToolResult, GetPromptResult, ReadResourceResult, Ttl, escaped};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use std::sync::Arc;

/// The next action for an admitted request whose arguments were checked.
enum Checked<T> {
    /// The handler runs.
    Run,
    /// This is the result: the handler does not run.
    Complete(T),
    /// The call becomes a task, which runs the handler.
    Task,
}

/// Runs the handler of an offer for one request: the request is admitted, checked and claimed. `check` checks the arguments, `start`
/// decodes them and returns the handler's future, and `end` turns the end of the call into its result.
async fn run_offer<T: HasMeta + Send + 'static>(
    server: &Arc<Runtime>,
    leg: LegRequest<'_>,
    check: impl FnOnce(&Admitted<'_>) -> Result<Checked<T>, Refusal>,
    start: impl Fn(Ctx) -> Result<HandlerFuture<T>, String>,
    end: impl FnOnce(CallEnd<T>) -> Result<T, Refusal>,
) -> Result<UnsentReply<T>, Refusal> {
    let mut admitted = admit(server, leg)?;
    let (begin, call) = (observe::begin(), (admitted.call_id(), admitted.leg_number()));
    let reply = run_admitted(server, &mut admitted, check, start, end).await;
    observe::log_end(server, &admitted, call, begin, &reply);
    reply
}

async fn run_admitted<T: Send + 'static>(
    server: &Arc<Runtime>,
    admitted: &mut Admitted<'_>,
    check: impl FnOnce(&Admitted<'_>) -> Result<Checked<T>, Refusal>,
    start: impl Fn(Ctx) -> Result<HandlerFuture<T>, String>,
    end: impl FnOnce(CallEnd<T>) -> Result<T, Refusal>,
) -> Result<UnsentReply<T>, Refusal> {
    let request = admitted.leg().request;
    match check(admitted)? {
        Checked::Run => {}
        Checked::Complete(result) => return Ok(CallReply::Complete(result).into()),
        Checked::Task => {
            admitted.require(admitted.leg().settings.needs)?;
            let created = rare(task::start(server, admitted.leg(), admitted.principal())).await?;
            return Ok(CallReply::Task(created).into());
        }
    }
    let claim = match claim(server, admitted).await {
        Ok(ClaimResult::Run(claim)) => claim,
        Ok(ClaimResult::Replied(reply)) if reply.is_task() && !request.meta.tasks => {
            return Err(Refusal::task_extension());
        }
        Ok(ClaimResult::Replied(reply)) => {
            if let StoredReply::Task(stored) = &reply {
                Box::pin(task::create_again(server, admitted, stored)).await?;
            }
            return Ok(CallReply::Again(reply).into());
        }
        Err(Refusal::Used) => {
            let created = Box::pin(task::created_before(server, admitted)).await?;
            return created.map(|task| CallReply::Task(task).into()).ok_or(Refusal::Used);
        }
        Err(refusal) => return Err(refusal),
    };
    // In a box of its own: an allocator is fast for up to a kilobyte, and the future of a request is larger.
    let result = Box::into_pin(boxed(|| leg::run(server, admitted, claim.as_ref(), start))).await;
    let reply = match result {
        Ok(LegResult::Over(over)) => end(over).map(CallReply::Complete),
        Ok(LegResult::InputRequired(round)) => Ok(CallReply::InputRequired(round)),
        Ok(LegResult::Promoted(key, round)) => {
            let fingerprint = claim.as_ref().map(|claim| claim.claim.row.fingerprint);
            let promoted = task::Promoted { key, round, fingerprint };
            return Box::pin(promote(server, admitted, promoted, claim)).await;
        }
        Err(refusal) => Err(refusal),
    };
    Ok(UnsentReply { reply, claim })
}

/// Makes a call that has begun a task. If the task cannot be created now, the round leaves in its place: the client comes back with
/// the state, and the call tries again to become a task.
///
/// The reply is committed before the task exists. Otherwise a process that died in between would leave a task, and a leg that runs
/// again and may go further than the task knows.
async fn promote<T>(
    server: &Arc<Runtime>,
    admitted: &Admitted<'_>,
    promoted: task::Promoted,
    claim: Option<Arc<ClaimedLeg>>,
) -> Result<UnsentReply<T>, Refusal> {
    let (request, name) = (admitted.leg().request, admitted.leg().target);
    let task = match task::promoted(server, admitted.leg(), admitted.principal(), &promoted) {
        Ok(task) => task,
        // The cause is in the log.
        Err(_) => return Ok(UnsentReply { reply: Ok(CallReply::InputRequired(promoted.round)), claim }),
    };
    if let Some(claim) = claim {
        let body = write_created(server, request, task.created.clone())?;
        let round = WithServerInfo { result: &promoted.round, server_info: &server.server_info.raw };
        let round = to_raw_value(&round).map_err(|_| Refusal::Internal)?;
        claim.commit(&StoredReply::Task(StoredTask { round, reply: result_of(&body)? })).await?;
    }
    Ok(match task::create(server, request, name, task).await {
        Ok(created) => CallReply::Task(created).into(),
        Err(_) => CallReply::InputRequired(promoted.round).into(),
    })
}

pub(super) async fn call_tool(lookup: Lookup<'_>) -> Result<UnsentReply<CallToolResult>, Refusal> {
    let Lookup { server, offers, request, caller } = lookup;
    let name = target(request, "name")?;
    let registered = lookup.tool(name).await?;
    let registered = registered.ok_or_else(|| Refusal::params(format!("Unknown tool: {name}")))?;
    if registered.is_hidden_from_some() {
        check_hidden_params(&registered.checks.param_headers, request.params.arguments, request, caller)?;
    }
    let (registered, tool) = (&*registered, &registered.tool);
    let leg = LegRequest {
        request,
        target: name,
        arguments: request.params.arguments,
        settings: &tool.settings,
        caller,
        logs: offers.profile.logging,
    };
    let arguments = request.params.arguments.map_or("{}", RawValue::get);
    let check = |admitted: &Admitted<'_>| {
        // > Malformed requests (requests that fail to satisfy CallToolRequest schema)
        if !arguments.starts_with('{') {
            return Err(Refusal::params("params.arguments must be an object"));
        }
        // > Tool Execution Errors [...] Input validation errors
        if let Some(faults) = registered.checks.input.faults(arguments) {
            return Ok(Checked::Complete(bad_arguments(name, &faults)));
        }
        Ok(if task::required(server, admitted)? { Checked::Task } else { Checked::Run })
    };
    let start = |ctx| (tool.run)(ctx, arguments).map_err(|fault| fault.to_string());
    run_offer(server, leg, check, start, |end| Ok(tool_result(server, registered, name, end))).await
}

/// Returns the result of a tool: a failure is a result too, and a result fits the tool's output schema.
fn tool_result(
    server: &Runtime,
    registered: &RegisteredTool,
    name: &str,
    end: CallEnd<CallToolResult>,
) -> CallToolResult {
    let result = match end {
        CallEnd::Complete(result) => result,
        CallEnd::BadArguments(fault) => return bad_arguments(name, &fault),
        CallEnd::Failed(Some(text)) => return CallToolResult::error(text),
        CallEnd::Failed(None) => return failed(name),
        CallEnd::NotFound => return CallToolResult::error(Error::resource_not_found().to_string()),
    };
    let faults = registered.checks.output.as_ref().and_then(|schema| schema.faults(&result));
    let Some(faults) = faults else { return result };
    tracing::error!(tool = ?escaped(name), faults = ?escaped(&faults).limit(CAUSE), "a result does not fit the output schema of its tool");
    if !server.show_errors {
        return failed(name);
    }
    CallToolResult::error(format!("The result of the tool {name} does not fit its output schema: {faults}"))
}

fn bad_arguments(tool: &str, faults: &str) -> CallToolResult {
    CallToolResult::error(format!("Invalid arguments for tool {tool}: {faults}"))
}

fn failed(tool: &str) -> CallToolResult {
    CallToolResult::error(format!("The tool {tool} failed; the reason is in the server's log"))
}

pub(super) async fn get_prompt(lookup: Lookup<'_>) -> Result<UnsentReply<GetPromptResult>, Refusal> {
    let Lookup { server, offers, request, caller } = lookup;
    let name = target(request, "name")?;
    let prompt = lookup.prompt(name).await?;
    let prompt = prompt.ok_or_else(|| Refusal::params(format!("Unknown prompt: {name}")))?;
    let leg = LegRequest {
        request,
        target: name,
        arguments: request.params.arguments,
        settings: &prompt.settings,
        caller,
        logs: offers.profile.logging,
    };
    let text = request.params.arguments.map_or("{}", RawValue::get);
    let check = |_: &Admitted<'_>| {
        check_prompt(&prompt.definition, text)?;
        Ok(Checked::Run)
    };
    let start = |ctx| (prompt.run)(ctx, text).map_err(|fault| fault.to_string());
    run_offer(server, leg, check, start, complete).await
}

fn check_prompt(prompt: &antiphon_wire::Prompt, text: &str) -> Result<(), Refusal> {
    let arguments: Map<String, Value> =
        serde_json::from_str(text).map_err(|_| Refusal::params("arguments must be an object of strings"))?;
    if let Some(name) = arguments.iter().find(|(_, value)| !value.is_string()).map(|(name, _)| name) {
        return Err(Refusal::params(format!("The argument `{name}` must be a string")));
    }
    let missing = |argument: &&antiphon_wire::PromptArgument| {
        argument.required == Some(true) && !arguments.contains_key(&argument.name)
    };
    match prompt.arguments.iter().find(missing) {
        Some(argument) => Err(Refusal::params(format!("The argument `{}` is missing", argument.name))),
        None => Ok(()),
    }
}

pub(super) async fn read_resource(lookup: Lookup<'_>) -> Result<UnsentReply<ReadResourceResult>, Refusal> {
    let Lookup { server, offers, request, caller } = lookup;
    let uri = target(request, "uri")?;
    let logs = offers.profile.logging;
    let leg = |settings| LegRequest { request, target: uri, arguments: None, settings, caller, logs };
    let check = |_: &Admitted<'_>| Ok(Checked::Run);
    match lookup.resource(uri).await? {
        None => Err(Refusal::NotFound { uri: uri.to_owned() }),
        Some(FoundResource::Resource(resource)) => {
            let start = |ctx| Ok((resource.run)(ctx));
            let end =
                |end| resource_result(request, uri, (resource.cache, resource.is_hidden_from_some()), end);
            run_offer(server, leg(&resource.settings), check, start, end).await
        }
        Some(FoundResource::Template(template, variables)) => {
            let start = |ctx| (template.run)(ctx, variables.clone()).map_err(|fault| fault.to_string());
            let end =
                |end| resource_result(request, uri, (template.cache, template.is_hidden_from_some()), end);
            run_offer(server, leg(&template.settings), check, start, end).await
        }
    }
}

/// Returns the result of a resource, with the resource's cache hint if the handler set none. What some callers do not see is cached for
/// its caller only.
fn resource_result(
    request: &Request<'_>,
    uri: &str,
    (hint, is_private): (CacheHint, bool),
    end: CallEnd<ReadResourceResult>,
) -> Result<ReadResourceResult, Refusal> {
    // > If the requested resource does not exist, servers **MUST** return a JSON-RPC error with code `-32602`
    if let CallEnd::NotFound = end {
        return Err(Refusal::NotFound { uri: uri.to_owned() });
    }
    let mut result = complete(end)?;
    // > requests carrying `inputResponses` or `requestState` [...] **MUST NOT** be cached
    let retried = request.params.input_responses.is_some() || request.params.request_state.is_some();
    if !retried && (result.ttl_ms, result.cache_scope) == (Ttl::default(), CacheScope::default()) {
        (result.ttl_ms, result.cache_scope) = (hint.ttl, hint.scope);
    }
    if is_private {
        result.cache_scope = CacheScope::Private;
    }
    Ok(result)
}

/// Returns the result, or else an error: results of prompts and resources have no `isError`.
fn complete<T>(end: CallEnd<T>) -> Result<T, Refusal> {
    match end {
        CallEnd::Complete(result) => Ok(result),
        CallEnd::BadArguments(text) => Err(Refusal::params(format!("Invalid arguments: {text}"))),
        CallEnd::Failed(Some(text)) => Err(Refusal::UserFacing(text)),
        CallEnd::Failed(None) => Err(Refusal::Internal),
        CallEnd::NotFound => Err(Refusal::UserFacing(Error::resource_not_found().to_string())),
    }
}

fn target<'a>(request: &'a Request<'_>, member: &'static str) -> Result<&'a str, Refusal> {
    let value = request.target().ok_or_else(|| Refusal::params(format!("params.{member} is missing")))?;
    value.text().ok_or_else(|| Refusal::params(format!("params.{member} must be a string")))
}
