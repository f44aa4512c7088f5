//! The everything server: every tool, prompt and resource that the official conformance suite requires of a server.
//!
//! `conformance-server [HOST:PORT]` prints its URL as its only line of output. Port 0, the default, is any free port.
//! `conformance-server --stdio` serves on standard input and output. `--page-size N`, `--cache SECONDS` and `--more`
//! add features that the suite does not require; the clients of other SDKs are tested with them.
#![allow(clippy::print_stdout, reason = "the runner reads the URL")]

mod awaited_questions;
mod content;
mod extra;
mod headers;
mod list_changes;
mod notifications;
mod options;
mod prompts;
mod questions_by_hand;
mod resources;
mod samples;
mod tasks;

use antiphon::{
    serve::{
        http::{HttpOptions, serve_http},
        stdio::serve_stdio,
    },
    server::{BuildError, Server},
};
use options::Options;
use std::{error::Error, io, pin::pin, sync::Arc, time::Duration};
use tokio::{net::TcpListener, signal, sync::Notify};

/// The time limit for the last messages of a server on standard input and output.
const LAST_WORDS: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let options = Options::from_command_line()?;
    let end = Arc::new(Notify::new());
    let server = everything(&options, &end)?;
    let stopped = async move {
        tokio::select! {
            // Without a signal handler the signal ends the process.
            _ = signal::ctrl_c() => {}
            () = end.notified() => {}
        }
    };
    if options.stdio {
        return Ok(on_stdio(server, stopped).await?);
    }
    let listener = TcpListener::bind(&options.address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    serve_http(listener, server, HttpOptions::default()).with_graceful_shutdown(stopped).await?;
    Ok(())
}

/// Serves until the end of the input, or until `LAST_WORDS` after a stop. Subscriptions end first.
async fn on_stdio(server: Server, stopped: impl Future<Output = ()>) -> io::Result<()> {
    let mut serving = pin!(serve_stdio(server.clone()));
    tokio::select! {
        ended = &mut serving => return ended,
        () = stopped => server.drain(),
    }
    tokio::time::timeout(LAST_WORDS, serving).await.unwrap_or(Ok(()))
}

fn everything(options: &Options, end: &Arc<Notify>) -> Result<Server, BuildError> {
    // The first tool must be callable without arguments, because the suite probes headers with it.
    let builder = Server::builder("antiphon-conformance", env!("CARGO_PKG_VERSION"));
    let builder = content::add(builder);
    let builder = notifications::add(builder);
    let builder = headers::add(builder);
    let builder = list_changes::add(builder);
    let builder = questions_by_hand::add(builder);
    let builder = awaited_questions::add(builder);
    let builder = prompts::add(builder);
    let builder = resources::add(builder);
    let builder = tasks::add(builder);
    let builder = if options.extra { extra::add(builder, Arc::clone(end)) } else { builder };
    options.apply(builder).build()
}
