//! MCP Apps: a tool with a view, which hosts show beside its result, and a tool that only the view calls. Hosts without views show
//! the text.
//!
//! Try it: `cargo build -p antiphon-examples --bin app`, then
//! `npx @modelcontextprotocol/inspector target/debug/app`, tab Apps.

use antiphon::{
    Result,
    serve::stdio::serve_stdio,
    server::{
        BuildError, Ctx, Json, Server,
        apps::{View, shown_to},
    },
    tool,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The URI of the view.
const CARD: &str = "ui://weather/card.html";

/// The data of the view.
#[derive(Serialize, JsonSchema)]
struct Weather {
    city: String,
    degrees: i8,
}

/// Returns the weather of a city.
#[tool(ui = "ui://weather/card.html", read_only)]
async fn weather(ctx: &Ctx, city: String) -> (Json<Weather>, Option<String>) {
    // A model reads this text, if no person sees the card.
    let text = (!shown_to(ctx)).then(|| format!("{city}: 21 degrees, and clear."));
    (Json(Weather { city, degrees: 21 }), text)
}

/// Measures again, when a person presses the button of the card.
#[tool(ui = "ui://weather/card.html", ui_visibility(app), read_only)]
async fn measure(city: String) -> Json<Weather> {
    Json(Weather { city, degrees: 22 })
}

fn server() -> std::result::Result<Server, BuildError> {
    let card = View::new(CARD, include_str!("card.html")).prefers_border(true);
    Server::builder("weather", "1.0").tool(weather).tool(measure).resource(card).build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    Ok(serve_stdio(server()?).await?)
}

#[cfg(test)]
mod tests;
