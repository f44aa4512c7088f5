//! Notifications of a session that belong to no request.

use crate::{
    dispatch::listen::notification_of,
    identity::{Caller, account::CallerInfo},
    outbox::{MessageKind, Outbox},
    reply::ReplyMessage,
    server::Server,
    session::Session,
    subscribe::{Change, SubscriptionHandle},
};
use antiphon_wire::{
    ElicitationCompleteParams, RequestId, Response, SubscribeParams, escaped, method, write_notification,
};
use serde::Serialize;
use serde_json::json;
use std::{future::poll_fn, task::Poll};

/// The numbers of notifications that are sent once: lists, then resources.
const FIRST_RESOURCE: u32 = 16;

/// The next event to send.
enum SessionEvent {
    Change(Change),
    UrlFinished(String),
}

impl Server {
    /// Notifies the legacy sessions that were asked to open the URL with this id that the work behind it is finished.
    /// Call it from a webhook, or from another tool. The id is that of [`ElicitUrl::id`](crate::ElicitUrl::id).
    /// Returns true if there was such a session.
    ///
    /// On 2026-07-28 there is no such notification: the client sends its request again by itself.
    ///
    /// > Servers **MAY** send a `notifications/elicitation/complete` notification when an out-of-band interaction started
    /// > by URL mode elicitation is completed.
    pub fn elicitation_complete(&self, id: &str) -> bool {
        // > **MUST** only send the notification to the client that initiated the elicitation request.
        let asked = self.0.sessions.url_sessions(id);
        for session in &asked {
            session.url_finished(id);
        }
        !asked.is_empty()
    }
}

impl Server {
    /// Returns whether this caller opened the session. A caller who cannot be identified did not open it.
    pub(crate) fn is_opener(&self, session: &Session, caller: &Caller<'_>) -> bool {
        match (self.0.runtime.identity.of(caller), &session.0.principal) {
            (Ok(None), None) => true,
            (Ok(Some(principal)), Some(opener)) => self.0.sessions.digest(&principal).matches(opener),
            _ => false,
        }
    }
}

impl Session {
    /// Returns the sender of a request of this session. Whoever cannot be identified is anonymous: a request that matters is refused.
    pub(crate) fn caller_info(&self, server: &Server, caller: &Caller<'_>) -> CallerInfo {
        let principal = server.0.runtime.identity.of(caller).ok().flatten();
        CallerInfo::new(principal, caller, self.version().as_str(), self.client_info())
    }

    /// Checks that this caller, who opened the session, may be notified of the subscribed resources: its token may have
    /// changed since the subscription.
    ///
    /// # Errors
    /// The reply to a caller who may not.
    pub(crate) fn check_notification_scopes(
        &self,
        server: &Server,
        caller: &Caller<'_>,
    ) -> Result<(), ReplyMessage> {
        let Some(subscription) = &self.0.subscription else { return Ok(()) };
        let info = self.caller_info(server, caller);
        let scopes = server.0.offers.load().lists.scopes_of(&subscription.named_uris(), Some(&info));
        Self::check_scopes(server, &scopes, caller)
    }

    /// Checks that this caller's token has all of these scopes.
    ///
    /// # Errors
    /// The reply to a caller whose token lacks one.
    pub(crate) fn check_scopes(
        server: &Server,
        scopes: &[String],
        caller: &Caller<'_>,
    ) -> Result<(), ReplyMessage> {
        server.0.runtime.require_scopes(scopes, caller).map_err(|refusal| {
            ReplyMessage::error(None, &crate::session::downgrade_refusal(&refusal)).refused_by(refusal)
        })
    }

    /// Takes this caller's response to a request of the server. The response continues a call, so it requires the
    /// call's scopes.
    ///
    /// # Errors
    /// The reply to a caller whose token lacks one of the scopes; the request still waits.
    pub(crate) fn take_response_of(
        &self,
        server: &Server,
        response: Response<'_>,
        caller: &Caller<'_>,
    ) -> Result<(), ReplyMessage> {
        let id = response.id.as_ref().and_then(RequestId::as_u64);
        let scopes = id.and_then(|id| self.state().pending.get(&id).map(|pending| pending.scopes.clone()));
        Self::check_scopes(server, &scopes.unwrap_or_default(), caller)?;
        self.take_response(response);
        Ok(())
    }

    /// Puts the session's notifications into this outbox while the future is polled. It ends when the server drains or
    /// the session ends.
    pub(crate) async fn send_notifications(&self, outbox: &Outbox) {
        let Some(subscription) = &self.0.subscription else { return };
        loop {
            let event = poll_fn(|cx| {
                self.0.notifier.register(cx.waker());
                let mut state = self.state();
                if state.ended {
                    return Poll::Ready(SessionEvent::Change(Change::End));
                }
                if let Some(id) = state.finished.pop_front() {
                    return Poll::Ready(SessionEvent::UrlFinished(id));
                }
                drop(state);
                subscription.poll_change(cx).map(SessionEvent::Change)
            });
            let event = event.await;
            if !self.permits(&event, subscription).await {
                continue;
            }
            match event {
                SessionEvent::Change(Change::ListChanged(kind)) => {
                    push_notification(
                        outbox,
                        MessageKind::Change(kind as u32),
                        notification_of(kind),
                        &json!({}),
                    );
                }
                SessionEvent::Change(Change::ResourceUpdated(index)) => {
                    self.send_resource_updated(subscription, index, outbox)
                }
                SessionEvent::UrlFinished(id) => {
                    let params = ElicitationCompleteParams::new(id);
                    push_notification(outbox, MessageKind::Ask, method::ELICITATION_COMPLETE, &params);
                }
                SessionEvent::Change(Change::End) => return,
            }
        }
    }

    /// Returns whether the layers of the server pass this event on.
    async fn permits(&self, event: &SessionEvent, subscription: &SubscriptionHandle) -> bool {
        let filter = &self.0.filter;
        match event {
            SessionEvent::Change(Change::ListChanged(kind)) => {
                filter.permits(notification_of(*kind), None).await
            }
            SessionEvent::Change(Change::ResourceUpdated(index)) => {
                let uri = subscription.uri(*index);
                filter.permits(method::RESOURCES_UPDATED, uri.as_deref()).await
            }
            SessionEvent::UrlFinished(id) => filter.permits(method::ELICITATION_COMPLETE, Some(id)).await,
            SessionEvent::Change(Change::End) => true,
        }
    }

    fn send_resource_updated(&self, subscription: &SubscriptionHandle, index: u32, outbox: &Outbox) {
        // The URI may have been removed in the meantime.
        let Some(uri) = subscription.uri(index) else { return };
        let params = SubscribeParams::new(uri);
        push_notification(
            outbox,
            MessageKind::Change(FIRST_RESOURCE + index),
            method::RESOURCES_UPDATED,
            &params,
        );
    }
}

fn push_notification(outbox: &Outbox, kind: MessageKind, method: &str, params: &impl Serialize) {
    match write_notification(method, params) {
        Ok(bytes) => outbox.push(kind, bytes),
        Err(fault) => {
            tracing::error!(method, fault = %escaped(&fault), "a notification cannot be written as JSON")
        }
    }
}
