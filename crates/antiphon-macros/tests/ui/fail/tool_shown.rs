//! Icons, `_meta` and the declared result of a tool.

use antiphon::{tool, wire::CallToolResult};

#[tool(icon)]
async fn no_icon() {}

#[tool(icon = 5)]
async fn number() {}

#[tool(meta = "com.example/unit")]
async fn text() {}

#[tool(meta = 1 + 1)]
async fn sum() {}

#[tool(returns("Found"))]
async fn quoted() -> CallToolResult {
    CallToolResult::text("")
}

struct Found;

#[tool(returns = Found)]
async fn without_schema() -> CallToolResult {
    CallToolResult::text("")
}

#[tool(audience(user))]
async fn audience() {}

fn main() {}
