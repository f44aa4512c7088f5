//! `get_weather`: a tool that wants to know who is asking.
//!
//! A user name may be asked for in a form. A password or a token may not: that is what `Ask::url` is for.

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

/// What the person fills in.
#[derive(Deserialize)]
struct GithubLogin {
    name: String,
}

pub(super) fn tool() -> Tool {
    Tool::new("get_weather", get_weather).description("Tells the weather, once it knows for whom.")
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
