//! A server on rmcp that asks in every way, for antiphon's client to call.
//!
//! `interop-rmcp-server --stdio`
//! `interop-rmcp-server (--listen | --listen-json) HOST:PORT`: replies are event streams with `--listen`, rmcp's
//! default, and JSON with `--listen-json`. The server prints the line `listening on URL` on standard output.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the program prints its address and errors")]

mod asks;
mod forms;
mod hand;
mod handler;
mod macros;
mod tables;
mod tasks;

use handler::Peer;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ServiceExt,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio,
        streamable_http_server::session::never::NeverSessionManager,
    },
};
use std::{env, error::Error, sync::Arc};
use tokio::net::TcpListener;

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let words: Vec<String> = env::args().skip(1).collect();
    let peer = Peer::new()?;
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stdio"] => {
            peer.serve(stdio()).await?.waiting().await?;
            Ok(())
        }
        ["--listen", address] => serve_http(peer, address, false).await,
        ["--listen-json", address] => serve_http(peer, address, true).await,
        _ => {
            Err("usage: interop-rmcp-server (--stdio | --listen HOST:PORT | --listen-json HOST:PORT)".into())
        }
    }
}

async fn serve_http(peer: Peer, address: &str, json: bool) -> Result<(), AnyError> {
    let config =
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(json);
    let service = StreamableHttpService::new(
        move || Ok(peer.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            if let Err(fault) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
                eprintln!("connection: {fault}");
            }
        });
    }
}
