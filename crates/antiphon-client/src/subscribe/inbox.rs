//! The changes that were received and not taken yet. Their number is bounded by the filter of the subscription.

use crate::transport::IncomingNotification;
use antiphon_wire::{
    AcknowledgedParams, CancelledParams, DetailedTask, ListChangedParams, Meta, RequestId,
    ResourceUpdatedParams, SubscriptionFilter, escaped, lock::Lock, method,
};
use serde::de::DeserializeOwned;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, MutexGuard},
};

/// The maximum number of changed parts of resources that wait by their own URIs. Further ones wait as the resource they are
/// part of.
const MAX_PARTS: usize = 64;
/// The maximum length in bytes of a part's URI. A part with a longer one waits as the resource it is part of.
const MAX_PART_URI: usize = 4096;

/// The inbox of one subscription. Clones are the same inbox.
#[derive(Clone)]
pub(crate) struct SharedInbox(Arc<Lock<Inbox>>);

impl SharedInbox {
    pub(crate) fn new(filter: SubscriptionFilter) -> Self {
        Self(Arc::new(Lock::new(Inbox::new(filter))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock()
    }
}

/// The notifications of one subscription: sorted, and each change once.
pub(crate) struct Inbox {
    requested: RequestedChanges,
    /// The request that the notifications must name.
    id: RequestId,
    phase: Phase,
    acknowledgement: Option<SubscriptionFilter>,
    /// The changes, in the order of their first arrival.
    order: VecDeque<Change>,
    waiting: HashSet<Change>,
    /// The latest states of the tasks that wait.
    tasks: HashMap<Arc<str>, Box<DetailedTask>>,
    /// The number of them that are parts of a requested resource.
    parts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening,
    Acknowledged,
    /// The server ended the subscription by a notification.
    Cancelled,
}

/// The changes that were asked for.
struct RequestedChanges {
    filter: SubscriptionFilter,
    uris: Vec<Arc<str>>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resources,
    Resource(Arc<str>),
    Task(Arc<str>),
}

impl Inbox {
    pub(crate) fn new(filter: SubscriptionFilter) -> Self {
        let uris =
            filter.resource_subscriptions.iter().flatten().map(|uri| Arc::from(uri.as_str())).collect();
        Self {
            requested: RequestedChanges { filter, uris },
            id: RequestId::from(0_i64),
            phase: Phase::Opening,
            acknowledgement: None,
            order: VecDeque::new(),
            waiting: HashSet::new(),
            tasks: HashMap::new(),
            parts: 0,
        }
    }

    /// Begins a new request of the subscription. Changes that wait are kept.
    pub(crate) fn reopen(&mut self, id: RequestId) {
        (self.id, self.phase) = (id, Phase::Opening);
    }

    pub(crate) fn filter(&self) -> &SubscriptionFilter {
        &self.requested.filter
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Stores a notification, and returns its change, also if that change waits already. A notification that does not belong to
    /// this subscription is logged and dropped.
    pub(crate) fn take(&mut self, notification: &IncomingNotification) -> Option<Change> {
        let taken = match notification.method.as_str() {
            method::SUBSCRIPTIONS_ACKNOWLEDGED => self.acknowledge(notification).map(|()| None),
            method::CANCELLED => self.cancel(notification).map(|()| None),
            _ => self.change(notification).map(Some),
        };
        taken.unwrap_or_else(|why| {
            let method = escaped(&notification.method);
            tracing::debug!(subscription = %escaped(&self.id), %method, why, "a notification was ignored");
            None
        })
    }

    /// The next event, if one waits.
    pub(crate) fn pop(&mut self) -> Option<SubscriptionEvent> {
        if let Some(filter) = self.acknowledgement.take() {
            return Some(SubscriptionEvent::Acknowledged(filter));
        }
        let change = self.order.pop_front()?;
        self.waiting.remove(&change);
        match change {
            Change::Tools => Some(SubscriptionEvent::ToolsListChanged),
            Change::Prompts => Some(SubscriptionEvent::PromptsListChanged),
            Change::Resources => Some(SubscriptionEvent::ResourcesListChanged),
            Change::Resource(uri) => {
                self.parts -= usize::from(!self.requested.uris.contains(&uri));
                Some(SubscriptionEvent::ResourceUpdated { uri: uri.as_ref().to_owned() })
            }
            // A task that waits has its state.
            Change::Task(id) => self.tasks.remove(&id).map(SubscriptionEvent::Task),
        }
    }

    /// > The server **MUST** send `notifications/subscriptions/acknowledged` as the first message carrying the
    /// > subscription's ID
    fn acknowledge(&mut self, notification: &IncomingNotification) -> Result<(), &'static str> {
        let params: AcknowledgedParams = read(notification)?;
        self.is_ours(&params.meta)?;
        if self.phase != Phase::Opening {
            return Err("the subscription was acknowledged already");
        }
        // > The client **SHOULD** check the acknowledged filter against what it requested and handle any unsupported
        // > types gracefully.
        let missing = self.requested.missing_in(&params.notifications);
        if !missing.is_empty() {
            tracing::warn!(
                subscription = %escaped(&self.id),
                missing = %escaped(&missing.join(", ")),
                "the server does not report all requested changes"
            );
        }
        self.phase = Phase::Acknowledged;
        self.acknowledgement = Some(params.notifications);
        Ok(())
    }

    /// > A server **MUST** send `notifications/cancelled` referencing a `subscriptions/listen` request ID when it tears
    /// > down that subscription stream
    fn cancel(&mut self, notification: &IncomingNotification) -> Result<(), &'static str> {
        let params: CancelledParams = read(notification)?;
        if params.request_id != self.id {
            return Err("it cancels another request");
        }
        self.phase = Phase::Cancelled;
        Ok(())
    }

    fn change(&mut self, notification: &IncomingNotification) -> Result<Change, &'static str> {
        let filter = &self.requested.filter;
        let list = |asked: Option<bool>, change: Change| {
            let params: ListChangedParams = read(notification)?;
            if asked == Some(true) { Ok((params.meta, change, None)) } else { Err("it was not asked for") }
        };
        // The change, and another one that waits in its place.
        let (meta, change, instead) = match notification.method.as_str() {
            method::TOOLS_LIST_CHANGED => list(filter.tools_list_changed, Change::Tools),
            method::PROMPTS_LIST_CHANGED => list(filter.prompts_list_changed, Change::Prompts),
            method::RESOURCES_LIST_CHANGED => list(filter.resources_list_changed, Change::Resources),
            method::RESOURCES_UPDATED => {
                let params: ResourceUpdatedParams = read(notification)?;
                let asked =
                    self.requested.resource_of(&params.uri).ok_or("the resource was not asked for")?;
                let is_part = **asked != *params.uri;
                let too_much = is_part && (self.parts >= MAX_PARTS || params.uri.len() > MAX_PART_URI);
                let instead = too_much.then(|| Change::Resource(Arc::clone(asked)));
                Ok((params.meta, Change::Resource(Arc::from(params.uri)), instead))
            }
            method::TASKS_NOTIFICATION => return self.task(notification),
            _ => Err("its method is unknown"),
        }?;
        self.is_ours(&meta)?;
        // > [it] **MUST NOT** send any notification on the subscription before it.
        if self.phase != Phase::Acknowledged {
            return Err("the subscription is not acknowledged");
        }
        self.wait(instead.unwrap_or_else(|| change.clone()));
        Ok(change)
    }

    /// Stores the state of a task in the place of an earlier one.
    fn task(&mut self, notification: &IncomingNotification) -> Result<Change, &'static str> {
        let task: DetailedTask = read(notification)?;
        self.is_ours(task.meta.as_ref().unwrap_or(&Meta::default()))?;
        let mut asked = self.requested.filter.task_ids.iter().flatten();
        if !asked.any(|id| *id == task.task.task_id) {
            return Err("the task was not asked for");
        }
        if self.phase != Phase::Acknowledged {
            return Err("the subscription is not acknowledged");
        }
        let id: Arc<str> = Arc::from(task.task.task_id.as_str());
        self.tasks.insert(Arc::clone(&id), Box::new(task));
        self.wait(Change::Task(Arc::clone(&id)));
        Ok(Change::Task(id))
    }

    fn wait(&mut self, change: Change) {
        if self.waiting.contains(&change) {
            return;
        }
        if let Change::Resource(uri) = &change {
            self.parts += usize::from(!self.requested.uris.contains(uri));
        }
        self.waiting.insert(change.clone());
        self.order.push_back(change);
    }

    /// Checks that a notification belongs to this subscription. On a stream of its own, a server may have left out the id.
    fn is_ours(&self, meta: &Meta) -> Result<(), &'static str> {
        match meta.subscription_id() {
            Some(other) if other != self.id => Err("it belongs to another subscription"),
            _ => Ok(()),
        }
    }
}

impl RequestedChanges {
    /// Returns the requested changes that the server did not accept, as a text.
    fn missing_in(&self, granted: &SubscriptionFilter) -> Vec<String> {
        let asked = &self.filter;
        let kinds = [
            ("toolsListChanged", asked.tools_list_changed, granted.tools_list_changed),
            ("promptsListChanged", asked.prompts_list_changed, granted.prompts_list_changed),
            ("resourcesListChanged", asked.resources_list_changed, granted.resources_list_changed),
        ];
        let refused =
            kinds.into_iter().filter(|(_, asked, granted)| *asked == Some(true) && *granted != Some(true));
        let mut missing: Vec<String> = refused.map(|(name, ..)| name.to_owned()).collect();
        let granted_tasks: HashSet<&str> = granted.task_ids.iter().flatten().map(String::as_str).collect();
        let granted: HashSet<&str> =
            granted.resource_subscriptions.iter().flatten().map(String::as_str).collect();
        let refused = self.uris.iter().filter(|uri| !granted.contains(&***uri)).count();
        if refused > 0 {
            missing.push(format!("{refused} of {} resourceSubscriptions", self.uris.len()));
        }
        let tasks = || asked.task_ids.iter().flatten();
        let refused = tasks().filter(|id| !granted_tasks.contains(id.as_str())).count();
        if refused > 0 {
            missing.push(format!("{refused} of {} taskIds", tasks().count()));
        }
        missing
    }

    /// The resource that was asked for and that this URI is, or is a part of.
    ///
    /// > This might be a sub-resource of the one that the client actually subscribed to.
    fn resource_of(&self, uri: &str) -> Option<&Arc<str>> {
        let holds = |asked: &&Arc<str>| {
            uri.strip_prefix(&***asked).is_some_and(|rest| {
                rest.is_empty() || asked.ends_with('/') || rest.starts_with(['/', '?', '#'])
            })
        };
        self.uris.iter().filter(holds).max_by_key(|asked| asked.len())
    }
}

fn read<T: DeserializeOwned>(notification: &IncomingNotification) -> Result<T, &'static str> {
    let params = notification.params.as_ref().map_or("{}", |params| params.get());
    serde_json::from_str(params).map_err(|_| "its params cannot be read")
}

/// An event of a subscription. The events of a kind are idempotent: several that were not taken yet are one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SubscriptionEvent {
    /// The subscription is open. The filter holds the changes that the server will report; changes that the server does
    /// not support are missing.
    ///
    /// The first event of a subscription, and the first one after a lost connection was opened again. Changes in
    /// between are unknown, so request all data again that may have changed.
    Acknowledged(SubscriptionFilter),
    /// The server closed the subscription with its response, as it does before it stops. The subscription is opened again as
    /// its [`ReconnectPolicy`](crate::ReconnectPolicy) says; the next event is then another acknowledgement.
    Closed,
    /// The list of tools changed.
    ToolsListChanged,
    /// The list of prompts changed.
    PromptsListChanged,
    /// The list of resources changed.
    ResourcesListChanged,
    /// A resource changed, and may need to be read again.
    ResourceUpdated {
        /// The URI that was asked for, or that of a part of it.
        uri: String,
    },
    /// The state of a task changed. This is the latest state; earlier ones that were not taken are left out.
    ///
    /// > Each notification carries a complete `DetailedTask` for the current status, identical to what `tasks/get` would have
    /// > returned at that moment.
    Task(Box<DetailedTask>),
}

impl PartialEq for SubscriptionEvent {
    /// Compares the content. Two tasks are equal if their JSON is.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Acknowledged(one), Self::Acknowledged(other)) => one == other,
            (Self::ResourceUpdated { uri: one }, Self::ResourceUpdated { uri: other }) => one == other,
            (Self::Task(one), Self::Task(other)) => {
                // Not every JSON text is a value: the text of such a task counts.
                let json = |task: &DetailedTask| {
                    serde_json::to_value(task).map_err(|_| serde_json::to_string(task).ok())
                };
                json(one) == json(other)
            }
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json, value::to_raw_value};

    fn notification(method: &str, id: &Value, mut params: Value) -> IncomingNotification {
        if !id.is_null() {
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        }
        let params = Some(to_raw_value(&params).unwrap());
        IncomingNotification::new(format!("notifications/{method}"), params)
    }

    fn inbox(filter: Value) -> Inbox {
        let mut inbox = Inbox::new(serde_json::from_value(filter).unwrap());
        inbox.reopen(RequestId::from(7_i64));
        inbox
    }

    fn events(inbox: &mut Inbox) -> Vec<String> {
        std::iter::from_fn(|| inbox.pop())
            .map(|event| match event {
                SubscriptionEvent::Acknowledged(_) => "acknowledged".into(),
                SubscriptionEvent::ToolsListChanged => "tools".into(),
                SubscriptionEvent::PromptsListChanged => "prompts".into(),
                SubscriptionEvent::ResourcesListChanged => "resources".into(),
                SubscriptionEvent::Closed => "closed".to_owned(),
                SubscriptionEvent::ResourceUpdated { uri } => uri,
                SubscriptionEvent::Task(task) => format!("{} {}", task.task.task_id, task.task.status),
            })
            .collect()
    }

    /// Everything asked for, unless a row says otherwise; each notification is its method, subscription and params.
    fn check(name: &str, notifications: &[(&str, Value, Value)], expected: &[&str]) {
        let all = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": false,
            "resourceSubscriptions": ["file:///a", "file:///a/b", "db://tables/"],
            "taskIds": ["t-1", "t-2"]
        });
        let mut inbox = inbox(all);
        for (method, id, params) in notifications {
            inbox.take(&notification(method, id, params.clone()));
        }
        assert_eq!(events(&mut inbox), expected, "{name}");
        assert!(inbox.waiting.is_empty() && inbox.parts == 0 && inbox.tasks.is_empty(), "{name}");
    }

    #[test]
    fn notifications_become_these_events() {
        let ack = || ("subscriptions/acknowledged", json!(7), json!({"notifications": {}}));
        let tools = |id| ("tools/list_changed", id, json!({}));
        let updated = |uri: &str| ("resources/updated", json!(7), json!({"uri": uri}));
        let prompts = || ("prompts/list_changed", json!(7), json!({}));
        check("before the acknowledgement", &[tools(json!(7)), ack()], &["acknowledged"]);
        check("in their order", &[ack(), prompts(), tools(json!(7))], &["acknowledged", "prompts", "tools"]);
        check(
            "often",
            &[ack(), tools(json!(7)), prompts(), tools(json!(7))],
            &["acknowledged", "tools", "prompts"],
        );
        check("another subscription", &[ack(), tools(json!(8)), tools(json!("7"))], &["acknowledged"]);
        check("no subscription named", &[ack(), tools(Value::Null)], &["acknowledged", "tools"]);
        check("acknowledged twice", &[ack(), ack()], &["acknowledged"]);
        check(
            "acknowledged for another",
            &[("subscriptions/acknowledged", json!(8), json!({"notifications": {}}))],
            &[],
        );
        check("without a filter", &[("subscriptions/acknowledged", json!(7), json!({}))], &[]);
        check("not asked for", &[ack(), ("resources/list_changed", json!(7), json!({}))], &["acknowledged"]);
        check("unknown", &[ack(), ("what", json!(7), json!({}))], &["acknowledged"]);
        check("no URI", &[ack(), ("resources/updated", json!(7), json!({"uri": 5}))], &["acknowledged"]);
        check(
            "a resource",
            &[ack(), updated("file:///a"), updated("file:///a")],
            &["acknowledged", "file:///a"],
        );
        check(
            "parts of resources",
            &[
                ack(),
                updated("file:///a/c"),
                updated("file:///a/b#x"),
                updated("db://tables/t"),
                updated("file:///a?q"),
            ],
            &["acknowledged", "file:///a/c", "file:///a/b#x", "db://tables/t", "file:///a?q"],
        );
        let task = |id: &str, status: &str| {
            ("tasks", json!(7), json!({"taskId": id, "status": status, "ttlMs": null}))
        };
        check(
            "tasks, by their latest state",
            &[ack(), task("t-1", "working"), task("t-2", "cancelled"), task("t-1", "cancelled")],
            &["acknowledged", "t-1 cancelled", "t-2 cancelled"],
        );
        check(
            "a task not asked for",
            &[ack(), task("t-3", "working"), task("t-1", "done")],
            &["acknowledged"],
        );
        check("a task too early", &[task("t-1", "working"), ack()], &["acknowledged"]);
        check("others", &[ack(), updated("file:///ab"), updated("file:///"), updated("")], &["acknowledged"]);
    }

    #[test]
    fn what_waits_is_bounded_by_what_was_asked_for() {
        let mut inbox =
            inbox(json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a", "file:///b"]}));
        inbox.take(&notification("subscriptions/acknowledged", &json!(7), json!({"notifications": {}})));
        for at in 0..10_000 {
            inbox.take(&notification("tools/list_changed", &json!(7), json!({})));
            inbox.take(&notification(
                "resources/updated",
                &json!(7),
                json!({"uri": format!("file:///a/{at}")}),
            ));
        }
        let long = format!("file:///b/{}", "x".repeat(MAX_PART_URI));
        inbox.take(&notification("resources/updated", &json!(7), json!({"uri": long})));
        let events = events(&mut inbox);
        // The acknowledgement, the tools, so many parts, and both resources for all the rest.
        assert_eq!(events.len(), 2 + MAX_PARTS + 2);
        assert_eq!(events[events.len() - 2..], ["file:///a", "file:///b"]);
    }

    #[test]
    fn the_server_ends_only_this_subscription() {
        let mut inbox = inbox(json!({}));
        for (params, phase) in [
            (json!({"requestId": 8}), Phase::Opening),
            (json!({}), Phase::Opening),
            (json!({"requestId": 7, "reason": "bye"}), Phase::Cancelled),
        ] {
            inbox.take(&notification("cancelled", &Value::Null, params));
            assert_eq!(inbox.phase(), phase);
        }
    }

    #[test]
    fn what_the_server_left_out_is_named() {
        let asked = json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:", "b:"]});
        let requested = inbox(asked).requested;
        for (granted, missing) in [
            (
                json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["b:", "a:"]}),
                vec![],
            ),
            (
                json!({"toolsListChanged": true, "resourceSubscriptions": ["b:"]}),
                vec!["promptsListChanged", "1 of 2 resourceSubscriptions"],
            ),
            (
                json!({"toolsListChanged": false}),
                vec!["toolsListChanged", "promptsListChanged", "2 of 2 resourceSubscriptions"],
            ),
        ] {
            assert_eq!(requested.missing_in(&serde_json::from_value(granted).unwrap()), missing);
        }
    }

    #[test]
    fn tasks_whose_json_is_no_value_are_compared() {
        let check = |one: &str, other: &str, equal: bool| {
            let event = |result: &str| {
                let text = format!(
                    r#"{{"taskId":"t","status":"completed","createdAt":"2026-07-28T12:00:00Z","lastUpdatedAt":"2026-07-28T12:00:00Z","ttlMs":null,"result":{result}}}"#
                );
                SubscriptionEvent::Task(serde_json::from_str(&text).unwrap())
            };
            assert_eq!(event(one) == event(other), equal, "{one} {other}");
        };
        check(r#"{"a":1e400}"#, r#"{"a":1e400}"#, true);
        check(r#"{"a":1e400}"#, r#"{"a":1e401}"#, false);
        check(r#"{"a":"\ud83d"}"#, r#"{"a":"\ud83e"}"#, false);
        check(r#"{"a":1e400}"#, r#"{"a":1}"#, false);
        check(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, true);
    }
}
