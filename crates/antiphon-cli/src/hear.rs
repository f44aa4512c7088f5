//! What the server says while a request is under way, on standard error.

use crate::{console, show};
use antiphon::{
    client::{ClientBuilder, LogEvent, ProgressEvent},
    wire::LogLevel,
};
use serde_json::Value;

/// How much of one message is shown.
const SHOWN: usize = 500;

/// Shows progress, and log messages if a level is named.
pub(crate) fn attach(builder: ClientBuilder, level: Option<LogLevel>) -> ClientBuilder {
    let builder = builder.on_progress(|event| console::note(&progress(&event)));
    match level {
        None => builder,
        Some(level) => builder.log_level(level).on_log(|event| console::note(&message(&event))),
    }
}

fn progress(event: &ProgressEvent) -> String {
    let of = event.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let message = event.message.as_deref().map(|text| format!(": {}", show::short(text, SHOWN)));
    format!("progress {}{of}{}", event.progress, message.unwrap_or_default())
}

fn message(event: &LogEvent) -> String {
    let logger = event.logger.as_deref().map(|name| format!(" {}", show::short(name, SHOWN)));
    let text = match &event.data {
        Value::String(text) => show::short(text, SHOWN),
        other => show::short(&other.to_string(), SHOWN),
    };
    format!("log {}{}: {text}", word(event.level), logger.unwrap_or_default())
}

/// The level as the protocol writes it.
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

/// The level of this word.
pub(crate) fn level(text: &str) -> Result<LogLevel, String> {
    serde_json::from_value(Value::from(text))
        .map_err(|_| "one of debug, info, notice, warning, error, critical, alert, emergency".to_owned())
}
