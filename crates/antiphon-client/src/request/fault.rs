//! The reasons why one request has no result.

use crate::{
    asks::callbacks::AskFault,
    transport::{MAX_RETRY_AFTER, TransportError, TransportErrorKind as Kind},
};
use antiphon_wire::{
    AskSupport, CallToolResult, ErrorCode, ErrorObject, OutcomeFault, ProtocolVersion, escaped,
    extension::InvalidExtension,
};
use serde::Deserialize as _;
use serde_json::Value;
use std::{error::Error as StdError, fmt, time::Duration};

/// The maximum number of characters of a server's explanation in the text of an error.
const LONG_TEXT: usize = 1000;

/// The reason why one request has no result. Its text contains the server's words escaped and cut; the fields have them as they
/// were sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum RequestFault {
    /// No usable response arrived: the connection's fault. The server may have acted.
    Transport(TransportError),
    /// The server refused or failed.
    Server(ErrorObject),
    /// The server needs something that this client did not declare.
    MissingCapability {
        /// The part of it that could be declared by attaching callbacks.
        undeclared: AskSupport,
        /// The error that the server sent.
        error: ErrorObject,
    },
    /// Client and server have no common version.
    Version {
        /// The versions that this client offers in its [`Mode`](crate::Mode).
        ours: Vec<String>,
        /// The versions that the server named.
        theirs: Vec<String>,
    },
    /// The server's result is no result of this request: the server's fault.
    Result {
        /// The fault of the result.
        fault: OutcomeFault,
        /// Key and method of the first ask, where there are asks that do not belong there.
        ask: Option<(String, String)>,
    },
    /// The server made a task of the request that this client did not ask for, and cannot follow: a task in an earlier form
    /// ([`TaskForm`](crate::TaskForm)) although the request asked for none, or a task although the client did not declare
    /// support ([`tasks(false)`](crate::ClientBuilder::tasks)). The task may still run: ask the person before the call is
    /// repeated.
    Task {
        /// The id of the task, if the server sent one.
        id: Option<String>,
    },
    /// The server does not know the task (`-32602`): it has discarded the task, or the id belongs to another server or user.
    UnknownTask(ErrorObject),
    /// The server speaks a legacy version, and there are no tasks in its session, or the task takes no answers there: nothing was
    /// sent.
    TaskOnSession,
    /// The server acknowledged none of the requested changes, so a subscription would wait without end.
    NothingAcknowledged,
    /// The tool's result does not fit the output schema that the server declares for it: the server's fault. The tool
    /// has run.
    OutputSchema {
        /// The tool.
        tool: String,
        /// The parts that do not fit.
        faults: String,
        /// The unchanged result. Do not rely on its content.
        result: Box<CallToolResult>,
    },
    /// No response arrived in time; the request was cancelled. The value is the limit that was exceeded: that of one request, or
    /// its maximum if progress extends it.
    Timeout(Duration),
    /// An ask that the server sent on a legacy session, while the request was under way, could not be answered. The
    /// server received an error for the ask, and the request was cancelled.
    Ask(Box<AskFault>),
    /// The pending call is for a modern server, but the server supports legacy versions only, and their sessions have no pending
    /// calls: nothing was sent.
    PendingOnSession,
    /// A layer of the client refused the request, or failed. The request was sent only if the layer sent it.
    Layer(Box<dyn StdError + Send + Sync>),
    /// The message, or an extension, is not one that can be sent: nothing was sent.
    Extension(InvalidExtension),
    /// The request cannot be written as JSON.
    Unwritable(serde_json::Error),
}

impl RequestFault {
    /// Sorts an error response.
    pub(crate) fn server(error: ErrorObject, declared: AskSupport) -> Self {
        match error.code {
            ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => {
                let required = required_capabilities(&error)
                    .and_then(|required| AskSupport::deserialize(required).ok())
                    .unwrap_or_default();
                Self::MissingCapability { undeclared: declared.missing(required), error }
            }
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => Self::no_version(supported(&error)),
            _ => Self::Server(error),
        }
    }

    /// Returns the fault of a server that has none of our versions. The versions of the mode are added where the mode is known.
    pub(crate) fn no_version(theirs: Vec<String>) -> Self {
        Self::Version { ours: texts(ProtocolVersion::MODERN), theirs }
    }

    /// Adds the versions that this client offers.
    pub(crate) fn with_own_versions(self, versions: &[ProtocolVersion]) -> Self {
        match self {
            Self::Version { theirs, .. } => Self::Version { ours: texts(versions), theirs },
            fault => fault,
        }
    }

    /// The error that the server answered with, if it did.
    pub fn server_error(&self) -> Option<&ErrorObject> {
        match self {
            Self::Server(error) | Self::UnknownTask(error) | Self::MissingCapability { error, .. } => {
                Some(error)
            }
            Self::Transport(error) => error.server_error(),
            _ => None,
        }
    }

    /// The time after which the server may accept the request: the `Retry-After` of an HTTP server, or else the
    /// `data.retryAfterMs` of the error.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        // The other errors of a server do not go away.
        let (header, error) = match self {
            Self::Transport(error) => (error.retry_after(), error.server_error()),
            Self::Server(error) => (None, Some(error)),
            _ => return None,
        };
        header.or_else(|| {
            let millis = error?.data.as_ref()?.get("retryAfterMs")?.as_u64()?;
            Some(Duration::from_millis(millis).min(MAX_RETRY_AFTER))
        })
    }
}

fn required_capabilities(error: &ErrorObject) -> Option<&Value> {
    error.data.as_ref()?.get("requiredCapabilities")
}

/// The versions in `data.supported`.
pub(crate) fn supported(error: &ErrorObject) -> Vec<String> {
    let list = error.data.as_ref().and_then(|data| data.get("supported")?.as_array());
    list.into_iter().flatten().filter_map(|version| version.as_str().map(str::to_owned)).collect()
}

/// Returns the best version that both sides support.
pub(crate) fn common_version<'a>(theirs: impl IntoIterator<Item = &'a str>) -> Option<ProtocolVersion> {
    let theirs: Vec<&str> = theirs.into_iter().collect();
    ProtocolVersion::MODERN.iter().find(|ours| theirs.contains(&ours.as_str())).cloned()
}

/// Returns the version to use, of those that a server lists.
pub(crate) fn pick_version(theirs: &[ProtocolVersion]) -> Result<ProtocolVersion, RequestFault> {
    common_version(theirs.iter().map(ProtocolVersion::as_str))
        .ok_or_else(|| RequestFault::no_version(texts(theirs)))
}

fn texts(versions: &[ProtocolVersion]) -> Vec<String> {
    versions.iter().map(|version| version.as_str().to_owned()).collect()
}

/// The callbacks to attach so that these asks are declared.
fn cures(undeclared: AskSupport) -> Vec<&'static str> {
    let elicit = match (undeclared.form, undeclared.url) {
        (true, true) => Some("`on_elicit`"),
        (true, false) => Some("`on_elicit_form`"),
        (false, true) => Some("`on_elicit_url`"),
        (false, false) => None,
    };
    [
        elicit,
        undeclared.sampling.then_some("`on_sample`"),
        undeclared.sampling_tools.then_some("`sampling_tools`"),
        undeclared.sampling_context.then_some("`sampling_context`"),
        undeclared.roots.then_some("`on_roots`"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl fmt::Display for RequestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(error) => match error.kind() {
                // The text of the error names the actual reply.
                Kind::HttpStatus(_) | Kind::Malformed | Kind::TooLarge => error.fmt(f),
                _ => write!(f, "no response came back: {error}"),
            },
            Self::Server(error) => write!(f, "the server answered with an error: {error}"),
            Self::MissingCapability { undeclared, error } => {
                write!(f, "the server needs a capability that this client did not declare")?;
                match cures(*undeclared) {
                    cures if !cures.is_empty() => write!(f, "; attach {}", cures.join(" and "))?,
                    _ => {
                        let names = required_capabilities(error).and_then(Value::as_object);
                        let names: Vec<&str> = names.into_iter().flatten().map(|(name, _)| &**name).collect();
                        if !names.is_empty() {
                            write!(f, ": {}", escaped(&names.join(", ")))?;
                        }
                    }
                }
                write!(f, " (it said: {error})")
            }
            Self::Version { ours, theirs } => {
                let named = if theirs.is_empty() { "none that it names".into() } else { theirs.join(", ") };
                write!(
                    f,
                    "no common protocol version: this client speaks {}, the server {}",
                    ours.join(", "),
                    escaped(&named)
                )?;
                // The mode excludes what both sides have.
                match common_version(theirs.iter().map(String::as_str)) {
                    Some(version) if !ours.iter().any(|ours| ours == version.as_str()) => {
                        write!(f, "; with the mode `auto`, this client speaks {}", version.as_str())
                    }
                    _ => Ok(()),
                }
            }
            Self::Result { fault, ask } => {
                write!(f, "the server's answer is invalid: {fault}")?;
                match ask {
                    Some((key, method)) => write!(f, " (it asks `{}`: {})", escaped(key), escaped(method)),
                    None => Ok(()),
                }
            }
            Self::NothingAcknowledged => f.write_str(
                "the server acknowledged none of the requested changes: it reports no such changes to this client",
            ),
            Self::Task { id } => {
                f.write_str("the server made a task of the request")?;
                if let Some(id) = id {
                    write!(f, " ({:?})", escaped(id))?;
                }
                f.write_str(
                    ", which this client did not declare to support: there is no result, and the task may still run",
                )
            }
            Self::UnknownTask(error) => write!(f, "the server does not know the task, or no longer: {error}"),
            Self::TaskOnSession => f.write_str(
                "nothing was sent: the server speaks a legacy version now, on whose sessions there are no such tasks",
            ),
            Self::OutputSchema { tool, faults, .. } => {
                write!(
                    f,
                    "the result of `{}` does not fit the tool's output schema: {}",
                    escaped(tool),
                    escaped(faults).limit(LONG_TEXT)
                )
            }
            Self::Timeout(limit) => {
                write!(
                    f,
                    "no response within {limit:?}; the request was cancelled (a longer timeout may help)"
                )
            }
            Self::PendingOnSession => f.write_str(
                "nothing was sent: the server speaks a legacy version now, on whose sessions no call waits for answers; call \
                 it again",
            ),
            Self::Ask(fault) => fault.fmt(f),
            Self::Layer(_) => f.write_str("a layer of this client refused the request"),
            Self::Extension(error) => error.fmt(f),
            Self::Unwritable(_) => f.write_str("the request cannot be written as JSON"),
        }
    }
}

impl StdError for RequestFault {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // The text of the error is part of this one.
            Self::Transport(error) => error.source(),
            Self::Layer(source) => Some(&**source),
            Self::Unwritable(source) => Some(source),
            Self::Ask(fault) => fault.source(),
            _ => None,
        }
    }
}
