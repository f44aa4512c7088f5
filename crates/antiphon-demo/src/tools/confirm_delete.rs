//! `confirm_delete`: every call is a task, which waits until a person confirms. The example of SEP-2663.

use crate::backend::{Backend, Operation};
use antiphon::{
    Result,
    server::{Answer, Ctx, State},
    tool,
};

/// Deletes a file of the folder `reports`, when a person has confirmed it.
#[tool(task = "required", destructive)]
pub(crate) async fn confirm_delete(
    ctx: &Ctx,
    /// The name of the file.
    filename: String,
    State(backend): State<Backend>,
) -> Result<String> {
    let answer = ctx.confirm(format!("Delete {filename}?")).outcome().await?;
    if answer != Answer::Accept(true) {
        return Ok(format!("Kept {filename}."));
    }
    let file = || Operation::DeleteFile { path: "reports".to_owned(), file: filename.clone() };
    let existed = ctx.step("delete", async |_| backend.send::<bool>(file()).await).await?;
    Ok(if existed { format!("Deleted {filename}.") } else { format!("There is no {filename}.") })
}
