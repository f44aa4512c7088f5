//! The events of a request that is under way: progress and log messages.

use crate::{asks::questions::ServerIdentity, transport::IncomingNotification};
use antiphon_wire::{LogLevel, arguments::decode_params};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{borrow::Cow, fmt, sync::Arc};

/// The request that a notification belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventContext {
    /// The server that sent it.
    pub server: ServerIdentity,
    /// The request's method, such as `tools/call`.
    pub method: Cow<'static, str>,
    /// The tool's or prompt's name, or the resource's URI; none for a list.
    pub name: Option<String>,
    /// The number of rounds of questions before this request. 0 if nothing was asked yet.
    pub round: u32,
    /// The number of this request in its call, from 1, counted from where the call was started or resumed. A request that
    /// was refused before it was acted upon, and sent again, keeps its number.
    pub leg: u32,
}

/// The progress of a request.
///
/// Each leg of a call is a separate request, so the progress of each leg begins again. Within one leg, `progress` only rises;
/// an event that breaks this rule is dropped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProgressEvent {
    /// The request.
    pub context: Arc<EventContext>,
    /// The progress so far, in units of the server's choosing.
    pub progress: f64,
    /// The progress at the end, in the same units, if the server sent it.
    pub total: Option<f64>,
    /// A text for people. It comes from the server: sanitize it before you show it.
    pub message: Option<String>,
}

/// A log message of the server about a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LogEvent {
    /// The request.
    pub context: Arc<EventContext>,
    /// The severity; at least the level that was asked for.
    pub level: LogLevel,
    /// The part of the server that logged it.
    pub logger: Option<String>,
    /// The message: a text, or any JSON. It comes from the server: sanitize it before you show it.
    pub data: Value,
}

/// A callback for progress: must not block.
#[derive(Clone)]
pub struct OnProgress(Arc<dyn Fn(ProgressEvent) + Send + Sync>);

impl OnProgress {
    /// Wraps a closure.
    pub fn new(callback: impl Fn(ProgressEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    pub(crate) fn call(&self, event: ProgressEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnProgress")
    }
}

/// A callback for log messages.
pub(crate) type OnLog = Arc<dyn Fn(LogEvent) + Send + Sync>;

/// The observers of a client, and the level of log messages that it asks for.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    pub(crate) progress: Option<OnProgress>,
    pub(crate) log: Option<OnLog>,
    pub(crate) level: Option<LogLevel>,
    /// The callbacks for notifications of extensions.
    pub(crate) of_extensions: OnNotification,
}

/// A callback that reads the notification's params itself.
type Read = Arc<dyn Fn(&IncomingNotification) -> Result<(), String> + Send + Sync>;

/// The callbacks for notifications of extensions, with their methods.
#[derive(Clone, Default)]
pub(crate) struct OnNotification(Vec<(String, Read)>);

impl OnNotification {
    /// Adds a callback, in the place of an earlier one for the same method.
    pub(crate) fn add<P: DeserializeOwned>(
        &mut self,
        method: String,
        callback: impl Fn(P) + Send + Sync + 'static,
    ) {
        self.0.retain(|(known, _)| *known != method);
        let read = move |notification: &IncomingNotification| {
            let params = match notification.params.as_deref() {
                Some(params) => decode_params(params)?,
                None => serde_json::from_str("{}").map_err(|fault| fault.to_string())?,
            };
            callback(params);
            Ok(())
        };
        self.0.push((method, Arc::new(read)));
    }

    /// Passes a notification to its callback; `None` if its method has none.
    pub(crate) fn pass(&self, notification: &IncomingNotification) -> Option<Result<(), String>> {
        let (_, read) = self.0.iter().find(|(method, _)| *method == notification.method)?;
        Some(read(notification))
    }
}

impl Observers {
    /// The level to ask for. An observer without a level gets `info`.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.level.or(self.log.is_some().then_some(LogLevel::Info))
    }
}
