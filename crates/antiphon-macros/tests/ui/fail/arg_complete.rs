//! Completers of arguments.

use antiphon::{prompt, resource, server::Completing, tool, wire::content::ResourceContents};

async fn drinks(_: Completing) -> Vec<String> {
    Vec::new()
}

async fn typed(_: String) -> Vec<String> {
    Vec::new()
}

#[tool]
async fn of_a_tool(#[arg(complete = drinks)] drink: String) {
    let _ = drink;
}

#[prompt]
async fn called(#[arg(complete = drinks())] drink: String) -> String {
    drink
}

#[prompt]
async fn quoted(#[arg(complete = "drinks")] drink: String) -> String {
    drink
}

#[prompt]
async fn of_nobody(#[arg(complete = self.drinks)] drink: String) -> String {
    drink
}

#[prompt]
async fn other_function(#[arg(complete = typed)] drink: String) -> String {
    drink
}

#[resource("menu://{day}")]
async fn alone(#[arg(complete)] day: String) -> ResourceContents {
    ResourceContents::text(day, "")
}

fn main() {}
