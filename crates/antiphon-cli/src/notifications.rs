//! Progress and log messages of the server, printed on standard error.

use crate::{console, sanitize};
use antiphon::{
    client::{
        ClientBuilder,
        events::{LogEvent, ProgressEvent},
    },
    wire::LogLevel,
};
use serde_json::Value;

/// The maximum length of a printed message, in characters.
const SHOWN: usize = 500;

/// Prints progress, and log messages if there is a level.
pub(crate) fn attach(builder: ClientBuilder, level: Option<LogLevel>) -> ClientBuilder {
    attach_log(builder.on_progress(|event| console::hint(&progress(&event))), level)
}

/// Prints log messages if there is a level.
pub(crate) fn attach_log(builder: ClientBuilder, level: Option<LogLevel>) -> ClientBuilder {
    match level {
        None => builder,
        Some(level) => builder.log_level(level).on_log(|event| console::hint(&message(&event))),
    }
}

fn progress(event: &ProgressEvent) -> String {
    let of = event.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let message = event.message.as_deref().map(|text| format!(": {}", sanitize::truncated(text, SHOWN)));
    // A task has no numbers: its progress is its status message.
    if event.context.method == "tasks/get" {
        return format!("task{}", message.unwrap_or_default());
    }
    format!("progress {}{of}{}", event.progress, message.unwrap_or_default())
}

fn message(event: &LogEvent) -> String {
    let logger = event.logger.as_deref().map(|name| format!(" {}", sanitize::truncated(name, SHOWN)));
    let text = match &event.data {
        Value::String(text) => sanitize::truncated(text, SHOWN),
        other => sanitize::truncated(&other.to_string(), SHOWN),
    };
    format!("log {}{}: {text}", word(event.level), logger.unwrap_or_default())
}

/// Returns the name of a level in the protocol.
fn word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Notice => "notice",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
        LogLevel::Critical => "critical",
        LogLevel::Alert => "alert",
        LogLevel::Emergency => "emergency",
    }
}

/// Parses the value of `--log-level`.
pub(crate) fn level(text: &str) -> Result<LogLevel, String> {
    serde_json::from_value(Value::from(text)).map_err(|_| {
        "must be one of debug, info, notice, warning, error, critical, alert, emergency".to_owned()
    })
}
