//! The client: plays a table against a server.

use crate::{
    error::AnyError,
    scripted_user::ScriptedUser,
    table::{self, Case},
};
use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, ErrorData},
    service::{RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use std::{env, fs::File, io::Write, path::Path, time::Duration};
use tokio::{process::Command, time::timeout};

type Session = RunningService<RoleClient, ScriptedUser>;

/// Limit of one case.
const CASE_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `TABLE (--http URL | --stdio COMMAND ..)` and returns true if every case passed.
pub(crate) async fn run(words: &[String]) -> Result<bool, AnyError> {
    let [path, transport, target @ ..] = words else {
        return Err("usage: call TABLE (--http URL | --stdio COMMAND ARGUMENT ..)".into());
    };
    let cases = table::read(Path::new(path))?;
    let user = ScriptedUser::default();
    let session = connect(transport, target, user.clone()).await?;
    let era = session.peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    let (mut passed, mut failed) = (0, 0);
    for case in &cases {
        let result = timeout(CASE_TIMEOUT, run_case(&session, &user, case)).await;
        let fault = result.map_err(|_| "not finished in time".to_owned()).flatten().err();
        match &fault {
            None => println!("ok     {}", case.id),
            Some(fault) => println!("FAILED {}: {fault}", case.id),
        }
        *if fault.is_none() { &mut passed } else { &mut failed } += 1;
        record(transport.trim_start_matches('-'), &era, &case.id, fault.as_deref())?;
    }
    session.cancel().await?;
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

async fn connect(transport: &str, target: &[String], user: ScriptedUser) -> Result<Session, AnyError> {
    match (transport, target) {
        ("--http", [url]) => Ok(user.serve(StreamableHttpClientTransport::from_uri(url.as_str())).await?),
        ("--stdio", [program, arguments @ ..]) => {
            let mut command = Command::new(program);
            command.args(arguments);
            Ok(user.serve(TokioChildProcess::new(command)?).await?)
        }
        _ => Err("usage: a URL after --http, or a command after --stdio".into()),
    }
}

async fn run_case(session: &Session, user: &ScriptedUser, case: &Case) -> Result<(), String> {
    user.begin_case(case);
    match call(session, case).await {
        Ok((text, is_error)) => check_result(case, &text, is_error)?,
        Err(ServiceError::McpError(error)) => check_error(case, &error)?,
        Err(other) => return Err(other.to_string()),
    }
    let asked = user.question_keys();
    // Questions of one round may arrive in any order.
    let (mut wanted, mut found, mut rest) = (Vec::new(), Vec::new(), asked.as_slice());
    for mut keys in case.rounds() {
        let (round, later) = rest.split_at(keys.len().min(rest.len()));
        let mut round = round.to_vec();
        round.sort();
        keys.sort();
        found.push(round);
        wanted.push(keys);
        rest = later;
    }
    if found != wanted || !rest.is_empty() {
        return Err(format!("asked {asked:?}, wanted {wanted:?}"));
    }
    user.wait_for_notifications().await
}

/// Makes the call. Returns the first text of the result, and true if the result is a tool error.
async fn call(session: &Session, case: &Case) -> Result<(String, bool), ServiceError> {
    let decode_error =
        |fault: serde_json::Error| ServiceError::McpError(ErrorData::internal_error(fault.to_string(), None));
    let params = json!({"name": case.name, "uri": case.name, "arguments": case.arguments});
    let (result, path) = match case.kind.as_str() {
        "prompt" => {
            let params = serde_json::from_value(params).map_err(decode_error)?;
            (serde_json::to_value(session.get_prompt(params).await?), "/messages/0/content/text")
        }
        "resource" => {
            let params = serde_json::from_value(params).map_err(decode_error)?;
            (serde_json::to_value(session.read_resource(params).await?), "/contents/0/text")
        }
        _ => {
            let params: CallToolRequestParams = serde_json::from_value(params).map_err(decode_error)?;
            (serde_json::to_value(session.call_tool(params).await?), "/content/0/text")
        }
    };
    let result = result.map_err(decode_error)?;
    let text = result.pointer(path).and_then(Value::as_str).unwrap_or_default();
    Ok((text.to_owned(), result["isError"] == json!(true)))
}

fn check_result(case: &Case, text: &str, is_error: bool) -> Result<(), String> {
    let wanted = |kind: &str| case.outcome.get(kind).and_then(Value::as_str);
    let fits = wanted("text").is_some_and(|wanted| text == wanted && !is_error)
        || wanted("tool_error").is_some_and(|wanted| text == wanted && is_error)
        || wanted("tool_error_ends").is_some_and(|wanted| text.ends_with(wanted) && is_error)
        || wanted("refused").is_some_and(|wanted| text.contains(wanted) && is_error);
    let wanted = &case.outcome;
    if fits { Ok(()) } else { Err(format!("found {text:?} (error: {is_error}), wanted {wanted:?}")) }
}

fn check_error(case: &Case, error: &ErrorData) -> Result<(), String> {
    let refused = case.outcome.get("refused").and_then(Value::as_str);
    let urls = case.outcome.get("urls").and_then(Value::as_array);
    let urls_found = error.data.as_ref().and_then(|data| data["elicitations"].as_array());
    let urls_found: Option<Vec<Value>> =
        urls_found.map(|asks| asks.iter().map(|ask| ask["url"].clone()).collect());
    let fits = refused.is_some_and(|wanted| error.message.contains(wanted))
        || urls.is_some_and(|wanted| error.code.0 == -32042 && urls_found.as_ref() == Some(wanted));
    if fits { Ok(()) } else { Err(format!("found {error:?}, wanted {:?}", case.outcome)) }
}

/// Appends a line for `interop/table.py`.
fn record(transport: &str, era: &str, case: &str, fault: Option<&str>) -> Result<(), AnyError> {
    let Some(path) = env::var_os("INTEROP_RESULTS") else { return Ok(()) };
    let line = json!({
        "peer": env::var("INTEROP_PEER").unwrap_or_default(),
        "version": env::var("INTEROP_VERSION").unwrap_or_default(),
        "direction": "client of ours",
        "transport": transport,
        "era": era,
        "case": case,
        "outcome": if fault.is_none() { "pass" } else { "fail" },
        "note": fault.unwrap_or_default(),
    });
    // One write per line, because other processes append to the same file.
    File::options().append(true).create(true).open(path)?.write_all(format!("{line}\n").as_bytes())?;
    Ok(())
}
