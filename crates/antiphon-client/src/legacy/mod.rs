//! Sessions of the revisions up to 2025-11-25: the handshake, and what goes on in both directions afterwards.
//!
//! ```text
//!  initialize -> initialized -> attended ---- requests (converse) ----> over: the next request begins another session
//!                                  |  ^
//!                 what the server  v  |  responses
//!                 asks (asks) -> callbacks          what it tells (told) -> cache, subscriptions, logs
//! ```

mod asks;
mod converse;
mod told;
mod url_first;

pub(crate) use told::Listener;
pub(crate) use url_first::{is_url_round, keep_consents};

use crate::{
    Inner, ServerIdentity,
    builder::Bounds,
    dispatch::{Desk, Origin},
    fault::RequestFault,
    transport::{
        OutgoingRequest, ServerMessage, ServerReply, SessionLink, TransportError, TransportErrorKind::Closed,
    },
};
use antiphon_wire::{
    ClientCapabilities, DiscoverResult, Implementation, InitializeParams, InitializeResult, LogLevel, Meta,
    OutcomeFault, ProtocolVersion, RequestId, ServerCapabilities, SetLevelParams, meta_keys, method,
    write_notification, write_request, write_result,
};
use asks::{Counter, OpenAsks};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{json, value::RawValue};
use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::timeout,
};
use told::Told;

/// How long a session waits for the stream on which the server asks and tells, before it goes on without.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// How long a notification or a response may take to be sent.
const TELL_WITHIN: Duration = Duration::from_secs(30);
/// How many pings before the reply to `initialize` wait to be answered.
const PINGS: usize = 16;

/// One session. It ends with its last clone.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    attendant: JoinHandle<()>,
    level: Mutex<Option<LogLevel>>,
    /// The resources that somebody wants to hear of, and how many do.
    held: Mutex<HashMap<String, usize>>,
}

/// What a session and its attendant share.
pub(crate) struct Shared {
    link: Arc<dyn SessionLink>,
    version: ProtocolVersion,
    hello: InitializeResult,
    server: ServerIdentity,
    desk: Arc<Desk>,
    bounds: Bounds,
    inner: Weak<Inner>,
    asks: OpenAsks,
    told: Told,
    over: watch::Sender<bool>,
    /// Nothing is heard of what belongs to no request.
    deaf: watch::Sender<bool>,
}

impl Session {
    /// Shakes hands: offers `version`, and takes what the server answers if it is spoken here, or with `exactly` only that
    /// one.
    pub(crate) async fn open(
        inner: &Inner,
        link: Arc<dyn SessionLink>,
        version: &ProtocolVersion,
        exactly: bool,
    ) -> Result<Arc<Self>, RequestFault> {
        let hello = initialize(inner, &*link, version).await?;
        let agreed = ProtocolVersion::legacy(hello.protocol_version.as_str())
            .filter(|agreed| !exactly || agreed == version);
        // > If the client cannot support this version, it MUST disconnect.
        let Some(agreed) = agreed else {
            link.end().await;
            return Err(RequestFault::Version { theirs: vec![hello.protocol_version.as_str().to_owned()] });
        };
        link.established(&agreed);
        let initialized =
            write_notification(method::INITIALIZED, &json!({})).map_err(RequestFault::Unwritable)?;
        let telling = timeout(TELL_WITHIN, link.tell(initialized)).await;
        telling.map_err(|_| RequestFault::Timeout(TELL_WITHIN))?.map_err(RequestFault::Transport)?;
        let server = ServerIdentity::new(inner.transport.target(), Some(&hello.server_info));
        let shared = Arc::new(Shared {
            link,
            version: agreed,
            hello,
            server,
            desk: Arc::clone(&inner.desk),
            bounds: inner.bounds,
            inner: inner.me.clone(),
            asks: OpenAsks::default(),
            told: Told::default(),
            over: watch::Sender::new(false),
            deaf: watch::Sender::new(false),
        });
        let (ready, is_ready) = oneshot::channel();
        let attendant = tokio::spawn(attend(Arc::clone(&shared), ready));
        let session = Arc::new(Self { shared, attendant, level: Mutex::default(), held: Mutex::default() });
        // What the server asks on a stream of its own is lost if that is not read when it asks.
        let _ = timeout(READY_WITHIN, is_ready).await;
        session.want_level(inner, inner.hearers.log_level()).await;
        Ok(session)
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

    /// Whether another one has to take its place.
    pub(crate) fn is_over(&self) -> bool {
        *self.shared.over.borrow() || self.shared.link.is_over()
    }

    /// Another one takes its place.
    pub(crate) fn give_up(&self) {
        self.shared.over.send_replace(true);
    }

    /// Waits until another one has to take its place.
    pub(crate) async fn over(&self) {
        // It only fails when the sender is gone, which is here.
        let _ = self.shared.over.subscribe().wait_for(|over| *over).await;
    }

    /// Whether the server can tell what belongs to no request. Over HTTP not every one does.
    pub(crate) fn hears(&self) -> bool {
        !*self.shared.deaf.borrow()
    }

    /// Waits until the server cannot tell any more what belongs to no request.
    pub(crate) async fn deafened(&self) {
        // It only fails when the sender is gone, which is here.
        let _ = self.shared.deaf.subscribe().wait_for(|deaf| *deaf).await;
    }

    /// Says that it is no longer needed.
    pub(crate) async fn end(&self) {
        self.shared.link.end().await;
        self.give_up();
    }

    /// Tells this one of changes, as long as it is there.
    pub(crate) fn listen(&self, listener: Weak<dyn Listener>) {
        self.shared.told.listen(listener);
    }

    /// One more wants to hear of this resource. Whether it is the first.
    pub(crate) fn hold(&self, uri: &str) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// One less does. Whether it was the last.
    pub(crate) fn release(&self, uri: &str) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = held.get_mut(uri) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            held.remove(uri);
        }
        is_last
    }

    /// Sends a notification.
    pub(crate) async fn tell(&self, message: Vec<u8>) -> Result<(), RequestFault> {
        self.shared.tell(message).await.map_err(RequestFault::Transport)
    }

    /// What `server/discover` would have said.
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

    /// Asks for log messages from this level on, unless that was asked for already. Only the session as a whole can.
    pub(crate) async fn want_level(&self, inner: &Inner, level: Option<LogLevel>) {
        let Some(level) = level.filter(|_| self.capabilities().has("logging")) else { return };
        {
            let mut wanted = self.level.lock().unwrap_or_else(PoisonError::into_inner);
            if wanted.is_some_and(|wanted| wanted <= level) {
                return;
            }
            *wanted = Some(level);
        }
        if let Err(fault) = self.ask_for(inner, method::LOGGING_SET_LEVEL, &SetLevelParams::new(level)).await
        {
            tracing::debug!(%fault, "the server was asked for log messages in vain");
        }
    }

    /// A request of the client's own.
    pub(crate) async fn ask_for(
        &self,
        inner: &Inner,
        method: &'static str,
        params: &(impl serde::Serialize + Sync),
    ) -> Result<Box<RawValue>, RequestFault> {
        let wanted = crate::leg::Wanted::single(method, self.shared.bounds.leg_timeout);
        let write = |id: &RequestId, _| write_request(id, method, params);
        let reply = self.converse(inner, &wanted, &write).await?;
        reply.map_err(|error| RequestFault::server(error, self.shared.desk.declared))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.attendant.abort();
    }
}

impl Shared {
    async fn tell(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let late = || TransportError::new(Closed, "the server takes no messages");
        timeout(TELL_WITHIN, self.link.tell(message)).await.unwrap_or_else(|_| Err(late()))
    }
}

/// > The client **MUST** initiate this phase by sending an `initialize` request
async fn initialize(
    inner: &Inner,
    link: &dyn SessionLink,
    version: &ProtocolVersion,
) -> Result<InitializeResult, RequestFault> {
    // Exactly the attached callbacks: what is asked on a session is asked while the call runs.
    let mut capabilities = ClientCapabilities::for_asks(inner.desk.callbacks.declared());
    // > `listChanged` indicates whether the client will emit notifications when the list of roots changes.
    if let Some(roots) = capabilities.0.get_mut("roots") {
        *roots = json!({ "listChanged": true });
    }
    let params = InitializeParams::new(version.clone(), capabilities, inner.info.clone());
    let id = RequestId::from(inner.next_id.fetch_add(1, Ordering::Relaxed));
    let body = write_request(&id, method::INITIALIZE, &params).map_err(RequestFault::Unwritable)?;
    let request = OutgoingRequest {
        id,
        method: Cow::Borrowed(method::INITIALIZE),
        name: None,
        version: version.clone(),
        headers: Vec::new(),
        body,
    };
    let limit = inner.bounds.leg_timeout;
    let reply = timeout(limit, answering_pings(link, request)).await;
    let reply = reply.map_err(|_| RequestFault::Timeout(limit))?.map_err(RequestFault::Transport)?;
    let result = reply.map_err(|error| RequestFault::server(error, inner.desk.declared))?;
    serde_json::from_str(result.get())
        .map_err(|fault| RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None })
}

/// Sends `initialize`, and answers what a server may ask before its reply; nothing else is taken from it yet.
///
/// > The server **SHOULD NOT** send requests other than pings and logging before receiving the `initialized` notification.
async fn answering_pings(
    link: &dyn SessionLink,
    request: OutgoingRequest,
) -> Result<ServerReply, TransportError> {
    let (to_pings, mut pings) = mpsc::channel(PINGS);
    let mut hear = |message| match message {
        ServerMessage::Request(request) if request.method == method::PING => {
            // Further ones are dropped: those that wait show already that somebody is here.
            let _ = to_pings.try_send(request.id);
        }
        _ => {}
    };
    let mut exchange = link.exchange(request, &mut hear);
    let mut pongs = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            reply = &mut exchange => return reply,
            Some(id) = pings.recv(), if pongs.len() < PINGS => {
                if let Ok(pong) = write_result(&id, &json!({})) {
                    pongs.push(link.tell(pong));
                }
            }
            Some(told) = pongs.next() => {
                if let Err(fault) = told {
                    tracing::debug!(%fault, "a ping could not be answered");
                }
            }
        }
    }
}

/// Hears what belongs to no request, and answers what is asked there.
async fn attend(shared: Arc<Shared>, ready: oneshot::Sender<()>) {
    let mut ready = Some(ready);
    let mut is_ready = || {
        if let Some(ready) = ready.take() {
            let _ = ready.send(());
        }
    };
    let (to_requests, mut requests) = mpsc::channel(shared.bounds.max_asks.max(1));
    let mut hear = |message| match message {
        ServerMessage::Notification(notification) => shared.hear(&notification),
        ServerMessage::Request(request) => {
            if to_requests.try_send(shared.asks.heard(request)).is_err() {
                tracing::warn!("the server asks too much at once: one request is dropped");
            }
        }
    };
    let mut listening = shared.link.listen(&mut is_ready, &mut hear);
    let of_session = Origin { method: method::INITIALIZE, target: String::new(), arguments: None };
    let mut open = Counter::new(&shared, of_session);
    let mut listens = true;
    while listens || !open.is_empty() {
        tokio::select! {
            biased;
            ended = &mut listening, if listens => {
                listens = false;
                shared.deaf.send_replace(true);
                if let Err(fault) = ended {
                    tracing::debug!(server = %shared.server, %fault, "the server tells nothing more");
                    break;
                }
            }
            Some(request) = requests.recv() => {
                if let Err(fault) = open.take(request) {
                    tracing::warn!(server = %shared.server, "{fault}");
                }
            }
            Some(fault) = open.next() => {
                if let Some(fault) = fault {
                    // Nobody else hears of it: no call of ours ends with it.
                    let why = RequestFault::Ask(Box::new(fault));
                    let cause = std::error::Error::source(&why).map(|cause| format!(": {cause}")).unwrap_or_default();
                    tracing::warn!(server = %shared.server, "an ask of the server was not answered: {why}{cause}");
                }
            }
        }
    }
    // Over HTTP, a session without a stream of its own goes on: requests bring what they need.
    if shared.link.is_over() {
        shared.over.send_replace(true);
    }
}
