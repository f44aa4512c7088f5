//! `delete_folder`: a resolver asks before the tool runs, and only if the folder has files.

use crate::backend::{Backend, Operation};
use antiphon::{
    Error, Form, Result, resolver,
    server::{Answer, Ctx, State},
    tool,
};
use serde::Deserialize;

#[derive(Clone, Deserialize, Form)]
pub(crate) struct Confirm {
    /// Delete it?
    ok: bool,
}

/// Deletes a folder. Asks first if the folder has files.
#[tool(destructive)]
pub(crate) async fn delete_folder(
    ctx: &Ctx,
    /// The folder, such as `reports`.
    path: String,
    // Not an argument of the tool: the resolver below provides the value.
    #[resolve(confirm_delete)] confirm: Answer<Confirm>,
    State(backend): State<Backend>,
) -> Result<String> {
    Ok(match confirm {
        Answer::Accept(Confirm { ok: true }) => {
            let delete = async |_| backend.send::<bool>(Operation::Delete { path: path.clone() }).await;
            ctx.step("delete", delete).await?;
            format!("Deleted {path}.")
        }
        Answer::Accept(Confirm { ok: false }) => format!("Kept {path}."),
        Answer::Decline => format!("Kept {path}: the question was declined."),
        Answer::Cancel => format!("Kept {path}: the question was cancelled."),
    })
}

/// Lists the folder on every leg of the call. If the files have changed, the question has changed, and the client is
/// asked again.
#[resolver]
async fn confirm_delete(ctx: &Ctx, path: &str, State(backend): State<Backend>) -> Result<Answer<Confirm>> {
    let files: Option<Vec<String>> = backend.send(Operation::List { path: path.to_owned() }).await?;
    let files = files.ok_or_else(|| Error::user_facing(format!("There is no folder {path}.")))?;
    if files.is_empty() {
        return Ok(Answer::Accept(Confirm { ok: true }));
    }
    let question = format!("{path} holds {}. Delete it all?", files.join(" and "));
    Ok(ctx.elicit(question).outcome().await?)
}
