//! `subscriptions/listen`: a stream of changes that stays open.
//!
//! ```text
//!  Idle --next()--> Open --notifications/cancelled, or no retry is left after the response--> Ended
//!   ^                |  |
//!   |                |  +--it broke, and a retry cannot cure that-----------------------------> Ended, with the error
//!   |                +--the response, or it broke--> Pausing
//!   +----------------------------------------------------+
//! ```

pub(crate) mod inbox;
pub(crate) mod listen;

use crate::{
    call::errors::ClientError,
    lists::tools::ServerTools,
    request::{
        fault::{RequestFault, common_version, supported},
        random,
    },
    session::Connection,
    transport::{ServerReply, TransportErrorKind as Kind},
};
use antiphon_wire::{
    ErrorCode, ErrorObject, ListenResult, OutcomeFault, ProtocolVersion, SubscriptionFilter, escaped, method,
};
use futures_util::future::BoxFuture;
use inbox::{Phase, SharedInbox, SubscriptionEvent};
use listen::forget_all;
use listen::{Attempts, ReconnectPolicy};
use serde_json::value::RawValue;
use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep};

/// The changes of a server, one event after another.
///
/// Nothing runs in the background: a connection is opened, read and opened again only while the program awaits
/// [`next`](Self::next). Several changes of one kind that were not taken wait as one. Dropping the value cancels the
/// subscription.
///
/// ```
/// use antiphon::{client::{Client, ClientError, events::SubscriptionEvent}, wire::SubscriptionFilter};
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
    tools: Arc<ServerTools>,
    inbox: SharedInbox,
    policy: ReconnectPolicy,
    acknowledge_timeout: Duration,
    attempts: Attempts,
    /// `true` if the server named another version since its last acknowledgement.
    renegotiated: bool,
    was_acknowledged: bool,
    /// `true` if the server closed the subscription with its response, and has not acknowledged another one since.
    closed_gracefully: bool,
    state: State,
}

enum State {
    Idle,
    Open(OpenRequest),
    Pausing(Pin<Box<Sleep>>),
    Ended,
}

/// One request that is under way.
struct OpenRequest {
    exchange: BoxFuture<'static, Result<ServerReply, RequestFault>>,
    /// The time limit of the acknowledgement.
    limit: Duration,
    acknowledge_by: Pin<Box<Sleep>>,
    acknowledged_at: Option<Instant>,
    /// The end of the request, stored until all earlier events were taken.
    end: Option<End>,
}

/// The end of one request.
enum End {
    Answered(ServerReply),
    /// The server sent `notifications/cancelled`.
    Cancelled,
    Failed(RequestFault),
}

enum Turn {
    Event(SubscriptionEvent),
    End(End),
}

impl Subscription {
    pub(crate) fn new(tools: Arc<ServerTools>, filter: SubscriptionFilter) -> Self {
        let acknowledge_timeout = tools.lists.connection.core.bounds.leg_timeout;
        Self {
            tools,
            inbox: SharedInbox::new(filter),
            policy: ReconnectPolicy::default(),
            acknowledge_timeout,
            attempts: Attempts::default(),
            renegotiated: false,
            was_acknowledged: false,
            closed_gracefully: false,
            state: State::Idle,
        }
    }

    fn connection(&self) -> &Connection {
        &self.tools.lists.connection
    }

    /// Sets the policy for opening the subscription again after a break.
    pub fn reconnect(mut self, policy: ReconnectPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the time limit for each acknowledgement. Default: the client's timeout of one request. After the
    /// acknowledgement, a subscription may be silent without limit.
    pub fn acknowledge_timeout(mut self, limit: Duration) -> Self {
        self.acknowledge_timeout = limit;
        self
    }

    /// The changes that were asked for.
    pub fn filter(&self) -> SubscriptionFilter {
        self.inbox.lock().filter().clone()
    }

    /// The next event. `None` once the server ended the subscription and the [`ReconnectPolicy`] allows no further attempt, and
    /// after an error. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`ClientError`] for an acknowledgement of nothing
    /// ([`is_nothing_acknowledged`](ClientError::is_nothing_acknowledged)), for a fault that a new connection cannot repair, such as an unknown method (`-32601`) or a refused token,
    /// and for the last of the attempts that the [`ReconnectPolicy`] allows.
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
                    // > The client **SHOULD** check the acknowledged filter against what it requested and handle any
                    // > unsupported types gracefully.
                    Turn::Event(SubscriptionEvent::Acknowledged(agreed)) if agreed.is_empty() => {
                        Err(RequestFault::NothingAcknowledged)
                    }
                    Turn::Event(event) => {
                        if matches!(event, SubscriptionEvent::Acknowledged(_)) {
                            self.acknowledged();
                        }
                        return Some(Ok(event));
                    }
                    Turn::End(End::Answered(Ok(result))) => match self.closed(&result) {
                        Ok(State::Pausing(pause)) => {
                            self.state = State::Pausing(pause);
                            return Some(Ok(SubscriptionEvent::Closed));
                        }
                        next => next,
                    },
                    Turn::End(end) => self.after(end),
                },
            };
            match next {
                Ok(state) => self.state = state,
                Err(fault) => {
                    self.state = State::Ended;
                    let server = self.connection().core.identity();
                    return Some(Err(ClientError::of_request(server, method::SUBSCRIPTIONS_LISTEN, fault)));
                }
            }
        }
    }

    /// Marks the subscription as acknowledged, for the first time or again.
    fn acknowledged(&mut self) {
        self.attempts.acknowledged();
        (self.renegotiated, self.closed_gracefully) = (false, false);
        if std::mem::replace(&mut self.was_acknowledged, true) {
            // The changes in between are unknown.
            forget_all(self.connection(), self.inbox.lock().filter());
        }
    }

    fn open(&self) -> State {
        // Each attempt has a new id, so that late messages for the previous one are not taken for this one.
        let id = self.connection().core.next_id();
        self.inbox.lock().reopen(id.clone());
        let (tools, inbox) = (Arc::clone(&self.tools), self.inbox.clone());
        let exchange = Box::pin(async move {
            let connection = &tools.lists.connection;
            match &connection.layers {
                None => listen::open(connection, id, &inbox, None).await,
                Some(layers) => listen::layered(connection, layers, &inbox).await,
            }
        });
        State::Open(OpenRequest {
            exchange,
            limit: self.acknowledge_timeout,
            acknowledge_by: Box::pin(sleep(self.acknowledge_timeout)),
            acknowledged_at: None,
            end: None,
        })
    }

    /// The next state after the server closed the subscription with its response.
    ///
    /// > The **server** tears it down (e.g., during shutdown) — it **SHOULD** send a successful `subscriptions/listen`
    /// > response to signal a graceful end
    ///
    /// Another instance may be there at once, so the subscription is opened again as after a break.
    fn closed(&mut self, result: &RawValue) -> Result<State, RequestFault> {
        let lasted = match std::mem::replace(&mut self.state, State::Ended) {
            State::Open(open) => open.acknowledged_at.map(|since| since.elapsed()),
            _ => None,
        };
        serde_json::from_str::<ListenResult>(result.get())
            .map_err(|fault| RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None })?;
        // A server that never acknowledges has no subscriptions.
        let Some(lasted) = lasted else { return Ok(State::Ended) };
        let Some(wait) = self.attempts.next(&self.policy, lasted, random()) else { return Ok(State::Ended) };
        self.closed_gracefully = true;
        let server = self.connection().core.identity();
        tracing::info!(server = %escaped(&server), ?wait, "the server closed a subscription");
        Ok(State::Pausing(Box::pin(sleep(wait))))
    }

    /// The next state after a request ended in another way, or the fault that ends the subscription.
    fn after(&mut self, end: End) -> Result<State, RequestFault> {
        let State::Open(open) = std::mem::replace(&mut self.state, State::Ended) else {
            return Ok(State::Ended);
        };
        let fault = match end {
            End::Answered(Ok(_)) | End::Cancelled => return Ok(State::Ended),
            End::Answered(Err(error)) => {
                if let Some(version) = self.other_version(&error) {
                    self.connection().core.change_version(version);
                    return Ok(State::Idle);
                }
                RequestFault::server(error, self.connection().core.handlers.declared)
            }
            // > A client that receives this response knows the subscription closed cleanly
            End::Failed(RequestFault::Transport(error)) if self.closed_gracefully && error.is_final() => {
                return Ok(State::Ended);
            }
            End::Failed(fault) => fault,
        };
        let lasted = open.acknowledged_at.map(|since| since.elapsed());
        // > a transport that closes without it indicates an unexpected disconnect, which the client **MAY** treat as a
        // > trigger to reconnect.
        if !is_retryable(&fault, lasted.is_some()) {
            return Err(fault);
        }
        match self.attempts.next(&self.policy, lasted.unwrap_or_default(), random()) {
            None => Err(fault),
            Some(wait) => {
                tracing::info!(
                    server = %escaped(&self.connection().core.identity()),
                    ?wait,
                    fault = %escaped(&fault),
                    "a subscription broke"
                );
                Ok(State::Pausing(Box::pin(sleep(wait))))
            }
        }
    }

    /// Returns a version that both sides support, if the server named one; once before each acknowledgement.
    fn other_version(&mut self, error: &ErrorObject) -> Option<ProtocolVersion> {
        if error.code != ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            || !self.connection().may_change_version()
            || std::mem::replace(&mut self.renegotiated, true)
        {
            return None;
        }
        common_version(supported(error).iter().map(String::as_str))
    }
}

impl OpenRequest {
    /// Reads the messages that have arrived, then returns the next event, or the end if there is none.
    fn turn(&mut self, cx: &mut Context<'_>, inbox: &SharedInbox) -> Poll<Turn> {
        if self.end.is_none() {
            self.end = self.read(cx, inbox);
        }
        if let Some(event) = inbox.lock().pop() {
            return Poll::Ready(Turn::Event(event));
        }
        match self.end.take() {
            Some(end) => Poll::Ready(Turn::End(end)),
            None => Poll::Pending,
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, inbox: &SharedInbox) -> Option<End> {
        let read = self.exchange.as_mut().poll(cx);
        let phase = inbox.lock().phase();
        if phase != Phase::Opening && self.acknowledged_at.is_none() {
            self.acknowledged_at = Some(Instant::now());
        }
        match read {
            Poll::Ready(Ok(reply)) => Some(End::Answered(reply)),
            _ if phase == Phase::Cancelled => Some(End::Cancelled),
            Poll::Ready(Err(fault)) => Some(End::Failed(fault)),
            // A subscription may be silent, but not before the acknowledgement.
            Poll::Pending if phase == Phase::Opening => {
                let late = self.acknowledge_by.as_mut().poll(cx).is_ready();
                late.then(|| End::Failed(RequestFault::Timeout(self.limit)))
            }
            Poll::Pending => None,
        }
    }
}

/// Returns `true` if the next attempt may succeed.
fn is_retryable(fault: &RequestFault, acknowledged: bool) -> bool {
    match fault {
        RequestFault::Timeout(_) => true,
        RequestFault::Server(error) => error.code == ErrorCode::INTERNAL_ERROR,
        RequestFault::Transport(error) if error.is_final() => false,
        RequestFault::Transport(error) => match error.kind() {
            Kind::Closed | Kind::Unreachable | Kind::TooLarge => true,
            Kind::Setting => false,
            // An acknowledgement comes from an MCP server; without one, the other end may be anything.
            Kind::Malformed => acknowledged,
            Kind::HttpStatus(status) => matches!(status, 408 | 429 | 500 | 502..=504),
        },
        _ => false,
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("server", &self.connection().core.identity())
            .field("filter", self.inbox.lock().filter())
            .finish_non_exhaustive()
    }
}
