//! What goes wrong, and the exit code for it.

use antiphon::{
    client::{AskFault, ClientError, ClientErrorKind, PendingCall, RequestFault},
    wire::InputRequest,
};
use serde::Serialize;
use std::{error::Error as StdError, process::ExitCode};

/// How the program ends. The help lists them.
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

/// Why there is no result.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    #[serde(skip)]
    pub(crate) exit: Exit,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    /// Where the call stood, answers included, if it can go on from there.
    #[serde(skip)]
    pub(crate) pending: Option<Box<PendingCall>>,
}

impl Failure {
    /// The mistake of whoever called the program.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, kind: "usage", message: message.into(), code: None, pending: None }
    }

    /// The mistake of the server, or of what lies between.
    pub(crate) fn protocol(kind: &'static str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Protocol, kind, message: message.into(), code: None, pending: None }
    }

    /// An ask of a kind that this program does not declare.
    pub(crate) fn not_supported(what: &str, key: &str) -> Self {
        let has = "this program answers forms and URLs; it has neither a model nor roots";
        Self::protocol("not_supported", format!("{what} is asked as `{key}`, which was not declared: {has}"))
    }

    /// The machine failed us.
    pub(crate) fn io(what: &str, fault: &std::io::Error) -> Self {
        Self {
            exit: Exit::Protocol,
            kind: "io",
            message: format!("{what}: {fault}"),
            code: None,
            pending: None,
        }
    }

    /// Ctrl-C at a question.
    pub(crate) fn interrupted() -> Self {
        let message = "interrupted; the answers of this round were not sent".to_owned();
        Self { exit: Exit::Interrupted, kind: "interrupted", message, code: None, pending: None }
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
            Kind::Ask(AskFault::TooManyAsks { .. }) => (Exit::Protocol, "too_many_asks"),
            Kind::StateOnlyLimit => (Exit::Protocol, "state_only_limit"),
            Kind::CursorRepeated | Kind::TooManyPages { .. } | Kind::ListTooLong { .. } => {
                (Exit::Protocol, "invalid_result")
            }
            _ => (Exit::Protocol, "call"),
        };
        let code = error.server_error().map(|error| error.code.0);
        let message = with_source(&error);
        let goes_on = exit == Exit::Protocol && !error.is_state_refused();
        let pending = error.into_pending().filter(|_| goes_on).map(Box::new);
        Self { exit, kind, message, code, pending }
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
        _ => "request",
    }
}

/// Each error's text is one layer; the causes below it say the rest.
fn with_source(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
