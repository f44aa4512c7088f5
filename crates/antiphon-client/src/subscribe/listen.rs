//! A subscription by the server's era: one request to a modern server, notifications on a legacy session; and the waits before
//! a broken one is opened again, which read no clock.

use crate::{
    cache::ListKind,
    layer::{Layers, Reply, Request},
    request::{Added, RequestSpec, fault::RequestFault},
    session::{Connection, EraState, legacy::Session, shared::Listener},
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
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
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

/// The number of attempts, and the waits between them, to open a subscription again after it broke, or after the server closed
/// it. The usual reason for such an end is that the server stops, and another instance is there at once.
///
/// The waits double from the first to the longest. Each wait is shortened by a random part of up to one half, so that not
/// all clients reconnect at the same time after a server restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReconnectPolicy {
    attempts: u32,
    min_interval: Duration,
    max_interval: Duration,
}

impl Default for ReconnectPolicy {
    /// Ten attempts in a row; waits of half a second, doubling to 30 seconds: about two minutes in all.
    fn default() -> Self {
        Self { attempts: 10, min_interval: Duration::from_millis(500), max_interval: Duration::from_secs(30) }
    }
}

impl ReconnectPolicy {
    /// Returns a policy that never reconnects: a break or the server's response ends the subscription.
    pub fn never() -> Self {
        Self::default().attempts(0)
    }

    /// The number of attempts in a row that may fail before the subscription ends with the last one's error: 10 unless set. An
    /// acknowledgement ends the row.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The wait before the first attempt: half a second unless set.
    pub fn min_interval(mut self, wait: Duration) -> Self {
        self.min_interval = wait;
        self
    }

    /// The longest wait: 30 seconds unless set.
    pub fn max_interval(mut self, wait: Duration) -> Self {
        self.max_interval = wait;
        self
    }
}

/// The attempts that a subscription has made.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// The number of attempts that failed since the last acknowledgement.
    in_a_row: u32,
    /// The number of times that the wait was doubled. An acknowledgement alone does not reset it: the client must not
    /// reconnect twice a second, without end, to a server that acknowledges and then breaks.
    doubled: u32,
}

impl Attempts {
    /// Called when the server acknowledged.
    pub(crate) fn acknowledged(&mut self) {
        self.in_a_row = 0;
    }

    /// The wait before the next attempt, after a subscription broke that had been acknowledged for `lasted`. `None` if there is
    /// no further attempt.
    pub(crate) fn next(
        &mut self,
        policy: &ReconnectPolicy,
        lasted: Duration,
        random: u64,
    ) -> Option<Duration> {
        if self.in_a_row >= policy.attempts {
            return None;
        }
        if lasted >= policy.max_interval {
            self.doubled = 0;
        }
        let factor = 2_u32.checked_pow(self.doubled).unwrap_or(u32::MAX);
        let wait = policy.min_interval.saturating_mul(factor).min(policy.max_interval);
        self.in_a_row += 1;
        self.doubled = self.doubled.saturating_add(1);
        let left_out = u32::try_from(random % 1024).unwrap_or_default();
        Some(wait - wait.mul_f64(f64::from(left_out) / 2048.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the waits after these events: `None` an acknowledgement, `Some` a break this number of seconds after the
    /// acknowledgement.
    fn check(policy: ReconnectPolicy, happens: &[Option<u64>], waits_ms: &[Option<u64>]) {
        for random in [0, 1023, u64::MAX] {
            let mut attempts = Attempts::default();
            let mut waits = Vec::new();
            for step in happens {
                match step {
                    None => attempts.acknowledged(),
                    Some(lasted) => waits.push(attempts.next(&policy, Duration::from_secs(*lasted), random)),
                }
            }
            assert_eq!(waits.len(), waits_ms.len());
            for (at, (wait, most)) in waits.iter().zip(waits_ms).enumerate() {
                let (wait, most) = (wait.map(|wait| wait.as_millis() as u64), *most);
                let fits = match (wait, most) {
                    (Some(wait), Some(most)) if random == 0 => wait == most,
                    (Some(wait), Some(most)) => wait >= most / 2 && wait < most,
                    (wait, most) => wait == most,
                };
                assert!(fits, "{policy:?} {happens:?}: wait {at} is {wait:?} instead of {most:?}");
            }
        }
    }

    #[test]
    fn waits_double_and_attempts_end() {
        let standard = ReconnectPolicy::default();
        let broken = [Some(0); 12];
        let schedule: Vec<_> = [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000]
            .map(Some)
            .into_iter()
            .chain([None, None])
            .collect();
        check(standard, &broken, &schedule);
        check(ReconnectPolicy::never(), &[Some(100)], &[None]);
        // An acknowledgement ends the row, and time alone ends the waiting.
        let few = standard.attempts(2);
        check(few, &[Some(0), Some(0), Some(0)], &[Some(500), Some(1000), None]);
        check(
            few,
            &[Some(0), Some(0), None, Some(1), Some(1), Some(1)],
            &[Some(500), Some(1000), Some(2000), Some(4000), None],
        );
        check(few, &[Some(0), Some(0), None, Some(30)], &[Some(500), Some(1000), Some(500)]);
        // Nothing overflows.
        let eager = ReconnectPolicy::default().attempts(u32::MAX).max_interval(Duration::MAX);
        let mut attempts = Attempts { in_a_row: 0, doubled: 200 };
        assert!(attempts.next(&eager, Duration::ZERO, 7).is_some());
        check(standard.min_interval(Duration::from_secs(60)), &[Some(0)], &[Some(30000)]);
    }
}
