//! Subscriptions: the request `subscriptions/listen`, its acknowledgement, its notifications and its result.
//! The notifications about one request: its progress, its log messages, its cancellation.

use crate::{LogLevel, Meta, ProgressToken, RequestId, lenient::or_default, tag::Complete};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// The notifications that a client requests, or those that the server will send. Extensions add their own members.
///
/// > Each notification type is **opt-in**; the server **MUST NOT** send notification types the client has not
/// > explicitly requested here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// The flag for `notifications/tools/list_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// The flag for `notifications/prompts/list_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// The flag for `notifications/resources/list_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// The URIs of the resources for `notifications/resources/updated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// The ids of the tasks for `notifications/tasks`. Extension `io.modelcontextprotocol/tasks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_ids: Option<Vec<String>>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl SubscriptionFilter {
    /// Creates an empty filter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns `true` if the filter selects nothing.
    pub fn is_empty(&self) -> bool {
        let lists = [self.tools_list_changed, self.prompts_list_changed, self.resources_list_changed];
        let named = [&self.resource_subscriptions, &self.task_ids];
        let names_none = named.into_iter().flatten().all(Vec::is_empty);
        !lists.contains(&Some(true)) && names_none && self.other.is_empty()
    }

    /// Returns the same filter, with changes of the list of tools.
    #[must_use]
    pub fn tools(mut self) -> Self {
        self.tools_list_changed = Some(true);
        self
    }

    /// Returns the same filter, with changes of the list of prompts.
    #[must_use]
    pub fn prompts(mut self) -> Self {
        self.prompts_list_changed = Some(true);
        self
    }

    /// Returns the same filter, with changes of the list of resources.
    #[must_use]
    pub fn resources(mut self) -> Self {
        self.resources_list_changed = Some(true);
        self
    }

    /// Returns the same filter, with the state of the task with this id.
    #[must_use]
    pub fn task(mut self, id: impl Into<String>) -> Self {
        self.task_ids.get_or_insert_default().push(id.into());
        self
    }

    /// Returns the same filter, with updates of the resource at this URI.
    #[must_use]
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        self.resource_subscriptions.get_or_insert_default().push(uri.into());
        self
    }
}

/// The params of `subscriptions/listen`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListenParams {
    /// The notifications that the client requests.
    pub notifications: SubscriptionFilter,
    /// The version, identity and capabilities of the client.
    #[serde(rename = "_meta", default)]
    pub meta: Meta,
}

impl ListenParams {
    /// Creates the params that request these notifications.
    pub fn new(notifications: SubscriptionFilter, meta: Meta) -> Self {
        Self { notifications, meta }
    }
}

/// The params of `notifications/subscriptions/acknowledged`: the first message on a subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AcknowledgedParams {
    /// The notifications that the server will send: those of the requested ones that the server offers.
    pub notifications: SubscriptionFilter,
    /// The metadata (`_meta`), which holds the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl AcknowledgedParams {
    /// Creates the params with the notifications that the server will send on the subscription that the request `id`
    /// opened.
    ///
    /// > This notification MUST be the first message the server sends carrying the subscription's ID
    pub fn new(id: &RequestId, notifications: SubscriptionFilter) -> Self {
        Self { notifications, meta: Meta::for_subscription(id) }
    }
}

/// The result of `subscriptions/listen`: the server has ended the subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenResult {
    /// The result type, always `complete`.
    #[serde(default, deserialize_with = "or_default")]
    pub result_type: Complete,
    /// The metadata (`_meta`), which holds the id of the subscription.
    #[serde(rename = "_meta", default)]
    pub meta: Meta,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ListenResult {
    /// Creates the result that ends the subscription that the request `id` opened.
    pub fn new(id: &RequestId) -> Self {
        Self { result_type: Complete, meta: Meta::for_subscription(id), extra: Map::new() }
    }
}

/// The params of `notifications/{tools,prompts,resources}/list_changed`, and of any notification without further
/// content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListChangedParams {
    /// The metadata (`_meta`), which holds the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListChangedParams {
    /// Creates the params for the subscription that the request `id` opened.
    pub fn new(id: &RequestId) -> Self {
        Self { meta: Meta::for_subscription(id) }
    }
}

/// The params of `notifications/resources/updated`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceUpdatedParams {
    /// The URI of the resource.
    ///
    /// > This might be a sub-resource of the one that the client actually subscribed to.
    pub uri: String,
    /// The metadata (`_meta`), which holds the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ResourceUpdatedParams {
    /// Creates the params for a change of this resource, on the subscription that the request `id` opened.
    pub fn new(id: &RequestId, uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), meta: Meta::for_subscription(id) }
    }
}

/// The params of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressParams {
    /// The token of the request.
    pub progress_token: ProgressToken,
    /// The progress so far, in a unit that the sender chooses.
    ///
    /// > The `progress` value **MUST** increase with each notification, even if the total is unknown.
    pub progress: Number,
    /// The total, in the unit of `progress`, if the total is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
    /// A message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ProgressParams {
    /// Creates the params for this progress of an unknown total.
    pub fn new(progress_token: ProgressToken, progress: impl Into<Number>) -> Self {
        Self { progress_token, progress: progress.into(), total: None, message: None, meta: None }
    }
}

/// The params of `notifications/message`. Deprecated in 2026-07-28.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogMessageParams {
    /// The severity.
    pub level: LogLevel,
    /// The part of the server that logs the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The content of the log message: a text or any other JSON value.
    pub data: Value,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl LogMessageParams {
    /// Creates a log message without a named part of the server.
    pub fn new(level: LogLevel, data: impl Into<Value>) -> Self {
        Self { level, logger: None, data: data.into(), meta: None }
    }
}

/// The params of `notifications/cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledParams {
    /// The id of the cancelled request.
    pub request_id: RequestId,
    /// The reason, for logs and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CancelledParams {
    /// Creates the params without a reason.
    pub fn new(request_id: RequestId) -> Self {
        Self { request_id, reason: None, meta: None }
    }
}
