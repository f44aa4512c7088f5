//! Drives a foreign server with antiphon's client on a session of an earlier revision, with every callback set.
//!
//! `antiphon-interop-legacy TABLE (auto | legacy) (URL | -- COMMAND ..)` prints one line per case and
//! `N passed, N failed` at the end. `auto` is for servers that support only earlier revisions: the client must detect
//! that. With `INTEROP_RESULTS` set, it also appends one line of JSON per case to that file. The server is
//! `legacy_server` of a peer, the table is `interop/legacy/peers.json`.
#![allow(clippy::print_stdout, reason = "the program prints its results")]

#[path = "../src/error.rs"]
mod error;
#[path = "../src/finished.rs"]
mod finished;
#[path = "../src/results.rs"]
mod results;
#[path = "../../legacy/scripted_user.rs"]
mod scripted_user;
mod table;
#[path = "../src/target.rs"]
mod target;
mod user_answers;

use antiphon::client::{Call, Client, ClientError, Era, Finished, Mode};
use error::AnyError;
use finished::{first_text, is_tool_error};
use scripted_user::ScriptedUser;
use std::{env, fs, process::ExitCode, sync::Arc, time::Duration};
use table::{Case, Outcome, Table};
use target::connect;

/// Limit of one case.
const CASE_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [table, mode, target @ ..] = words.as_slice() else {
        return Err("usage: antiphon-interop-legacy TABLE (auto | legacy) (URL | -- COMMAND ..)".into());
    };
    let table: Table = serde_json::from_str(&fs::read_to_string(table)?)?;
    let mode = match mode.as_str() {
        "auto" => Mode::Auto,
        "legacy" => Mode::Legacy,
        other => return Err(format!("unknown mode {other}").into()),
    };
    let transport = connect(target)?;
    let mut results = results::Results::open(carrier(target))?;
    let user = ScriptedUser::default();
    let client = user.client().mode(mode).connect(Arc::clone(&transport));
    for case in table.cases.iter().map(|case| case.antiphon.as_deref().unwrap_or(case)) {
        let result = tokio::time::timeout(CASE_TIMEOUT, run_case(case, &client, &user)).await;
        let fault = match result {
            Ok(result) => result.err().map(|fault| fault.to_string()),
            Err(_) => Some(format!("not finished after {CASE_TIMEOUT:?}")),
        };
        results.add(client.protocol_version().as_str(), &case.id, fault.as_deref())?;
    }
    transport.close().await;
    Ok(results.total())
}

/// The transport, as `interop/table.py` names it. The path identifies a server of HTTP+SSE.
fn carrier(target: &[String]) -> &'static str {
    match target {
        [url] if url.ends_with("/sse") => "sse",
        [_] => "http",
        _ => "stdio",
    }
}

/// Makes one call and compares it with the case.
async fn run_case(case: &Case, client: &Client, user: &ScriptedUser) -> Result<(), AnyError> {
    user.begin_case(case);
    let call = match case.kind.as_str() {
        "prompt" => Call::prompt(&case.name, &case.arguments)?,
        "resource" => Call::resource(&case.name),
        _ => Call::tool(&case.name, &case.arguments)?,
    };
    compare(case, client.call(call).await)?;
    if client.era() != Some(Era::Legacy) {
        return Err(format!("negotiated {}", client.protocol_version()).into());
    }
    user.check_questions()?;
    Ok(user.wait_for_notifications().await?)
}

fn compare(case: &Case, outcome: Result<Finished, ClientError>) -> Result<(), AnyError> {
    match (&case.outcome, outcome) {
        (Outcome::Text(wanted), Ok(finished))
            if !is_tool_error(&finished) && first_text(&finished) == Some(wanted) =>
        {
            Ok(())
        }
        (Outcome::ToolErrorEnds(wanted), Ok(finished))
            if is_tool_error(&finished)
                && first_text(&finished).is_some_and(|text| text.ends_with(wanted)) =>
        {
            Ok(())
        }
        (Outcome::Refused(wanted), Ok(finished))
            if is_tool_error(&finished)
                && first_text(&finished).is_some_and(|text| text.contains(wanted)) =>
        {
            Ok(())
        }
        (Outcome::Refused(wanted), Err(error))
            if error.server_error().is_some_and(|found| found.message.contains(wanted)) =>
        {
            Ok(())
        }
        (wanted, Ok(finished)) => {
            Err(format!("first text {:?}, wanted {wanted:?}", first_text(&finished)).into())
        }
        (_, Err(error)) => Err(error.into()),
    }
}
