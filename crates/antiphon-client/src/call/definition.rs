//! A call: the part that is the same in every leg.

use crate::{
    cancel::CancelToken,
    request::events::{OnProgress, ProgressEvent},
};
use antiphon_wire::{LogLevel, method};
use serde::{Deserialize, Serialize};
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
    /// The time limit of one request.
    pub leg_timeout: Option<Duration>,
    /// The time limit of the whole call, people included, counted from where it is started or resumed.
    pub deadline: Option<Duration>,
    /// Ends the call from outside.
    pub cancel: Option<CancelToken>,
    /// Asks the server even if the resource was read before and the result may still be used.
    pub fresh: bool,
    /// Called for each progress, instead of the client's callback.
    pub on_progress: Option<OnProgress>,
    /// The lowest level of log messages wanted, instead of the client's.
    pub log_level: Option<LogLevel>,
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
                let rule = format!("of a prompt must be strings, and `{key}` is not");
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

    /// The same call, with this much time for each request instead of the client's.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.leg_timeout = Some(limit);
        self
    }

    /// The same call, with this much time for all of it, people included.
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.options.deadline = Some(limit);
        self
    }

    /// The same call, ended when this token is cancelled.
    #[must_use]
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.options.cancel = Some(token.clone());
        self
    }

    /// The same call, asking the server even if a result of reading this resource is kept and may still be used. The
    /// new one is kept instead.
    #[must_use]
    pub fn fresh(mut self) -> Self {
        self.options.fresh = true;
        self
    }

    /// The same call, with progress passed to this callback instead of the client's
    /// [`on_progress`](crate::ClientBuilder::on_progress), whose rules are also this one's: it must not block.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(ProgressEvent) + Send + Sync + 'static) -> Self {
        self.options.on_progress = Some(OnProgress::new(callback));
        self
    }

    /// The same call, asking for log messages from this level on instead of the client's
    /// [`log_level`](crate::ClientBuilder::log_level).
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.options.log_level = Some(level);
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

    /// The settings that differ from the client's, to change them.
    pub fn options_mut(&mut self) -> &mut CallOptions {
        &mut self.options
    }
}

impl fmt::Debug for Call {
    /// Without the arguments: they do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method())
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.method(), self.name)
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
        write!(f, "the arguments for `{}` {}", self.name, self.rule)
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
