//! `subscriptions/listen`: one request that stays open and sends notifications of changes until either side ends it.

use crate::{
    errors::refusal::Refusal,
    feed::ListKind,
    identity::{Caller, account::CallerInfo},
    offer::{Profile, offers::Offers},
    options::limits::Limits,
    outbox::{MessageKind, Outbox},
    reply::{ReplyMessage, ServerInfo},
    request::receive::Request,
    runtime::Runtime,
    subscribe::{
        Change, ListFlags, NotificationFilter, SubscriptionHandle, WatchList, limit_exceeded, total_length,
    },
    task::TaskWatch,
};
use antiphon_wire::{
    AcknowledgedParams, ListChangedParams, ListenParams, ListenResult, Meta, RequestId,
    ResourceUpdatedParams, SubscriptionFilter, escaped, method, write_notification, write_result,
};
use serde::Serialize;
use std::{future::poll_fn, sync::Arc};

/// The number of the acknowledgement among the messages to send; those of lists and resources follow.
const ACKNOWLEDGEMENT: u32 = 0;
const FIRST_LIST: u32 = 1;
const FIRST_RESOURCE: u32 = 16;
const FIRST_TASK: u32 = 1 << 31;

/// The maximum length of a subscription's id, in bytes of JSON: every notification repeats it.
const MAX_ID: usize = 256;

/// The part of a subscription's request that the server honours.
struct AcceptedFilter {
    filter: SubscriptionFilter,
    lists: ListFlags,
    /// Sorted, without duplicates.
    uris: Vec<String>,
}

/// An open subscription. It may stay open for days, so it holds neither the text of its request nor the offers of that
/// time.
pub(crate) struct Subscription {
    /// `None` if the server honours nothing of the request: there is nothing to wait for.
    handle: Option<SubscriptionHandle>,
    sender: NotificationSender,
    tasks: Option<TaskWatch>,
    pub(crate) filter: NotificationFilter,
}

/// Opens a subscription and acknowledges it.
pub(crate) async fn open(
    server: &Arc<Runtime>,
    offers: &Offers,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<Subscription, Refusal> {
    // On a transport that carries replies only, the subscription would never send anything.
    let outbox = caller.outbox.ok_or_else(|| Refusal::Method(request.method.to_string()))?;
    // As sent: the text of an id for logs is cut.
    let id = serde_json::to_string(&request.id).map_err(|_| Refusal::Internal)?;
    if id.len() > MAX_ID {
        let text = format!("The id of a subscription may have at most {MAX_ID} bytes");
        return Err(Refusal::Limit { name: "subscription", text });
    }
    let principal = server.identified(&request.method, caller)?;
    let account = server.accounts.of(caller, principal.as_ref());
    let params: ListenParams = serde_json::from_str(request.text.get())
        .map_err(|fault| Refusal::params(format!("params: {fault}")))?;
    let ids = task_ids(offers, request, server, params.notifications.task_ids.clone())?;
    let mut accepted = accept(&offers.profile, &server.limits, params.notifications)?;
    let mut is_honoured = accepted.lists.contains(&true) || !accepted.uris.is_empty();
    let info = is_honoured.then(|| {
        Arc::new(CallerInfo::new(principal.clone(), caller, &request.version, request.meta.client_info))
    });
    server.require_scopes(&offers.lists.scopes_of(&accepted.uris, info.as_deref()), caller)?;
    let (lists, uris) = (accepted.lists, accepted.uris);
    // Before the subscription has a place: it misses nothing, and is not told of what changed before. A server that drains ends the
    // subscription at once.
    if let Some(feed) = server.feed.as_ref().filter(|_| !server.subscriptions.is_draining()) {
        feed.started().await;
    }
    // Before the tasks are loaded: a subscription that has no place is refused for little.
    let watched = WatchList { lists, uris, tasks: ids.as_ref().map_or(0, Vec::len), caller: info };
    let handle = server.subscriptions.join(account, watched, &server.limits)?;
    let mut tasks = None;
    if let Some(ids) = ids
        && let Some((watch, known)) = TaskWatch::open(server, &ids, principal, account).await?
    {
        is_honoured |= !known.is_empty();
        accepted.filter.task_ids = Some(known);
        tasks = Some(watch);
    }
    let sender = NotificationSender { id: request.id.clone(), outbox: outbox.clone() };
    // > The server **MUST** send `notifications/subscriptions/acknowledged` as the first message
    sender.send(
        ACKNOWLEDGEMENT,
        method::SUBSCRIPTIONS_ACKNOWLEDGED,
        &AcknowledgedParams::new(&sender.id, accepted.filter),
    );
    Ok(Subscription {
        handle: Some(handle).filter(|_| is_honoured),
        sender,
        tasks,
        filter: NotificationFilter::default(),
    })
}

impl Subscription {
    /// Waits until the server ends the subscription, and returns the response. A subscription that can report nothing ends at
    /// once, behind its acknowledgement. The client ends a subscription by dropping this future.
    pub(crate) async fn ended(self, server_info: &ServerInfo) -> ReplyMessage {
        let Self { handle, sender, mut tasks, filter } = self;
        // The task that was sent last, until the client has read it: its text is the only one in memory.
        let mut unread = None;
        while let Some(handle) = &handle {
            let next_task = async {
                let Some(tasks) = &mut tasks else { return std::future::pending().await };
                if let Some(key) = unread {
                    sender.taken(key).await;
                    tasks.was_read();
                    unread = None;
                }
                tasks.next().await
            };
            let change = tokio::select! {
                biased;
                change = poll_fn(|cx| handle.poll_change(cx)) => change,
                (number, task) = next_task => {
                    if !filter.permits(method::TASKS_NOTIFICATION, Some(task.id())).await {
                        tasks.iter_mut().for_each(TaskWatch::was_read);
                        continue;
                    }
                    // > Each notification carries a complete `DetailedTask` for the current status
                    let task = task.with_meta(Meta::for_subscription(&sender.id));
                    let key = FIRST_TASK + number;
                    sender.send(key, method::TASKS_NOTIFICATION, &task);
                    unread = Some(key);
                    continue;
                }
            };
            match change {
                Change::ListChanged(kind) => {
                    if !filter.permits(notification_of(kind), None).await {
                        continue;
                    }
                    let key = FIRST_LIST + kind as u32;
                    sender.send(key, notification_of(kind), &ListChangedParams::new(&sender.id));
                }
                Change::ResourceUpdated(index) => {
                    let Some(uri) = handle.uri(index) else { continue };
                    if !filter.permits(method::RESOURCES_UPDATED, Some(&uri)).await {
                        continue;
                    }
                    let params = ResourceUpdatedParams::new(&sender.id, uri);
                    sender.send(FIRST_RESOURCE + index, method::RESOURCES_UPDATED, &params);
                }
                Change::End => break,
            }
        }
        let mut result = ListenResult::new(&sender.id);
        server_info.join(&mut result.meta);
        ReplyMessage::written(
            &sender.id,
            write_result(&sender.id, &result).map_err(|fault| {
                tracing::error!(fault = %escaped(&fault), "the end of a subscription cannot be written as JSON");
                Refusal::Internal
            }),
        )
    }
}

/// Returns the ids of the tasks that the request names.
fn task_ids(
    offers: &Offers,
    request: &Request<'_>,
    server: &Runtime,
    ids: Option<Vec<String>>,
) -> Result<Option<Vec<String>>, Refusal> {
    let Some(ids) = ids.filter(|_| offers.profile.tasks) else { return Ok(None) };
    // > Servers **MUST** return this error for non-declaring clients requesting task notifications on `subscriptions/listen`.
    if !request.meta.tasks {
        return Err(Refusal::task_extension());
    }
    fits(&server.limits, &ids)?;
    Ok(Some(ids))
}

/// Returns the part of the request that the server honours.
///
/// > The server **MUST NOT** send notification types the client has not explicitly requested.
fn accept(profile: &Profile, limits: &Limits, wanted: SubscriptionFilter) -> Result<AcceptedFilter, Refusal> {
    let list = |wanted: Option<bool>| wanted.filter(|wanted| *wanted && profile.list_changed);
    let tools = list(wanted.tools_list_changed);
    let prompts = list(wanted.prompts_list_changed);
    let resources = list(wanted.resources_list_changed);
    let uris = wanted.resource_subscriptions.filter(|_| profile.resource_updates);
    let mut filter = SubscriptionFilter::default();
    // > Notification types the server does not support are omitted.
    (filter.tools_list_changed, filter.prompts_list_changed) = (tools, prompts);
    (filter.resources_list_changed, filter.resource_subscriptions) = (resources, uris.clone());
    let mut uris = uris.unwrap_or_default();
    fits(limits, &uris)?;
    uris.sort_unstable();
    uris.dedup();
    let mut lists = ListFlags::default();
    for (kind, wanted) in
        [(ListKind::Tools, tools), (ListKind::Prompts, prompts), (ListKind::Resources, resources)]
    {
        lists[kind as usize] = wanted.is_some();
    }
    Ok(AcceptedFilter { filter, lists, uris })
}

fn fits(limits: &Limits, uris: &[String]) -> Result<(), Refusal> {
    let (count, bytes) = (limits.subscription_uris, limits.subscription_uri_bytes);
    if uris.len() > count || total_length(uris) > bytes {
        return Err(limit_exceeded(limits));
    }
    Ok(())
}

pub(crate) fn notification_of(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => method::TOOLS_LIST_CHANGED,
        ListKind::Prompts => method::PROMPTS_LIST_CHANGED,
        ListKind::Resources => method::RESOURCES_LIST_CHANGED,
    }
}

/// The sender of this subscription's notifications.
struct NotificationSender {
    id: RequestId,
    outbox: Outbox,
}

impl NotificationSender {
    /// Waits until the transport has taken the message with this key.
    async fn taken(&self, key: u32) {
        poll_fn(|cx| self.outbox.poll_taken(key, cx)).await;
    }

    fn send(&self, key: u32, method: &str, params: &impl Serialize) {
        match write_notification(method, params) {
            Ok(bytes) => self.outbox.push(MessageKind::Change(key), bytes),
            Err(fault) => {
                tracing::error!(method, fault = %escaped(&fault), "a notification cannot be written as JSON")
            }
        }
    }
}
