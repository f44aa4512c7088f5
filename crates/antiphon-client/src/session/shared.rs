//! The state that a session shares with its task: its open asks and its listeners.

use crate::{
    asks::questions::{Origin, ServerIdentity},
    request::Core,
    transport::{
        IncomingNotification, IncomingRequest, SessionLink, TransportError, TransportErrorKind::Closed,
    },
};
use antiphon_wire::{InitializeResult, ProtocolVersion, RequestId, lock::Lock, related_task_of};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, MutexGuard, Weak},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

/// The maximum time to send a notification or a response.
pub(crate) const SEND_WITHIN: Duration = Duration::from_secs(30);

/// The state that a session shares with its task and its open asks.
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) link: Arc<dyn SessionLink>,
    pub(crate) version: ProtocolVersion,
    pub(crate) hello: InitializeResult,
    pub(crate) server: ServerIdentity,
    pub(crate) open_asks: OpenAsks,
    pub(crate) listeners: Listeners,
    /// The calls that became tasks, by the ids of the tasks: a question names the task that it belongs to.
    task_calls: Lock<HashMap<String, Weak<Origin>>>,
    /// `true` once another session must replace this one.
    pub(crate) over: watch::Sender<bool>,
    /// `true` once no more messages arrive that belong to no request.
    pub(crate) stream_closed: watch::Sender<bool>,
}

impl Shared {
    pub(crate) fn new(
        core: Arc<Core>,
        link: Arc<dyn SessionLink>,
        version: ProtocolVersion,
        hello: InitializeResult,
    ) -> Self {
        let server = ServerIdentity::new(core.target(), Some(&hello.server_info));
        Self {
            core,
            link,
            version,
            hello,
            server,
            open_asks: OpenAsks::default(),
            listeners: Listeners::default(),
            task_calls: Lock::default(),
            over: watch::Sender::new(false),
            stream_closed: watch::Sender::new(false),
        }
    }

    /// Stores the call that became a task, as long as the program waits for the task.
    pub(crate) fn add_task_call(&self, task_id: &str, call: &Arc<Origin>) {
        let mut calls = self.task_calls.lock();
        calls.retain(|_, call| call.strong_count() > 0);
        calls.insert(task_id.to_owned(), Arc::downgrade(call));
    }

    /// Returns the call that a question belongs to, if the question names the task that the call became.
    ///
    /// > All requests, notifications, and responses related to a task **MUST** include the
    /// > `io.modelcontextprotocol/related-task` key in their `_meta` field
    pub(crate) fn task_call_of(&self, request: &IncomingRequest) -> Option<Arc<Origin>> {
        let task_id = related_task_of(request.params.as_deref()?)?;
        self.task_calls.lock().get(&task_id)?.upgrade()
    }

    /// Sends a notification, or the response to a request of the server.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let late = || TransportError::new(Closed, "the server takes no messages");
        timeout(SEND_WITHIN, self.link.send(message)).await.unwrap_or_else(|_| Err(late()))
    }
}

/// The asks that are open in a session, of all its requests.
#[derive(Default)]
pub(crate) struct OpenAsks {
    /// The number of open asks. While it is not zero, the deadlines of requests are paused.
    pub(crate) count: watch::Sender<usize>,
    cancels: Arc<Cancels>,
}

/// The cancellations of the server's requests, by their ids.
type Cancels = Lock<HashMap<RequestId, Arc<Notify>>>;

impl OpenAsks {
    /// The server cancelled this request.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(open) = self.cancels.lock().get(id) {
            open.notify_one();
        }
    }

    /// Registers a request that has just arrived. From then on the server can cancel it, even before it is processed.
    pub(crate) fn received(&self, request: IncomingRequest) -> ReceivedRequest {
        let cancelled = Arc::<Notify>::default();
        self.cancels.lock().insert(request.id.clone(), Arc::clone(&cancelled));
        ReceivedRequest { of: Arc::clone(&self.cancels), request, cancelled }
    }

    pub(crate) fn begin(&self) -> OpenAsk<'_> {
        self.count.send_modify(|count| *count += 1);
        OpenAsk(self)
    }
}

/// A request of the server that waits, or is being answered.
pub(crate) struct ReceivedRequest {
    of: Arc<Cancels>,
    pub(crate) request: IncomingRequest,
    pub(crate) cancelled: Arc<Notify>,
}

impl Drop for ReceivedRequest {
    fn drop(&mut self) {
        let mut cancels = self.of.lock();
        // The server may have used its id again.
        if cancels.get(&self.request.id).is_some_and(|open| Arc::ptr_eq(open, &self.cancelled)) {
            cancels.remove(&self.request.id);
        }
    }
}

/// A guard that counts as an open ask until it is dropped.
pub(crate) struct OpenAsk<'a>(&'a OpenAsks);

impl Drop for OpenAsk<'_> {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

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
    listeners: Lock<Vec<Weak<dyn Listener>>>,
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
        self.listeners.lock()
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
