//! `delete_folder`: a question that comes before the tool, and only where it is needed.

use super::World;
use super::world::Deed;
use antiphon::{
    Error, Form, Result, resolver,
    server::{Answer, Ctx, State},
    tool,
};
use serde::Deserialize;

#[derive(Clone, Deserialize, Form)]
pub(super) struct Confirm {
    /// Delete it?
    ok: bool,
}

/// Deletes a folder, and asks before if there is anything in it.
#[tool(destructive)]
pub(super) async fn delete_folder(
    ctx: &Ctx,
    /// The folder, such as `reports`.
    path: String,
    // No argument of the caller's: the resolver below fills it in.
    #[resolve(confirm_delete)] confirm: Answer<Confirm>,
    State(world): State<World>,
) -> Result<String> {
    Ok(match confirm {
        Answer::Accept(Confirm { ok: true }) => {
            let delete = async |_| world.send::<bool>(Deed::Delete { path: path.clone() }).await;
            ctx.step("delete", delete).await?;
            format!("Deleted {path}.")
        }
        Answer::Accept(Confirm { ok: false }) => format!("Kept {path}."),
        Answer::Decline => format!("Kept {path}: the question was declined."),
        Answer::Cancel => format!("Kept {path}: the question was cancelled."),
    })
}

/// Looks into the folder on every request of the call: should another file lie in it by then, the question is another
/// one, and is asked again.
#[resolver]
async fn confirm_delete(ctx: &Ctx, path: &str, State(world): State<World>) -> Result<Answer<Confirm>> {
    let files: Option<Vec<String>> = world.send(Deed::List { path: path.to_owned() }).await?;
    let files = files.ok_or_else(|| Error::user_facing(format!("There is no folder {path}.")))?;
    if files.is_empty() {
        return Ok(Answer::Accept(Confirm { ok: true }));
    }
    let question = format!("{path} holds {}. Delete it all?", files.join(" and "));
    Ok(ctx.elicit(question).outcome().await?)
}
