//! An extension with settings on both sides, a request and a notification, over HTTP: `extension.rs` has it as a crate would.
//!
//! Try it: `cargo run -p antiphon-examples --bin extension_search`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

mod extension;

use antiphon::{
    Result,
    client::{Client, transport::HttpTransport},
    serve::http::{HttpOptions, serve_http},
    server::Server,
};
use extension::{ClientSettings, ID, Index, ServerSettings};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let index = Index::new(&["sea", "seasons", "seaside", "moors"]);
    let server = Server::builder("library", "1.0").extension(extension::extension(index)).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    tokio::spawn(async move { serve_http(listener, server, HttpOptions::default()).await });

    let reader = Client::builder("reader", "1.0").extension(ID, ClientSettings { most: 2 })?;
    let reader = reader.connect(HttpTransport::new(&*url)?);
    if let Some(settings) = reader.server_extension::<ServerSettings>(ID).await? {
        println!("the server searches {} titles", settings.titles);
    }
    println!("found: {:?}", extension::query(&reader, "sea").await?.titles);
    extension::viewed(&reader, "seaside").await?;
    println!("found after a view: {:?}", extension::query(&reader, "sea").await?.titles);
    if let Err(error) = extension::query(&reader, "").await {
        println!("an empty query: {}", error.server_error().map_or("?", |error| &error.message));
    }

    // A client that declares nothing.
    let other = Client::builder("other", "1.0").connect(HttpTransport::new(url)?);
    if let Err(error) = extension::query(&other, "sea").await {
        println!("another client: {}", error.server_error().map_or("?", |error| &error.message));
    }
    Ok(())
}
