//! `echo`: a tool that asks nothing.

use antiphon::tool;

/// Says the text back.
#[tool]
pub(super) async fn echo(
    /// What to say back.
    text: String,
) -> String {
    text
}
