//! A server on tower-mcp: tools whose calls are tasks, and tools, a prompt and a resource that ask.
//!
//! `interop-tower-mcp-server (--listen ADDRESS | --stdio)`. With `--listen` it prints `listening on URL`.

mod asks;
mod tasks;

use std::{env, io::Write};
use tokio::net::TcpListener;
use tower_mcp::{BoxError, HttpTransport, McpRouter, StdioTransport};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let router = McpRouter::new().server_info("tower-mcp-peer", "1.0.0").with_tasks();
    let router = asks::add(tasks::add(router))?;
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stdio"] => Ok(StdioTransport::new(router).run().await?),
        ["--listen", address] => {
            let listener = TcpListener::bind(address).await?;
            writeln!(std::io::stdout(), "listening on http://{}/mcp", listener.local_addr()?)?;
            Ok(axum::serve(listener, HttpTransport::new(router).into_router_at("/mcp")).await?)
        }
        _ => Err("usage: interop-tower-mcp-server (--listen ADDRESS | --stdio)".into()),
    }
}
