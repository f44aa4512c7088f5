//! `provision`: a tool that asks one question.

use antiphon::{
    Form, Result,
    server::{Answer, Ctx},
    tool,
};
use serde::Deserialize;

/// What the person fills in. Its name in snake case is the key of the question.
#[derive(Deserialize, Form)]
struct Region {
    region: String,
}

/// Provisions a database, in a region that the person chooses.
#[tool]
pub(super) async fn provision(
    ctx: &Ctx,
    /// What to call the database.
    name: String,
) -> Result<String> {
    let place = ctx.elicit::<Region>("Which region should the database live in?").outcome().await?;
    Ok(match place {
        Answer::Accept(Region { region }) => format!("Provisioned \"{name}\" in {region}."),
        Answer::Decline => "Nothing was provisioned: the question was declined.".into(),
        Answer::Cancel => "Nothing was provisioned: the question was cancelled.".into(),
    })
}
