//! Two server processes behind a proxy that gives each request to the next one, and an ordinary client in front.
//!
//! The replicas share a key and nothing else: no storage, no sessions, no stickiness. Each leg of a call lands on
//! another process, and the call completes; also when the process that asked the question is killed before the answer
//! comes.
//!
//! Try it: `cargo run -p antiphon-examples --bin two_replicas`

#![allow(clippy::print_stdout, reason = "it shows what happens")]

use antiphon::{
    client::{CallbackError, Client, FormAsk, transport::HttpTransport},
    wire::ElicitResult,
};
use antiphon_examples::{Fleet, Plan, Proxy, Result, serve_if_replica};
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<()> {
    // The replicas are this same program, started again.
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(Plan::default()).await?;
    fleet.told().iter().for_each(|replica| println!("{replica}"));
    let proxy = Proxy::start(Arc::clone(&fleet), |leg| println!("{leg}")).await?;

    let client = client(&proxy)?;
    call(&client, &proxy, "provision", json!({"name": "orders"})).await?;
    let resolve = json!({"workItemId": 4522, "fields": {"System.State": "Resolved"}});
    call(&client, &proxy, "update_work_item", resolve).await?;

    let client = client_that_kills(&proxy, &fleet)?;
    call(&client, &proxy, "provision", json!({"name": "invoices"})).await?;
    fleet.stop().await
}

async fn call(client: &Client, proxy: &Proxy, tool: &str, arguments: Value) -> Result<()> {
    proxy.new_call();
    let result = client.call_tool(tool, arguments).await?;
    println!("{}", result.first_text().unwrap_or_default());
    Ok(())
}

/// What a person would fill in.
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

/// Before it answers, it kills the process that asked.
fn client_that_kills(proxy: &Proxy, fleet: &Arc<Fleet>) -> Result<Client> {
    let transport = HttpTransport::new(proxy.url())?;
    let fleet = Arc::clone(fleet);
    let callback = move |ask: FormAsk| {
        let fleet = Arc::clone(&fleet);
        async move {
            let name = fleet.served_last();
            fleet.kill(&name).await.map_err(|error| CallbackError::new(error.to_string()))?;
            println!("killed: replica {name}");
            answer(&ask)
        }
    };
    Ok(Client::builder("two-replicas", "1.0").on_elicit_form(callback).connect(transport))
}
