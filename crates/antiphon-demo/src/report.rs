//! `report://{id}`: a resource template with one question, by hand.

use antiphon::{
    Result,
    server::{Answer, Ask, Ctx, Reply, ResourceTemplate},
    wire::{
        content::ResourceContents,
        forms::{FormField, FormSchema},
    },
};
use serde::Deserialize;

/// The variables of the template.
#[derive(Deserialize)]
struct Report {
    id: String,
}

/// The form for the person.
#[derive(Deserialize)]
struct Audience {
    audience: String,
}

pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new("report://{id}", "report", report)
        .description("A report, written for an audience that the person names.")
        .mime_type("text/plain")
}

async fn report(ctx: &Ctx, Report { id }: Report) -> Result<Reply<ResourceContents>> {
    let form = FormSchema::new(vec![FormField::text("audience")]);
    let ask = Ask::form("audience", format!("Who will read report {id}?"), form);
    let text = match ctx.by_hand().form(&ask)? {
        None => return Ok(ask.into()),
        Some(Answer::Accept(Audience { audience })) => format!("Report {id}, for {audience}: all is well."),
        Some(Answer::Decline) => format!("Report {id} was not written: the question was declined."),
        Some(Answer::Cancel) => format!("Report {id} was not written: the question was cancelled."),
    };
    Ok(Reply::Complete(ResourceContents::text(format!("report://{id}"), text).with_mime_type("text/plain")))
}
