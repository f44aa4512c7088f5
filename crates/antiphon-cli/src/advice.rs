//! The advice after an error that ends a call, for a person whose call may have done something already.
//!
//! The reasons are those of docs/errors.md. A server without reasons gets advice only if its connection failed.

use antiphon::{
    client::{ClientError, ClientErrorKind, PendingCall, calls::RequestFault},
    wire::ProtocolVersion,
};

/// The next step of the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// The last request can be sent again.
    Resume,
    /// The last request can be sent again with another answer.
    ResumeWithOtherAnswers,
    /// The last request can be sent again when the author has corrected the tool.
    ResumeCorrected,
    /// The call went on elsewhere, and somebody else got its result.
    WentOn,
    /// The call is over, or nobody knows its effects.
    Look,
}

/// The sentence of a server whose state has the completed steps.
const CONTINUES: &str = "The last requestState continues this call";

impl Advice {
    /// Returns the advice after this error; none if the error says all.
    pub(crate) fn of(error: &ClientError) -> Option<Self> {
        let has_state = error.pending().is_some_and(PendingCall::has_state);
        let resume = |advice: Self| has_state.then_some(advice);
        if matches!(error.kind(), ClientErrorKind::StateOnlyLimit) {
            return resume(Self::Resume);
        }
        let Some(answer) = error.server_error() else {
            // An HTTP status such as 403 does not change when the request is sent again.
            let may_change = error.is_unknown_outcome() || error.is_busy() || error.http_status().is_none();
            return resume(Self::Resume).filter(|_| may_change && is_connection(error));
        };
        let after_steps = has_completed_steps(error);
        // The server knows if a state has the steps: the same reason may come with both.
        if after_steps && answer.reason() != Some("used") && !answer.message.contains(CONTINUES) {
            return Some(Self::Look);
        }
        let limit = answer.data.as_ref().and_then(|data| data.get("limit")?.as_str());
        match (answer.reason().unwrap_or_default(), limit) {
            ("busy" | "codec" | "store" | "step_failed" | "in_flight", _) => resume(Self::Resume),
            ("limit", Some("times_asked")) | ("not_approver", _) => resume(Self::ResumeWithOtherAnswers),
            ("flow_diverged", _) => resume(Self::ResumeCorrected),
            ("used", _) => Some(Self::WentOn),
            ("outcome_unknown" | "version", _) => Some(Self::Look),
            ("limit", _) => resume(Self::Look),
            _ if after_steps => resume(Self::Resume),
            _ => None,
        }
    }

    /// Returns `true` if the call can go on with its state.
    pub(crate) fn resumes(self) -> bool {
        matches!(self, Self::Resume | Self::ResumeWithOtherAnswers | Self::ResumeCorrected)
    }

    /// Returns the text. `is_kept` is true if the person has the call, printed or in a file.
    pub(crate) fn text(self, is_kept: bool) -> &'static str {
        match (self, is_kept) {
            (Self::Resume, true) => "the call can go on: `resume` sends its last request again",
            (Self::Resume, false) => {
                "the answers are lost; with --json they are printed, and `resume` continues the call"
            }
            (Self::ResumeWithOtherAnswers, true) => {
                "the call can go on with another answer: `resume`, and `--answer` with the key of the question"
            }
            (Self::ResumeWithOtherAnswers, false) => {
                "the call could go on with another answer: with --json it is printed, for `resume`"
            }
            (Self::ResumeCorrected, true) => "the call can go on when its tool is corrected: `resume`",
            (Self::ResumeCorrected, false) => {
                "the call could go on when its tool is corrected: with --json it is printed, for `resume`"
            }
            (Self::WentOn, _) => {
                "the call went on before, and its result went to whoever continued it: look at what it did before you call again"
            }
            (Self::Look, _) => "look at what the call did before you call again: a new call may do it again",
        }
    }
}

/// Returns `true` if the server reported steps that the call has completed.
pub(crate) fn has_completed_steps(error: &ClientError) -> bool {
    let done = error.server_error().and_then(|answer| answer.data.as_ref()?.get("done")?.as_array());
    done.is_some_and(|done| !done.is_empty())
}

/// Returns `true` if the connection failed, or no response came in time.
fn is_connection(error: &ClientError) -> bool {
    matches!(error.kind(), ClientErrorKind::Request(RequestFault::Transport(_) | RequestFault::Timeout(_)))
}

/// Returns `true` for the error of a server that can ask in sessions only.
pub(crate) fn wants_session(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("server-initiated")
        && ProtocolVersion::MODERN.iter().any(|version| text.contains(version.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_ask_in_sessions_only_are_recognized() {
        for (text, expected) in [
            ("elicitation via server-initiated requests is unavailable on 2026-07-28 connections.", true),
            ("Server-initiated sampling is not available on MCP 2026-07-28 connections", true),
            ("server-initiated requests are unavailable", false),
            ("elicitation is unavailable on 2026-07-28", false),
        ] {
            assert_eq!(wants_session(text), expected, "{text}");
        }
    }
}
