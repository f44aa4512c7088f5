//! The tools that the tests of both earlier forms of tasks call.

use antiphon::{
    Error, Form,
    server::{Ctx, State},
    tool,
};
use std::sync::Arc;
use tokio::sync::Semaphore;

#[derive(Form, serde::Serialize, serde::Deserialize)]
pub(crate) struct Size {
    /// Size
    pub(crate) size: u32,
}

/// A gate that steps wait for.
#[derive(Clone)]
pub(crate) struct Gate(pub(crate) Arc<Semaphore>);

pub(crate) fn gate() -> Gate {
    Gate(Arc::new(Semaphore::new(0)))
}

/// Waits for the gate in a step.
#[tool(task = "required")]
pub(crate) async fn work(ctx: &Ctx, gate: State<Gate>) -> Result<String, Error> {
    let done: String = ctx
        .step("work", async |_| {
            gate.0.0.acquire().await.unwrap().forget();
            Ok("worked".to_owned())
        })
        .await?;
    Ok(done)
}

/// Fails as a tool.
#[tool(task = "required")]
pub(crate) async fn fail() -> Result<String, Error> {
    Err(Error::user_facing("no luck"))
}

/// Panics.
#[tool(task = "required")]
pub(crate) async fn panics() -> String {
    panic!("on purpose")
}
