//! A server whose resource changes, and a client that subscribes to it and reads it again, in one process.
//!
//! Try it: `cargo run -p antiphon-examples --bin watch`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::client::{Client, events::SubscriptionEvent};
use antiphon::server::{Ctx, NoArguments, Resource, Server, Tool};
use antiphon::wire::{SubscriptionFilter, content::ResourceContents};
use antiphon::{Result, client::transport::memory, serve::stdio::serve_streams};
use std::sync::{Arc, atomic::AtomicU32, atomic::Ordering::Relaxed};

const VISITS: &str = "counter://visits";

/// Returns a server whose tool counts visits and reports progress.
fn server() -> Result<Server> {
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let visit = Tool::new("visit", move |ctx: &Ctx, _: NoArguments| {
        let visits = count.fetch_add(1, Relaxed) + 1;
        ctx.report_progress(f64::from(visits), Some(3.0), Some("counted"));
        // Every subscriber receives the change, on any connection.
        ctx.server().resource_updated(VISITS);
        async move { format!("You are visitor {visits}.") }
    });
    let visits = Resource::new(VISITS, "visits", move |_: &Ctx| {
        let text = counted.load(Relaxed).to_string();
        async move { ResourceContents::text(VISITS, text) }
    });
    Ok(Server::builder("visits", "1.0").tool(visit).resource(visits).resource_updates(true).build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (transport, input, output) = memory::duplex();
    tokio::spawn(serve_streams(input, output, server()?));
    let client = Client::builder("watch", "1.0")
        .on_progress(|event| println!("progress: {} of {}", event.progress, event.total.unwrap_or_default()))
        .connect(transport);

    let mut changes = client.listen(SubscriptionFilter::new().resource(VISITS));
    while let Some(change) = changes.next().await {
        if let SubscriptionEvent::ResourceUpdated { uri } = change? {
            let read = client.read_resource(uri).await?;
            println!("read: {}", read.first_text().unwrap_or("nothing"));
            if read.first_text() == Some("3") {
                break;
            }
        }
        // The next visit begins when the subscription is active.
        println!("{}", client.call_tool("visit", ()).await?.first_text().unwrap_or_default());
    }
    Ok(())
}
