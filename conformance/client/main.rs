//! The everything client: the scenarios of the official conformance suite for clients.
//!
//! The client is not configured for a revision, but detects the server's revision as every client of antiphon does.
//!
//! Usage: `conformance-client URL`, with the name of the scenario in `MCP_CONFORMANCE_SCENARIO` and its data in
//! `MCP_CONFORMANCE_CONTEXT`. The last line of output is `done` if the scenario succeeded. The runner requires the
//! line, because the suite ignores the exit status of some scenarios.
#![allow(clippy::print_stdout, reason = "the runner reads the last line")]

mod auth;
mod calls;
mod error;
mod headers;
mod questions;
mod schemas;
mod tasks;

use antiphon::client::{Client, ClientBuilder, transport::HttpTransport};
use error::AnyError;
use std::{env, time::Duration};

/// The time limit of a scenario. Without it the suite would wait for the pipes of a client that does not end.
const SCENARIO_TIME: Duration = Duration::from_secs(25);

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let url = env::args().nth(1).ok_or("name the server's URL")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO")?;
    tokio::time::timeout(SCENARIO_TIME, run_scenario(&scenario, &url)).await??;
    println!("done");
    Ok(())
}

async fn run_scenario(scenario: &str, url: &str) -> Result<(), AnyError> {
    match scenario {
        "initialize" => calls::handshake(&connect(plain(), url)?).await,
        "tools_call" => calls::add_numbers(&connect(plain(), url)?).await,
        "request-metadata" => {
            calls::request_metadata(&connect(questions::with_all_callbacks(plain()), url)?).await
        }
        "http-standard-headers" => calls::standard_headers(&connect(plain(), url)?).await,
        "http-custom-headers" => headers::mirrored(&connect(plain(), url)?).await,
        "http-invalid-tool-headers" => headers::invalid(&connect(plain(), url)?).await,
        "sep-2322-client-request-state" => {
            questions::rounds(&connect(questions::confirming_forms(plain()), url)?).await
        }
        "elicitation-sep1034-client-defaults" => {
            questions::defaults(&connect(questions::accepting_defaults(plain()), url)?).await
        }
        "sse-retry" => calls::interrupted(&connect(plain(), url)?).await,
        "json-schema-ref-no-deref" => schemas::list_only(&connect(plain(), url)?).await,
        "json-schema-2020-12-preservation" => schemas::echo(&connect(plain(), url)?).await,
        "tasks-client-lifecycle" => tasks::lifecycle(&connect(plain(), url)?).await,
        auth if auth.starts_with("auth/") => {
            auth::run(auth, plain().connect(auth::transport(auth, url)?)).await
        }
        unknown => Err(format!("no scenario named {unknown}").into()),
    }
}

fn plain() -> ClientBuilder {
    Client::builder("antiphon-conformance", env!("CARGO_PKG_VERSION"))
}

fn connect(client: ClientBuilder, url: &str) -> Result<Client, AnyError> {
    Ok(client.connect(HttpTransport::new(url)?))
}
