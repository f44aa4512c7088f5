//! A payment that does not pass through the model: the person is sent to a page, and only that person can pay there.
//!
//! Try it: `cargo run -p antiphon-examples --bin pay_deposit`

#![allow(clippy::print_stdout, reason = "it shows what happens")]

use antiphon::client::{Client, UrlAsk, transport::HttpTransport};
use antiphon_examples::{Fleet, Plan, Proxy, Result, serve_if_replica, visit};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};

#[tokio::main]
async fn main() -> Result<()> {
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(Plan::default()).await?;
    let proxy = Proxy::start(Arc::clone(&fleet), |leg| println!("{leg}")).await?;
    let shown = Arc::new(Mutex::new(String::new()));
    let opened = Arc::clone(&shown);
    // Ada calls, through a client that shows her the link.
    let client = Client::builder("pay-deposit", "1.0")
        .on_elicit_url(move |ask: UrlAsk| {
            println!("asked: {}", ask.message);
            opened.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&ask.url);
            async move { Ok(ask.consent()) }
        })
        .connect(HttpTransport::builder(proxy.url()).bearer("demo-ada").build()?);
    let booking = json!({"booking_id": 7});
    for tool in ["pay_deposit", "deposit_status"] {
        proxy.new_call();
        println!("{}", client.call_tool(tool, booking.clone()).await?.first_text().unwrap_or_default());
    }

    // The link alone is worth nothing to Eve.
    let link = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for user in ["eve", "ada"] {
        println!("{user} opens the link, and pays: {}", visit(&link, user).await?);
    }
    proxy.new_call();
    let status = client.call_tool("deposit_status", booking).await?;
    println!("{}", status.first_text().unwrap_or_default());
    fleet.stop().await
}
