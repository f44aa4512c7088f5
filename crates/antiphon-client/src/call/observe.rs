//! The end of a call in its span.

use crate::{
    call::{
        error_kind::ClientErrorKind,
        outcome::{Final, Finished},
        rounds::Sent,
    },
    request::fault::RequestFault,
    trace::failed,
};
use antiphon_wire::CallToolResult;
use tracing::Span;

/// Notes the end of a call.
pub(super) fn ended<T: Final>(span: &Span, end: &Result<T, ClientErrorKind>) {
    match end {
        Ok(result) if result.of_tool().is_some_and(CallToolResult::failed) => {
            failed(span, None, "tool_error")
        }
        Ok(_) => {}
        Err(kind) => note(span, kind),
    }
}

/// Notes the end of a part of a call that the program drives.
pub(super) fn stepped(span: &Span, end: &Result<Sent<Finished>, ClientErrorKind>) {
    match end {
        Ok(Sent::Done(result)) if result.of_tool().is_some_and(CallToolResult::failed) => {
            failed(span, None, "tool_error");
        }
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
