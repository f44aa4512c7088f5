//! A charge that happens once, whatever the network does: an impatient client sends each request of the call twice.
//!
//! The step runs again where the same request comes again, under the same idempotency key, and the payment provider
//! charges once for each key.
//!
//! Try it: `cargo run -p antiphon-examples --bin charge_once`

#![allow(clippy::print_stdout, reason = "it shows what happens")]

use antiphon::{
    client::{Call, CallProgress, Client, PendingCall, transport::HttpTransport},
    wire::AskSupport,
};
use antiphon_examples::{Fleet, Plan, Proxy, Result, serve_if_replica};
use serde_json::json;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<()> {
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(Plan::default()).await?;
    let proxy = Proxy::start(Arc::clone(&fleet), |leg| println!("{leg}")).await?;
    let client = Client::builder("charge-once", "1.0")
        .declare(AskSupport::ELICITATION)
        .connect(HttpTransport::new(proxy.url())?);
    let mut step = client.begin(Call::tool("charge_once", json!({"amount": 20}))?).await?;
    let finished = loop {
        let mut pending = match step {
            CallProgress::Done(finished) => break finished,
            CallProgress::Pending(pending) => pending,
            _ => return Err("the call goes on in a way that this example does not know".into()),
        };
        answer(&mut pending)?;
        // Nobody takes the first response.
        let _ = client.resume(pending.clone()).await?;
        step = client.resume(pending).await?;
    };
    println!(
        "{}",
        finished.into_tool().and_then(|result| result.first_text().map(str::to_owned)).unwrap_or_default()
    );

    let done = fleet.done().await?;
    for requests in done.charges.values() {
        println!("one idempotency key, {requests} requests, one charge");
    }
    fleet.stop().await
}

/// What a person would fill in.
fn answer(pending: &mut PendingCall) -> Result<()> {
    let keys: Vec<String> = pending.missing().into_iter().map(str::to_owned).collect();
    for key in keys {
        let content = match key.as_str() {
            "confirm" => json!({"ok": true}),
            _ => json!({"email": "ada@example.com"}),
        };
        pending.accept(&key, &content)?;
    }
    Ok(())
}
