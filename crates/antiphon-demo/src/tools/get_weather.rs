//! `get_weather`: a tool that asks for a user name, by hand.
//!
//! A form may ask for a user name, but not for a password or a token: `Ask::url` is for those.

use antiphon::{
    Result,
    server::{Answer, Ask, Ctx, Reply, Tool},
    wire::forms::{FormField, FormSchema},
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
