//! Failures of the program, their exit codes, and the advice for a person whose call may have done something already.

use antiphon::{
    client::{
        ClientError, ClientErrorKind, PendingCall, asks::AskFault, calls::RequestFault, tasks::TaskHandle,
    },
    wire::{InputRequest, ProtocolVersion},
};
use serde::Serialize;
use serde_json::Value;
use std::{error::Error as StdError, process::ExitCode};

/// An exit code. The help lists all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    ToolFailed = 1,
    Usage = 2,
    Pending = 3,
    Protocol = 4,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The reason why there is no result.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    #[serde(skip)]
    pub(crate) exit: Exit,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    /// More about an error of the server.
    #[serde(flatten)]
    details: Option<Box<ErrorDetails>>,
    /// The call at the time of the failure, with its answers, if it can be continued.
    #[serde(skip)]
    pub(crate) pending: Option<Box<PendingCall>>,
    /// The task at the time of the failure, with its answers, if it may still run.
    #[serde(skip)]
    pub(crate) task: Option<Box<TaskHandle>>,
    /// `true` if the call is in the file that the person gave, with all of its answers.
    #[serde(skip)]
    pub(crate) is_in_file: bool,
    /// The next step of the person.
    #[serde(skip)]
    pub(crate) advice: Option<Advice>,
    /// `true` if the server reported steps that the call has completed.
    #[serde(skip)]
    pub(crate) is_after_steps: bool,
}

/// The members of an error for a script that decides what to do next.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorDetails {
    /// The data of the server's error, such as `reason`, `scopes` or `requiredCapabilities`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    /// The HTTP status, if the server refused the caller or had no JSON-RPC response.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The time after which the server may accept the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl ErrorDetails {
    fn of(error: &ClientError) -> Self {
        Self {
            data: error.server_error().and_then(|error| error.data.clone()),
            status: error.http_status(),
            retry_after_ms: error.retry_after().and_then(|wait| u64::try_from(wait.as_millis()).ok()),
        }
    }
}

impl Failure {
    /// Returns a failure without a call or a task that could go on.
    pub(crate) fn new(exit: Exit, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            kind,
            message: message.into(),
            code: None,
            details: None,
            pending: None,
            task: None,
            advice: None,
            is_after_steps: false,
            is_in_file: false,
        }
    }

    /// Returns a failure caused by the command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// Returns a failure caused by the server or by the connection.
    pub(crate) fn protocol(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::Protocol, kind, message)
    }

    /// Returns the failure of a question of a kind that the client did not declare.
    pub(crate) fn not_supported(what: &str, key: &str) -> Self {
        let declared = "this program answers forms and URLs; --sample and --root declare more";
        Self::protocol(
            "not_supported",
            format!("{what} (the question `{key}`) was not declared by the client: {declared}"),
        )
    }

    /// Returns the failure of a call whose question in a session has no answer. Such a call cannot wait.
    pub(crate) fn unanswered(message: String) -> Self {
        Self::new(Exit::Pending, "unanswered", message)
    }

    /// Returns a failure of an operation of the operating system.
    pub(crate) fn io(what: &str, fault: &std::io::Error) -> Self {
        Self::protocol("io", format!("{what}: {fault}"))
    }

    /// Returns the failure of Ctrl-C at a question.
    pub(crate) fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted", "interrupted; the answers of this round were not sent")
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        use ClientErrorKind as Kind;
        if let (Kind::Ask(AskFault::NoCallback { key, .. }), Some(pending)) = (error.kind(), error.pending())
        {
            let what = pending.asks().get(key).map_or("something", InputRequest::method);
            return Self::not_supported(&format!("{} at {}: `{what}`", pending.call(), error.server()), key);
        }
        let (exit, kind) = match error.kind() {
            Kind::Arguments(_) => (Exit::Usage, "arguments"),
            Kind::Ask(AskFault::Answer(_)) => (Exit::Usage, "answer"),
            Kind::OtherServer { .. } => (Exit::Usage, "other_server"),
            Kind::Request(fault) => (Exit::Protocol, request_kind(fault)),
            Kind::StateRefused(_) => (Exit::Protocol, "state_refused"),
            Kind::Ask(AskFault::Url { .. }) => (Exit::Protocol, "invalid_url"),
            Kind::Ask(AskFault::TooManyAsks { .. }) => (Exit::Protocol, "too_many_asks"),
            Kind::TaskCancelled { .. } => (Exit::Protocol, "task_cancelled"),
            Kind::TaskExpired => (Exit::Protocol, "task_expired"),
            Kind::StateOnlyLimit => (Exit::Protocol, "state_only_limit"),
            Kind::CursorRepeated | Kind::TooManyPages { .. } | Kind::ListTooLong { .. } => {
                (Exit::Protocol, "invalid_result")
            }
            _ => (Exit::Protocol, "call"),
        };
        let (advice, is_after_steps) = (Advice::of(&error), has_completed_steps(&error));
        let code = error.server_error().map(|error| error.code.0);
        let details = Some(Box::new(ErrorDetails::of(&error)));
        let message = with_source(&error);
        let goes_on = exit == Exit::Protocol && !error.is_state_refused();
        let task = error.task().cloned().map(Box::new);
        let pending = error.into_pending().filter(|_| goes_on).map(Box::new);
        Self { code, details, pending, task, advice, is_after_steps, ..Self::new(exit, kind, message) }
    }
}

fn request_kind(fault: &RequestFault) -> &'static str {
    match fault {
        RequestFault::Transport(_) => "transport",
        RequestFault::Server(_) => "server",
        RequestFault::MissingCapability { .. } => "missing_capability",
        RequestFault::Version { .. } => "version",
        RequestFault::Result { .. } => "invalid_result",
        RequestFault::Timeout(_) => "timeout",
        RequestFault::Task { .. } => "task",
        RequestFault::UnknownTask(_) => "unknown_task",
        RequestFault::NothingAcknowledged => "nothing_acknowledged",
        _ => "request",
    }
}

/// Returns the text of an error and of its causes. Each error's text describes one layer.
fn with_source(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Returns the text of an error: `what` was used, and its feature is absent.
pub(crate) fn absent(what: &str, feature: &str) -> String {
    format!(
        "{what} needs the feature `{feature}`, which this program was built without: \
         `cargo install antiphon-cli --features {feature}`, or in a clone `cargo run -p antiphon-cli --features {feature} -- ..`"
    )
}

// The advice after an error that ends a call, for a person whose call may have done something already.
//
// The reasons are those of docs/errors.md. A server without reasons gets advice only if its connection failed.

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
fn has_completed_steps(error: &ClientError) -> bool {
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
