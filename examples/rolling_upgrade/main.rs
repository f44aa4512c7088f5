//! A call that begins with the old build and ends with the new one.
//!
//! Both builds ask for two logins, of which the first is the same. The answer to the common question is asked for once.
//!
//! Try it: `cargo run -p antiphon-examples --bin rolling_upgrade`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::client::{CallbackError, Client, FormAsk, transport::HttpTransport};
use antiphon_demo::Build;
use antiphon_examples::{Fleet, FleetOptions, Proxy, Result, serve_if_replica};
use serde_json::json;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<()> {
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(FleetOptions { build: Build::Old, ..FleetOptions::default() }).await?;
    let proxy = Proxy::start(Arc::clone(&fleet), |leg| println!("{leg}")).await?;
    let upgraded = Arc::clone(&fleet);
    let client = Client::builder("rolling-upgrade", "1.0")
        .one_at_a_time(true)
        .on_elicit_form(move |ask: FormAsk| {
            let fleet = Arc::clone(&upgraded);
            async move {
                println!("asked: {}", ask.message);
                // The new build is deployed while the person answers.
                if ask.context.key == "google_login" {
                    let deployed = fleet.deploy(Build::New).await;
                    deployed.map_err(|error| CallbackError::new(error.to_string()))?;
                    println!("deployed: the new build");
                }
                Ok(ask.accept(json!({"name": "octocat"}))?)
            }
        })
        .connect(HttpTransport::new(proxy.url())?);
    let result = client.call_tool("rolling_upgrade", ()).await?;
    println!("{}", result.first_text().unwrap_or_default());
    fleet.stop().await
}
