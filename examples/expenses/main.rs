//! Expenses and their payment: a form with choices of the database, a payment that happens once, a transaction, a task, a prompt that
//! asks, access tokens, a tool that not all see, headers, an audit log, a rate limit and spans, for clients of 2026-07-28 and of 2025-11-25.
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
    serve::http::{HttpOptions, auth::Issuer, auth::ResourceServer, serve_http},
    server::layers::{AuditLog, RateLimit},
    store::{SqliteOptions, SqliteStore},
    wire::ElicitResult,
};
use book::{Bank, Book};
use governor::Quota;
use serde_json::json;
use std::{collections::BTreeSet, env, fs::File, net::SocketAddr, num::NonZeroU32, path::Path, sync::mpsc};
use tokio::net::TcpListener;
use tracing_subscriber::{filter::filter_fn, layer::SubscriberExt as _, util::SubscriberInitExt as _};

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
    let transport = HttpTransport::builder(format!("http://{address}/mcp"))
        .bearer(token)
        .header("x-app", "phone")
        .build()?;
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
    let (seen, spans) = mpsc::channel();
    // An exporter, as in the example `traced`, sends the spans to a collector.
    let notes = filter_fn(move |found| !found.is_span() || seen.send(found.name()).is_ok());
    tracing_subscriber::registry().with(notes).init();
    let audited = file.with_extension("log");
    let audit = AuditLog::new(File::create(&audited)?);
    // A task that is polled, and the later legs of a call, do not count.
    let limit = RateLimit::per_caller(Quota::per_minute(NonZeroU32::MIN.saturating_add(29)));
    let server = tools::server(store, book, bank.clone()).layer(audit.clone()).layer(limit).build()?;
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
        // The token of `bob` lacks the scope of a tool.
        let bob = client(address, include_str!("bob.jwt"), mode)?;
        println!("  bob sees {} of 4 tools", bob.list_tools().await?.len());
    }
    audit.flush().await?;
    let lines = std::fs::read_to_string(audited)?;
    println!("audited: {} lines of reads", lines.matches("resources/read").count());
    println!(
        "spans: {:?}",
        spans.try_iter().filter(|name| matches!(*name, "request" | "step")).collect::<BTreeSet<_>>()
    );
    println!("payments: {}", bank.payments());
    Ok(())
}
