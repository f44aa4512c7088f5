//! What a call came to, whatever was called.

use antiphon::{client::Finished, wire::ResourceContents};

/// Whether a tool says that it failed.
pub(crate) fn failed(finished: &Finished) -> bool {
    matches!(finished, Finished::Tool(result) if result.failed())
}

/// The first text of a result; none if there is no text in it.
pub(crate) fn said(finished: &Finished) -> Option<&str> {
    match finished {
        Finished::Tool(result) => result.first_text(),
        Finished::Prompt(result) => result.messages.first().and_then(|message| message.content.as_text()),
        Finished::Resource(result) => result.contents.first().and_then(ResourceContents::as_text),
        _ => None,
    }
}
