//! `get_weather`: a tool that asks for a user name, by hand.
//!
//! A form may ask for a user name, but not for a password or a token: `Ask::url` is for those.

use antiphon::{
    Result,
    server::{Answer, Ask, Ctx, Reply, Tool},
    wire::{FormField, FormSchema},
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct GetWeather {
    /// A place, such as `New York`.
    location: String,
}

/// The form for the person.
#[derive(Deserialize)]
struct GithubLogin {
    name: String,
}

pub(crate) fn tool() -> Tool {
    Tool::new("get_weather", get_weather)
        .description("Returns the weather of a place. Asks for a user name first.")
}

async fn get_weather(ctx: &Ctx, args: GetWeather) -> Result<Reply<String>> {
    let form = FormSchema::new(vec![FormField::text("name")]);
    let ask = Ask::form("github_login", "Please provide your GitHub username", form);
    Ok(Reply::Complete(match ctx.form(&ask)? {
        None => return Ok(ask.into()),
        Some(Answer::Accept(GithubLogin { name })) => {
            format!("Current weather in {}: 18 °C, light wind. (Looked up for {name}.)", args.location)
        }
        Some(Answer::Decline) => "No weather: the question was declined.".into(),
        Some(Answer::Cancel) => "No weather: the question was cancelled.".into(),
    }))
}
