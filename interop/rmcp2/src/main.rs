//! rmcp as a peer of the handshake revisions, as a server that asks and as a client. The same source is built with both
//! generations of rmcp.
//!
//! `serve (--stdio | --listen HOST:PORT [--stateless]) [--minimal]`: `../legacy/peers.json` says what each call does;
//! the line `listening on URL` on standard output says where. Without a session nothing can be asked.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it says where it listens, and what broke")]
#![allow(deprecated, reason = "what the handshake revisions have is deprecated in the rmcp of today")]

mod asks;
mod http;
mod offers;
mod server;

use rmcp::{ServiceExt, transport::stdio};
use server::Peer;
use std::{env, error::Error};

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let words: Vec<String> = env::args().skip(1).collect();
    let flag = |name: &str| words.iter().any(|word| word == name);
    let after = |name: &str| words.iter().skip_while(|word| *word != name).nth(1);
    let peer = Peer::new(flag("--minimal"));
    match (words.first().map(String::as_str), after("--listen")) {
        (Some("serve"), Some(address)) => http::serve(peer, address, flag("--stateless")).await,
        (Some("serve"), None) if flag("--stdio") => {
            peer.serve(stdio()).await?.waiting().await?;
            Ok(())
        }
        _ => Err("usage: serve (--stdio | --listen HOST:PORT [--stateless]) [--minimal]".into()),
    }
}
