//! Progress and log messages of one leg.

use crate::{
    outbox::{MessageKind, Outbox},
    request::receive::Request,
    task_registry::leg::TaskLeg,
};
use antiphon_wire::{
    LogLevel, LogMessageParams, ProgressParams, ProgressToken, escaped, lock::Lock, method,
    write_notification,
};
use serde::Serialize;
use serde_json::{Number, Value};
use std::sync::Arc;

/// The notifications that one request accepts, and the outbox for them.
pub(crate) struct Emitter {
    to: Receiver,
    progress: Option<Progress>,
    level: Option<LogLevel>,
}

/// The receiver of the notifications.
enum Receiver {
    Client(Outbox),
    /// The task, whose status message the progress becomes.
    Task(Arc<TaskLeg>),
}

struct Progress {
    token: ProgressToken,
    /// The last value that was sent.
    reached: Lock<Option<f64>>,
}

impl Emitter {
    /// Returns `None` if the request accepts no notifications, or its transport carries replies only.
    ///
    /// > The server **MUST NOT** emit `notifications/message` for a request that does not include this field.
    pub(crate) fn of(request: &Request<'_>, outbox: Option<&Outbox>, logs: bool) -> Option<Self> {
        let (token, level) = (request.meta.progress_token.clone(), request.meta.log_level.filter(|_| logs));
        if token.is_none() && level.is_none() {
            return None;
        }
        let progress = token.map(|token| Progress { token, reached: Lock::new(None) });
        Some(Self { to: Receiver::Client(outbox?.clone()), progress, level })
    }

    /// Returns the emitter of a leg of a task. Log messages are dropped.
    ///
    /// > `notifications/progress` and `notifications/message` [...] are not supported on tasks
    pub(crate) fn of_task(task: &Arc<TaskLeg>) -> Self {
        let progress = Progress { token: ProgressToken::Null, reached: Lock::new(None) };
        Self { to: Receiver::Task(Arc::clone(task)), progress: Some(progress), level: None }
    }

    pub(crate) fn progress(&self, value: f64, total: Option<f64>, message: Option<&str>) {
        let (Some(progress), Some(number)) = (&self.progress, Number::from_f64(value)) else { return };
        // > The `progress` value **MUST** increase with each notification, even if the total is unknown.
        let mut reached = progress.reached.lock();
        if reached.is_some_and(|reached| value <= reached) {
            tracing::debug!(value, ?reached, "progress did not increase: not sent");
            return;
        }
        *reached = Some(value);
        if let Receiver::Task(task) = &self.to {
            let text = status_of(value, total, message);
            return task.report(|news| news.status = Some(text));
        }
        let mut params = ProgressParams::new(progress.token.clone(), number);
        params.total = total.and_then(Number::from_f64);
        params.message = message.map(str::to_owned);
        self.send(MessageKind::Progress, method::PROGRESS, &params);
    }

    pub(crate) fn log(&self, level: LogLevel, logger: Option<&str>, data: impl FnOnce() -> Value) {
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
            Ok(bytes) => match &self.to {
                Receiver::Client(outbox) => outbox.push(kind, bytes),
                Receiver::Task(_) => {}
            },
            Err(fault) => {
                tracing::error!(method, fault = %escaped(&fault), "a notification cannot be written as JSON")
            }
        }
    }
}

/// Returns the status message of a progress.
fn status_of(value: f64, total: Option<f64>, message: Option<&str>) -> String {
    match (message, total) {
        (Some(message), _) => message.to_owned(),
        (None, Some(total)) => format!("{value} of {total}"),
        (None, None) => value.to_string(),
    }
}
