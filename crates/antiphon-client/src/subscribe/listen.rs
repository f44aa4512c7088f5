//! A subscription by the server's era: one request to a modern server, notifications on a legacy session.

use crate::{
    cache::ListKind,
    layer::{
        Layers,
        request::{Reply, Request},
    },
    request::{
        core::{Added, RequestSpec},
        fault::RequestFault,
    },
    session::{
        connection::{Connection, EraState},
        legacy::Session,
        shared::Listener,
    },
    subscribe::inbox::{Change, SharedInbox},
    transport::{
        IncomingNotification, OutgoingRequest, ServerReply, TransportError, TransportErrorKind::Closed,
    },
};
use antiphon_wire::{
    AcknowledgedParams, ErrorCode, ListenParams, Meta, RequestId, ServerCapabilities, SubscribeParams,
    SubscriptionFilter, escaped, lock::Lock, method, write_request,
};
use serde_json::value::to_raw_value;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// Puts the changes of a session into the inbox.
struct SubscriptionListener {
    inbox: SharedInbox,
    received: Notify,
}

impl Listener for SubscriptionListener {
    fn on_change(&self, notification: &IncomingNotification) {
        // The session has removed it from the cache.
        self.inbox.lock().take(notification);
        self.received.notify_one();
    }
}

/// Unsubscribes from its resources when it is dropped.
struct ResourceSubscriptions {
    session: Arc<Session>,
    uris: Vec<String>,
}

impl Drop for ResourceSubscriptions {
    fn drop(&mut self) {
        let uris: Vec<String> =
            std::mem::take(&mut self.uris).into_iter().filter(|uri| self.session.release(uri)).collect();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if uris.is_empty() || self.session.is_over() {
            return;
        }
        let session = Arc::clone(&self.session);
        runtime.spawn(async move {
            let _turn = session.turn().await;
            // Another subscription may hold it since.
            for uri in uris.into_iter().filter(|uri| !session.is_held(uri)) {
                let _ = session.request(method::RESOURCES_UNSUBSCRIBE, &SubscribeParams::new(uri)).await;
            }
        });
    }
}

/// Subscribes in the way of the server's era.
pub(crate) async fn open(
    connection: &Connection,
    id: RequestId,
    inbox: &SharedInbox,
    added: Option<&Added>,
) -> Result<ServerReply, RequestFault> {
    let state = if connection.is_modern() { EraState::Modern } else { connection.settle().await? };
    match state {
        EraState::Legacy(session) => on_session(session, id, inbox.clone()).await,
        _ => modern(connection, id, inbox, added).await,
    }
}

/// Subscribes inside of the client's layers. Each sending has an id of its own.
pub(crate) async fn layered(
    connection: &Connection,
    layers: &Layers,
    inbox: &SharedInbox,
) -> Result<ServerReply, RequestFault> {
    let core = &connection.core;
    let spec = RequestSpec::single(method::SUBSCRIPTIONS_LISTEN, core.bounds.leg_timeout);
    let other_version = &Lock::new(None);
    let request = |server| Request::new(&spec, core.identity(), server);
    let send = |request: Request| async move {
        let id = core.next_id();
        inbox.lock().reopen(id.clone());
        let reply = open(connection, id, inbox, Some(&request.added)).await?;
        reply.map(Reply::of).map_err(|error| {
            if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION {
                *other_version.lock() = Some(error.clone());
            }
            RequestFault::server(error, core.handlers.declared)
        })
    };
    match layers.run(request, send).await {
        Ok(reply) => Ok(Ok(reply.into_result())),
        // The subscription begins again with a version of the server's.
        Err(fault @ RequestFault::Version { .. }) => {
            let error = other_version.lock().take();
            error.map(Err).ok_or(fault)
        }
        Err(fault) => Err(fault),
    }
}

/// Subscribes, and waits as long as the session lasts. Always ends with an error.
async fn on_session(
    session: Arc<Session>,
    id: RequestId,
    inbox: SharedInbox,
) -> Result<ServerReply, RequestFault> {
    let wanted = inbox.lock().filter().clone();
    let listener = Arc::new(SubscriptionListener { inbox: inbox.clone(), received: Notify::new() });
    session.listen(Arc::downgrade(&listener) as Weak<dyn Listener>);
    let mut resources = ResourceSubscriptions { session, uris: Vec::new() };
    let session = Arc::clone(&resources.session);
    // A server that had no stream from the start has not broken.
    let has_stream = session.has_stream();
    let mut ended = Box::pin(async move {
        tokio::select! {
            () = session.over() => {}
            () = session.stream_closed(), if has_stream => {}
        }
    });
    let granted = subscribe(&mut resources, &wanted, has_stream).await?;
    let acknowledged = IncomingNotification::new(
        method::SUBSCRIPTIONS_ACKNOWLEDGED,
        to_raw_value(&AcknowledgedParams::new(&id, granted)).ok(),
    );
    listener.on_change(&acknowledged);
    loop {
        tokio::select! {
            biased;
            () = &mut ended => {
                let text = "the session that delivers the changes has ended, or delivers no more of them";
                return Err(RequestFault::Transport(TransportError::new(Closed, text)));
            }
            // The subscription, which polls this, takes what is in the inbox.
            () = listener.received.notified() => {}
        }
    }
}

/// Subscribes to the resources. Returns the changes that the server will report.
async fn subscribe(
    resources: &mut ResourceSubscriptions,
    wanted: &SubscriptionFilter,
    has_stream: bool,
) -> Result<SubscriptionFilter, RequestFault> {
    let session = Arc::clone(&resources.session);
    let can = session.capabilities();
    let mut granted = SubscriptionFilter::new();
    let list = |asked: Option<bool>, name| {
        asked.filter(|asked| *asked && has_stream && offers(can, name, "listChanged"))
    };
    granted.tools_list_changed = list(wanted.tools_list_changed, "tools");
    granted.prompts_list_changed = list(wanted.prompts_list_changed, "prompts");
    granted.resources_list_changed = list(wanted.resources_list_changed, "resources");
    let uris = wanted.resource_subscriptions.iter().flatten();
    let _turn = session.turn().await;
    for uri in uris.filter(|_| has_stream && offers(can, "resources", "subscribe")) {
        let is_first = session.hold(uri);
        // From here on the guard unsubscribes from the resource when it is dropped, also after an error.
        resources.uris.push(uri.clone());
        if is_first {
            let params = SubscribeParams::new(uri);
            match session.request(method::RESOURCES_SUBSCRIBE, &params).await {
                Ok(_) => {}
                Err(RequestFault::Server(error)) => {
                    tracing::debug!(error = %escaped(&error), "the server does not report updates of a resource");
                    resources.uris.pop();
                    session.release(uri);
                    continue;
                }
                Err(fault) => return Err(fault),
            }
        }
        granted = granted.resource(uri);
    }
    Ok(granted)
}

fn offers(can: &ServerCapabilities, name: &str, what: &str) -> bool {
    can.0.get(name).and_then(|settings| settings.get(what)).and_then(serde_json::Value::as_bool) == Some(true)
}

// A subscription to a modern server: one request, which is answered when the subscription ends.

/// Sends the request that is answered when the subscription ends. Dropping it cancels the subscription: closes the stream, or
/// sends `notifications/cancelled`.
async fn modern(
    connection: &Connection,
    id: RequestId,
    inbox: &SharedInbox,
    added: Option<&Added>,
) -> Result<ServerReply, RequestFault> {
    let core = &connection.core;
    let version = core.known().version.clone();
    let mut meta = Meta::for_request(&version, Some(&core.info), &core.capabilities);
    if let Some(added) = added {
        added.add_to(&mut meta);
    }
    let params = ListenParams::new(inbox.lock().filter().clone(), meta);
    let body = write_request(&id, method::SUBSCRIPTIONS_LISTEN, &params).map_err(RequestFault::Unwritable)?;
    let headers = added.map(|added| added.headers.clone()).unwrap_or_default();
    let request =
        OutgoingRequest { headers, ..OutgoingRequest::new(id, method::SUBSCRIPTIONS_LISTEN, version, body) };
    let mut on_notification = |notification| {
        if let Some(change) = inbox.lock().take(&notification) {
            forget(connection, &change);
        }
    };
    connection.transport.exchange(request, &mut on_notification).await.map_err(RequestFault::Transport)
}

/// Removes a change from the cache.
fn forget(connection: &Connection, change: &Change) {
    match change {
        Change::Tools => connection.core.cache.forget_list(ListKind::Tools),
        Change::Prompts => connection.core.cache.forget_list(ListKind::Prompts),
        Change::Resources => connection.core.cache.forget_list(ListKind::Resources),
        Change::Resource(uri) => connection.core.cache.forget_resource(uri),
        // Tasks are not cached.
        Change::Task(_) => {}
    }
}

/// Removes from the cache what may have changed while the subscription was broken.
pub(crate) fn forget_all(connection: &Connection, filter: &SubscriptionFilter) {
    for (asked, list) in [
        (filter.tools_list_changed, Change::Tools),
        (filter.prompts_list_changed, Change::Prompts),
        (filter.resources_list_changed, Change::Resources),
    ] {
        if asked == Some(true) {
            forget(connection, &list);
        }
    }
    if filter.resource_subscriptions.as_ref().is_some_and(|uris| !uris.is_empty()) {
        // The server reports parts of the resources as well: any of them may have changed.
        connection.core.cache.forget_contents();
    }
}
