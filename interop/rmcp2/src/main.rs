//! rmcp as a peer of the revisions with a handshake: a server that asks, and a client. Both generations of rmcp build
//! this source.
//!
//! `serve (--stdio | --listen HOST:PORT [--stateless]) [--minimal]` runs the server. `../legacy/peers.json` lists its
//! calls. Over HTTP the server prints the line `listening on URL` on standard output. Without a session it can ask
//! nothing.
//!
//! `call TABLE (--http URL | --stdio COMMAND ARGUMENT ..)` plays a table of `../legacy`, or the cases of
//! `../examples.json` that need no fleet. It prints one line per case and `N passed, N failed` at the end.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the program prints its address and errors")]
#![cfg_attr(
    not(feature = "of-2026"),
    allow(clippy::useless_conversion, reason = "current rmcp converts a result into a response")
)]
#![allow(deprecated, reason = "current rmcp deprecates the types of the revisions with a handshake")]

mod asks;
mod drive;
mod error;
mod http;
mod offers;
#[path = "../../legacy/scripted_user.rs"]
mod scripted_user;
mod server;
mod table;
mod user_answers;

use error::AnyError;
use rmcp::{ServiceExt, transport::stdio};
use server::Peer;
use std::{env, process::ExitCode};

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
