//! rmcp as a peer of the handshake revisions, as a server that asks and as a client. The same source is built with both
//! generations of rmcp.
//!
//! `serve (--stdio | --listen HOST:PORT [--stateless]) [--minimal]`: `../legacy/peers.json` says what each call does;
//! the line `listening on URL` on standard output says where. Without a session nothing can be asked.
//! `call TABLE (--http URL | --stdio COMMAND ARGUMENT ..)`: plays a table of `../legacy`, or those of `../examples.json`
//! that need no fleet; a line a case, `N passed, N failed` at the end.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it says where it listens, and what broke")]
#![cfg_attr(
    not(feature = "of-2026"),
    allow(clippy::useless_conversion, reason = "a result is a kind of response in the rmcp of today")
)]
#![allow(deprecated, reason = "what the handshake revisions have is deprecated in the rmcp of today")]

mod asks;
mod drive;
#[path = "../../legacy/held.rs"]
mod held;
mod http;
mod offers;
mod person;
mod server;
mod table;

use rmcp::{ServiceExt, transport::stdio};
use server::Peer;
use std::{env, error::Error, process::ExitCode};

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    let words: Vec<String> = env::args().skip(1).collect();
    if let Some(("call", rest)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return Ok(if drive::run(rest).await? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let flag = |name: &str| words.iter().any(|word| word == name);
    let after = |name: &str| words.iter().skip_while(|word| *word != name).nth(1);
    let peer = Peer::new(flag("--minimal"));
    match (words.first().map(String::as_str), after("--listen")) {
        (Some("serve"), Some(address)) => http::serve(peer, address, flag("--stateless")).await?,
        (Some("serve"), None) if flag("--stdio") => {
            peer.serve(stdio()).await?.waiting().await?;
        }
        _ => {
            return Err(
                "usage: call TABLE .. | serve (--stdio | --listen HOST:PORT [--stateless]) [--minimal]"
                    .into(),
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
