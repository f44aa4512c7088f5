//! A payment outside of the model: the tool sends the person to a web page, and only that person can pay there.
//!
//! Try it: `cargo run -p antiphon-examples --bin pay_deposit`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::client::{Client, UrlAsk, transport::HttpTransport};
use antiphon_examples::{Fleet, FleetOptions, Proxy, Result, serve_if_replica, submit_form};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};

#[tokio::main]
async fn main() -> Result<()> {
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(FleetOptions::default()).await?;
    let proxy = Proxy::start(Arc::clone(&fleet), |leg| println!("{leg}")).await?;
    let shown = Arc::new(Mutex::new(String::new()));
    let opened = Arc::clone(&shown);
    // The user `ada` calls through a client that shows her the link.
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

    // Another user cannot pay with the link.
    let link = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for user in ["eve", "ada"] {
        println!("{user} opens the link, and pays: {}", submit_form(&link, user).await?);
    }
    proxy.new_call();
    let status = client.call_tool("deposit_status", booking).await?;
    println!("{}", status.first_text().unwrap_or_default());
    fleet.stop().await
}
