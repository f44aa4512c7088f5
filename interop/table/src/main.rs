//! Drives a foreign server with antiphon's client through a table of calls, with every callback set.
//!
//! `antiphon-interop-table TABLE (URL | -- COMMAND ..)` prints one line per case and `N passed, N failed` at the end.
//! With `INTEROP_RESULTS` set, it also appends one line of JSON per case to that file.
#![allow(clippy::print_stdout, reason = "the program prints its results")]

mod answers;
mod error;
mod finished;
mod results;
mod table;
mod target;

use antiphon::{
    client::{Call, Client, ClientError, ClientErrorKind, Finished, asks::AskFault, transport::Transport},
    wire::ProtocolVersion,
};
use error::AnyError;
use finished::{first_text, is_tool_error};
use std::{env, fs, process::ExitCode, sync::Arc};
use table::{Case, Kind, Outcome, Table};
use target::connect;

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    let mut arguments = env::args().skip(1);
    let table = arguments.next().ok_or("usage: antiphon-interop-table TABLE (URL | -- COMMAND ..)")?;
    let target: Vec<String> = arguments.collect();
    let table: Table = serde_json::from_str(&fs::read_to_string(table)?)?;
    let transport = connect(&target)?;
    let mut results = results::Results::open(if target.len() == 1 { "http" } else { "stdio" })?;
    for case in table.cases.iter().filter(|case| case.is_enabled()) {
        let fault = run_case(case, transport.clone()).await.err().map(|fault| fault.to_string());
        results.add(ProtocolVersion::V2026_07_28.as_str(), &case.id, fault.as_deref())?;
    }
    transport.close().await;
    Ok(results.total())
}

/// Makes one call and compares it with the case.
async fn run_case(case: &Case, transport: Arc<dyn Transport>) -> Result<(), AnyError> {
    let rounds = answers::Rounds::default();
    let client: Client = answers::client(case, &rounds, transport);
    let call = match case.kind {
        Kind::Tool => Call::tool(&case.name, &case.arguments)?,
        Kind::Prompt => Call::prompt(&case.name, &case.arguments)?,
        Kind::Resource => Call::resource(&case.name),
    };
    let outcome = client.call(call).await;
    compare(case, outcome)?;
    let seen = rounds.keys();
    // Rounds without questions call no callback.
    let expected: Vec<&Vec<String>> = case.asks.iter().filter(|keys| !keys.is_empty()).collect();
    let repeated = matches!(case.outcome, Outcome::GivesUp(_));
    if !repeated && seen.iter().ne(expected.iter().copied()) {
        return Err(format!("asked {seen:?}, wanted {expected:?}").into());
    }
    Ok(())
}

fn compare(case: &Case, outcome: Result<Finished, ClientError>) -> Result<(), AnyError> {
    match (&case.outcome, outcome) {
        (Outcome::Text(text), Ok(finished)) => compare_text(text, &finished, false),
        (Outcome::ToolError(text), Ok(finished)) => compare_text(text, &finished, true),
        (Outcome::ToolErrorBegins(text), Ok(finished))
            if is_tool_error(&finished)
                && first_text(&finished).is_some_and(|text| text.starts_with(text)) =>
        {
            Ok(())
        }
        // antiphon's client checks an answer before it sends it. Other clients leave the check to the server.
        (Outcome::ToolError(_), Err(error))
            if matches!(
                error.kind(),
                ClientErrorKind::Ask(AskFault::Answer(_)) | ClientErrorKind::Ask(AskFault::Callback { .. })
            ) =>
        {
            Ok(())
        }
        (Outcome::Error(expected), Err(error)) => match error.server_error() {
            Some(found) if found.code.0 == expected.code && found.message == expected.message => Ok(()),
            _ => Err(format!("error {error:?}, wanted {expected:?}").into()),
        },
        (Outcome::Pending(keys), Err(error)) => match error.pending() {
            Some(pending) if pending.missing().iter().eq(keys.iter()) => Ok(()),
            _ => Err(format!("error {error}, wanted {keys:?} to be missing").into()),
        },
        (Outcome::GivesUp(_), Err(error)) if error.is_limit() => Ok(()),
        (_, Ok(finished)) => Err(format!("unexpected result {:?}", first_text(&finished)).into()),
        (_, Err(error)) => Err(error.into()),
    }
}

fn compare_text(expected: &str, finished: &Finished, may_fail: bool) -> Result<(), AnyError> {
    let (found, failed) = (first_text(finished), is_tool_error(finished));
    if found == Some(expected) && failed == may_fail {
        Ok(())
    } else {
        Err(format!("first text {found:?} (error: {failed}), wanted {expected:?}").into())
    }
}
