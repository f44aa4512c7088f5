//! The smallest server that asks, on standard input and output.
//!
//! Try it: `antiphon call greet -- target/debug/hello_ask`

use antiphon::server::{Answer, Ask, Ctx, NoArguments, Reply, Server, Tool};
use antiphon::{Form, Result, transport::stdio::serve_stdio};

#[derive(serde::Deserialize, Form)]
struct Person {
    name: String,
}

/// Runs from its top on every request of a call: there is an answer now, or the question goes out.
async fn greet(ctx: &Ctx, _: NoArguments) -> Result<Reply<String>> {
    let ask = Ask::of::<Person>("person", "What is your name?");
    Ok(match ctx.form(&ask)? {
        None => ask.into(),
        Some(Answer::Accept(Person { name })) => Reply::Complete(format!("Hello, {name}!")),
        Some(Answer::Decline | Answer::Cancel) => Reply::Complete("Hello, whoever you are!".into()),
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let greet = Tool::new("greet", greet).description("Greets the person by name.");
    Ok(serve_stdio(Server::builder("hello", "1.0").tool(greet).build()?).await?)
}
