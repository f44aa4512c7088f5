//! Arguments that are flattened.

use antiphon::{prompt, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    limit: u8,
}

#[derive(serde::Deserialize)]
struct WithoutSchema {
    limit: u8,
}

#[tool]
async fn optional(#[arg(flatten)] page: Option<Page>) {
    let _ = page.map(|page| page.limit);
}

#[tool]
async fn text(#[arg(flatten)] page: String) {
    let _ = page;
}

#[tool]
async fn titled(#[arg(flatten, title = "Page")] page: Page) {
    let _ = page.limit;
}

#[tool]
async fn not_flat(#[arg(flatten = false)] page: Page) {
    let _ = page.limit;
}

#[tool]
async fn without_schema(#[arg(flatten)] page: WithoutSchema) {
    let _ = page.limit;
}

#[prompt]
async fn of_a_prompt(#[arg(flatten)] page: Page) -> String {
    page.limit.to_string()
}

fn main() {}
