//! The smallest server that asks, on standard input and output.
//!
//! Try it: `antiphon call greet -- target/debug/hello_ask`

use antiphon::server::{Answer, Ctx, Server};
use antiphon::{Form, Result, serve::stdio::serve_stdio, tool};

#[derive(serde::Deserialize, Form)]
struct Person {
    name: String,
}

/// Greets the person by name.
#[tool]
async fn greet(ctx: &Ctx) -> Result<String> {
    Ok(match ctx.elicit::<Person>("What is your name?").outcome().await? {
        Answer::Accept(Person { name }) => format!("Hello, {name}!"),
        Answer::Decline | Answer::Cancel => "Hello, whoever you are!".into(),
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    Ok(serve_stdio(Server::builder("hello", "1.0").tool(greet).build()?).await?)
}
