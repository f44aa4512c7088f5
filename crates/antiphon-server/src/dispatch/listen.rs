//! `subscriptions/listen`: one request that stays open, and hears of changes until either side ends it.

use crate::{
    Caller, Limits, ReplyMessage, Request,
    identity::scopes::require_scopes,
    offer::registry::{Profile, Registry},
    outbox::{MessageKind, Outbox},
    refusal::Refusal,
    reply::Stamp,
    runtime::Runtime,
    subscribe::hub::{self, Heard, ListKind, Lists, Membership},
};
use antiphon_wire::{
    AcknowledgedParams, ListChangedParams, ListenParams, ListenResult, RequestId, ResourceUpdatedParams,
    SubscriptionFilter, method, write_notification, write_result,
};
use serde::Serialize;
use std::future::poll_fn;

/// The key of the acknowledgement among what waits to be sent; those of lists and resources follow.
const ACKNOWLEDGEMENT: u32 = 0;
const FIRST_LIST: u32 = 1;
const FIRST_RESOURCE: u32 = 16;

/// How long the id of a subscription may be, in bytes as JSON: every notification repeats it.
const MAX_ID: usize = 1024;

/// What a subscription asked for and is given.
struct Agreed {
    filter: SubscriptionFilter,
    lists: Lists,
    /// In order, each once.
    uris: Vec<String>,
}

/// An open subscription. It may stay for days, and holds nothing of the request that opened it: neither its text nor
/// what the server offered then.
pub(crate) struct Subscription {
    membership: Membership,
    post: Post,
}

/// Opens a subscription and acknowledges it.
pub(crate) fn open(
    server: &Runtime,
    offered: &Registry,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<Subscription, Refusal> {
    // On a transport that carries nothing but replies it would be silent for ever.
    let outbox = caller.outbox.ok_or_else(|| Refusal::Method(request.method.to_string()))?;
    if request.id.to_string().len() > MAX_ID {
        let text = format!("The id of a subscription may have {MAX_ID} bytes");
        return Err(Refusal::Limit { name: "subscription", text });
    }
    server.identified(&request.method, caller)?;
    let params: ListenParams = serde_json::from_str(request.text.get())
        .map_err(|fault| Refusal::params(format!("params: {fault}")))?;
    let agreed = agree(&offered.profile, &server.limits, params.notifications)?;
    require_scopes(&offered.lists.scopes_of(&agreed.uris), caller)?;
    let membership = server.hub.join(agreed.lists, agreed.uris, &server.limits)?;
    let post = Post { id: request.id.clone(), outbox: outbox.clone() };
    // > The server **MUST** send `notifications/subscriptions/acknowledged` as the first message
    post.send(
        ACKNOWLEDGEMENT,
        method::SUBSCRIPTIONS_ACKNOWLEDGED,
        &AcknowledgedParams::new(&post.id, agreed.filter),
    );
    Ok(Subscription { membership, post })
}

impl Subscription {
    /// The response, when the server ends it. Dropped when the client does.
    pub(crate) async fn ended(self, stamp: &Stamp) -> ReplyMessage {
        let Self { membership, post } = self;
        loop {
            match poll_fn(|cx| membership.poll_heard(cx)).await {
                Heard::ListChanged(kind) => {
                    let key = FIRST_LIST + kind as u32;
                    post.send(key, notification_of(kind), &ListChangedParams::new(&post.id));
                }
                Heard::ResourceUpdated(index) => {
                    let Some(uri) = membership.uri(index) else { continue };
                    let params = ResourceUpdatedParams::new(&post.id, uri);
                    post.send(FIRST_RESOURCE + index, method::RESOURCES_UPDATED, &params);
                }
                Heard::End => break,
            }
        }
        let mut result = ListenResult::new(&post.id);
        stamp.join(&mut result.meta);
        ReplyMessage::written(
            &post.id,
            write_result(&post.id, &result).map_err(|fault| {
                tracing::error!(%fault, "the end of a subscription cannot be written as JSON");
                Refusal::Internal
            }),
        )
    }
}

/// The subset that the server honours.
///
/// > The server **MUST NOT** send notification types the client has not explicitly requested.
fn agree(profile: &Profile, limits: &Limits, wanted: SubscriptionFilter) -> Result<Agreed, Refusal> {
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
    let mut lists = Lists::default();
    for (kind, wanted) in
        [(ListKind::Tools, tools), (ListKind::Prompts, prompts), (ListKind::Resources, resources)]
    {
        lists[kind as usize] = wanted.is_some();
    }
    Ok(Agreed { filter, lists, uris })
}

fn fits(limits: &Limits, uris: &[String]) -> Result<(), Refusal> {
    let (count, bytes) = (limits.subscription_uris, limits.subscription_uri_bytes);
    if uris.len() > count || hub::length(uris) > bytes {
        return Err(hub::too_many(limits));
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

/// Where this subscription's notifications go.
struct Post {
    id: RequestId,
    outbox: Outbox,
}

impl Post {
    fn send(&self, key: u32, method: &str, params: &impl Serialize) {
        match write_notification(method, params) {
            Ok(bytes) => self.outbox.push(MessageKind::Change(key), bytes),
            Err(fault) => tracing::error!(method, %fault, "a notification cannot be written as JSON"),
        }
    }
}
