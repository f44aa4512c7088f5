//! The state that a session shares with its task and its open asks.

use crate::{
    asks::questions::Origin,
    identity::ServerIdentity,
    request::core::Core,
    session::{listeners::Listeners, open_asks::OpenAsks},
    transport::{IncomingRequest, SessionLink, TransportError, TransportErrorKind::Closed},
};
use antiphon_wire::{InitializeResult, ProtocolVersion, related_task_of};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::{sync::watch, time::timeout};

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
    task_calls: Mutex<HashMap<String, Weak<Origin>>>,
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
            task_calls: Mutex::default(),
            over: watch::Sender::new(false),
            stream_closed: watch::Sender::new(false),
        }
    }

    /// Stores the call that became a task, as long as the program waits for the task.
    pub(crate) fn add_task_call(&self, task_id: &str, call: &Arc<Origin>) {
        let mut calls = self.task_calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|_, call| call.strong_count() > 0);
        calls.insert(task_id.to_owned(), Arc::downgrade(call));
    }

    /// Returns the call that a question belongs to, if the question names the task that the call became.
    ///
    /// > All requests, notifications, and responses related to a task **MUST** include the
    /// > `io.modelcontextprotocol/related-task` key in their `_meta` field
    pub(crate) fn task_call_of(&self, request: &IncomingRequest) -> Option<Arc<Origin>> {
        let task_id = related_task_of(request.params.as_deref()?)?;
        self.task_calls.lock().unwrap_or_else(PoisonError::into_inner).get(&task_id)?.upgrade()
    }

    /// Sends a notification, or the response to a request of the server.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let late = || TransportError::new(Closed, "the server takes no messages");
        timeout(SEND_WITHIN, self.link.send(message)).await.unwrap_or_else(|_| Err(late()))
    }
}
