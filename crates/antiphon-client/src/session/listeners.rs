//! The listeners of a session, and the URLs that its server may report as finished.

use crate::transport::IncomingNotification;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tokio::sync::watch;

/// The maximum number of open URLs that are stored, and of finished ones.
const MAX_URLS: usize = 1024;

/// Receives the changes of lists and resources.
pub(crate) trait Listener: Send + Sync {
    /// A list or a resource changed.
    fn on_change(&self, notification: &IncomingNotification);
}

/// The listeners of a session, its open URLs and its finished ones.
#[derive(Default)]
pub(crate) struct Listeners {
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
    urls: watch::Sender<Urls>,
}

#[derive(Default)]
struct Urls {
    open: VecDeque<String>,
    done: VecDeque<String>,
}

impl Listeners {
    /// Passes a change to every listener that still exists.
    pub(crate) fn notify(&self, change: &IncomingNotification) {
        let listeners: Vec<Arc<dyn Listener>> = self.listeners().iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(|listener| listener.on_change(change));
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Weak<dyn Listener>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a listener, which receives changes as long as it exists.
    pub(crate) fn add(&self, listener: Weak<dyn Listener>) {
        let mut listeners = self.listeners();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener);
    }

    /// Registers a URL that the server may report as finished.
    pub(crate) fn expect_url(&self, id: String) {
        self.urls.send_if_modified(|urls| {
            urls.done.retain(|done| *done != id);
            if !urls.open.contains(&id) {
                remember(&mut urls.open, id);
            }
            false
        });
    }

    /// Marks a URL as finished. Returns `false` if it is not open.
    ///
    /// > Clients: **MUST** ignore notifications referencing unknown or already-completed IDs.
    pub(crate) fn finish_url(&self, id: &str) -> bool {
        self.urls.send_if_modified(|urls| {
            let Some(at) = urls.open.iter().position(|open| open == id) else { return false };
            if let Some(id) = urls.open.remove(at) {
                remember(&mut urls.done, id);
            }
            true
        })
    }

    /// Waits until the server reports this URL as finished.
    pub(crate) async fn url_finished(&self, id: &str) {
        // The wait fails only if the sender is dropped, and `self` holds the sender.
        let _ = self.urls.subscribe().wait_for(|urls| urls.done.iter().any(|done| done == id)).await;
    }
}

fn remember(urls: &mut VecDeque<String>, id: String) {
    if urls.len() == MAX_URLS {
        urls.pop_front();
    }
    urls.push_back(id);
}
