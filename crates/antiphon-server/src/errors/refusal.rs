//! Refusals of requests, and their only mapping to the wire; also of an operation of the store that failed.

use antiphon_store::{StoreError, StoreFuture, Written};
use antiphon_wire::{AskSupport, ErrorCode, ErrorObject, TASKS_EXTENSION, escaped};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{borrow::Cow, time::Duration};

/// The reason for which a request is refused. The code depends on whose fault it is; the text contains only what the
/// caller may learn. A transport derives its own status from the code.
///
/// | refusal | code | `data.reason` |
/// |---|---|---|
/// | `Params` | -32602 | none |
/// | `NotFound` (resource) | -32602 | none; `uri` |
/// | `State` | -32602 | `invalid_request_state` |
/// | `Limit` | -32602 | `limit`, with its name |
/// | `Capability` | -32021 | none; `requiredCapabilities` |
/// | `Extension` | -32021 | none; `requiredCapabilities` |
/// | `TaskOnly` | -32601 | none |
/// | `TaskForbidden` | -32601 | none |
/// | `Scope` | -32600 | `insufficient_scope`; `scopes` |
/// | `Method` | -32601 | none; `method` |
/// | `NotApprover` | -32603 | `not_approver` |
/// | `Busy` | -32603 | `busy`, with `retryAfterMs` |
/// | `Codec` | -32603 | `codec`, with `retryAfterMs` |
/// | `Version` | -32602 | `version` |
/// | `Diverged` | -32603 | `flow_diverged` |
/// | `StepFailed` | -32603 | `step_failed`, with the step's key |
/// | `Used` | -32602 | `used` |
/// | `InFlight` | -32603 | `in_flight`, with `retryAfterMs` |
/// | `OutcomeUnknown` | -32603 | `outcome_unknown`, with the step's key if it is known |
/// | `Store` | -32603 | `store`, with `retryAfterMs` |
/// | `NoClaim` | -32603 | `no_claim` |
/// | `RecordLost` | -32603 | `outcome_unknown` |
/// | `Again` | as the first reply | as the first reply |
/// | `UrlsFirst` | -32042 | none; `elicitations` |
/// | `OutOfTime` | -32603 | `timeout` |
/// | `UserFacing` | -32603 | none: the handler's own text |
/// | `Internal` | -32603 | none: the cause is in the log |
/// | `AfterSteps` | as the refusal | as the refusal; `done`, the completed steps |
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The params do not fit the method.
    Params(Cow<'static, str>),
    /// The resource does not exist.
    NotFound { uri: String },
    /// The state was not sealed here, or not for this request, or has expired. The answer is always the same.
    State,
    /// A legitimate caller reached a limit.
    Limit { name: &'static str, text: String },
    /// The client did not declare a capability that the call requires.
    Capability { missing: AskSupport },
    /// The client did not declare this extension, which the request requires.
    Extension { id: Cow<'static, str> },
    /// Every call of the tool is a task, and the request of a session wants none.
    TaskOnly { tool: String, has_tasks: bool },
    /// No call of the tool is a task, and the request wants one.
    TaskForbidden { tool: String },
    /// The caller's token lacks some of these scopes.
    Scope { needed: Vec<String> },
    /// The tool does not accept an answer of this caller. The state stays valid.
    NotApprover,
    /// The method does not exist.
    Method(String),
    /// Too many handlers run.
    Busy,
    /// The codec is unavailable: a state can be neither sealed nor opened. The state that the client has stays valid.
    Codec,
    /// The state is of another version, and the author rejects other versions.
    Version,
    /// The handler takes a path that differs from its record. No step was run, and the state stays valid.
    Diverged,
    /// A step has no outcome. The state stays valid. The cause is there during development only.
    StepFailed { path: String, cause: Option<String> },
    /// The state was used before, with other answers, or the call is at a later state.
    Used,
    /// Another delivery of the same request is still running.
    InFlight { retry_after: Duration },
    /// The process that ran this leg died. Nobody knows whether its steps, or this step, had their effect.
    OutcomeUnknown { step: Option<String> },
    /// The store of calls does not work now. Nothing has run, or the reply is not confirmed.
    Store,
    /// The steps of the tool run at most once, and the request cannot be told from that of another caller. Nothing has run.
    NoClaim,
    /// The error that the same request received before.
    Again(Box<ErrorObject>),
    /// URLs must be opened before the request is sent again, in a session whose version has this error.
    UrlsFirst(Box<ErrorObject>),
    /// The handler took longer than its definition says.
    OutOfTime { limit: Duration },
    /// A prompt or resource failed, with a text for the caller.
    UserFacing(String),
    /// The server failed.
    Internal,
    /// The record of steps that ran could not leave, and the leg is not run again.
    RecordLost,
    /// Any other refusal of a call that has completed these steps.
    AfterSteps { refusal: Box<Self>, done: Vec<String>, kept: StepsKept },
}

/// The record of the completed steps of a call that ended with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepsKept {
    /// No state has them: the first request, sent again, repeats them.
    Nowhere,
    /// The state that the client has, or the store, has them.
    InRecord,
    /// They are in the record of a task, which is over.
    InTask,
}

/// The advice after an error, if steps have had their effects.
pub(crate) const DO_NOT_REPEAT: &str =
    "Do not send this again: look at what these steps did first; a new call repeats them";
const GO_ON: &str = "The last requestState continues this call; a new call repeats these steps";
const FIND_OUT: &str = "Find that out before you send it again";
const OTHER_VERSION: &str = "This call began under another version of the tool";
const NOT_STORED: &str = "The record of this request could not be stored: it is unknown what it has done";

/// The text for a caller whose answer is not accepted.
pub(crate) const NOT_APPROVER: &str =
    "This caller may not answer the question: it waits for an answer of a person who may";

impl Refusal {
    pub(crate) fn params(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Params(text.into())
    }

    /// Returns the refusal of a client that did not declare the extension for tasks.
    pub(crate) fn task_extension() -> Self {
        Self::Extension { id: Cow::Borrowed(TASKS_EXTENSION) }
    }

    /// Adds the completed steps of the call.
    pub(crate) fn after_steps(self, done: Vec<String>, kept: StepsKept) -> Self {
        match self {
            Self::UrlsFirst(_) | Self::AfterSteps { .. } => self,
            _ if done.is_empty() => self,
            refusal => Self::AfterSteps { refusal: Box::new(refusal), done, kept },
        }
    }

    /// Returns the refusal without the completed steps.
    pub(crate) fn cause(&self) -> &Self {
        match self {
            Self::AfterSteps { refusal, .. } => refusal,
            refusal => refusal,
        }
    }

    /// Returns true if the state that came with the request may still continue the call.
    fn leaves_the_call_open(&self) -> bool {
        match self {
            Self::Limit { name, .. } => *name == "times_asked",
            Self::Capability { .. }
            | Self::Scope { .. }
            | Self::NotApprover
            | Self::Busy
            | Self::Codec
            | Self::StepFailed { .. }
            | Self::InFlight { .. }
            | Self::Store => true,
            _ => false,
        }
    }

    /// Returns the refusal of a leg that is not run again. Sending the same request again is then of no use. `had_effects` is true if
    /// a step may have had an effect, and no later run finds it.
    pub(crate) fn of_the_only_run(self, had_effects: bool) -> Self {
        let is_temporary = matches!(self.cause(), Self::Store | Self::Codec);
        match self {
            Self::AfterSteps { done, kept: StepsKept::Nowhere, .. } if is_temporary => {
                Self::AfterSteps { refusal: Box::new(Self::RecordLost), done, kept: StepsKept::Nowhere }
            }
            _ if is_temporary && had_effects => Self::RecordLost,
            refusal => refusal,
        }
    }

    /// Returns the error on the wire.
    pub(crate) fn to_error(&self) -> ErrorObject {
        match self {
            Self::Params(text) => ErrorObject::invalid_params(text.clone()),
            Self::NotFound { uri } => {
                ErrorObject::invalid_params("Resource not found").with_data(json!({ "uri": uri }))
            }
            // Byte for byte the same for every cause: a difference would help a forger.
            Self::State => ErrorObject::invalid_params("Invalid or expired requestState")
                .with_data(reason("invalid_request_state")),
            Self::Limit { name, text } => ErrorObject::invalid_params(text.clone())
                .with_data(json!({ "reason": "limit", "limit": name })),
            Self::Capability { missing } => ErrorObject::missing_capability(
                format!("The client did not declare a required capability: {}", names_of(*missing)),
                missing.to_value(),
            ),
            Self::Extension { id } => {
                ErrorObject::missing_capability(undeclared(id), json!({ "extensions": { &**id: {} } }))
            }
            Self::TaskOnly { tool, has_tasks } => {
                let next =
                    if *has_tasks { ": send `params.task`" } else { ", which this session does not support" };
                let text = format!("Every call of the tool {tool} is a task{next}");
                ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, text)
            }
            Self::TaskForbidden { tool } => ErrorObject::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("No call of the tool {tool} is a task: leave `params.task` out"),
            ),
            Self::Scope { needed } => {
                ErrorObject::new(ErrorCode::INVALID_REQUEST, "The access token lacks a required scope")
                    .with_data(json!({ "reason": "insufficient_scope", "scopes": needed }))
            }
            Self::NotApprover => {
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, NOT_APPROVER).with_data(reason("not_approver"))
            }
            Self::Method(method) => ErrorObject::method_not_found(method),
            Self::Busy => {
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, "The server is busy: try again in a second")
                    .with_data(json!({ "reason": "busy", "retryAfterMs": 1000 }))
            }
            Self::Codec => ErrorObject::new(
                ErrorCode::INTERNAL_ERROR,
                "The server cannot seal states at present: send the same request again later",
            )
            .with_data(json!({ "reason": "codec", "retryAfterMs": 1000 })),
            Self::Version => ErrorObject::invalid_params(format!("{OTHER_VERSION}: start it again"))
                .with_data(reason("version")),
            Self::Diverged => ErrorObject::new(
                ErrorCode::INTERNAL_ERROR,
                "This call cannot continue: the tool now takes a different path",
            )
            .with_data(reason("flow_diverged")),
            Self::StepFailed { path, cause } => {
                let cause = cause.as_ref().map_or_else(String::new, |cause| format!(" ({cause})"));
                let text = format!("The step `{path}` failed for now{cause}: send the same request again");
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, text)
                    .with_data(json!({ "reason": "step_failed", "step": path }))
            }
            Self::Used => ErrorObject::invalid_params(
                "This call was continued with other answers, and its result went to whoever sent them: look at it before \
                 you begin a new call",
            )
            .with_data(reason("used")),
            Self::InFlight { retry_after } => ErrorObject::new(
                ErrorCode::INTERNAL_ERROR,
                "The same request is still running: send it again later",
            )
            .with_data(json!({ "reason": "in_flight", "retryAfterMs": millis(*retry_after) })),
            Self::OutcomeUnknown { step } => outcome_unknown(step.as_deref()),
            Self::Store => ErrorObject::new(
                ErrorCode::INTERNAL_ERROR,
                "The server's store does not work now: send the same request again later",
            )
            .with_data(json!({ "reason": "store", "retryAfterMs": 1000 })),
            Self::NoClaim => {
                let text = "The steps of this tool run once, which needs a caller who signs in, or a client that accepts a \
                            result with state only: nothing was done";
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, text).with_data(reason("no_claim"))
            }
            Self::RecordLost => {
                let text = format!("{NOT_STORED}. {FIND_OUT}");
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, text).with_data(reason("outcome_unknown"))
            }
            Self::UrlsFirst(error) | Self::Again(error) => (**error).clone(),
            Self::OutOfTime { limit } => {
                let text = format!("The call took longer than {limit:?}, and was stopped");
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, text).with_data(reason("timeout"))
            }
            Self::UserFacing(text) => ErrorObject::new(ErrorCode::INTERNAL_ERROR, text.clone()),
            Self::Internal => ErrorObject::internal(),
            Self::AfterSteps { refusal, done, kept } => {
                refusal.to_error_after(refusal.to_error(), done, *kept)
            }
        }
    }

    /// Returns the error of this refusal, with the completed steps and what a repetition would do.
    pub(crate) fn to_error_after(
        &self,
        mut error: ErrorObject,
        done: &[String],
        kept: StepsKept,
    ) -> ErrorObject {
        let is_open = kept == StepsKept::InRecord && self.leaves_the_call_open();
        let text = match self {
            Self::StepFailed { path, .. } if !is_open => format!("The step `{path}` failed for now"),
            Self::Version => OTHER_VERSION.to_owned(),
            Self::RecordLost => NOT_STORED.to_owned(),
            Self::OutcomeUnknown { step } => unknown(step.as_deref()),
            _ => error.message.trim_end_matches('.').to_owned(),
        };
        let next = if is_open { GO_ON } else { DO_NOT_REPEAT };
        error.message = format!("{} {}. {next}.", sentence(&text), completed(done));
        let mut data = error.data.take().unwrap_or_else(|| json!({}));
        if let Value::Object(members) = &mut data {
            members.insert("done".to_owned(), json!(done));
        }
        error.with_data(data)
    }
}

/// Returns the text for a client that did not declare an extension.
pub(crate) fn undeclared(id: &str) -> String {
    format!("The client did not declare a required extension: {id}")
}

/// Returns a text that ends as a sentence.
pub(crate) fn sentence(text: &str) -> Cow<'_, str> {
    match text.ends_with(['.', '?', '!']) {
        true => text.into(),
        false => format!("{text}.").into(),
    }
}

/// Returns the clause that names completed steps.
pub(crate) fn completed(done: &[String]) -> String {
    let steps: Vec<String> = done.iter().map(|path| format!("`{path}`")).collect();
    format!("Completed before that: {}", steps.join(", "))
}

fn outcome_unknown(step: Option<&str>) -> ErrorObject {
    let data = match step {
        Some(step) => json!({ "reason": "outcome_unknown", "step": step }),
        None => reason("outcome_unknown"),
    };
    let text = format!("{}. {FIND_OUT}", unknown(step));
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, text).with_data(data)
}

fn unknown(step: Option<&str>) -> String {
    match step {
        Some(step) => {
            format!(
                "The server stopped while the step `{step}` ran: it is unknown whether the step had its effect"
            )
        }
        None => "The server stopped while this request ran: it is unknown what it has done".to_owned(),
    }
}

/// Returns a time in milliseconds, from 100 to one minute.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(100, 60_000)
}

fn reason(name: &str) -> Value {
    json!({ "reason": name })
}

/// Returns the names of these capabilities, as clients document them.
pub(crate) fn names_of(missing: AskSupport) -> String {
    let names = [
        (missing.form, "elicitation.form"),
        (missing.url, "elicitation.url"),
        (missing.sampling, "sampling"),
        (missing.sampling_tools, "sampling.tools"),
        (missing.sampling_context, "sampling.context"),
        (missing.roots, "roots"),
    ];
    let names: Vec<&str> =
        names.iter().filter(|(is_missing, _)| *is_missing).map(|(_, name)| *name).collect();
    names.join(", ")
}

/// The number of attempts of an operation whose effect is unknown.
pub(crate) const ATTEMPTS: u32 = 3;

/// Runs an operation again whose effect is unknown. Every operation of a store may be repeated.
pub(crate) async fn repeated<'a, T>(operation: impl Fn() -> StoreFuture<'a, T>) -> Result<T, StoreError> {
    let mut attempt = 1;
    loop {
        match operation().await {
            Err(error) if error.written() == Written::Unknown && attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

/// Logs an error of the store, and returns the refusal.
pub(crate) fn refused(error: &StoreError) -> Refusal {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    tracing::error!(error = %escaped(error), cause = %escaped(&cause), "the store of calls failed: the request is refused");
    Refusal::Store
}

/// Reads an object into a struct. An array is refused: serde would read it into the struct by position.
pub(crate) fn read_object<'a, T: Deserialize<'a>>(text: &'a RawValue, what: &str) -> Result<T, ErrorObject> {
    if !text.get().starts_with('{') {
        return Err(ErrorObject::invalid_params(format!("{what} must be an object")));
    }
    serde_json::from_str(text.get()).map_err(|fault| ErrorObject::invalid_params(format!("{what}: {fault}")))
}
