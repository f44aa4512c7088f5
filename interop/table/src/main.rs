//! Drives a foreign server through a table of calls with antiphon's client, every callback attached.
//!
//! `antiphon-interop-table TABLE (URL | -- COMMAND ..)`: one line a case, `N passed, N failed` at the end.
//! With `INTEROP_RESULTS` set, also a line of JSON a case in that file.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

mod answers;
mod finished;
mod results;
mod table;
mod target;

use antiphon::{
    client::{AskFault, Call, Client, ClientError, ClientErrorKind, Finished, transport::Transport},
    wire::ProtocolVersion,
};
use finished::{failed, said};
use std::{env, error::Error, fs, process::ExitCode, sync::Arc};
use table::{Case, Kind, Outcome, Table};
use target::connect;

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    let mut arguments = env::args().skip(1);
    let table = arguments.next().ok_or("usage: antiphon-interop-table TABLE (URL | -- COMMAND ..)")?;
    let target: Vec<String> = arguments.collect();
    let table: Table = serde_json::from_str(&fs::read_to_string(table)?)?;
    let transport = connect(&target)?;
    let mut results = results::Results::open(if target.len() == 1 { "http" } else { "stdio" })?;
    for case in table.cases.iter().filter(|case| case.is_for_now()) {
        let fault = play(case, transport.clone()).await.err().map(|fault| fault.to_string());
        results.add(ProtocolVersion::V2026_07_28.as_str(), &case.id, fault.as_deref())?;
    }
    transport.close().await;
    Ok(results.total())
}

/// One call, compared with what the table says.
async fn play(case: &Case, transport: Arc<dyn Transport>) -> Result<(), AnyError> {
    let rounds = answers::Rounds::default();
    let client: Client = answers::client(case, &rounds, transport);
    let call = match case.kind {
        Kind::Tool => Call::tool(&case.name, &case.arguments)?,
        Kind::Prompt => Call::prompt(&case.name, &case.arguments)?,
        Kind::Resource => Call::resource(&case.name),
    };
    let outcome = client.call(call).await;
    compare(case, outcome)?;
    let seen = rounds.seen();
    // Rounds of state alone pass no callback.
    let expected: Vec<&Vec<String>> = case.asks.iter().filter(|keys| !keys.is_empty()).collect();
    let repeated = matches!(case.outcome, Outcome::GivesUp(_));
    if !repeated && seen.iter().ne(expected.iter().copied()) {
        return Err(format!("asked {seen:?}, wanted {expected:?}").into());
    }
    Ok(())
}

fn compare(case: &Case, outcome: Result<Finished, ClientError>) -> Result<(), AnyError> {
    match (&case.outcome, outcome) {
        (Outcome::Text(text), Ok(finished)) => same(text, &finished, false),
        (Outcome::ToolError(text), Ok(finished)) => same(text, &finished, true),
        (Outcome::ToolErrorBegins(text), Ok(finished))
            if failed(&finished) && said(&finished).is_some_and(|said| said.starts_with(text)) =>
        {
            Ok(())
        }
        // Our client checks an answer before it leaves; theirs lets the server find out.
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
            _ => Err(format!("ended with {error:?}, wanted {expected:?}").into()),
        },
        (Outcome::Pending(keys), Err(error)) => match error.pending() {
            Some(pending) if pending.missing().iter().eq(keys.iter()) => Ok(()),
            _ => Err(format!("ended with {error}, wanted {keys:?} to be missing").into()),
        },
        (Outcome::GivesUp(_), Err(error)) if error.is_limit() => Ok(()),
        (_, Ok(finished)) => Err(format!("said {:?}", said(&finished)).into()),
        (_, Err(error)) => Err(error.into()),
    }
}

fn same(expected: &str, finished: &Finished, may_fail: bool) -> Result<(), AnyError> {
    let (found, failed) = (said(finished), failed(finished));
    if found == Some(expected) && failed == may_fail {
        Ok(())
    } else {
        Err(format!("said {found:?} (error: {failed}), wanted {expected:?}").into())
    }
}
