//! The server that is measured: one tool that answers at once, one that waits, and the means to tell all.

use crate::error::Result;
use antiphon::{
    serve::http::{HttpOptions, serve_http},
    server::{Ctx, Limits, NoArguments, Server, Tool},
};
use serde_json::{Map, Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::{net::TcpListener, sync::watch};

/// Prints its address on the first line, and serves until the process ends.
pub(crate) async fn serve() -> Result<()> {
    let (go, going) = watch::channel(false);
    let (go, waiting) = (Arc::new(go), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&waiting);
    let number = json!({"type": "object", "properties": {"number": {"type": "integer"}}});
    let tool = |name: &str| (name.to_owned(), number.clone());
    let (name, schema) = tool("wait");
    let wait = Tool::with_schema(name, schema, move |_: &Ctx, _: Map<String, Value>| {
        let (mut going, counted) = (going.clone(), Arc::clone(&counted));
        async move {
            counted.fetch_add(1, Ordering::Relaxed);
            drop(going.wait_for(|going| *going).await);
            "done"
        }
    });
    let (name, schema) = tool("all_wait");
    let all_wait = Tool::with_schema(name, schema, move |_: &Ctx, of: Map<String, Value>| {
        let waiting = Arc::clone(&waiting);
        async move {
            let all = of.get("number").and_then(Value::as_u64).unwrap_or_default();
            while (waiting.load(Ordering::Relaxed) as u64) < all {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            "all wait"
        }
    });
    let (name, schema) = tool("go_on");
    let go_on = Tool::with_schema(name, schema, move |_: &Ctx, _: Map<String, Value>| {
        go.send_replace(true);
        async { "all go on" }
    });
    let (name, schema) = tool("change");
    let change = Tool::with_schema(name, schema, async |ctx: &Ctx, _: Map<String, Value>| {
        let late = Tool::new("late", async |_: &Ctx, _: NoArguments| "late");
        ctx.server().add_tool(late).map(|()| "changed").map_err(|error| error.to_string())
    });
    let (name, schema) = tool("echo");
    let echo = Tool::with_schema(name, schema, async |_: &Ctx, _: Map<String, Value>| "echo");
    let limits = Limits::default().subscriptions(100_000);
    let server = [wait, all_wait, go_on, change, echo]
        .into_iter()
        .fold(Server::builder("bench", "1.0"), antiphon::server::ServerBuilder::tool)
        .list_changed(true)
        .limits(limits)
        .build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    // Idle connections must stay.
    let options =
        HttpOptions::default().connections(100_000).header_timeout(std::time::Duration::from_secs(3600));
    serve_http(listener, server, options).await?;
    Ok(())
}
