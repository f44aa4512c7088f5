//! Subscriptions: what `subscriptions/listen` asks for, what acknowledges it, what comes on it, and how it ends.

use crate::{Meta, RequestId, tag::Complete};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which notifications are wanted, or which of them will come. Extensions add members of their own.
///
/// > Each notification type is **opt-in**; the server **MUST NOT** send notification types the client has not
/// > explicitly requested here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// `notifications/tools/list_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// `notifications/prompts/list_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// `notifications/resources/list_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// `notifications/resources/updated` for these URIs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl SubscriptionFilter {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same filter, with changes of the list of tools.
    #[must_use]
    pub fn tools(mut self) -> Self {
        self.tools_list_changed = Some(true);
        self
    }

    /// The same filter, with changes of the list of prompts.
    #[must_use]
    pub fn prompts(mut self) -> Self {
        self.prompts_list_changed = Some(true);
        self
    }

    /// The same filter, with changes of the list of resources.
    #[must_use]
    pub fn resources(mut self) -> Self {
        self.resources_list_changed = Some(true);
        self
    }

    /// The same filter, with updates of the resource at this URI.
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
    /// What is wanted.
    pub notifications: SubscriptionFilter,
    /// Version, identity and capabilities of the client.
    #[serde(rename = "_meta", default)]
    pub meta: Meta,
}

impl ListenParams {
    /// These notifications are wanted.
    pub fn new(notifications: SubscriptionFilter, meta: Meta) -> Self {
        Self { notifications, meta }
    }
}

/// The params of `notifications/subscriptions/acknowledged`: the first message on a subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AcknowledgedParams {
    /// What will come: of what was wanted, the part that the server offers.
    pub notifications: SubscriptionFilter,
    /// Holds the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl AcknowledgedParams {
    /// > This notification MUST be the first message the server sends carrying the subscription's ID
    ///
    /// These notifications will come on the subscription that the request `id` opened.
    pub fn new(id: &RequestId, notifications: SubscriptionFilter) -> Self {
        Self { notifications, meta: Meta::for_subscription(id) }
    }
}

/// The result of `subscriptions/listen`: the server has ended the subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenResult {
    /// Always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// Holds the id of the subscription.
    #[serde(rename = "_meta", default)]
    pub meta: Meta,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ListenResult {
    /// The subscription that the request `id` opened has ended.
    pub fn new(id: &RequestId) -> Self {
        Self { result_type: Complete, meta: Meta::for_subscription(id), extra: Map::new() }
    }
}

/// The params of `notifications/{tools,prompts,resources}/list_changed`, and of any notification that says nothing
/// but its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListChangedParams {
    /// Holds the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListChangedParams {
    /// On the subscription that the request `id` opened.
    pub fn new(id: &RequestId) -> Self {
        Self { meta: Meta::for_subscription(id) }
    }
}

/// The params of `notifications/resources/updated`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceUpdatedParams {
    /// Which resource.
    ///
    /// > This might be a sub-resource of the one that the client actually subscribed to.
    pub uri: String,
    /// Holds the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ResourceUpdatedParams {
    /// This resource changed, on the subscription that the request `id` opened.
    pub fn new(id: &RequestId, uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), meta: Meta::for_subscription(id) }
    }
}
