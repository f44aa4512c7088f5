//! The everything client: what the official conformance suite asks a client to do, scenario by scenario.
//!
//! It is never told which revision the suite plays: it finds out, as any client of ours does.
//!
//! `conformance-client URL`, with the scenario's name in `MCP_CONFORMANCE_SCENARIO` and what it needs to know in
//! `MCP_CONFORMANCE_CONTEXT`. Its last line of output is `done`, and only if everything it did went well: the suite
//! forgives some scenarios an exit status, the runner of this folder does not.
#![allow(clippy::print_stdout, reason = "the last line is what its caller waits for")]

mod asked;
mod calls;
mod headers;
mod schemas;

use antiphon::client::{Client, ClientBuilder, transport::HttpTransport};
use std::{env, error::Error, time::Duration};

/// Anything that ends a scenario early.
type AnyError = Box<dyn Error + Send + Sync>;

/// A scenario that has not ended by now never will: the suite would wait for the pipes of a client left behind.
const SCENARIO_TIME: Duration = Duration::from_secs(25);

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let url = env::args().nth(1).ok_or("name the server's URL")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO")?;
    tokio::time::timeout(SCENARIO_TIME, play(&scenario, &url)).await??;
    println!("done");
    Ok(())
}

async fn play(scenario: &str, url: &str) -> Result<(), AnyError> {
    match scenario {
        "initialize" => calls::handshake(&connect(plain(), url)?).await,
        "tools_call" => calls::add_numbers(&connect(plain(), url)?).await,
        "request-metadata" => calls::request_metadata(&connect(asked::by_everything(plain()), url)?).await,
        "http-standard-headers" => calls::standard_headers(&connect(plain(), url)?).await,
        "http-custom-headers" => headers::mirrored(&connect(plain(), url)?).await,
        "http-invalid-tool-headers" => headers::invalid(&connect(plain(), url)?).await,
        "sep-2322-client-request-state" => asked::rounds(&connect(asked::confirming(plain()), url)?).await,
        "elicitation-sep1034-client-defaults" => {
            asked::defaults(&connect(asked::leaving_defaults(plain()), url)?).await
        }
        "sse-retry" => calls::interrupted(&connect(plain(), url)?).await,
        "json-schema-ref-no-deref" => schemas::list_only(&connect(plain(), url)?).await,
        "json-schema-2020-12-preservation" => schemas::echo(&connect(plain(), url)?).await,
        unknown => Err(format!("no scenario named {unknown}").into()),
    }
}

fn plain() -> ClientBuilder {
    Client::builder("antiphon-conformance", env!("CARGO_PKG_VERSION"))
}

fn connect(client: ClientBuilder, url: &str) -> Result<Client, AnyError> {
    Ok(client.connect(HttpTransport::new(url)?))
}
