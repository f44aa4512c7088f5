//! What a server tells a session: changes, logs, that an answer is no longer wanted, that a URL was finished.

use crate::{
    cache::ListKind,
    elicit_complete::ElicitComplete,
    event::{EventContext, LogEvent},
    legacy::Shared,
    transport::IncomingNotification,
};
use antiphon_wire::{
    CancelledParams, ElicitationCompleteParams, LogMessageParams, ResourceUpdatedParams, method,
};
use serde::de::DeserializeOwned;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tokio::sync::watch;

/// How many URLs are remembered: those that are open, and as many that are finished.
const MAX_URLS: usize = 1024;

/// Who wants to hear of changes.
pub(crate) trait Listener: Send + Sync {
    /// A list or a resource changed.
    fn hear(&self, notification: &IncomingNotification);
}

/// Who listens, and which URLs are open.
#[derive(Default)]
pub(crate) struct Told {
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
    urls: watch::Sender<Urls>,
}

#[derive(Default)]
struct Urls {
    open: VecDeque<String>,
    done: VecDeque<String>,
}

impl Told {
    fn listeners(&self) -> MutexGuard<'_, Vec<Weak<dyn Listener>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells this one of changes, as long as it is there.
    pub(crate) fn listen(&self, listener: Weak<dyn Listener>) {
        let mut listeners = self.listeners();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener);
    }

    /// The server may say that this one is finished.
    pub(crate) fn expect_url(&self, id: String) {
        self.urls.send_if_modified(|urls| {
            urls.done.retain(|done| *done != id);
            if !urls.open.contains(&id) {
                remember(&mut urls.open, id);
            }
            false
        });
    }

    /// > Clients: **MUST** ignore notifications referencing unknown or already-completed IDs.
    fn finish_url(&self, id: &str) -> bool {
        self.urls.send_if_modified(|urls| {
            let Some(at) = urls.open.iter().position(|open| open == id) else { return false };
            if let Some(id) = urls.open.remove(at) {
                remember(&mut urls.done, id);
            }
            true
        })
    }

    /// Waits until the server says that this one is finished.
    pub(crate) async fn url_finished(&self, id: &str) {
        // It only fails when the sender is gone, which is here.
        let _ = self.urls.subscribe().wait_for(|urls| urls.done.iter().any(|done| done == id)).await;
    }
}

fn remember(urls: &mut VecDeque<String>, id: String) {
    if urls.len() == MAX_URLS {
        urls.pop_front();
    }
    urls.push_back(id);
}

impl Shared {
    /// Takes in what belongs to no request.
    pub(crate) fn hear(&self, told: &IncomingNotification) {
        match &*told.method {
            method::CANCELLED => {
                if let Some(params) = read::<CancelledParams>(told) {
                    self.asks.cancel(&params.request_id);
                }
            }
            method::ELICITATION_COMPLETE => self.hear_of_url(told),
            method::MESSAGE => self.hear_log(told),
            method::TOOLS_LIST_CHANGED
            | method::PROMPTS_LIST_CHANGED
            | method::RESOURCES_LIST_CHANGED
            | method::RESOURCES_UPDATED => self.hear_of_change(told),
            _ => {
                tracing::debug!(server = %self.server, "a notification that nobody here listens for: dropped")
            }
        }
    }

    fn hear_of_change(&self, told: &IncomingNotification) {
        if let Some(inner) = self.inner.upgrade() {
            match &*told.method {
                method::TOOLS_LIST_CHANGED => inner.cache.forget_list(ListKind::Tools),
                method::PROMPTS_LIST_CHANGED => inner.cache.forget_list(ListKind::Prompts),
                method::RESOURCES_LIST_CHANGED => inner.cache.forget_list(ListKind::Resources),
                _ => {
                    if let Some(params) = read::<ResourceUpdatedParams>(told) {
                        inner.cache.forget_resource(&params.uri);
                    }
                }
            }
        }
        let listeners: Vec<_> = self.told.listeners().iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(|listener| listener.hear(told));
    }

    fn hear_of_url(&self, told: &IncomingNotification) {
        let Some(ElicitationCompleteParams { elicitation_id, .. }) = read(told) else { return };
        if !self.told.finish_url(&elicitation_id) {
            tracing::debug!(server = %self.server, "a URL that nobody knows is finished: ignored");
        } else if let Some(callback) = &self.desk.callbacks.elicit_complete {
            callback(ElicitComplete { server: self.server.clone(), elicitation_id });
        }
    }

    fn hear_log(&self, told: &IncomingNotification) {
        let Some(inner) = self.inner.upgrade() else { return };
        let (Some(callback), Some(wanted)) = (&inner.hearers.log, inner.hearers.log_level()) else { return };
        let Some(params) = read::<LogMessageParams>(told).filter(|params| params.level >= wanted) else {
            return;
        };
        // It belongs to no request, or to one of several: nobody can tell.
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

fn read<T: DeserializeOwned>(told: &IncomingNotification) -> Option<T> {
    serde_json::from_str(told.params.as_deref().map_or("{}", |params| params.get())).ok()
}
