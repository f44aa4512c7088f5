//! Notifications of a session that belong to no request: changes, logs, cancelled asks, finished URLs.

use crate::{
    asks::callbacks::ElicitComplete,
    cache::ListKind,
    request::events::{EventContext, LogEvent},
    session::shared::Shared,
    transport::IncomingNotification,
};
use antiphon_wire::{
    CancelledParams, ElicitationCompleteParams, LogMessageParams, ResourceUpdatedParams, escaped, method,
};
use serde::de::DeserializeOwned;
use std::sync::Arc;

impl Shared {
    /// Handles a notification that belongs to no request.
    pub(crate) fn on_notification(&self, notification: &IncomingNotification) {
        match &*notification.method {
            method::CANCELLED => {
                if let Some(params) = read::<CancelledParams>(notification) {
                    self.open_asks.cancel(&params.request_id);
                }
            }
            method::ELICITATION_COMPLETE => self.on_url_finished(notification),
            method::MESSAGE => self.on_log_message(notification),
            method::TOOLS_LIST_CHANGED
            | method::PROMPTS_LIST_CHANGED
            | method::RESOURCES_LIST_CHANGED
            | method::RESOURCES_UPDATED => self.on_change(notification),
            method::TASKS_STATUS => self.listeners.notify(notification),
            _ => {
                tracing::debug!(server = %escaped(&self.server), "a notification without a listener: dropped")
            }
        }
    }

    fn on_change(&self, notification: &IncomingNotification) {
        let cache = &self.core.cache;
        match &*notification.method {
            method::TOOLS_LIST_CHANGED => cache.forget_list(ListKind::Tools),
            method::PROMPTS_LIST_CHANGED => cache.forget_list(ListKind::Prompts),
            method::RESOURCES_LIST_CHANGED => cache.forget_list(ListKind::Resources),
            _ => {
                if let Some(params) = read::<ResourceUpdatedParams>(notification) {
                    cache.forget_resource(&params.uri);
                }
            }
        }
        self.listeners.notify(notification);
    }

    fn on_url_finished(&self, notification: &IncomingNotification) {
        let Some(ElicitationCompleteParams { elicitation_id, .. }) = read(notification) else { return };
        if !self.listeners.finish_url(&elicitation_id) {
            tracing::debug!(server = %escaped(&self.server), "an unknown URL is finished: ignored");
        } else if let Some(callback) = &self.core.handlers.callbacks.elicit_complete {
            callback(ElicitComplete { server: self.server.clone(), elicitation_id });
        }
    }

    fn on_log_message(&self, notification: &IncomingNotification) {
        let observers = &self.core.observers;
        let (Some(callback), Some(wanted)) = (&observers.log, observers.log_level()) else { return };
        let Some(params) = read::<LogMessageParams>(notification).filter(|params| params.level >= wanted)
        else {
            return;
        };
        // The message belongs to no request, or to one of several that cannot be determined.
        let context = EventContext {
            server: self.server.clone(),
            method: method::INITIALIZE,
            name: None,
            round: 0,
            leg: 0,
        };
        let (level, logger, data) = (params.level, params.logger, params.data);
        callback(LogEvent { context: Arc::new(context), level, logger, data });
    }
}

fn read<T: DeserializeOwned>(notification: &IncomingNotification) -> Option<T> {
    serde_json::from_str(notification.params.as_deref().map_or("{}", |params| params.get())).ok()
}
