//! Progress and log messages of one leg.

use crate::{
    Ctx, Request,
    outbox::{MessageKind, Outbox},
};
use antiphon_wire::{LogLevel, LogMessageParams, ProgressParams, ProgressToken, method, write_notification};
use serde::Serialize;
use serde_json::{Number, Value};
use std::sync::{Mutex, PoisonError};

/// What one request wants to hear of, and where it goes.
pub(crate) struct Emitter {
    outbox: Outbox,
    progress: Option<Progress>,
    level: Option<LogLevel>,
}

struct Progress {
    token: ProgressToken,
    /// What was told last.
    reached: Mutex<Option<f64>>,
}

impl Emitter {
    /// `None` if the request wants to hear of nothing, or its transport carries nothing but replies.
    ///
    /// > The server **MUST NOT** emit `notifications/message` for a request that does not include this field.
    pub(crate) fn of(request: &Request<'_>, outbox: Option<&Outbox>, logs: bool) -> Option<Self> {
        let (token, level) = (request.meta.progress_token.clone(), request.meta.log_level.filter(|_| logs));
        if token.is_none() && level.is_none() {
            return None;
        }
        let progress = token.map(|token| Progress { token, reached: Mutex::new(None) });
        Some(Self { outbox: outbox?.clone(), progress, level })
    }

    fn progress(&self, value: f64, total: Option<f64>, message: Option<&str>) {
        let (Some(progress), Some(number)) = (&self.progress, Number::from_f64(value)) else { return };
        // > The `progress` value **MUST** increase with each notification, even if the total is unknown.
        let mut reached = progress.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if reached.is_some_and(|reached| value <= reached) {
            tracing::debug!(value, ?reached, "progress did not increase: not told");
            return;
        }
        *reached = Some(value);
        let mut params = ProgressParams::new(progress.token.clone(), number);
        params.total = total.and_then(Number::from_f64);
        params.message = message.map(str::to_owned);
        self.send(MessageKind::Progress, method::PROGRESS, &params);
    }

    fn log(&self, level: LogLevel, logger: Option<&str>, data: impl FnOnce() -> Value) {
        // > the server **MAY** send `notifications/message` notifications at or above the requested level
        if self.level.as_ref().is_none_or(|wanted| level < *wanted) {
            return;
        }
        let mut params = LogMessageParams::new(level, data());
        params.logger = logger.map(str::to_owned);
        self.send(MessageKind::Log, method::MESSAGE, &params);
    }

    fn send(&self, kind: MessageKind, method: &str, params: &impl Serialize) {
        match write_notification(method, params) {
            Ok(bytes) => self.outbox.push(kind, bytes),
            Err(fault) => tracing::error!(method, %fault, "a notification cannot be written as JSON"),
        }
    }
}

impl Ctx {
    /// Tells the caller how far this request has come: `progress` of `total`, in any unit, and in words. It is sent at
    /// once, if the caller asked for progress; it must increase, and what does not is not sent.
    ///
    /// > The server **MAY** send progress notifications to report the status of requests the client has issued.
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(emitter) = self.emitter() {
            emitter.progress(progress, total, message);
        }
    }

    /// Ends the event stream that carries this call, while the call goes on: a client of 2025-11-25 comes back for the rest
    /// after the time that the stream named. For work of minutes, so that no connection is held for it.
    ///
    /// It does nothing elsewhere: not on 2026-07-28, where a stream that ends is a call that is cancelled, and not on stdio.
    ///
    /// > The server **MAY** close the connection (without terminating the SSE stream) at any time
    pub fn close_stream(&self) {
        self.flow().carrier().close_stream();
    }

    /// Sends the caller a log message, if it asked for messages of this level and the server declares
    /// [`logging`](super::ServerBuilder::logging). Never secrets: it leaves the house.
    ///
    /// Deprecated in 2026-07-28: log with `tracing`, to standard error or to OpenTelemetry.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        if let Some(emitter) = self.emitter() {
            emitter.log(level, None, || data.into());
        }
    }

    /// The same, under the name of a logger.
    pub fn log_as(&self, level: LogLevel, logger: &str, data: impl Into<Value>) {
        if let Some(emitter) = self.emitter() {
            emitter.log(level, Some(logger), || data.into());
        }
    }
}
