//! The task of a session: receives the messages that belong to no request, which are changes, logs, cancelled asks, finished URLs.

use crate::{
    asks::{callbacks::ElicitComplete, questions::Origin},
    cache::ListKind,
    request::events::{EventContext, LogEvent},
    session::{server_asks::ServerAsks, shared::Shared},
    transport::{IncomingNotification, ServerMessage},
};
use antiphon_wire::{
    CancelledParams, ElicitationCompleteParams, LogMessageParams, ResourceUpdatedParams, escaped, method,
};
use serde::de::DeserializeOwned;
use std::{error::Error as _, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// Receives the messages that belong to no request, and answers the asks among them. Sends to `ready` once the stream of
/// the session is read, or is known not to come.
pub(crate) async fn session_task(shared: Arc<Shared>, ready: oneshot::Sender<()>) {
    let mut ready = Some(ready);
    let mut is_ready = || {
        if let Some(ready) = ready.take() {
            let _ = ready.send(());
        }
    };
    let (to_requests, mut requests) = mpsc::channel(shared.core.bounds.max_asks.max(1));
    let mut on_message = |message| match message {
        ServerMessage::Notification(notification) => shared.on_notification(&notification),
        ServerMessage::Request(request) => {
            if to_requests.try_send(shared.open_asks.received(request)).is_err() {
                tracing::warn!("the server asks too much at once: one request is dropped");
            }
        }
    };
    let mut listening = shared.link.listen(&mut is_ready, &mut on_message);
    let server = shared.server.clone();
    let of_session =
        Origin { server, method: method::INITIALIZE.into(), target: String::new(), arguments: None };
    let mut open = ServerAsks::new(&shared, of_session);
    let mut listens = true;
    while listens || !open.is_empty() {
        tokio::select! {
            biased;
            ended = &mut listening, if listens => {
                listens = false;
                shared.stream_closed.send_replace(true);
                if let Err(fault) = ended {
                    tracing::debug!(server = %escaped(&shared.server), fault = %escaped(&fault), "the server sends nothing more");
                    break;
                }
            }
            Some(request) = requests.recv() => {
                if let Err(fault) = open.take(request) {
                    tracing::warn!(server = %escaped(&shared.server), fault = %escaped(&fault), "a request of the server was refused");
                }
            }
            Some(fault) = open.next() => {
                if let Some(fault) = fault {
                    // The fault ends no call of the client, so only the log has it.
                    let cause = fault.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                    let fault = format!("{fault}{cause}");
                    tracing::warn!(server = %escaped(&shared.server), fault = %escaped(&fault), "an ask of the server was not answered");
                }
            }
        }
    }
    // Over HTTP, a session without a stream of its own continues: each request has its own stream.
    if shared.link.is_over() {
        shared.over.send_replace(true);
    }
}

// Notifications of a session that belong to no request: changes, logs, cancelled asks, finished URLs.

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
            _ if matches!(self.core.observers.of_extensions.pass(notification), Some(Ok(()))) => {}
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
            method: method::INITIALIZE.into(),
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
