//! `echo`: a tool without a question.

use antiphon::tool;

/// Returns the text.
#[tool]
pub(crate) async fn echo(
    /// The text to return.
    text: String,
) -> String {
    text
}
