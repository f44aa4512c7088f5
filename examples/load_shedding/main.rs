//! A computation that moves to another server, because the first server is about to stop.
//!
//! The results so far travel through the client in the sealed state, so nothing is computed twice.
//!
//! Try it: `cargo run -p antiphon-examples --bin load_shedding`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::client::{Client, transport::HttpTransport};
use antiphon_examples::{Fleet, FleetOptions, Proxy, Result, serve_if_replica};
use serde_json::json;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<()> {
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(FleetOptions { drain_at: Some(2), ..FleetOptions::default() }).await?;
    let proxy = Proxy::start(Arc::clone(&fleet), |leg| println!("{leg}")).await?;
    let client = Client::builder("load-shedding", "1.0").connect(HttpTransport::new(proxy.url())?);
    let result = client.call_tool("load_shedding", json!({"portions": 5})).await?;
    println!("{}", result.first_text().unwrap_or_default());

    let effects = fleet.effects().await?;
    println!("portions: {}, computed: {}", effects.portions.len(), effects.portions.values().sum::<u32>());
    fleet.stop().await
}
