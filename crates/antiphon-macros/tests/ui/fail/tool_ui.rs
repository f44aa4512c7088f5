//! The view of a tool.

use antiphon::tool;

#[tool(ui = "https://app.example/view.html")]
async fn other_scheme() {}

#[tool(ui = "ui://")]
async fn nothing() {}

#[tool(ui)]
async fn no_value() {}

#[tool(ui = "ui://app/view.html", ui_visibility(person))]
async fn person() {}

#[tool(ui = "ui://app/view.html", ui_visibility)]
async fn nobody() {}

fn main() {}
