//! One line a method.

use super::{
    Caller, Request,
    leg::{self, Leg, LegResult},
    listen,
    refusal::Refusal,
    reply::{HasMeta, Stamped},
    serve::{Inner, RegisteredTool},
};
use antiphon_wire::{CallToolResult, GetPromptResult, ReadResourceResult, method, write_result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::borrow::Cow;

/// The body of the response.
pub(super) async fn route(
    server: &Inner,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<Vec<u8>, Refusal> {
    match &*request.method {
        method::DISCOVER => write(request, &server.written.discover),
        method::TOOLS_LIST => page(request, &server.written.tools),
        method::PROMPTS_LIST => page(request, &server.written.prompts),
        method::RESOURCES_LIST => page(request, &server.written.resources),
        method::RESOURCE_TEMPLATES_LIST => page(request, &server.written.templates),
        method::TOOLS_CALL => finish(server, request, call_tool(server, request, caller).await?),
        method::PROMPTS_GET => finish(server, request, get_prompt(server, request, caller).await?),
        method::RESOURCES_READ => finish(server, request, read_resource(server, request, caller).await?),
        method::SUBSCRIPTIONS_LISTEN => listen::listen(server, request, caller).await,
        other => Err(Refusal::Method(other.to_owned())),
    }
}

/// Everything is on the first page, so no cursor was ever given out.
fn page(request: &Request<'_>, written: &RawValue) -> Result<Vec<u8>, Refusal> {
    match request.params.cursor {
        None => write(request, written),
        Some(_) => Err(Refusal::params("Invalid cursor")),
    }
}

async fn call_tool(
    server: &Inner,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<LegResult<CallToolResult>, Refusal> {
    let name = target(request, "name")?;
    let RegisteredTool { tool, validator } =
        server.tools.get(&*name).ok_or_else(|| Refusal::params(format!("Unknown tool: {name}")))?;
    let leg =
        Leg { request, target: &name, arguments: request.params.arguments, settings: &tool.settings, caller };
    let admitted = leg::admit(server, leg)?;
    let arguments = request.params.arguments.map_or("{}", RawValue::get);
    // > Malformed requests (requests that fail to satisfy CallToolRequest schema)
    if !arguments.starts_with('{') {
        return Err(Refusal::params("params.arguments must be an object"));
    }
    // > Tool Execution Errors [...] Input validation errors
    if let Some(faults) = faults_of(validator, arguments) {
        return Ok(LegResult::Complete(CallToolResult::error(format!(
            "Invalid arguments for tool {name}: {faults}"
        ))));
    }
    let result =
        leg::run(server, admitted, |ctx| (tool.run)(ctx, arguments).map_err(|fault| fault.to_string()))
            .await?;
    Ok(match result {
        LegResult::BadArguments(text) => {
            LegResult::Complete(CallToolResult::error(format!("Invalid arguments for tool {name}: {text}")))
        }
        LegResult::Failed(Some(text)) => LegResult::Complete(CallToolResult::error(text)),
        LegResult::Failed(None) => LegResult::Complete(CallToolResult::error(format!(
            "The tool {name} failed; the server's log says why"
        ))),
        other => other,
    })
}

/// What the schema says against the arguments, a few faults at most.
fn faults_of(validator: &jsonschema::Validator, arguments: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(arguments) {
        Ok(value) => value,
        Err(fault) => return Some(fault.to_string()),
    };
    if validator.is_valid(&value) {
        return None;
    }
    let told = |fault: jsonschema::ValidationError<'_>| match fault.instance_path().as_str() {
        "" => fault.to_string(),
        path => format!("{}: {fault}", path.trim_start_matches('/')),
    };
    let faults: Vec<String> = validator.iter_errors(&value).take(5).map(told).collect();
    Some(faults.join("; "))
}

async fn get_prompt(
    server: &Inner,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<LegResult<GetPromptResult>, Refusal> {
    let name = target(request, "name")?;
    let prompt =
        server.prompts.get(&*name).ok_or_else(|| Refusal::params(format!("Unknown prompt: {name}")))?;
    let leg = Leg {
        request,
        target: &name,
        arguments: request.params.arguments,
        settings: &prompt.settings,
        caller,
    };
    let admitted = leg::admit(server, leg)?;
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
    failing(
        leg::run(server, admitted, |ctx| (prompt.run)(ctx, text).map_err(|fault| fault.to_string())).await?,
    )
}

async fn read_resource(
    server: &Inner,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<LegResult<ReadResourceResult>, Refusal> {
    let uri = target(request, "uri")?;
    let leg = |settings| Leg { request, target: &uri, arguments: None, settings, caller };
    if let Some(resource) = server.resources.get(&*uri) {
        let admitted = leg::admit(server, leg(&resource.settings))?;
        return failing(leg::run(server, admitted, |ctx| Ok((resource.run)(ctx))).await?);
    }
    for template in &server.templates {
        let Some(variables) = template.matcher.as_ref().ok().and_then(|matcher| matcher.variables(&uri))
        else {
            continue;
        };
        let admitted = leg::admit(server, leg(&template.settings))?;
        let run = |ctx| (template.run)(ctx, variables).map_err(|fault| fault.to_string());
        return failing(leg::run(server, admitted, run).await?);
    }
    Err(Refusal::NotFound { uri: uri.into_owned() })
}

/// Prompts and resources have no result that says "failed": theirs is an error.
fn failing<T>(result: LegResult<T>) -> Result<LegResult<T>, Refusal> {
    match result {
        LegResult::BadArguments(text) => Err(Refusal::params(format!("Invalid arguments: {text}"))),
        LegResult::Failed(Some(text)) => Err(Refusal::Told(text)),
        LegResult::Failed(None) => Err(Refusal::Internal),
        other => Ok(other),
    }
}

fn target<'a>(request: &'a Request<'a>, member: &'static str) -> Result<Cow<'a, str>, Refusal> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let value = request.target().ok_or_else(|| Refusal::params(format!("params.{member} is missing")))?;
    let text: Text<'a> = serde_json::from_str(value.get())
        .map_err(|_| Refusal::params(format!("params.{member} must be a string")))?;
    Ok(text.0)
}

fn finish<T: HasMeta + Serialize>(
    server: &Inner,
    request: &Request<'_>,
    result: LegResult<T>,
) -> Result<Vec<u8>, Refusal> {
    let stamp = &*server.stamp.written;
    match result {
        LegResult::Complete(mut result) => match result.meta_mut() {
            None => write(request, &Stamped { result: &result, stamp }),
            Some(members) => {
                server.stamp.join(members);
                write(request, &result)
            }
        },
        LegResult::InputRequired(result) => write(request, &Stamped { result: &result, stamp }),
        // Each method has told these apart already.
        LegResult::BadArguments(_) | LegResult::Failed(_) => Err(Refusal::Internal),
    }
}

pub(super) fn write(request: &Request<'_>, result: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, Refusal> {
    write_result(&request.id, result).map_err(|fault| {
        tracing::error!(method = %request.method, %fault, "a result cannot be written as JSON");
        Refusal::Internal
    })
}
