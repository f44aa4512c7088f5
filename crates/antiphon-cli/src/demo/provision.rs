//! `provision`: a tool that asks one question.

use antiphon::{
    Result,
    server::{Answer, Ask, Ctx, Reply, Tool},
    wire::{FormField, FormSchema},
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Provision {
    /// What to call the database.
    name: String,
}

/// What the person fills in.
#[derive(Deserialize)]
struct Place {
    region: String,
}

pub(super) fn tool() -> Tool {
    Tool::new("provision", provision)
        .description("Provisions a database, in a region that the person chooses.")
}

async fn provision(ctx: &Ctx, args: Provision) -> Result<Reply<String>> {
    let form = FormSchema::new(vec![FormField::text("region")]);
    let ask = Ask::form("region", "Which region should the database live in?", form);
    Ok(Reply::Complete(match ctx.form(&ask)? {
        None => return Ok(ask.into()),
        Some(Answer::Accept(Place { region })) => format!("Provisioned \"{}\" in {region}.", args.name),
        Some(Answer::Decline) => "Nothing was provisioned: the question was declined.".into(),
        Some(Answer::Cancel) => "Nothing was provisioned: the question was cancelled.".into(),
    }))
}
