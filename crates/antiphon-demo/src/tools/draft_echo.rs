//! `echo` of the draft before the extension for tasks: every call is a task, which asks for the text. The example of SEP-2322.

use antiphon::{Form, Result, server::Ctx, tool};
use serde::Deserialize;

#[derive(Deserialize, Form)]
struct EchoInput {
    input: String,
}

/// Asks for a text, and returns it.
#[tool(task = "required")]
pub(crate) async fn echo(ctx: &Ctx) -> Result<String> {
    let EchoInput { input } = ctx.elicit("Please provide the input string to echo back").await?;
    Ok(format!("Echo: {input}"))
}
