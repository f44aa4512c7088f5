//! Drives a foreign server with antiphon's client on a session of an earlier revision, every callback attached.
//!
//! `antiphon-interop-legacy TABLE (auto | legacy) (URL | -- COMMAND ..)`: one line a case, `N passed, N failed` at the end.
//! `auto` is for servers that know no later revision: the client is to find that out. With `INTEROP_RESULTS` set, also a
//! line of JSON a case in that file. The server is `legacy_server` of a peer, the table `interop/legacy/peers.json`.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

mod person;
#[path = "../src/results.rs"]
mod results;
mod table;

use antiphon::{
    client::{Call, CallError, Client, Era, Finished, Mode},
    transport::{
        Transport,
        http::HttpTransport,
        stdio::{ChildCommand, ChildStderr, ChildTransport},
    },
};
use person::Person;
use std::{env, error::Error, fs, process::ExitCode, sync::Arc, time::Duration};
use table::{Case, Outcome, Table};

type AnyError = Box<dyn Error + Send + Sync>;

/// What has not ended by then never will.
const PER_CASE: Duration = Duration::from_secs(30);

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
        other => return Err(format!("there is no mode {other}").into()),
    };
    let transport = connect(target)?;
    let mut results = results::Results::open(carrier(target))?;
    let person = Person::default();
    let client = person.client().mode(mode).connect(Arc::clone(&transport));
    let (mut passed, mut failed) = (0, 0);
    for case in table.cases.iter().map(|case| case.antiphon.as_deref().unwrap_or(case)) {
        let played = tokio::time::timeout(PER_CASE, play(case, &client, &person)).await;
        let fault = match played {
            Ok(played) => played.err().map(|fault| fault.to_string()),
            Err(_) => Some(format!("no end after {PER_CASE:?}")),
        };
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
        results.add(client.protocol_version().as_str(), &case.id, fault.as_deref())?;
    }
    transport.close().await;
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// As `interop/table.py` names it; a server of HTTP+SSE is known by its path.
fn carrier(target: &[String]) -> &'static str {
    match target {
        [url] if url.ends_with("/sse") => "sse",
        [_] => "http",
        _ => "stdio",
    }
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
async fn play(case: &Case, client: &Client, person: &Person) -> Result<(), AnyError> {
    person.sit_down(case);
    let call = match case.kind.as_str() {
        "prompt" => Call::prompt(&case.name, &case.arguments)?,
        "resource" => Call::resource(&case.name),
        _ => Call::tool(&case.name, &case.arguments)?,
    };
    compare(case, client.call(call).await)?;
    if client.era() != Some(Era::Legacy) {
        return Err(format!("spoke {}", client.protocol_version()).into());
    }
    person.asked()?;
    Ok(person.told().await?)
}

fn compare(case: &Case, outcome: Result<Finished, CallError>) -> Result<(), AnyError> {
    match (&case.outcome, outcome) {
        (Outcome::Text(wanted), Ok(finished)) if !failed(&finished) && said(&finished) == wanted => Ok(()),
        (Outcome::ToolErrorEnds(wanted), Ok(finished))
            if failed(&finished) && said(&finished).ends_with(wanted) =>
        {
            Ok(())
        }
        (Outcome::Refused(wanted), Ok(finished)) if failed(&finished) && said(&finished).contains(wanted) => {
            Ok(())
        }
        (Outcome::Refused(wanted), Err(error))
            if error.server_error().is_some_and(|found| found.message.contains(wanted)) =>
        {
            Ok(())
        }
        (wanted, Ok(finished)) => Err(format!("said {:?}, wanted {wanted:?}", said(&finished)).into()),
        (_, Err(error)) => Err(error.into()),
    }
}

fn failed(finished: &Finished) -> bool {
    matches!(finished, Finished::Tool(result) if result.failed())
}

/// The first text of a result.
fn said(finished: &Finished) -> &str {
    let text = match finished {
        Finished::Tool(result) => result.first_text(),
        Finished::Prompt(result) => result.messages.first().and_then(|message| message.content.as_text()),
        Finished::Resource(result) => {
            result.contents.first().and_then(antiphon::wire::ResourceContents::as_text)
        }
    };
    text.unwrap_or_default()
}
