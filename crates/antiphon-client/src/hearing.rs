//! Who hears what while a request is under way.

use crate::{
    Inner,
    event::{EventContext, LogEvent, OnLog, OnProgress, ProgressEvent},
    leg::Wanted,
    patience::Patience,
    transport::IncomingNotification,
};
use antiphon_wire::{LogLevel, LogMessageParams, Meta, ProgressParams, RequestId, meta_keys, method};
use serde_json::{Value, json, value::RawValue};
use std::sync::Arc;

/// The callbacks of a client, and the level it asks for.
#[derive(Clone, Default)]
pub(crate) struct Hearers {
    pub(crate) progress: Option<OnProgress>,
    pub(crate) log: Option<OnLog>,
    pub(crate) level: Option<LogLevel>,
}

impl Hearers {
    /// The level to ask for: whoever listens without naming one wants `info`.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.level.or(self.log.is_some().then_some(LogLevel::Info))
    }
}

/// What is heard of one request.
pub(crate) struct Hearing<'a> {
    inner: &'a Inner,
    of: &'a Wanted<'a>,
    context: Option<Arc<EventContext>>,
    /// The token that was sent, if one was.
    token: Option<Value>,
    on_progress: Option<&'a OnProgress>,
    last: Option<f64>,
    patience: &'a Patience,
    level: Option<LogLevel>,
}

impl<'a> Hearing<'a> {
    pub(crate) fn new(inner: &'a Inner, of: &'a Wanted<'a>, patience: &'a Patience) -> Self {
        let on_progress = of.on_progress.or(inner.hearers.progress.as_ref());
        let level = of.log_level.or_else(|| inner.hearers.log_level());
        Self { inner, of, context: None, token: None, on_progress, last: None, patience, level }
    }

    /// Asks for what somebody wants to hear, in the request's `_meta`.
    ///
    /// > When a client wants to _receive_ progress updates for a request, it includes a `progressToken` in the request
    /// > metadata.
    pub(crate) fn ask(&mut self, id: &RequestId, meta: &mut Meta) {
        self.ask_for_progress(id, meta);
        if let Some(level) = self.level {
            // > The server **MUST NOT** emit `notifications/message` for a request that does not include this field.
            meta.0.insert(meta_keys::LOG_LEVEL.into(), json!(level));
        }
    }

    /// The part of it that a session knows as well.
    pub(crate) fn ask_for_progress(&mut self, id: &RequestId, meta: &mut Meta) {
        if self.on_progress.is_some() || self.patience.listens() {
            // > Progress tokens [...] **MUST** be unique across all active requests.
            // So is the request's id, and a transport that all requests share finds the request by it.
            let token = json!(id);
            meta.0.insert(meta_keys::PROGRESS_TOKEN.into(), token.clone());
            self.token = Some(token);
        }
    }

    /// Hands a notification on, if it is what was asked for.
    pub(crate) fn take(&mut self, notification: IncomingNotification) {
        let params = notification.params.as_deref().map_or("{}", RawValue::get);
        let dropped = match &*notification.method {
            method::PROGRESS => self.take_progress(params),
            method::MESSAGE => self.take_message(params),
            _ => Some("nobody here listens for it"),
        };
        if let Some(why) = dropped {
            tracing::debug!(
                request = self.of.method,
                method = %notification.method.chars().take(100).collect::<String>(),
                why,
                "a notification is dropped"
            );
        }
    }

    /// Returns why it was dropped, if it was.
    fn take_progress(&mut self, params: &str) -> Option<&'static str> {
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
        self.patience.hear();
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

    fn take_message(&mut self, params: &str) -> Option<&'static str> {
        let (Some(level), Some(callback)) = (self.level, &self.inner.hearers.log) else {
            return Some("log messages are not listened for");
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
        let (inner, of) = (self.inner, self.of);
        let make = || {
            let name = of.name.map(str::to_owned);
            let server = inner.identity();
            Arc::new(EventContext { server, method: of.method, name, round: of.round, leg: of.leg })
        };
        Arc::clone(self.context.get_or_insert_with(make))
    }
}
