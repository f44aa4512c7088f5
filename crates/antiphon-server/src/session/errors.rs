//! Errors in the form of an earlier version.

use crate::errors::refusal::Refusal;
use antiphon_wire::{AskSupport, ErrorCode, ErrorObject};
use serde_json::json;
use std::time::Duration;

/// The maximum length of a client's error text in an error, in characters.
const ERROR_TEXT: usize = 500;

/// Converts a refusal to the error of an earlier version.
pub(crate) fn downgrade_refusal(refusal: &Refusal) -> ErrorObject {
    match refusal {
        // These versions have no code for a missing capability.
        Refusal::Capability { missing } => ErrorObject::invalid_request(not_supported(*missing)),
        Refusal::NotFound { uri } => ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "Resource not found")
            .with_data(json!({ "uri": uri })),
        Refusal::AfterSteps { refusal, done, kept } => {
            refusal.to_error_after(downgrade_refusal(refusal), done, *kept)
        }
        other => other.to_error(),
    }
}

/// Returns the text for a question that the client answered with an error. It repeats the beginning of the client's own
/// text.
pub(crate) fn not_answered(key: &str, error: &ErrorObject) -> String {
    let said = &error.message;
    let cut = said.char_indices().nth(ERROR_TEXT).map(|(at, _)| &said[..at]);
    let (said, more) = (cut.unwrap_or(said), if cut.is_some() { "..." } else { "" });
    // The new error is itself an internal error, and its code is shown too.
    let code = match error.code {
        ErrorCode::INTERNAL_ERROR => String::new(),
        code => format!(" (error {code})"),
    };
    format!("The client did not answer `{key}`{code}: {said}{more}")
}

/// Returns the text for a question that was not answered in time.
pub(crate) fn too_late(key: &str, waited: Duration) -> String {
    format!("`{key}` was not answered within {} seconds", waited.as_secs())
}

fn not_supported(missing: AskSupport) -> String {
    let table = [
        (missing.form, "Elicitation not supported"),
        (missing.url, "URL elicitation not supported"),
        (missing.sampling, "Sampling not supported"),
        (missing.sampling_tools, "Sampling with tools not supported"),
        (missing.sampling_context, "Sampling with context not supported"),
        (missing.roots, "List roots not supported"),
    ];
    let missing: Vec<&str> =
        table.iter().filter(|(is_missing, _)| *is_missing).map(|(_, text)| *text).collect();
    missing.join(", ")
}
