//! `pick_file`: a form with choices that are known at run time, then a confirmation.

use crate::backend::{Backend, Operation};
use antiphon::{
    Error, Result,
    server::{Ctx, State},
    tool,
    wire::forms::{FormField, FormSchema},
};
use serde::Deserialize;

#[derive(Deserialize)]
struct FileChoice {
    file: String,
}

/// Deletes one file of a folder. The person picks the file.
#[tool(destructive)]
pub(crate) async fn pick_file(
    ctx: &Ctx,
    /// The folder, such as `reports`.
    path: String,
    State(backend): State<Backend>,
) -> Result<String> {
    let names: Option<Vec<String>> = backend.send(Operation::List { path: path.clone() }).await?;
    let names = names.ok_or_else(|| Error::user_facing(format!("There is no folder {path}.")))?;
    if names.is_empty() {
        return Ok(format!("{path} is empty."));
    }

    // Every leg of the call lists the folder. If the files have changed, the question has changed, and the person is asked
    // again.
    let form = FormSchema::new(vec![FormField::one("file", names).title("File")]);
    let FileChoice { file } = ctx.elicit_with("Which file should be deleted?", form).await?;
    if !ctx.confirm(format!("Delete {file} from {path}?")).await? {
        return Ok(format!("Kept {file}."));
    }

    let delete = Operation::DeleteFile { path: path.clone(), file: file.clone() };
    ctx.step("delete", async |_| backend.send::<bool>(delete).await).await?;
    Ok(format!("Deleted {file} from {path}."))
}
