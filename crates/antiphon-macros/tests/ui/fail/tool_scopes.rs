//! What a token must hold is listed in quotes.

use antiphon::tool;

/// Alone.
#[tool(scopes)]
async fn alone() -> &'static str {
    ""
}

/// A word.
#[tool(scopes(write))]
async fn word() -> &'static str {
    ""
}

/// One text.
#[tool(scopes = "write")]
async fn one() -> &'static str {
    ""
}

/// An empty one.
#[tool(scopes("write", ""))]
async fn empty() -> &'static str {
    ""
}

fn main() {}
