//! Access tokens of one issuer: the state of a call is valid only for its user, and a tool can require scopes.
//!
//! Try it: `cargo run -p antiphon-examples --bin access_tokens`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::{
    Form, Result,
    client::{Call, Client, Finished, transport::HttpTransport},
    serve::http::{
        HttpOptions,
        auth::{Issuer, ResourceServer},
        serve_http,
    },
    server::{Ctx, Server},
    tool,
    wire::AskSupport,
};
use serde_json::json;
use std::net::SocketAddr;
use tokio::net::TcpListener;

#[derive(serde::Deserialize, Form)]
struct Confirm {
    sure: bool,
}

/// Empties the basket of the caller.
#[tool(scopes("basket:write"))]
async fn empty_basket(ctx: &Ctx) -> Result<String> {
    let who = ctx.principal().and_then(|principal| principal.subject()).unwrap_or("nobody");
    let Confirm { sure } = ctx.elicit(format!("Empty the basket of {who}?")).await?;
    Ok(format!("The basket of {who} is {}.", if sure { "empty" } else { "as it was" }))
}

/// Returns the resource server. With a real issuer the keys are fetched; this example contains them.
fn auth() -> Result<ResourceServer> {
    let issuer = Issuer::new("https://issuer.example.com").jwks(include_str!("jwks.json"));
    Ok(ResourceServer::builder("https://shop.example.com/mcp")
        .issuer(issuer)
        .required_scopes(["shop"])
        .build()?)
}

/// Returns a client with this token, which the issuer made for the resource above.
fn client(address: SocketAddr, token: &str) -> Result<Client> {
    let transport = HttpTransport::builder(format!("http://{address}/mcp")).bearer(token).build()?;
    Ok(Client::builder("basket-app", "1.0").declare(AskSupport::ALL).connect(transport))
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = Server::builder("shop", "1.0").tool(empty_basket).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let options = HttpOptions::default().authorize(auth()?);
    tokio::spawn(serve_http(listener, server, options).into_future());

    let call = || Call::tool("empty_basket", json!({}));
    let alice = client(address, include_str!("alice.jwt"))?;
    let mut pending = alice.begin(call()?).await?.pending().expect("the tool asks");
    pending.accept("confirm", &json!({"sure": true}))?;
    // The user `bob` has another token, the same client software, and the pending call of `alice`.
    for (who, token) in [("bob", include_str!("bob.jwt")), ("alice", include_str!("alice.jwt"))] {
        match client(address, token)?.resume(pending.clone()).await {
            Ok(step) => {
                let result = step.done().and_then(Finished::into_tool).expect("the call has ended");
                println!("{who}: {}", result.first_text().unwrap_or_default());
            }
            Err(error) => println!("{who}: {error}"),
        }
    }
    // The token of `guest` is valid for the server, but lacks the scope of this tool.
    if let Err(error) = client(address, include_str!("guest.jwt"))?.begin(call()?).await {
        println!("guest: {error}");
    }
    Ok(())
}
