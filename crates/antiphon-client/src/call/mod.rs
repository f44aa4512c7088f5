//! One call of a tool or a prompt, or the reading of a resource, from its first leg to its result.
//!
//! The documentation of the crate draws the states of a call; `rounds` has the loop.

pub(crate) mod error_kind;
pub(crate) mod errors;
pub(crate) mod legs;
pub(crate) mod outcome;
pub(crate) mod pending;
pub(crate) mod rounds;
pub(crate) mod task;
pub(crate) mod task_handle;

use crate::request::{
    deadline::CancelToken,
    events::{OnProgress, ProgressEvent},
};
use antiphon_wire::{LogLevel, escaped, method};
use serde::{Deserialize, Serialize, de};
use serde_json::{Map, Value, value::RawValue};
use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

/// One call of a tool, of a prompt, or the reading of a resource. The arguments are written once, and every leg sends
/// the same text.
#[derive(Clone, Serialize, Deserialize)]
pub struct Call {
    method: CallKind,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "shared_text")]
    arguments: Option<Arc<RawValue>>,
    #[serde(skip)]
    options: CallOptions,
}

/// The three requests that a server may answer with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CallKind {
    /// `tools/call`.
    #[serde(rename = "tools/call")]
    Tool,
    /// `prompts/get`.
    #[serde(rename = "prompts/get")]
    Prompt,
    /// `resources/read`.
    #[serde(rename = "resources/read")]
    Resource,
}

impl CallKind {
    /// The method on the wire.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tool => method::TOOLS_CALL,
            Self::Prompt => method::PROMPTS_GET,
            Self::Resource => method::RESOURCES_READ,
        }
    }
}

/// The settings of one call that differ from its client's. They are not part of a serialized
/// [`PendingCall`](crate::PendingCall).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    pub(crate) leg_timeout: Option<Duration>,
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) cancel: Option<CancelToken>,
    pub(crate) fresh: bool,
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) cancel_on_error: bool,
    pub(crate) task_ttl: Option<Duration>,
}

impl CallOptions {
    /// Sets the time limit of one request. Default: the client's.
    #[must_use]
    pub fn leg_timeout(mut self, limit: Duration) -> Self {
        self.leg_timeout = Some(limit);
        self
    }

    /// Sets the time limit of the whole call, including the time of people, from its start or resumption. Default: the client's.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = Some(limit);
        self
    }

    /// Ends the call when this token is cancelled.
    #[must_use]
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.cancel = Some(token.clone());
        self
    }

    /// Sets whether the server is asked even if a result of reading this resource is kept and may still be used. The new
    /// one is kept instead. Default: `false`.
    #[must_use]
    pub fn fresh(mut self, on: bool) -> Self {
        self.fresh = on;
        self
    }

    /// Passes progress to this callback instead of the client's [`on_progress`](crate::ClientBuilder::on_progress), whose
    /// rules are also this one's: it must not block.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(ProgressEvent) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(OnProgress::new(callback));
        self
    }

    /// Asks for log messages from this level on. Default: the client's [`log_level`](crate::ClientBuilder::log_level).
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Sets whether the server is asked to cancel the task that the call became, if the call ends with an error while its task
    /// runs: at the time limit, when it is cancelled, or when a callback fails. Default: `false`; the task continues, and the
    /// error holds its handle ([`ClientError::task`](crate::ClientError::task)).
    ///
    /// The error then comes up to the time limit of one request later. Dropping the future of the call sends nothing.
    #[must_use]
    pub fn cancel_on_error(mut self, on: bool) -> Self {
        self.cancel_on_error = on;
        self
    }

    /// Sets the time for which the server should keep the task that the call becomes, from its creation. Default: the server
    /// decides. Sent on sessions of 2025-11-25 and in the draft; in the extension the server decides alone.
    #[must_use]
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        self.task_ttl = Some(ttl);
        self
    }
}

impl Call {
    /// Calls a tool. The arguments are an object; `()` and `null` mean none.
    ///
    /// # Errors
    /// [`ArgumentsError`] if the arguments are something else.
    pub fn tool(name: impl Into<String>, arguments: impl Serialize) -> Result<Self, ArgumentsError> {
        let name = name.into();
        let arguments = written(&name, &arguments)?;
        Ok(Self { method: CallKind::Tool, name, arguments, options: CallOptions::default() })
    }

    /// Gets a prompt. The arguments are an object of strings; `()` and `null` mean none.
    ///
    /// # Errors
    /// [`ArgumentsError`] if the arguments are something else.
    pub fn prompt(name: impl Into<String>, arguments: impl Serialize) -> Result<Self, ArgumentsError> {
        let name = name.into();
        let arguments = written(&name, &arguments)?;
        if let Some(text) = &arguments {
            let members: Map<String, Value> = serde_json::from_str(text.get())
                .map_err(|source| ArgumentsError::new(&name, "could not be read", Some(source)))?;
            if let Some((key, _)) = members.iter().find(|(_, value)| !value.is_string()) {
                let rule = format!("are not those of a prompt: `{key}` must be a string");
                return Err(ArgumentsError::new(&name, rule, None));
            }
        }
        Ok(Self { method: CallKind::Prompt, name, arguments, options: CallOptions::default() })
    }

    /// Reads a resource.
    pub fn resource(uri: impl Into<String>) -> Self {
        let options = CallOptions::default();
        Self { method: CallKind::Resource, name: uri.into(), arguments: None, options }
    }

    /// The same call with these settings, in the place of all earlier ones.
    #[must_use]
    pub fn with_options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// The same call with another time limit for each request: [`CallOptions::leg_timeout`].
    #[must_use]
    pub fn leg_timeout(mut self, limit: Duration) -> Self {
        self.options = self.options.leg_timeout(limit);
        self
    }

    /// The same call with a time limit of the whole call: [`CallOptions::call_timeout`].
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.options = self.options.call_timeout(limit);
        self
    }

    /// The same call, ended when this token is cancelled.
    #[must_use]
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.options = self.options.cancelled_by(token);
        self
    }

    /// The same call, asking the server even if a kept result may still be used: [`CallOptions::fresh`].
    #[must_use]
    pub fn fresh(mut self, on: bool) -> Self {
        self.options = self.options.fresh(on);
        self
    }

    /// The same call, with progress passed to this callback instead of the client's: [`CallOptions::on_progress`].
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(ProgressEvent) + Send + Sync + 'static) -> Self {
        self.options = self.options.on_progress(callback);
        self
    }

    /// The same call, asking for log messages from this level on: [`CallOptions::log_level`].
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.options = self.options.log_level(level);
        self
    }

    /// The same call, whose task is cancelled if the call ends with an error: [`CallOptions::cancel_on_error`].
    #[must_use]
    pub fn cancel_on_error(mut self, on: bool) -> Self {
        self.options = self.options.cancel_on_error(on);
        self
    }

    /// The same call, whose task the server should keep for this time: [`CallOptions::task_ttl`].
    #[must_use]
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        self.options = self.options.task_ttl(ttl);
        self
    }

    /// The kind of request.
    pub fn kind(&self) -> CallKind {
        self.method
    }

    /// The method on the wire.
    pub fn method(&self) -> &'static str {
        self.method.method()
    }

    /// The tool's or prompt's name, or the resource's URI.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments, as the text that is sent.
    pub fn arguments(&self) -> Option<&RawValue> {
        self.arguments.as_deref()
    }

    pub(crate) fn shared_arguments(&self) -> Option<&Arc<RawValue>> {
        self.arguments.as_ref()
    }

    /// The settings that differ from the client's.
    pub fn options(&self) -> &CallOptions {
        &self.options
    }
}

impl fmt::Debug for Call {
    /// Leaves out the arguments, which do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method())
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.method(), escaped(&self.name))
    }
}

/// An error from arguments that cannot be sent: the caller's mistake.
#[derive(Debug)]
pub struct ArgumentsError {
    name: String,
    rule: String,
    source: Option<serde_json::Error>,
}

impl ArgumentsError {
    fn new(name: &str, rule: impl Into<String>, source: Option<serde_json::Error>) -> Self {
        Self { name: name.to_owned(), rule: rule.into(), source }
    }
}

impl fmt::Display for ArgumentsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the arguments for `{}` {}", escaped(&self.name), self.rule)
    }
}

impl StdError for ArgumentsError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

fn written(name: &str, arguments: &impl Serialize) -> Result<Option<Arc<RawValue>>, ArgumentsError> {
    let text = serde_json::value::to_raw_value(arguments)
        .map_err(|source| ArgumentsError::new(name, "cannot be written as JSON", Some(source)))?;
    match text.get().trim_start().as_bytes().first() {
        Some(b'{') => Ok(Some(text.into())),
        Some(b'n') => Ok(None),
        _ => Err(ArgumentsError::new(name, "must be a JSON object", None)),
    }
}

/// Serializes the text of arguments, which all clones of a call share.
mod shared_text {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use serde_json::value::RawValue;
    use std::sync::Arc;

    pub(super) fn serialize<S: Serializer>(text: &Option<Arc<RawValue>>, to: S) -> Result<S::Ok, S::Error> {
        text.as_deref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<RawValue>>, D::Error> {
        Ok(Option::<Box<RawValue>>::deserialize(from)?.map(Arc::from))
    }
}

/// Checks that a stored value was written in a format that can be read here: one of `0..=known`.
pub(crate) fn must_be_known<E: de::Error>(version: u32, known: u32, what: &str) -> Result<(), E> {
    if version <= known {
        return Ok(());
    }
    Err(E::custom(format_args!(
        "the {what} was written by a newer version of antiphon (format {version}); formats up to {known} can be read here"
    )))
}
