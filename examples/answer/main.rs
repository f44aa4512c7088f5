//! The smallest client that answers questions. It starts a server, calls one of its tools, and asks you the server's
//! questions.
//!
//! Try it: `target/debug/answer greet target/debug/hello_ask`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the program talks to a person")]

use antiphon::client::transport::{ChildCommand, ChildTransport};
use antiphon::client::{CallbackError, Client, FormAsk};
use antiphon::wire::ElicitResult;
use std::{env, error::Error, io};

/// Shows the server's name and the question, and lets the person answer or decline. `{:?}` escapes control characters
/// of the server's texts.
async fn ask_person(ask: FormAsk) -> Result<ElicitResult, CallbackError> {
    eprintln!("{:?} asks: {:?} (an empty line declines)", ask.context.server.to_string(), ask.message);
    let mut content = serde_json::Map::new();
    for field in ask.schema.fields() {
        eprintln!("{:?}?", field.label());
        let line = tokio::task::spawn_blocking(|| io::stdin().lines().next())
            .await?
            .transpose()?
            .unwrap_or_default();
        if line.is_empty() {
            return Ok(ask.decline());
        }
        content.insert(field.name.clone(), line.into());
    }
    Ok(ask.accept(content)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let (Some(tool), Some(program)) = (words.next(), words.next()) else {
        return Err("answer TOOL COMMAND..".into());
    };
    let server = ChildTransport::spawn(ChildCommand::new(program).args(words))?;
    let client = Client::builder("answer", "1.0").on_elicit_form(ask_person).connect(server);
    let result = client.call_tool(tool, ()).await?;
    println!("{}", result.first_text().unwrap_or("(no text)"));
    client.close().await;
    Ok(())
}
