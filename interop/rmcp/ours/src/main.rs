//! A server on antiphon with the questions that the demo does not ask: URLs, sampling, roots, several in one round; and
//! rounds with state only.
//!
//! `interop-rmcp-ours KEY-FILE (HOST:PORT | --stdio)` prints the line `listening on URL` on standard error.
#![allow(clippy::print_stderr, reason = "the program prints its address")]

mod forms;
mod live;
mod rounds;
mod single;

use antiphon::{
    seal::KeyRing,
    serve::{
        http::{HttpOptions, serve_http},
        stdio::serve_stdio,
    },
    server::Server,
};
use std::{env, error::Error, fs};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut words = env::args().skip(1);
    let (Some(keys), Some(listen)) = (words.next(), words.next()) else {
        return Err("usage: interop-rmcp-ours KEY-FILE (HOST:PORT | --stdio)".into());
    };
    let server = server(KeyRing::parse_file(&fs::read_to_string(keys)?)?)?;
    live::SERVER.get_or_init(|| server.clone());
    if listen == "--stdio" {
        return Ok(serve_stdio(server).await?);
    }
    let listener = TcpListener::bind(&listen).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    // The process that starts the server also ends it.
    Ok(serve_http(listener, server, HttpOptions::default()).await?)
}

fn server(keys: KeyRing) -> Result<Server, antiphon::server::BuildError> {
    Server::builder("antiphon-asks", env!("CARGO_PKG_VERSION"))
        .keys(keys)
        .tool(single::pay())
        .tool(single::summarize())
        .tool(single::list_my_roots())
        .tool(single::structured())
        .tool(single::fail())
        .tool(forms::survey())
        .tool(rounds::gather())
        .tool(rounds::ladder())
        .tool(rounds::shed())
        .tool(rounds::insist())
        .tool(live::count())
        .tool(live::count_then_ask())
        .tool(live::chat())
        .tool(live::turn())
        .tool(live::hang())
        .tool(live::dropped())
        .prompt(single::drafted())
        .resource(single::tree())
        .template(live::pages())
        .logging(true)
        .list_changed(true)
        .resource_updates(true)
        .page_size(4)
        .build()
}
