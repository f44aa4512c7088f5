//! A subscription to a modern server: one request, which is answered when the subscription ends.

use crate::{
    cache::ListKind,
    request::fault::RequestFault,
    session::connection::Connection,
    subscribe::inbox::{Change, SharedInbox},
    transport::{OutgoingRequest, ServerReply},
};
use antiphon_wire::{ListenParams, Meta, RequestId, SubscriptionFilter, method, write_request};

/// Sends the request that is answered when the subscription ends. Dropping it cancels the subscription: closes the stream, or
/// sends `notifications/cancelled`.
pub(crate) async fn listen(
    connection: &Connection,
    id: RequestId,
    inbox: &SharedInbox,
) -> Result<ServerReply, RequestFault> {
    let core = &connection.core;
    let version = core.known().version.clone();
    let meta = Meta::for_request(&version, Some(&core.info), &core.capabilities);
    let params = ListenParams::new(inbox.lock().filter().clone(), meta);
    let body = write_request(&id, method::SUBSCRIPTIONS_LISTEN, &params).map_err(RequestFault::Unwritable)?;
    let request = OutgoingRequest::new(id, method::SUBSCRIPTIONS_LISTEN, version, body);
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
