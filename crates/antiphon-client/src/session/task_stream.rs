//! The subscription to the tasks that wait: `subscriptions/listen` with `taskIds`.
//!
//! ```text
//!  a task waits --> Opening --acknowledged--> Open --another task waits--> Open, and Opening one with all tasks
//!                     |  ^                     |                             |
//!                     |  |                     |                             +--acknowledged--> the new one is Open
//!                     |  +------ a pause <-----+ it broke, or the server closed it
//!                     +--refused--> the tasks are polled
//! ```
//!
//! A filter cannot be changed, so a further task needs a further request. The earlier one ends when the new one is
//! acknowledged, and no task goes without reports meanwhile.

use crate::{
    request::{fault::RequestFault, random},
    session::{
        Connection,
        task_watch::{TaskWatch, TaskWatches},
    },
    transport::{IncomingNotification, OutgoingRequest, TransportErrorKind as Kind},
};
use antiphon_wire::{
    AcknowledgedParams, CancelledParams, DetailedTask, ErrorCode, ListenParams, Meta, RequestId,
    SubscriptionFilter, escaped, method, write_request,
};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeSet,
    future::{pending, poll_fn},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};

/// The pause after a subscription broke. It doubles with each break in a row.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(60);

type TaskIds = BTreeSet<Arc<str>>;

/// Waits for the changes of a task, over the subscription that all waiting tasks of the client share. Returns `None` if the
/// server reports no tasks, or no runtime runs.
pub(crate) fn watch_task(connection: &Arc<Connection>, task_id: &str) -> Option<TaskWatch> {
    connection.task_watches.add(task_id, |watches| {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        Some(runtime.spawn(keep(Arc::clone(connection), watches)))
    })
}

/// The end of one request.
enum End {
    /// The server does not report these tasks.
    Refused(String),
    /// Another attempt may succeed.
    Broken(String),
}

/// One request that is under way.
struct Request {
    asked: TaskIds,
    received: Arc<Received>,
    exchange: BoxFuture<'static, End>,
    opened: Instant,
}

/// The notifications of one request.
struct Received {
    id: RequestId,
    asked: TaskIds,
    watches: TaskWatches,
    /// The tasks of the acknowledgement, once it has come.
    agreed: watch::Sender<Option<Vec<String>>>,
    cancelled: Notify,
}

/// Keeps the subscription open, until this future is dropped or the server refuses it.
async fn keep(connection: Arc<Connection>, watches: TaskWatches) {
    let (mut open, mut opening): (Option<Request>, Option<Request>) = (None, None);
    let (mut breaks, mut not_before) = (0, None);
    loop {
        let wanted = watches.wanted();
        let lacks = open.as_ref().is_none_or(|open| !wanted.is_subset(&open.asked));
        if opening.is_none() && not_before.is_none() && lacks && !wanted.is_empty() {
            opening = Some(Request::new(&connection, &watches, wanted));
        }
        let received = opening.as_ref().map(|opening| Arc::clone(&opening.received));
        tokio::select! {
            biased;
            agreed = acknowledged(received) => {
                let Some(mut new) = opening.take() else { continue };
                new.opened = Instant::now();
                watches.acknowledged(&new.asked, &agreed);
                if let Some(earlier) = &open {
                    watches.ended(&earlier.asked, Some(&new.asked));
                }
                // Dropping the earlier request ends its subscription; one that reports nothing is not kept.
                open = (!agreed.is_empty()).then_some(new);
            }
            end = end_of(&mut opening) => {
                let Some(ended) = opening.take() else { continue };
                match end {
                    End::Refused(why) => {
                        tracing::debug!(server = %escaped(&connection.core.identity()), why = %escaped(&why), "the server reports no tasks: they are polled");
                        if open.is_none() {
                            watches.refused();
                            return;
                        }
                        watches.declined(ended.asked);
                    }
                    End::Broken(why) => not_before = Some(pause(&connection, &mut breaks, &why)),
                }
            }
            end = end_of(&mut open) => {
                let Some(ended) = open.take() else { continue };
                watches.ended(&ended.asked, None);
                if ended.opened.elapsed() >= MAX_PAUSE {
                    breaks = 0;
                }
                let (End::Refused(why) | End::Broken(why)) = end;
                not_before = Some(pause(&connection, &mut breaks, &why));
            }
            () = until(not_before) => not_before = None,
            () = watches.added() => {}
        }
    }
}

/// The moment of the next attempt.
fn pause(connection: &Connection, breaks: &mut u32, why: &str) -> Instant {
    let wait = MIN_PAUSE.saturating_mul(1 << (*breaks).min(10)).min(MAX_PAUSE);
    *breaks = breaks.saturating_add(1);
    let left_out = u32::try_from(random() % 1024).unwrap_or_default();
    let wait = wait - wait.mul_f64(f64::from(left_out) / 2048.0);
    tracing::info!(server = %escaped(&connection.core.identity()), ?wait, why = %escaped(why), "the subscription to tasks broke");
    Instant::now() + wait
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

async fn acknowledged(opening: Option<Arc<Received>>) -> Vec<String> {
    match opening {
        Some(received) => received.agreed().await,
        None => pending().await,
    }
}

async fn end_of(request: &mut Option<Request>) -> End {
    match request {
        Some(request) => poll_fn(|cx| request.exchange.as_mut().poll(cx)).await,
        None => pending().await,
    }
}

impl Request {
    fn new(connection: &Arc<Connection>, watches: &TaskWatches, asked: TaskIds) -> Self {
        // Each attempt has a new id, so that late messages for the previous one are not taken for this one.
        let received = Arc::new(Received {
            id: connection.core.next_id(),
            asked: asked.clone(),
            watches: watches.clone(),
            agreed: watch::Sender::new(None),
            cancelled: Notify::new(),
        });
        let exchange = Box::pin(exchange(Arc::clone(connection), Arc::clone(&received)));
        Self { asked, received, exchange, opened: Instant::now() }
    }
}

/// Sends the request, and returns its end. A subscription may be silent, but not before its acknowledgement.
async fn exchange(connection: Arc<Connection>, received: Arc<Received>) -> End {
    let core = &connection.core;
    let version = core.known().version.clone();
    let meta = Meta::for_request(&version, Some(&core.info), &core.capabilities);
    let filter = received.asked.iter().fold(SubscriptionFilter::new(), |filter, id| filter.task(&**id));
    let (id, method) = (received.id.clone(), method::SUBSCRIPTIONS_LISTEN);
    let body = match write_request(&id, method, &ListenParams::new(filter, meta)) {
        Ok(body) => body,
        Err(fault) => return End::Refused(fault.to_string()),
    };
    let request = OutgoingRequest::new(id, method, version, body);
    let mut on_notification = |notification| received.take(&notification);
    let mut reply = connection.transport.exchange(request, &mut on_notification);
    let limit = core.bounds.leg_timeout;
    let late = async {
        if timeout(limit, received.agreed()).await.is_ok() {
            pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        reply = &mut reply => match reply {
            Ok(Ok(_)) => End::Broken("the server closed it".into()),
            Ok(Err(error)) => match error.code {
                ErrorCode::INTERNAL_ERROR => End::Broken(error.to_string()),
                _ => End::Refused(error.to_string()),
            },
            Err(error) if error.is_final() => End::Refused(error.to_string()),
            Err(error) => match error.kind() {
                Kind::Closed | Kind::Unreachable => End::Broken(error.to_string()),
                Kind::HttpStatus(408 | 429 | 500 | 502..=504) => End::Broken(error.to_string()),
                _ => End::Refused(error.to_string()),
            },
        },
        () = received.cancelled.notified() => End::Broken("the server ended it".into()),
        () = late => End::Broken(RequestFault::Timeout(limit).to_string()),
    }
}

impl Received {
    /// Waits for the acknowledgement, and returns the tasks that the server reports.
    async fn agreed(&self) -> Vec<String> {
        let mut agreed = self.agreed.subscribe();
        loop {
            if let Some(tasks) = agreed.borrow_and_update().clone() {
                return tasks;
            }
            if agreed.changed().await.is_err() {
                // The sender is dropped with `self` only.
                return pending().await;
            }
        }
    }

    fn take(&self, notification: &IncomingNotification) {
        let taken = match &*notification.method {
            method::SUBSCRIPTIONS_ACKNOWLEDGED => {
                read(notification).and_then(|params: AcknowledgedParams| {
                    self.is_ours(Some(&params.meta))?;
                    self.agreed.send_replace(Some(params.notifications.task_ids.unwrap_or_default()));
                    Ok(())
                })
            }
            // > A server **MUST** send `notifications/cancelled` referencing a `subscriptions/listen` request ID when it tears
            // > down that subscription stream
            method::CANCELLED => read(notification).map(|params: CancelledParams| {
                if params.request_id == self.id {
                    self.cancelled.notify_one();
                }
            }),
            method::TASKS_NOTIFICATION => read(notification).and_then(|task: DetailedTask| {
                self.is_ours(task.meta.as_ref())?;
                // > [it] **MUST NOT** send any notification on the subscription before it.
                if self.agreed.borrow().is_none() {
                    return Err("the subscription is not acknowledged");
                }
                if self.watches.changed(&task) { Ok(()) } else { Err("no call waits for the task") }
            }),
            _ => Err("it was not asked for"),
        };
        if let Err(why) = taken {
            let method = escaped(&notification.method);
            tracing::debug!(subscription = %escaped(&self.id), %method, why, "a notification was ignored");
        }
    }

    fn is_ours(&self, meta: Option<&Meta>) -> Result<(), &'static str> {
        match meta.and_then(Meta::subscription_id) {
            Some(other) if other != self.id => Err("it belongs to another subscription"),
            _ => Ok(()),
        }
    }
}

fn read<T: DeserializeOwned>(notification: &IncomingNotification) -> Result<T, &'static str> {
    let params = notification.params.as_deref().map_or("{}", |params| params.get());
    serde_json::from_str(params).map_err(|_| "its params cannot be read")
}
