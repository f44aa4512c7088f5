//! Failures of the program, and their exit codes.

use crate::advice::{self, Advice};
use antiphon::{
    client::{
        ClientError, ClientErrorKind, PendingCall, asks::AskFault, calls::RequestFault, tasks::TaskHandle,
    },
    wire::InputRequest,
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
        let (advice, is_after_steps) = (Advice::of(&error), advice::has_completed_steps(&error));
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
