//! Drives a foreign server through a table of calls with antiphon's client, every callback attached.
//!
//! `antiphon-interop-table TABLE (URL | -- COMMAND ..)`: one line a case, `N passed, N failed` at the end.
//! With `INTEROP_RESULTS` set, also a line of JSON a case in that file.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

mod answers;
mod results;
mod table;

use antiphon::{
    client::{Call, CallError, CallErrorKind, Client, Finished},
    transport::{
        Transport,
        http::HttpTransport,
        stdio::{ChildCommand, ChildStderr, ChildTransport},
    },
    wire::ProtocolVersion,
};
use std::{env, error::Error, fs, process::ExitCode, sync::Arc};
use table::{Case, Kind, Outcome, Table};

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    let mut arguments = env::args().skip(1);
    let table = arguments.next().ok_or("usage: antiphon-interop-table TABLE (URL | -- COMMAND ..)")?;
    let target: Vec<String> = arguments.collect();
    let table: Table = serde_json::from_str(&fs::read_to_string(table)?)?;
    let transport = connect(&target)?;
    let mut results = results::Results::open(if target.len() == 1 { "http" } else { "stdio" })?;
    let (mut passed, mut failed) = (0, 0);
    for case in table.cases.iter().filter(|case| case.is_for_now()) {
        let fault = play(case, transport.clone()).await.err().map(|fault| fault.to_string());
        match &fault {
            None => {
                passed += 1;
                println!("ok     {}", case.id);
            }
            Some(fault) => {
                failed += 1;
                println!("FAILED {}: {fault}", case.id);
            }
        }
        results.add(ProtocolVersion::V2026_07_28.as_str(), &case.id, fault.as_deref())?;
    }
    transport.close().await;
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn connect(target: &[String]) -> Result<Arc<dyn Transport>, AnyError> {
    match target {
        [url] => Ok(Arc::new(HttpTransport::new(url)?)),
        [dashes, program, arguments @ ..] if dashes == "--" => {
            let command = ChildCommand::new(program).args(arguments).stderr(ChildStderr::Discard);
            Ok(Arc::new(ChildTransport::spawn(command)?))
        }
        _ => Err("name one URL, or a command after `--`".into()),
    }
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

fn compare(case: &Case, outcome: Result<Finished, CallError>) -> Result<(), AnyError> {
    match (&case.outcome, outcome) {
        (Outcome::Text(text), Ok(finished)) => same(text, &said(&finished)?, failed(&finished), false),
        (Outcome::ToolError(text), Ok(finished)) => same(text, &said(&finished)?, failed(&finished), true),
        (Outcome::ToolErrorBegins(text), Ok(finished))
            if failed(&finished) && said(&finished)?.starts_with(text) =>
        {
            Ok(())
        }
        // Our client checks an answer before it leaves; theirs lets the server find out.
        (Outcome::ToolError(_), Err(error))
            if matches!(error.kind(), CallErrorKind::Answer(_) | CallErrorKind::Callback { .. }) =>
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
        (_, Ok(finished)) => Err(format!("said {:?}", said(&finished)?).into()),
        (_, Err(error)) => Err(error.into()),
    }
}

fn same(expected: &str, found: &str, is_error: bool, may_be_error: bool) -> Result<(), AnyError> {
    if expected == found && is_error == may_be_error {
        Ok(())
    } else {
        Err(format!("said {found:?} (error: {is_error}), wanted {expected:?}").into())
    }
}

fn failed(finished: &Finished) -> bool {
    matches!(finished, Finished::Tool(result) if result.failed())
}

/// The first text of a result.
fn said(finished: &Finished) -> Result<String, AnyError> {
    let text = match finished {
        Finished::Tool(result) => result.first_text(),
        Finished::Prompt(result) => result.messages.first().and_then(|message| message.content.as_text()),
        Finished::Resource(result) => {
            result.contents.first().and_then(antiphon::wire::ResourceContents::as_text)
        }
    };
    text.map(str::to_owned).ok_or_else(|| "there is no text in it".into())
}
