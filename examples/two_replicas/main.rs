//! Two server processes behind a proxy that gives each request to the next one, and an ordinary client.
//!
//! The replicas share a key and nothing else: no storage, no sessions, no sticky routing. Each leg of a call runs on
//! another process. The call completes even if the process that asked the question is killed before the answer comes.
//!
//! Try it: `cargo run -p antiphon-examples --bin two_replicas`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::{
    client::{CallbackError, Client, FormAsk, transport::HttpTransport},
    wire::ElicitResult,
};
use antiphon_examples::{Fleet, FleetOptions, Proxy, Result, serve_if_replica};
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<()> {
    // A replica is this program in another process.
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(FleetOptions::default()).await?;
    fleet.describe_replicas().iter().for_each(|replica| println!("{replica}"));
    let proxy = Proxy::start(Arc::clone(&fleet), |leg| println!("{leg}")).await?;

    let client = client(&proxy)?;
    call(&client, &proxy, "provision", json!({"name": "orders"})).await?;
    let resolve = json!({"workItemId": 4522, "fields": {"System.State": "Resolved"}});
    call(&client, &proxy, "update_work_item", resolve).await?;

    let client = killing_client(&proxy, &fleet)?;
    call(&client, &proxy, "provision", json!({"name": "invoices"})).await?;
    fleet.stop().await
}

async fn call(client: &Client, proxy: &Proxy, tool: &str, arguments: Value) -> Result<()> {
    proxy.new_call();
    let result = client.call_tool(tool, arguments).await?;
    println!("{}", result.first_text().unwrap_or_default());
    Ok(())
}

/// Answers a question as a person would.
fn answer(ask: &FormAsk) -> Result<ElicitResult, CallbackError> {
    Ok(ask.accept(match ask.context.key.as_str() {
        "region" => json!({"region": "eu-west-1"}),
        "resolution" => json!({"resolution": "Duplicate"}),
        "duplicate_of" => json!({"duplicateOfId": 4301}),
        other => return Err(CallbackError::new(format!("no answer is prepared for `{other}`"))),
    })?)
}

fn client(proxy: &Proxy) -> Result<Client> {
    let transport = HttpTransport::new(proxy.url())?;
    Ok(Client::builder("two-replicas", "1.0")
        .on_elicit_form(|ask| async move { answer(&ask) })
        .connect(transport))
}

/// Returns a client that kills the asking process before it answers.
fn killing_client(proxy: &Proxy, fleet: &Arc<Fleet>) -> Result<Client> {
    let transport = HttpTransport::new(proxy.url())?;
    let fleet = Arc::clone(fleet);
    let callback = move |ask: FormAsk| {
        let fleet = Arc::clone(&fleet);
        async move {
            let name = fleet.latest_replica();
            fleet.kill(&name).await.map_err(|error| CallbackError::new(error.to_string()))?;
            println!("killed: replica {name}");
            answer(&ask)
        }
    };
    Ok(Client::builder("two-replicas", "1.0").on_elicit_form(callback).connect(transport))
}
