//! The end of a call in its span.

use crate::{call::error_kind::ClientErrorKind, request::fault::RequestFault, trace::failed};
use antiphon_wire::CallToolResult;
use tracing::Span;

/// Notes the end of a call: its result if a tool was called, or its error.
pub(super) fn ended(span: &Span, end: Result<Option<&CallToolResult>, &ClientErrorKind>) {
    match end {
        Ok(Some(result)) if result.failed() => failed(span, None, "tool_error"),
        Ok(_) => {}
        Err(kind) => note(span, kind),
    }
}

fn note(span: &Span, kind: &ClientErrorKind) {
    match kind {
        ClientErrorKind::StateRefused(error) | ClientErrorKind::Request(RequestFault::Server(error)) => {
            failed(span, Some(error.code.0), "");
        }
        ClientErrorKind::Request(RequestFault::Timeout(_)) | ClientErrorKind::Deadline(_) => {
            failed(span, None, "timeout");
        }
        ClientErrorKind::Cancelled | ClientErrorKind::TaskCancelled { .. } => failed(span, None, "cancelled"),
        ClientErrorKind::Ask(_) | ClientErrorKind::MissingAnswers { .. } => failed(span, None, "ask"),
        _ => failed(span, None, "_OTHER"),
    }
}
