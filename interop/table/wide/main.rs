//! Drives a foreign server with antiphon's client: what is not asking.
//!
//! `antiphon-interop-wide (URL | -- COMMAND ..)`: one line a case, `N passed, N failed` at the end. With
//! `INTEROP_RESULTS` set, also a line of JSON a case in that file. The server is `wide_server_for_ours` of a peer.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

mod calls;
mod listening;
mod peer;
#[path = "../src/results.rs"]
mod results;
#[path = "../src/target.rs"]
mod target;

use antiphon::wire::ProtocolVersion;
use peer::Peer;
use std::{env, error::Error, future::Future, pin::Pin, process::ExitCode, time::Duration};

type AnyError = Box<dyn Error + Send + Sync>;
type Playing<'a> = Pin<Box<dyn Future<Output = Result<(), AnyError>> + Send + 'a>>;
/// A case: its name, and what it does.
type Case = (&'static str, for<'a> fn(&'a Peer) -> Playing<'a>);

/// What has not ended by then never will.
const PER_CASE: Duration = Duration::from_secs(30);
/// What must come comes by then.
const SOON: Duration = Duration::from_secs(10);
const A_MOMENT: Duration = Duration::from_millis(50);

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    let target: Vec<String> = env::args().skip(1).collect();
    let peer = Peer::new(target)?;
    let mut results = results::Results::open(if peer.is_http() { "http" } else { "stdio" })?;
    for (name, play) in calls::CASES.iter().chain(listening::CASES) {
        let played = tokio::time::timeout(PER_CASE, play(&peer)).await;
        let fault = match played {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(fault.to_string()),
            Err(_) => Some(format!("no end after {PER_CASE:?}")),
        };
        results.add(ProtocolVersion::V2026_07_28.as_str(), name, fault.as_deref())?;
    }
    peer.close().await;
    Ok(results.total())
}

/// # Errors
/// Both, if they differ.
fn same<T: PartialEq + std::fmt::Debug>(found: T, wanted: T) -> Result<(), AnyError> {
    if found == wanted { Ok(()) } else { Err(format!("found {found:?}, wanted {wanted:?}").into()) }
}
