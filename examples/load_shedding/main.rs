//! A computation that moves to another server on the way, because the first one is about to stop.
//!
//! Nothing of what was computed is computed again: it travels, sealed, through the client.
//!
//! Try it: `cargo run -p antiphon-examples --bin load_shedding`

#![allow(clippy::print_stdout, reason = "it shows what happens")]

use antiphon::client::{Client, transport::HttpTransport};
use antiphon_examples::{Fleet, Plan, Proxy, Result, serve_if_replica};
use serde_json::json;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<()> {
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(Plan { drain_at: Some(2), ..Plan::default() }).await?;
    let proxy = Proxy::start(Arc::clone(&fleet), |leg| println!("{leg}")).await?;
    let client = Client::builder("load-shedding", "1.0").connect(HttpTransport::new(proxy.url())?);
    let result = client.call_tool("load_shedding", json!({"portions": 5})).await?;
    println!("{}", result.first_text().unwrap_or_default());

    let done = fleet.done().await?;
    println!("portions: {}, computed: {}", done.portions.len(), done.portions.values().sum::<u32>());
    fleet.stop().await
}
