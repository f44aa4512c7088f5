//! `scopes` needs texts in quotes.

use antiphon::tool;

/// No list.
#[tool(scopes)]
async fn alone() -> &'static str {
    ""
}

/// A word without quotes.
#[tool(scopes(write))]
async fn word() -> &'static str {
    ""
}

/// A text without parentheses.
#[tool(scopes = "write")]
async fn one() -> &'static str {
    ""
}

/// An empty text.
#[tool(scopes("write", ""))]
async fn empty() -> &'static str {
    ""
}

fn main() {}
