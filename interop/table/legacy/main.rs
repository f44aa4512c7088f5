//! Drives a foreign server with antiphon's client on a session of an earlier revision, every callback attached.
//!
//! `antiphon-interop-legacy TABLE (auto | legacy) (URL | -- COMMAND ..)`: one line a case, `N passed, N failed` at the end.
//! `auto` is for servers that know no later revision: the client is to find that out. With `INTEROP_RESULTS` set, also a
//! line of JSON a case in that file. The server is `legacy_server` of a peer, the table `interop/legacy/peers.json`.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

#[path = "../src/finished.rs"]
mod finished;
#[path = "../../legacy/held.rs"]
mod held;
mod person;
#[path = "../src/results.rs"]
mod results;
mod table;
#[path = "../src/target.rs"]
mod target;

use antiphon::client::{Call, Client, ClientError, Era, Finished, Mode};
use finished::{failed, said};
use held::Person;
use std::{env, error::Error, fs, process::ExitCode, sync::Arc, time::Duration};
use table::{Case, Outcome, Table};
use target::connect;

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
    for case in table.cases.iter().map(|case| case.antiphon.as_deref().unwrap_or(case)) {
        let played = tokio::time::timeout(PER_CASE, play(case, &client, &person)).await;
        let fault = match played {
            Ok(played) => played.err().map(|fault| fault.to_string()),
            Err(_) => Some(format!("no end after {PER_CASE:?}")),
        };
        results.add(client.protocol_version().as_str(), &case.id, fault.as_deref())?;
    }
    transport.close().await;
    Ok(results.total())
}

/// As `interop/table.py` names it; a server of HTTP+SSE is known by its path.
fn carrier(target: &[String]) -> &'static str {
    match target {
        [url] if url.ends_with("/sse") => "sse",
        [_] => "http",
        _ => "stdio",
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

fn compare(case: &Case, outcome: Result<Finished, ClientError>) -> Result<(), AnyError> {
    match (&case.outcome, outcome) {
        (Outcome::Text(wanted), Ok(finished)) if !failed(&finished) && said(&finished) == Some(wanted) => {
            Ok(())
        }
        (Outcome::ToolErrorEnds(wanted), Ok(finished))
            if failed(&finished) && said(&finished).is_some_and(|said| said.ends_with(wanted)) =>
        {
            Ok(())
        }
        (Outcome::Refused(wanted), Ok(finished))
            if failed(&finished) && said(&finished).is_some_and(|said| said.contains(wanted)) =>
        {
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
