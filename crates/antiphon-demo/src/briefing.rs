//! `briefing`: a prompt with one question, by hand.

use antiphon::{
    Result,
    server::{Answer, Ask, Ctx, Prompt, Reply},
    wire::forms::{FormField, FormSchema},
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Briefing {
    /// The topic of the briefing.
    topic: Option<String>,
}

/// The form for the person.
#[derive(Deserialize)]
struct Audience {
    audience: String,
}

pub(super) fn prompt() -> Prompt {
    Prompt::new("briefing", briefing)
        .description("Asks a model for a briefing, for an audience that the person names.")
}

async fn briefing(ctx: &Ctx, args: Briefing) -> Result<Reply<String>> {
    let form = FormSchema::new(vec![FormField::text("audience")]);
    let ask = Ask::form("audience", "Who is the briefing for?", form);
    let topic = args.topic.as_deref().unwrap_or("the current state of the project");
    Ok(Reply::Complete(match ctx.by_hand().form(&ask)? {
        None => return Ok(ask.into()),
        Some(Answer::Accept(Audience { audience })) => format!("Write a briefing on {topic} for {audience}."),
        Some(Answer::Decline) => "There is no briefing to write: the question was declined.".into(),
        Some(Answer::Cancel) => "There is no briefing to write: the question was cancelled.".into(),
    }))
}
