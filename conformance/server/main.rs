//! The everything server: every tool, prompt and resource that the official conformance suite asks a server for.
//!
//! `conformance-server [HOST:PORT]` writes its URL as its only line of output; port 0, the default, is any free one.
#![allow(clippy::print_stdout, reason = "the URL is what its caller waits for")]

mod asking;
mod changing;
mod content;
mod headers;
mod prompts;
mod resources;
mod samples;
mod telling;

use antiphon::{
    server::{BuildError, Server},
    transport::http::{HttpOptions, serve_http},
};
use std::{env, error::Error};
use tokio::{net::TcpListener, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let stopped = async {
        // Without a signal handler the process just ends on the signal.
        let _ = signal::ctrl_c().await;
    };
    serve_http(listener, everything()?, HttpOptions::default(), stopped).await?;
    Ok(())
}

fn everything() -> Result<Server, BuildError> {
    // The first tool must be callable without arguments: the suite probes headers with it.
    let builder = Server::builder("antiphon-conformance", env!("CARGO_PKG_VERSION"));
    let builder = content::add(builder);
    let builder = telling::add(builder);
    let builder = headers::add(builder);
    let builder = changing::add(builder);
    let builder = asking::add(builder);
    let builder = prompts::add(builder);
    let builder = resources::add(builder);
    builder.build()
}
