//! The notifications that belong to one request: progress and log messages.

use crate::{
    request::{
        core::{Core, RequestSpec},
        deadline::RequestDeadline,
        events::{EventContext, LogEvent, OnProgress, ProgressEvent},
    },
    transport::IncomingNotification,
};
use antiphon_wire::{
    LogLevel, LogMessageParams, Meta, ProgressParams, RequestId, escaped, meta_keys, method,
};
use serde_json::{Value, json, value::RawValue};
use std::sync::Arc;

/// Receives the notifications of one request and calls the observers.
pub(crate) struct NotificationSink<'a> {
    core: &'a Core,
    of: &'a RequestSpec<'a>,
    context: Option<Arc<EventContext>>,
    /// The token that was sent, if one was.
    token: Option<Value>,
    on_progress: Option<&'a OnProgress>,
    last: Option<f64>,
    deadline: &'a RequestDeadline,
    level: Option<LogLevel>,
}

impl<'a> NotificationSink<'a> {
    pub(crate) fn new(core: &'a Core, of: &'a RequestSpec<'a>, deadline: &'a RequestDeadline) -> Self {
        let on_progress = of.on_progress.or(core.observers.progress.as_ref());
        let level = of.log_level.or_else(|| core.observers.log_level());
        Self { core, of, context: None, token: None, on_progress, last: None, deadline, level }
    }

    /// Asks the server, in the request's `_meta`, for the notifications that have an observer.
    ///
    /// > When a client wants to _receive_ progress updates for a request, it includes a `progressToken` in the request
    /// > metadata.
    pub(crate) fn request_all(&mut self, id: &RequestId, meta: &mut Meta) {
        self.request_progress(id, meta);
        if let Some(level) = self.level {
            // > The server **MUST NOT** emit `notifications/message` for a request that does not include this field.
            // own: the level of this client
            meta.0.insert(meta_keys::LOG_LEVEL.into(), json!(level));
        }
    }

    /// Requests progress only: sessions have progress, but no log level per request.
    pub(crate) fn request_progress(&mut self, id: &RequestId, meta: &mut Meta) {
        if self.on_progress.is_some() || self.deadline.is_stretched_by_progress() {
            // > Progress tokens [...] **MUST** be unique across all active requests.
            // So is the request's id, and a transport that all requests share finds the request by it.
            // own: the id is of this client
            let token = json!(id);
            meta.0.insert(meta_keys::PROGRESS_TOKEN.into(), token.clone());
            self.token = Some(token);
        }
    }

    /// Passes a notification to its observer, if the client requested it.
    pub(crate) fn on_notification(&mut self, notification: IncomingNotification) {
        if let Some(waits) = notification.waits {
            return self.deadline.pause(waits);
        }
        let params = notification.params.as_deref().map_or("{}", RawValue::get);
        let dropped = match &*notification.method {
            method::PROGRESS => self.on_progress_params(params),
            method::MESSAGE => self.on_log_message(params),
            _ => match self.core.observers.of_extensions.pass(&notification) {
                Some(Ok(())) => None,
                Some(Err(_fault)) => Some("its params do not fit"),
                None => Some("no observer is attached for its method"),
            },
        };
        if let Some(why) = dropped {
            tracing::debug!(
                request = %escaped(&self.of.method),
                method = %escaped(&notification.method),
                why,
                "a notification is dropped"
            );
        }
    }

    /// Returns the reason if the notification was dropped.
    fn on_progress_params(&mut self, params: &str) -> Option<&'static str> {
        let Ok(params) = serde_json::from_str::<ProgressParams>(params) else {
            return Some("its params cannot be read");
        };
        // > Progress notifications **MUST** only reference tokens that: Were provided in an active request
        if self.token.as_ref() != Some(&params.progress_token) {
            return Some("it has another token than the request");
        }
        let Some(progress) = params.progress.as_f64() else { return Some("its progress is no number") };
        // > The `progress` value **MUST** increase with each notification, even if the total is unknown.
        if self.last.is_some_and(|last| progress <= last) {
            return Some("its progress does not increase");
        }
        self.last = Some(progress);
        self.deadline.progressed();
        if let Some(callback) = self.on_progress {
            let total = params.total.and_then(|total| total.as_f64());
            callback.call(ProgressEvent {
                context: self.context(),
                progress,
                total,
                message: params.message,
            });
        }
        None
    }

    fn on_log_message(&mut self, params: &str) -> Option<&'static str> {
        let (Some(level), Some(callback)) = (self.level, &self.core.observers.log) else {
            return Some("no observer for log messages is attached");
        };
        let Ok(params) = serde_json::from_str::<LogMessageParams>(params) else {
            return Some("its params cannot be read");
        };
        // > the server **MAY** send `notifications/message` notifications at or above the requested level
        if params.level < level {
            return Some("it is below the level that was asked for");
        }
        let context = self.context();
        callback(LogEvent { context, level: params.level, logger: params.logger, data: params.data });
        None
    }

    /// Made at the first event, and shared by all.
    fn context(&mut self) -> Arc<EventContext> {
        let (core, of) = (self.core, self.of);
        let make = || {
            let name = of.name.map(str::to_owned);
            let server = core.identity();
            Arc::new(EventContext { server, method: of.method.clone(), name, round: of.round, leg: of.leg })
        };
        Arc::clone(self.context.get_or_insert_with(make))
    }
}
