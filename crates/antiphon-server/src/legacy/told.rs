//! What a session is told that belongs to no request of it.

use crate::{Caller, ReplyMessage, identity::scopes::require_scopes};
use crate::{
    Server,
    dispatch::listen::notification_of,
    outbox::{MessageKind, Outbox},
    session::session::Session,
    subscribe::hub::{Heard, Membership},
};
use antiphon_wire::{ElicitationCompleteParams, SubscribeParams, method, write_notification};
use antiphon_wire::{RequestId, Response};
use serde::Serialize;
use serde_json::json;
use std::{future::poll_fn, task::Poll};

/// The keys of what waits to be told once: lists, then resources.
const FIRST_RESOURCE: u32 = 16;

/// The next thing to tell.
enum News {
    Heard(Heard),
    UrlFinished(String),
}

impl Server {
    /// Tells the legacy sessions that were asked to open the URL of this id that what the person was to do there is
    /// finished: from a webhook, or from another tool. The id is that of [`ElicitUrl::id`](super::super::ElicitUrl::id).
    /// Whether any was told.
    ///
    /// On 2026-07-28 there is nobody to tell: the client sends its request again by itself.
    ///
    /// > Servers **MAY** send a `notifications/elicitation/complete` notification when an out-of-band interaction started
    /// > by URL mode elicitation is completed.
    pub fn elicitation_complete(&self, id: &str) -> bool {
        // > **MUST** only send the notification to the client that initiated the elicitation request.
        let asked = self.0.sessions.asked(id);
        for session in &asked {
            session.url_finished(id);
        }
        !asked.is_empty()
    }
}

impl Server {
    /// Returns whether this caller opened the session. A caller who cannot be identified did not.
    pub(crate) fn is_opener(&self, session: &Session, caller: &Caller<'_>) -> bool {
        match (self.0.runtime.identity.of(caller), &session.0.principal) {
            (Ok(None), None) => true,
            (Ok(Some(principal)), Some(opener)) => self.0.sessions.digest(&principal).matches(opener),
            _ => false,
        }
    }
}

impl Session {
    /// Whether this caller, who opened the session, may hear of the resources it has named: its token may be another than
    /// when it named them.
    ///
    /// # Errors
    /// What it is answered if not.
    pub(crate) fn may_hear(&self, server: &Server, caller: &Caller<'_>) -> Result<(), ReplyMessage> {
        let Some(membership) = &self.0.membership else { return Ok(()) };
        let scopes = server.0.registry.load().lists.scopes_of(&membership.named());
        Self::permits(&scopes, caller)
    }

    /// Whether this caller's token holds all of these.
    ///
    /// # Errors
    /// What it is answered if not.
    pub(crate) fn permits(scopes: &[String], caller: &Caller<'_>) -> Result<(), ReplyMessage> {
        require_scopes(scopes, caller).map_err(|refusal| {
            ReplyMessage::error(None, &crate::session::refused_in_words_of(&refusal)).refused_by(refusal)
        })
    }

    /// Takes this caller's response to a request of ours. It goes on with the call that asked, and needs what that needs.
    ///
    /// # Errors
    /// What the caller is answered if its token has not all of it; the request waits on.
    pub(crate) fn take_response_of(
        &self,
        response: Response<'_>,
        caller: &Caller<'_>,
    ) -> Result<(), ReplyMessage> {
        let id = response.id.as_ref().and_then(RequestId::as_u64);
        let scopes = id.and_then(|id| self.state().waiting.get(&id).map(|waiting| waiting.scopes.clone()));
        Self::permits(&scopes.unwrap_or_default(), caller)?;
        self.take_response(response);
        Ok(())
    }

    /// Leaves what is to be told in this outbox, while it is polled. Ends when the server drains or the session does.
    pub(crate) async fn tell(&self, outbox: &Outbox) {
        let Some(membership) = &self.0.membership else { return };
        loop {
            let news = poll_fn(|cx| {
                self.0.teller.register(cx.waker());
                let mut state = self.state();
                if state.ended {
                    return Poll::Ready(News::Heard(Heard::End));
                }
                if let Some(id) = state.finished.pop_front() {
                    return Poll::Ready(News::UrlFinished(id));
                }
                drop(state);
                membership.poll_heard(cx).map(News::Heard)
            });
            match news.await {
                News::Heard(Heard::ListChanged(kind)) => {
                    leave(outbox, MessageKind::Change(kind as u32), notification_of(kind), &json!({}));
                }
                News::Heard(Heard::ResourceUpdated(index)) => {
                    self.tell_of_resource(membership, index, outbox)
                }
                News::UrlFinished(id) => {
                    let params = ElicitationCompleteParams::new(id);
                    leave(outbox, MessageKind::Ask, method::ELICITATION_COMPLETE, &params);
                }
                News::Heard(Heard::End) => return,
            }
        }
    }

    fn tell_of_resource(&self, membership: &Membership, index: u32, outbox: &Outbox) {
        // It may have been forgotten meanwhile.
        let Some(uri) = membership.uri(index) else { return };
        let params = SubscribeParams::new(uri);
        leave(outbox, MessageKind::Change(FIRST_RESOURCE + index), method::RESOURCES_UPDATED, &params);
    }
}

fn leave(outbox: &Outbox, kind: MessageKind, method: &str, params: &impl Serialize) {
    match write_notification(method, params) {
        Ok(bytes) => outbox.push(kind, bytes),
        Err(fault) => tracing::error!(method, %fault, "a notification cannot be written as JSON"),
    }
}
