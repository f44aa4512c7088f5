//! Expenses and their payment: a form with choices of the database, a payment that happens once, a transaction, a task, a prompt that
//! asks, and access tokens, for clients of 2026-07-28 and of 2025-11-25.
//!
//! Try it: `cargo run -p antiphon-examples --bin expenses`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

mod book;
#[cfg(test)]
mod tests;
mod tools;

use antiphon::{
    Result,
    client::{CallbackError, Client, FormAsk, Mode, transport::HttpTransport},
    serve::http::{
        HttpOptions,
        auth::{Issuer, ResourceServer},
        serve_http,
    },
    store::{SqliteOptions, SqliteStore},
    wire::ElicitResult,
};
use book::{Bank, Book};
use serde_json::json;
use std::{env, net::SocketAddr, path::Path};
use tokio::net::TcpListener;

/// Returns the resource server. With a real issuer the keys are fetched; this example contains them.
fn auth() -> Result<ResourceServer> {
    let issuer = Issuer::new("https://issuer.example.com").jwks(include_str!("jwks.json"));
    let resource = ResourceServer::builder("https://expenses.example.com/mcp").issuer(issuer);
    Ok(resource.required_scopes(["expenses"]).build()?)
}

/// Answers the questions of the tools, as a person would.
async fn answer(ask: FormAsk) -> Result<ElicitResult, CallbackError> {
    println!("  asked: {}", ask.message);
    // The form has the choices of the database; the other questions are yes or no.
    let is_expense = ask.schema.fields().iter().any(|field| field.name == "project");
    let answer = if is_expense { json!({"project": "gemini", "cents": 300}) } else { json!({"value": true}) };
    Ok(ask.accept(answer)?)
}

fn client(address: SocketAddr, token: &str, mode: Mode) -> Result<Client> {
    let transport = HttpTransport::builder(format!("http://{address}/mcp")).bearer(token).build()?;
    Ok(Client::builder("expenses-app", "1.0").mode(mode).on_elicit_form(answer).connect(transport))
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = env::temp_dir().join(format!("antiphon-expenses-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let shown = show(&folder.join("expenses.db")).await;
    std::fs::remove_dir_all(&folder)?;
    shown
}

async fn show(file: &Path) -> Result<()> {
    let store = SqliteStore::open(file, SqliteOptions::default()).await?;
    let (book, bank) = (Book::open(file)?, Bank::default());
    let server = tools::server(store, book, bank.clone()).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let options = HttpOptions::default().authorize(auth()?);
    tokio::spawn(serve_http(listener, server, options).into_future());

    for (id, mode) in [(1, Mode::Auto), (2, Mode::Legacy)] {
        println!("a client of {}:", if id == 1 { "2026-07-28" } else { "2025-11-25" });
        let ada = client(address, include_str!("ada.jwt"), mode.clone())?;
        let pay = json!({"id": id});
        // The second payment of an expense is refused.
        let calls = [
            ("file_expense", json!({})),
            ("reimburse", pay.clone()),
            ("reimburse", pay),
            ("report", json!({})),
        ];
        for (tool, arguments) in calls {
            println!("  {}", ada.call_tool(tool, arguments).await?.first_text().unwrap_or_default());
        }
        let mine = ada.read_resource("expenses://mine").await?;
        println!("  expenses of ada: {}", mine.first_text().unwrap_or_default());
        ada.close().await;
        // The token of `bob` lacks the scope of this tool.
        let bob = client(address, include_str!("bob.jwt"), mode)?;
        if let Err(error) = bob.call_tool("reimburse", json!({"id": id})).await {
            println!("  bob: status {}", error.http_status().unwrap_or_default());
        }
    }
    println!("payments: {}", bank.payments());
    Ok(())
}
