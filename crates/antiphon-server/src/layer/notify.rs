//! The passage of notifications to a client through the layers of the server.

use crate::{
    identity::{Caller, PeerAddress},
    layer::{
        Layers,
        call::{Call, CallReply, Outcome},
        visibility::OfferVisibility,
    },
    subscribe::NotificationFilter,
};
use antiphon_seal::Principal;
use antiphon_wire::{Meta, escaped};
use futures_util::FutureExt as _;
use http::Extensions;
use std::{panic::AssertUnwindSafe, sync::Arc};

/// The layers between a server and one subscriber: of a subscription, or of a session.
struct NotificationLayers {
    layers: Arc<Layers>,
    principal: Option<Principal>,
    version: String,
    peer: Option<PeerAddress>,
    extensions: Extensions,
}

/// Returns the filter of the notifications to this caller: each passes the layers.
pub(crate) fn filter(
    layers: &Arc<Layers>,
    caller: &Caller<'_>,
    principal: Option<Principal>,
    version: &str,
) -> NotificationFilter {
    let layers = Arc::new(NotificationLayers {
        layers: Arc::clone(layers),
        principal,
        version: version.to_owned(),
        peer: caller.peer_address(),
        extensions: caller.extensions.cloned().unwrap_or_default(),
    });
    NotificationFilter::new(move |method, target| {
        let (layers, method, target) = (Arc::clone(&layers), method.to_owned(), target.map(str::to_owned));
        Box::pin(async move { layers.permit(method, target).await })
    })
}

impl NotificationLayers {
    /// Returns whether the layers pass this notification on. A layer that refuses it, or answers in its place, keeps it back.
    async fn permit(&self, method: String, target: Option<String>) -> bool {
        let call = |server| Call {
            method: method.clone(),
            target,
            arguments: None,
            answers: Vec::new(),
            version: self.version.clone(),
            meta: Meta::default(),
            meta_changed: false,
            principal: self.principal.clone(),
            call: None,
            leg: 1,
            is_of_task: false,
            peer: self.peer,
            head: None,
            extensions: self.extensions.clone(),
            visibility: OfferVisibility::Shown,
            server,
        };
        let run = self.layers.run(call, |_| async { Ok(CallReply::notified()) });
        // The code of layers may panic; its future is dropped then.
        match AssertUnwindSafe(run).catch_unwind().await {
            Ok(reply) => reply.is_ok_and(|reply| reply.outcome() == Outcome::Notified),
            Err(_panic) => {
                tracing::error!(method = %escaped(&method), "a layer panicked: a notification is not sent");
                false
            }
        }
    }
}
