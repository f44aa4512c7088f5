//! `pick_file`: a form whose choices are known only when the tool runs, and a yes or no.

use super::World;
use super::world::Deed;
use antiphon::{
    Error, Result,
    server::{Ctx, State},
    tool,
    wire::{FormField, FormSchema},
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Picked {
    file: String,
}

/// Deletes a file of a folder: the person picks which.
#[tool(destructive)]
pub(super) async fn pick_file(
    ctx: &Ctx,
    /// The folder, such as `reports`.
    path: String,
    State(world): State<World>,
) -> Result<String> {
    let names: Option<Vec<String>> = world.send(Deed::List { path: path.clone() }).await?;
    let names = names.ok_or_else(|| Error::user_facing(format!("There is no folder {path}.")))?;
    if names.is_empty() {
        return Ok(format!("{path} is empty."));
    }

    // Every request of the call lists the folder. If its files are others by then, this is another question, and the person
    // is asked again.
    let form = FormSchema::new(vec![FormField::one("file", names).title("File")]);
    let Picked { file } = ctx.elicit_with("Which file should be deleted?", form).await?;
    if !ctx.confirm(format!("Delete {file} from {path}?")).await? {
        return Ok(format!("Kept {file}."));
    }

    let delete = Deed::DeleteFile { path: path.clone(), file: file.clone() };
    ctx.step("delete", async |_| world.send::<bool>(delete).await).await?;
    Ok(format!("Deleted {file} from {path}."))
}
