//! A tool, a prompt and a resource template with one question each, by hand.
//!
//! A form may ask for a user name, but not for a password or a token: `Ask::url` is for those.

use antiphon::{
    Result,
    server::{Answer, Ask, Ctx, Prompt, Reply, ResourceTemplate, Tool},
    wire::{
        content::ResourceContents,
        forms::{FormField, FormSchema},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize, JsonSchema)]
struct GetWeather {
    /// A place, such as `New York`.
    location: String,
}

pub(crate) fn tool() -> Tool {
    Tool::new("get_weather", get_weather)
        .description("Returns the weather of a place. Asks for a user name first.")
}

async fn get_weather(ctx: &Ctx, args: GetWeather) -> Result<Reply<String>> {
    let form = FormSchema::new(vec![FormField::text("name")]);
    let ask = Ask::form("github_login", "Please provide your GitHub username", form);
    let answer: Option<Answer<Map<String, Value>>> = ctx.by_hand().form(&ask)?;
    Ok(Reply::Complete(match answer {
        None => return Ok(ask.into()),
        // A weather service would get the user name. The weather of this demo is the same everywhere.
        Some(Answer::Accept(_)) => {
            format!("Current weather in {}:\nTemperature: 72°F\nConditions: Partly cloudy", args.location)
        }
        Some(Answer::Decline) => "No weather: the question was declined.".into(),
        Some(Answer::Cancel) => "No weather: the question was cancelled.".into(),
    }))
}

// `briefing`: a prompt with one question, by hand.

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

// `report://{id}`: a resource template with one question, by hand.

/// The variables of the template.
#[derive(Deserialize)]
struct Report {
    id: String,
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
