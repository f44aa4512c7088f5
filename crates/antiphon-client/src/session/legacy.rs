//! A session with a server of the revisions up to 2025-11-25.
//!
//! ```text
//!  initialize, initialized (handshake) -> its task (task) ---- requests (exchange) ----> over: the next request opens another
//!                                           |  ^
//!                         asks (server_asks)v  |  responses
//!                                        callbacks          notifications -> cache, listeners, logs
//! ```

use crate::{
    asks::questions::Origin,
    request::{BodyWriter, Core, RequestSpec, deadline::RequestDeadline, fault::RequestFault},
    session::{
        server_asks::session_task,
        shared::{Listener, SEND_WITHIN, Shared},
    },
    transport::{OutgoingRequest, ServerMessage, ServerReply, SessionLink, TransportError},
};
use antiphon_wire::{
    ClientCapabilities, DiscoverResult, Implementation, InitializeParams, InitializeResult, LogLevel, Meta,
    OutcomeFault, ProtocolVersion, RequestId, ServerCapabilities, SetLevelParams, escaped, lock::Lock,
    meta_keys, method, write_notification, write_request, write_result,
};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{json, value::RawValue};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

/// The maximum wait for the stream of the session. After that, the session continues without the stream.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// One session. It ends with its last clone.
pub(crate) struct Session {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
    level: Lock<Option<LogLevel>>,
    /// The resources that subscriptions hold, with the number of subscriptions of each.
    held: Lock<HashMap<String, usize>>,
    /// Held while resources are subscribed to or unsubscribed from.
    turn: tokio::sync::Mutex<()>,
}

impl Session {
    /// Opens a session: offers `version`, and accepts the server's choice if it is supported here. With `exactly`, only
    /// `version` itself is accepted.
    pub(crate) async fn open(
        core: &Arc<Core>,
        link: Arc<dyn SessionLink>,
        version: &ProtocolVersion,
        exactly: bool,
    ) -> Result<Arc<Self>, RequestFault> {
        let hello = initialize(core, &*link, version).await?;
        let agreed = ProtocolVersion::legacy(hello.protocol_version.as_str())
            .filter(|agreed| !exactly || agreed == version);
        // > If the client cannot support this version, it MUST disconnect.
        let Some(agreed) = agreed else {
            link.end().await;
            return Err(RequestFault::no_version(vec![hello.protocol_version.as_str().to_owned()]));
        };
        link.established(&agreed);
        let initialized =
            write_notification(method::INITIALIZED, &json!({})).map_err(RequestFault::Unwritable)?;
        let sending = timeout(SEND_WITHIN, link.send(initialized)).await;
        sending.map_err(|_| RequestFault::Timeout(SEND_WITHIN))?.map_err(RequestFault::Transport)?;
        let shared = Arc::new(Shared::new(Arc::clone(core), link, agreed, hello));
        let (ready, is_ready) = oneshot::channel();
        let task = tokio::spawn(session_task(Arc::clone(&shared), ready));
        let (level, held, turn) = (Lock::default(), Lock::default(), tokio::sync::Mutex::default());
        let session = Arc::new(Self { shared, task, level, held, turn });
        // An ask on the stream of the session is lost if nobody reads the stream when the server sends the ask.
        let _ = timeout(READY_WITHIN, is_ready).await;
        session.want_level(core.observers.log_level()).await;
        Ok(session)
    }

    /// Sends a request and waits for its response.
    pub(crate) async fn exchange(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        self.shared.exchange(spec, write).await
    }

    /// Registers a URL that the server may report as finished.
    pub(crate) fn expect_url(&self, id: &str) {
        self.shared.listeners.expect_url(id.to_owned());
    }

    /// Waits until the server reports this URL as finished.
    pub(crate) async fn url_finished(&self, id: &str) {
        self.shared.listeners.url_finished(id).await;
    }

    pub(crate) fn version(&self) -> &ProtocolVersion {
        &self.shared.version
    }

    pub(crate) fn server_info(&self) -> &Implementation {
        &self.shared.hello.server_info
    }

    pub(crate) fn capabilities(&self) -> &ServerCapabilities {
        &self.shared.hello.capabilities
    }

    /// Returns `true` if calls of tools may be tasks in this session.
    pub(crate) fn has_tasks(&self) -> bool {
        // > The set of capabilities in `capabilities.tasks.requests` is exhaustive.
        self.version().has_tasks() && self.capabilities().tasks().is_some_and(|tasks| tasks.tools_call)
    }

    /// Stores the call that became a task, for the questions of the task.
    pub(crate) fn add_task_call(&self, task_id: &str, call: &Arc<Origin>) {
        self.shared.add_task_call(task_id, call);
    }

    /// Returns `true` if another session has to take its place.
    pub(crate) fn is_over(&self) -> bool {
        *self.shared.over.borrow() || self.shared.link.is_over()
    }

    /// Marks the session as over: another one takes its place.
    pub(crate) fn give_up(&self) {
        self.shared.over.send_replace(true);
    }

    /// Waits until another session has to take its place.
    pub(crate) async fn over(&self) {
        // The wait fails only if the sender is dropped, and `self` holds the sender.
        let _ = self.shared.over.subscribe().wait_for(|over| *over).await;
    }

    /// Returns `true` if the server can send messages that belong to no request. Over HTTP not every server does.
    pub(crate) fn has_stream(&self) -> bool {
        !*self.shared.stream_closed.borrow()
    }

    /// Waits until the server can no longer send messages that belong to no request.
    pub(crate) async fn stream_closed(&self) {
        // The wait fails only if the sender is dropped, and `self` holds the sender.
        let _ = self.shared.stream_closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Ends the session.
    pub(crate) async fn end(&self) {
        self.shared.link.end().await;
        self.give_up();
    }

    /// Adds a listener, which receives changes as long as it exists.
    pub(crate) fn listen(&self, listener: Weak<dyn Listener>) {
        self.shared.listeners.add(listener);
    }

    /// Waits for the turn to subscribe or to unsubscribe: in another order than that of the holders, the last word at the server
    /// could be the wrong one.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Returns `true` if a subscription holds this resource.
    pub(crate) fn is_held(&self, uri: &str) -> bool {
        self.held.lock().contains_key(uri)
    }

    /// Adds one holder of this resource. Returns `true` if it is the first.
    pub(crate) fn hold(&self, uri: &str) -> bool {
        let mut held = self.held.lock();
        let count = held.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Removes one holder of this resource. Returns `true` if it was the last.
    pub(crate) fn release(&self, uri: &str) -> bool {
        let mut held = self.held.lock();
        let Some(count) = held.get_mut(uri) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            held.remove(uri);
        }
        is_last
    }

    /// Sends a notification.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), RequestFault> {
        self.shared.send(message).await.map_err(RequestFault::Transport)
    }

    /// Returns the data of the handshake as a result of `server/discover`.
    pub(crate) fn discovered(&self) -> Result<Box<RawValue>, RequestFault> {
        let hello = &self.shared.hello;
        let mut result = DiscoverResult::new(vec![self.version().clone()], hello.capabilities.clone());
        result.instructions = hello.instructions.clone();
        let mut meta = hello.meta.clone().unwrap_or_else(|| Meta(serde_json::Map::new()));
        let info = serde_json::to_value(&hello.server_info).map_err(RequestFault::Unwritable)?;
        meta.0.insert(meta_keys::SERVER_INFO.into(), info);
        result.meta = Some(meta);
        serde_json::value::to_raw_value(&result).map_err(RequestFault::Unwritable)
    }

    /// Requests log messages from this level on, unless the session has requested them already. The level applies to the whole
    /// session.
    pub(crate) async fn want_level(&self, level: Option<LogLevel>) {
        let Some(level) = level.filter(|_| self.capabilities().has("logging")) else { return };
        {
            let mut wanted = self.level.lock();
            if wanted.is_some_and(|wanted| wanted <= level) {
                return;
            }
            *wanted = Some(level);
        }
        if let Err(fault) = self.request(method::LOGGING_SET_LEVEL, &SetLevelParams::new(level)).await {
            tracing::debug!(fault = %escaped(&fault), "the server was asked for log messages in vain");
        }
    }

    /// Sends a request that belongs to no call.
    pub(crate) async fn request(
        &self,
        method: &'static str,
        params: &(impl serde::Serialize + Sync),
    ) -> Result<Box<RawValue>, RequestFault> {
        let spec = RequestSpec::single(method, self.shared.core.bounds.leg_timeout);
        let write = |id: &RequestId, _| write_request(id, method, params);
        let reply = self.exchange(&spec, &write).await?;
        reply.map_err(|error| RequestFault::server(error, self.shared.core.handlers.declared))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The maximum number of pings that wait to be answered before the reply to `initialize`.
const PINGS: usize = 16;

/// Sends `initialize` and reads its result.
///
/// > The client **MUST** initiate this phase by sending an `initialize` request
pub(crate) async fn initialize(
    core: &Core,
    link: &dyn SessionLink,
    version: &ProtocolVersion,
) -> Result<InitializeResult, RequestFault> {
    // The capabilities of exactly the attached callbacks: on a session, asks arrive while the call runs.
    let mut capabilities = ClientCapabilities::for_asks(core.handlers.callbacks.declared());
    // > `listChanged` indicates whether the client will emit notifications when the list of roots changes.
    if let Some(roots) = capabilities.0.get_mut("roots") {
        *roots = json!({ "listChanged": true });
    }
    let capabilities = core.extensions.declare(capabilities);
    let params = InitializeParams::new(version.clone(), capabilities, core.info.clone());
    let id = core.next_id();
    let body = write_request(&id, method::INITIALIZE, &params).map_err(RequestFault::Unwritable)?;
    let request = OutgoingRequest::new(id, method::INITIALIZE, version.clone(), body);
    let limit = core.bounds.leg_timeout;
    let deadline = RequestDeadline::new(limit, None);
    let reply = deadline.within(answering_pings(link, request, &deadline)).await;
    let reply = reply.map_err(RequestFault::Timeout)?.map_err(RequestFault::Transport)?;
    let result = reply.map_err(|error| RequestFault::server(error, core.handlers.declared))?;
    serde_json::from_str(result.get())
        .map_err(|fault| RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None })
}

/// Sends `initialize`, and answers pings that come before the reply. Other messages are dropped.
///
/// > The server **SHOULD NOT** send requests other than pings and logging before receiving the `initialized` notification.
async fn answering_pings(
    link: &dyn SessionLink,
    request: OutgoingRequest,
    deadline: &RequestDeadline,
) -> Result<ServerReply, TransportError> {
    let (to_pings, mut pings) = mpsc::channel(PINGS);
    let mut on_message = |message| match message {
        ServerMessage::Request(request) if request.method == method::PING => {
            // Further ones are dropped: those that wait are answered soon.
            let _ = to_pings.try_send(request.id);
        }
        ServerMessage::Notification(notification) => {
            if let Some(waits) = notification.waits {
                deadline.pause(waits);
            }
        }
        _ => {}
    };
    let mut exchange = link.exchange(request, &mut on_message);
    let mut pongs = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            reply = &mut exchange => return reply,
            Some(id) = pings.recv(), if pongs.len() < PINGS => {
                if let Ok(pong) = write_result(&id, &json!({})) {
                    pongs.push(link.send(pong));
                }
            }
            Some(sent) = pongs.next() => {
                if let Err(fault) = sent {
                    tracing::debug!(fault = %escaped(&fault), "a ping could not be answered");
                }
            }
        }
    }
}
