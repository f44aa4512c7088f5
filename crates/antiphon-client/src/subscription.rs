//! `subscriptions/listen`: a stream of changes that stays open.
//!
//! ```text
//!  Idle --next()--> Open --the response, or notifications/cancelled--> Ended
//!   ^                |  |
//!   |                |  +--it broke, and a retry cannot cure that----> Ended, with the error
//!   |                +--it broke--> Pausing
//!   +-----------------------------------+
//! ```

mod event;
mod inbox;
mod on_session;
mod reconnect;

pub use event::SubscriptionEvent;
pub use reconnect::ReconnectPolicy;

use crate::{
    Client, Inner,
    cache::ListKind,
    client_error::{ClientError, ClientErrorKind},
    era::Footing,
    fault::{RequestFault, common_version, supported},
    transport::{OutgoingRequest, ServerReply, TransportErrorKind as Kind},
};
use antiphon_wire::{
    ErrorCode, ErrorObject, ListenParams, ListenResult, Meta, OutcomeFault, ProtocolVersion, RequestId,
    SubscriptionFilter, method, write_request,
};
use futures_util::future::BoxFuture;
use inbox::{Change, Inbox, Phase};
use reconnect::{Attempts, random};
use std::{
    borrow::Cow,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep};

/// What a server tells of its changes, one event after another.
///
/// Nothing runs in the background: a connection is opened, read and opened again only while [`next`](Self::next) is
/// waited for, and changes that are not taken wait as one each. Dropping it cancels the subscription.
///
/// ```
/// use antiphon::{client::{Client, ClientError, SubscriptionEvent}, wire::SubscriptionFilter};
///
/// async fn follow(client: &Client) -> Result<(), ClientError> {
///     let mut changes = client.listen(SubscriptionFilter::new().tools().resource("file:///project/config.json"));
///     while let Some(event) = changes.next().await {
///         match event? {
///             SubscriptionEvent::Acknowledged(_) | SubscriptionEvent::ToolsListChanged => {
///                 client.list_tools().await?;
///             }
///             SubscriptionEvent::ResourceUpdated { uri } => println!("read {uri} again"),
///             _ => {}
///         }
///     }
///     Ok(())
/// }
/// ```
#[must_use = "nothing is sent before `next` is called"]
pub struct Subscription {
    client: Client,
    inbox: Arc<Mutex<Inbox>>,
    policy: ReconnectPolicy,
    acknowledge_within: Duration,
    attempts: Attempts,
    /// The server named another version since its last acknowledgement.
    renegotiated: bool,
    was_acknowledged: bool,
    state: State,
}

enum State {
    Idle,
    Open(Open),
    Pausing(Pin<Box<Sleep>>),
    Ended,
}

/// One request that is under way.
struct Open {
    exchange: BoxFuture<'static, Result<ServerReply, RequestFault>>,
    /// How much time the acknowledgement has, and until when.
    limit: Duration,
    acknowledge_by: Pin<Box<Sleep>>,
    acknowledged_at: Option<Instant>,
    /// Kept until everything that came before it was taken.
    end: Option<End>,
}

/// How one request ended.
enum End {
    Answered(ServerReply),
    /// By `notifications/cancelled`.
    Cancelled,
    Failed(RequestFault),
}

enum Turn {
    Event(SubscriptionEvent),
    End(End),
}

impl Client {
    /// Listens to changes of lists and resources. Nothing is sent before [`Subscription::next`] is called first.
    ///
    /// On a session of a legacy server, it hears what the server tells the session, and subscribes to the resources; what
    /// the server does not offer is missing in the acknowledgement.
    pub fn listen(&self, filter: SubscriptionFilter) -> Subscription {
        Subscription {
            client: self.clone(),
            inbox: Arc::new(Mutex::new(Inbox::new(filter))),
            policy: ReconnectPolicy::default(),
            acknowledge_within: self.inner.bounds.leg_timeout,
            attempts: Attempts::default(),
            renegotiated: false,
            was_acknowledged: false,
            state: State::Idle,
        }
    }
}

impl Subscription {
    /// The same subscription, opened again after a break as this policy says.
    pub fn reconnect(mut self, policy: ReconnectPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The same subscription, with this much time for each acknowledgement: the client's timeout of one request unless
    /// set. After it a subscription may stay silent for ever.
    pub fn acknowledge_within(mut self, limit: Duration) -> Self {
        self.acknowledge_within = limit;
        self
    }

    /// What was asked for.
    pub fn filter(&self) -> SubscriptionFilter {
        lock(&self.inbox).filter().clone()
    }

    /// The next event. `None` once the server ended the subscription, and after an error. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// What a new connection cannot cure, such as a server that does not know the method (`-32601`) or a refused
    /// token, and what ended the last of the attempts that the [`ReconnectPolicy`] grants.
    pub async fn next(&mut self) -> Option<Result<SubscriptionEvent, ClientError>> {
        loop {
            let next = match &mut self.state {
                State::Ended => return None,
                State::Pausing(pause) => {
                    pause.await;
                    Ok(State::Idle)
                }
                State::Idle => Ok(self.open()),
                State::Open(open) => match poll_fn(|cx| open.turn(cx, &self.inbox)).await {
                    Turn::Event(event) => {
                        if matches!(event, SubscriptionEvent::Acknowledged(_)) {
                            self.acknowledged();
                        }
                        return Some(Ok(event));
                    }
                    Turn::End(end) => self.after(end),
                },
            };
            match next {
                Ok(state) => self.state = state,
                Err(fault) => {
                    self.state = State::Ended;
                    let kind = ClientErrorKind::Request(fault);
                    return Some(Err(ClientError::new(
                        self.client.server(),
                        method::SUBSCRIPTIONS_LISTEN,
                        kind,
                    )));
                }
            }
        }
    }

    /// The server listens, for the first time or again.
    fn acknowledged(&mut self) {
        self.attempts.acknowledged();
        self.renegotiated = false;
        if std::mem::replace(&mut self.was_acknowledged, true) {
            // Nobody told what changed in between.
            forget_all(&self.client.inner, lock(&self.inbox).filter());
        }
    }

    fn open(&self) -> State {
        let client = Arc::clone(&self.client.inner);
        // A new id each time: what still comes for the last one is not taken for this one's.
        let id = RequestId::from(client.next_id.fetch_add(1, Ordering::Relaxed));
        let inbox = Arc::clone(&self.inbox);
        lock(&inbox).reopen(id.clone());
        let exchange = Box::pin(async move {
            let is_modern = matches!(client.known().footing, Footing::Modern);
            match if is_modern { Footing::Modern } else { client.settle().await? } {
                Footing::Legacy(session) => on_session::listen(&client, session, id, inbox).await,
                _ => listen(&client, id, &inbox).await,
            }
        });
        State::Open(Open {
            exchange,
            limit: self.acknowledge_within,
            acknowledge_by: Box::pin(sleep(self.acknowledge_within)),
            acknowledged_at: None,
            end: None,
        })
    }

    /// What to do after a request ended: the next state, or the fault that ends the subscription.
    fn after(&mut self, end: End) -> Result<State, RequestFault> {
        let State::Open(open) = std::mem::replace(&mut self.state, State::Ended) else {
            return Ok(State::Ended);
        };
        let fault = match end {
            // > A client that receives this response knows the subscription closed cleanly
            End::Answered(Ok(result)) => {
                return serde_json::from_str::<ListenResult>(result.get()).map(|_| State::Ended).map_err(
                    |fault| RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None },
                );
            }
            End::Cancelled => return Ok(State::Ended),
            End::Answered(Err(error)) => {
                if let Some(version) = self.other_version(&error) {
                    self.client.inner.change_version(version);
                    return Ok(State::Idle);
                }
                RequestFault::server(error, self.client.inner.desk.declared)
            }
            End::Failed(fault) => fault,
        };
        let lasted = open.acknowledged_at.map(|since| since.elapsed());
        // > a transport that closes without it indicates an unexpected disconnect, which the client **MAY** treat as a
        // > trigger to reconnect.
        if !may_pass(&fault, lasted.is_some()) {
            return Err(fault);
        }
        match self.attempts.next(&self.policy, lasted.unwrap_or_default(), random()) {
            None => Err(fault),
            Some(wait) => {
                tracing::info!(server = %self.client.server(), ?wait, "a subscription broke: {fault}");
                Ok(State::Pausing(Box::pin(sleep(wait))))
            }
        }
    }

    /// A version that both sides speak, if the server named one; once before each acknowledgement.
    fn other_version(&mut self, error: &ErrorObject) -> Option<ProtocolVersion> {
        if error.code != ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            || !self.client.inner.follows()
            || std::mem::replace(&mut self.renegotiated, true)
        {
            return None;
        }
        common_version(supported(error).iter().map(String::as_str))
    }
}

impl Open {
    /// Reads what is there, then gives the next event, or the end once there is none.
    fn turn(&mut self, cx: &mut Context<'_>, inbox: &Mutex<Inbox>) -> Poll<Turn> {
        if self.end.is_none() {
            self.end = self.read(cx, inbox);
        }
        if let Some(event) = lock(inbox).pop() {
            return Poll::Ready(Turn::Event(event));
        }
        match self.end.take() {
            Some(end) => Poll::Ready(Turn::End(end)),
            None => Poll::Pending,
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, inbox: &Mutex<Inbox>) -> Option<End> {
        let read = self.exchange.as_mut().poll(cx);
        let phase = lock(inbox).phase();
        if phase != Phase::Opening && self.acknowledged_at.is_none() {
            self.acknowledged_at = Some(Instant::now());
        }
        match read {
            Poll::Ready(Ok(reply)) => Some(End::Answered(reply)),
            _ if phase == Phase::Cancelled => Some(End::Cancelled),
            Poll::Ready(Err(fault)) => Some(End::Failed(fault)),
            // Silence is what a subscription is made of, but not before the acknowledgement.
            Poll::Pending if phase == Phase::Opening => {
                let late = self.acknowledge_by.as_mut().poll(cx).is_ready();
                late.then(|| End::Failed(RequestFault::Timeout(self.limit)))
            }
            Poll::Pending => None,
        }
    }
}

/// The request that is answered when the subscription ends. Dropping it cancels the subscription: closes the stream, or
/// tells the server.
async fn listen(client: &Inner, id: RequestId, inbox: &Mutex<Inbox>) -> Result<ServerReply, RequestFault> {
    let version = client.known().version.clone();
    let meta = Meta::for_request(&version, Some(&client.info), &client.capabilities);
    let params = ListenParams::new(lock(inbox).filter().clone(), meta);
    let body = write_request(&id, method::SUBSCRIPTIONS_LISTEN, &params).map_err(RequestFault::Unwritable)?;
    let request = OutgoingRequest {
        id,
        method: Cow::Borrowed(method::SUBSCRIPTIONS_LISTEN),
        name: None,
        version,
        headers: Vec::new(),
        body,
    };
    let mut take = |notification| {
        if let Some(change) = lock(inbox).take(&notification) {
            forget(client, &change);
        }
    };
    client.transport.exchange(request, &mut take).await.map_err(RequestFault::Transport)
}

/// Whether the next attempt may do better.
fn may_pass(fault: &RequestFault, acknowledged: bool) -> bool {
    match fault {
        RequestFault::Timeout(_) => true,
        RequestFault::Server(error) => error.code == ErrorCode::INTERNAL_ERROR,
        RequestFault::Transport(error) if error.is_final() => false,
        RequestFault::Transport(error) => match error.kind() {
            Kind::Closed | Kind::Unreachable | Kind::TooLarge => true,
            // Whoever acknowledged is an MCP server; whoever did not may be anything.
            Kind::Malformed => acknowledged,
            Kind::HttpStatus(status) => matches!(status, 408 | 429 | 500 | 502..=504),
        },
        _ => false,
    }
}

/// Forgets what the client keeps and is no longer true.
fn forget(client: &Inner, change: &Change) {
    match change {
        Change::Tools => client.cache.forget_list(ListKind::Tools),
        Change::Prompts => client.cache.forget_list(ListKind::Prompts),
        Change::Resources => client.cache.forget_list(ListKind::Resources),
        Change::Resource(uri) => client.cache.forget_resource(uri),
    }
}

/// Forgets what may have changed while nobody told.
fn forget_all(client: &Inner, filter: &SubscriptionFilter) {
    for (asked, list) in [
        (filter.tools_list_changed, Change::Tools),
        (filter.prompts_list_changed, Change::Prompts),
        (filter.resources_list_changed, Change::Resources),
    ] {
        if asked == Some(true) {
            forget(client, &list);
        }
    }
    if filter.resource_subscriptions.as_ref().is_some_and(|uris| !uris.is_empty()) {
        // Parts of what was asked for are told of as well, so that any of them may have changed.
        client.cache.forget_contents();
    }
}

fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    // Every change of it is made whole before anything can panic.
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("server", &self.client.server())
            .field("filter", lock(&self.inbox).filter())
            .finish_non_exhaustive()
    }
}
