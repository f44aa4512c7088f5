//! Drives a foreign server with antiphon's client through everything that does not ask for input.
//!
//! `antiphon-interop-wide (URL | -- COMMAND ..)` prints one line per case and `N passed, N failed` at the end. With
//! `INTEROP_RESULTS` set, it also appends one line of JSON per case to that file. The server is `wide_server_for_ours`
//! of a peer. With `--tasks` before the server, the cases are those of tasks, and the server has the tools of `tasks.rs`;
//! with `--reported-tasks`, the server also reports the changes of its tasks.
#![allow(clippy::print_stdout, reason = "the program prints its results")]

mod calls;
mod case;
#[path = "../src/error.rs"]
mod error;
mod listening;
mod peer;
#[path = "../src/results.rs"]
mod results;
#[path = "../src/target.rs"]
mod target;
mod tasks;

use antiphon::wire::ProtocolVersion;
use error::AnyError;
use peer::Peer;
use std::{env, process::ExitCode, time::Duration};

/// Limit of one case.
const CASE_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    let mut target: Vec<String> = env::args().skip(1).collect();
    let cases = match target.first().map(String::as_str) {
        Some("--tasks") => tasks::CASES.to_vec(),
        Some("--reported-tasks") => [tasks::CASES, tasks::REPORTED].concat(),
        _ => [calls::CASES, listening::CASES].concat(),
    };
    target.retain(|word| !matches!(word.as_str(), "--tasks" | "--reported-tasks"));
    let peer = Peer::new(target)?;
    let mut results = results::Results::open(if peer.is_http() { "http" } else { "stdio" })?;
    for (name, run) in cases {
        let result = tokio::time::timeout(CASE_TIMEOUT, run(&peer)).await;
        let fault = match result {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(fault.to_string()),
            Err(_) => Some(format!("not finished after {CASE_TIMEOUT:?}")),
        };
        results.add(ProtocolVersion::V2026_07_28.as_str(), name, fault.as_deref())?;
    }
    peer.close().await;
    Ok(results.total())
}
