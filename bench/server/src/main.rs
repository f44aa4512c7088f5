//! The measured tools on antiphon, over HTTP at `/mcp`.
//!
//! `antiphon-server --listen ADDR [--tools N] [--log]`: with `--tools`, N more tools are listed and may be called; with `--log`, the log of
//! level INFO, which has one line for each call, is written to nowhere.

mod tools;

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use antiphon::serve::http::{HttpOptions, serve_http};
use antiphon::server::Server;
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn Error>> {
    let (listen, more, logs) = arguments()?;
    if logs {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
            .with_writer(io::sink)
            .init();
    }
    let server =
        tools::all(more).fold(Server::builder("bench", "1.0"), |all, tool| all.tool(tool)).build()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        serve_http(listener, server, HttpOptions::default()).await
    })?;
    Ok(())
}

fn arguments() -> Result<(SocketAddr, usize, bool), Box<dyn Error>> {
    use lexopt::prelude::*;

    let (mut listen, mut tools, mut logs) = (None, 0, false);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => listen = Some(parser.value()?.parse()?),
            Long("tools") => tools = parser.value()?.parse()?,
            Long("log") => logs = true,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok((listen.ok_or("--listen ADDR is missing")?, tools, logs))
}
