//! What is heard while a request is under way: progress and log messages.

use crate::ServerIdentity;
use antiphon_wire::LogLevel;
use serde_json::Value;
use std::{fmt, sync::Arc};

/// The request that a notification belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventContext {
    /// The server that sent it.
    pub server: ServerIdentity,
    /// The request's method, such as `tools/call`.
    pub method: &'static str,
    /// The tool's or prompt's name, or the resource's URI; none for a list.
    pub name: Option<String>,
    /// How many rounds of questions came before this request. 0 if nothing was asked yet.
    pub round: u32,
    /// Which request of its call this is, from 1, counted from where the call was started or resumed. A request that
    /// was refused before it was acted upon, and sent again, keeps its number.
    pub leg: u32,
}

/// A request has come further.
///
/// Each leg of a call is a request of its own, so each begins anew; within one, `progress` only ever rises. What a
/// server sends against that rule is dropped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProgressEvent {
    /// The request.
    pub context: Arc<EventContext>,
    /// How far it has come, in units of the server's choosing.
    pub progress: f64,
    /// How far it goes, in the same units, if the server knows.
    pub total: Option<f64>,
    /// What is being done, for people. From the server: whoever shows it decides what it may contain.
    pub message: Option<String>,
}

/// The server logged something about a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LogEvent {
    /// The request.
    pub context: Arc<EventContext>,
    /// How grave it is; at least the level that was asked for.
    pub level: LogLevel,
    /// Which part of the server says so.
    pub logger: Option<String>,
    /// What it says: a text, or any JSON. From the server: whoever shows it decides what it may contain.
    pub data: Value,
}

/// A callback for progress: must not block.
#[derive(Clone)]
pub struct OnProgress(Arc<dyn Fn(ProgressEvent) + Send + Sync>);

impl OnProgress {
    /// From a closure.
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
