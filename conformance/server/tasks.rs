//! Tools whose calls are tasks, or may become tasks.

use antiphon::{
    Error, Form, Result,
    server::{Ctx, ServerBuilder},
    tool,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Deserialize, Serialize, Form)]
struct Confirmation {
    /// Confirm?
    confirm: bool,
}

#[derive(Deserialize, Serialize, Form)]
struct UserName {
    /// Name
    name: String,
}

/// Greets somebody.
#[tool]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Computes slowly.
#[tool(task = "optional")]
async fn slow_compute(ctx: &Ctx, seconds: u64, label: String) -> Result<String> {
    ctx.into_task().await?;
    // No step: a cancelled task does not wait for its end.
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(format!("{label}: computed for {seconds} s"))
}

/// Fails as a tool.
#[tool(task = "required")]
async fn failing_job() -> Result<String> {
    Err(Error::user_facing("the job failed"))
}

/// Fails as a request.
#[tool(task = "required")]
#[allow(clippy::panic, reason = "the error of a request that a server did not foresee")]
async fn protocol_error_job() -> String {
    panic!("the job panicked")
}

/// Deletes a file, if the person confirms it.
#[tool(task = "required")]
async fn confirm_delete(ctx: &Ctx, filename: String) -> Result<String> {
    let answer = ctx.elicit::<Confirmation>(format!("Delete {filename}?")).await?;
    Ok(if answer.confirm { format!("deleted {filename}") } else { format!("kept {filename}") })
}

/// Asks two questions at once.
#[tool(task = "required")]
async fn multi_input(ctx: &Ctx) -> Result<String> {
    let (user, confirmation) = tokio::try_join!(
        ctx.elicit::<UserName>("What is your name?"),
        ctx.elicit::<Confirmation>("Do you confirm?"),
    )?;
    Ok(format!("{}: {}", user.name, confirmation.confirm))
}

/// Asks first, and then becomes a task.
#[tool(task = "optional")]
async fn test_tool_with_task(ctx: &Ctx) -> Result<String> {
    let UserName { name } = ctx.elicit("What is your name?").key("user_name").await?;
    ctx.into_task().await?;
    Ok(format!("Hello, {name}!"))
}

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(greet)
        .tool(slow_compute)
        .tool(failing_job)
        .tool(protocol_error_job)
        .tool(confirm_delete)
        .tool(multi_input)
        .tool(test_tool_with_task)
}
