//! `provision`: a tool with one question.

use antiphon::{
    Form, Result,
    server::{Answer, Ctx},
    tool,
};
use serde::Deserialize;

/// The form for the person. The name of the type in snake case, `region`, is the key of the question.
#[derive(Deserialize, Form)]
struct Region {
    region: String,
}

/// Provisions a database, in a region that the person chooses.
#[tool]
pub(crate) async fn provision(
    ctx: &Ctx,
    /// The name of the database.
    name: String,
) -> Result<String> {
    let answer = ctx.elicit::<Region>("Which region should the database live in?").outcome().await?;
    Ok(match answer {
        Answer::Accept(Region { region }) => format!("Provisioned \"{name}\" in {region}."),
        Answer::Decline => "Nothing was provisioned: the question was declined.".into(),
        Answer::Cancel => "Nothing was provisioned: the question was cancelled.".into(),
    })
}
