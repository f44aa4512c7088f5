//! A charge that happens once, although an impatient client sends each request of the call twice.
//!
//! For the same request the step runs again with the same idempotency key, and the payment provider charges once per
//! key.
//!
//! Try it: `cargo run -p antiphon-examples --bin charge_once`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::{
    client::{Call, CallProgress, Client, PendingCall, transport::HttpTransport},
    wire::AskSupport,
};
use antiphon_examples::{Fleet, FleetOptions, Proxy, Result, serve_if_replica};
use serde_json::json;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<()> {
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(FleetOptions::default()).await?;
    let proxy = Proxy::start(Arc::clone(&fleet), |leg| println!("{leg}")).await?;
    let client = Client::builder("charge-once", "1.0")
        .declare(AskSupport::ELICITATION)
        .connect(HttpTransport::new(proxy.url())?);
    let mut step = client.begin(Call::tool("charge_once", json!({"amount": 20}))?).await?;
    let finished = loop {
        let mut pending = match step {
            CallProgress::Done(finished) => break finished,
            CallProgress::Pending(pending) => pending,
            _ => return Err("the call continues in a way that this example does not support".into()),
        };
        answer(&mut pending)?;
        // The first response is ignored.
        let _ = client.resume(pending.clone()).await?;
        step = client.resume(pending).await?;
    };
    println!(
        "{}",
        finished.into_tool().and_then(|result| result.first_text().map(str::to_owned)).unwrap_or_default()
    );

    let effects = fleet.effects().await?;
    for requests in effects.charges.values() {
        println!("one idempotency key, {requests} requests, one charge");
    }
    fleet.stop().await
}

/// Answers every question as a person would.
fn answer(pending: &mut PendingCall) -> Result<()> {
    let keys = pending.missing();
    for key in keys {
        let content = match key.as_str() {
            "confirm" => json!({"ok": true}),
            _ => json!({"email": "ada@example.com"}),
        };
        pending.accept(&key, &content)?;
    }
    Ok(())
}
