//! Accessors of a finished call of any kind.

use antiphon::{client::Finished, wire::content::ResourceContents};

/// True for a tool error.
pub(crate) fn is_tool_error(finished: &Finished) -> bool {
    matches!(finished, Finished::Tool(result) if result.failed())
}

/// The first text of a result, if it has one.
pub(crate) fn first_text(finished: &Finished) -> Option<&str> {
    match finished {
        Finished::Tool(result) => result.first_text(),
        Finished::Prompt(result) => result.messages.first().and_then(|message| message.content.as_text()),
        Finished::Resource(result) => result.contents.first().and_then(ResourceContents::as_text),
        _ => None,
    }
}
