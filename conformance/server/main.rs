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
use std::{error::Error, io, sync::Arc};
use tokio::{net::TcpListener, signal, sync::Notify};

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
        return Ok(serve_stdio(server).with_graceful_shutdown(stopped).await?);
    }
    let listener = TcpListener::bind(&options.address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    serve_http(listener, server, HttpOptions::default()).with_graceful_shutdown(stopped).await?;
    Ok(())
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
