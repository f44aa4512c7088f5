//! The everything server: every tool, prompt and resource that the official conformance suite asks a server for.
//!
//! `conformance-server [HOST:PORT]` writes its URL as its only line of output; port 0, the default, is any free one.
//! `conformance-server --stdio` serves on standard input and output. `--page-size N`, `--cache SECONDS` and `--more` make
//! it more than the suite asks for: clients of other SDKs are tried with it.
#![allow(clippy::print_stdout, reason = "the URL is what its caller waits for")]

mod asking;
mod awaiting;
mod changing;
mod content;
mod headers;
mod more;
mod options;
mod prompts;
mod resources;
mod samples;
mod telling;

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

/// So long a server on standard input and output has for its last words.
const LAST_WORDS: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let options = Options::of_command_line()?;
    let end = Arc::new(Notify::new());
    let server = everything(&options, &end)?;
    let stopped = async {
        tokio::select! {
            // Without a signal handler the process just ends on the signal.
            _ = signal::ctrl_c() => {}
            () = end.notified() => {}
        }
    };
    if options.stdio {
        return Ok(on_stdio(server, stopped).await?);
    }
    let listener = TcpListener::bind(&options.address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    serve_http(listener, server, HttpOptions::default(), stopped).await?;
    Ok(())
}

/// Ends with its input, or some time after it was stopped: subscriptions end before it.
async fn on_stdio(server: Server, stopped: impl Future<Output = ()>) -> io::Result<()> {
    let mut serving = pin!(serve_stdio(server.clone()));
    tokio::select! {
        ended = &mut serving => return ended,
        () = stopped => server.drain(),
    }
    tokio::time::timeout(LAST_WORDS, serving).await.unwrap_or(Ok(()))
}

fn everything(options: &Options, end: &Arc<Notify>) -> Result<Server, BuildError> {
    // The first tool must be callable without arguments: the suite probes headers with it.
    let builder = Server::builder("antiphon-conformance", env!("CARGO_PKG_VERSION"));
    let builder = content::add(builder);
    let builder = telling::add(builder);
    let builder = headers::add(builder);
    let builder = changing::add(builder);
    let builder = asking::add(builder);
    let builder = awaiting::add(builder);
    let builder = prompts::add(builder);
    let builder = resources::add(builder);
    let builder = if options.more { more::add(builder, Arc::clone(end)) } else { builder };
    options.apply(builder).build()
}
