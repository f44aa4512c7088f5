//! A subscription on a legacy session: the server tells all of it what changed, and of resources those that were asked for.

use crate::{
    Inner,
    fault::RequestFault,
    legacy::{Listener, Session},
    subscription::{Inbox, lock},
    transport::{IncomingNotification, ServerReply, TransportError, TransportErrorKind::Closed},
};
use antiphon_wire::{
    AcknowledgedParams, RequestId, ServerCapabilities, SubscribeParams, SubscriptionFilter, method,
};
use serde_json::value::to_raw_value;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::Notify;

/// Where the session puts what it hears.
struct Ear {
    inbox: Arc<Mutex<Inbox>>,
    heard: Notify,
}

impl Listener for Ear {
    fn hear(&self, notification: &IncomingNotification) {
        // What the client keeps of it, the session has forgotten.
        lock(&self.inbox).take(notification);
        self.heard.notify_one();
    }
}

/// Wants no resource any more once it is dropped.
struct Subscribed {
    client: Weak<Inner>,
    session: Arc<Session>,
    uris: Vec<String>,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let uris: Vec<String> =
            std::mem::take(&mut self.uris).into_iter().filter(|uri| self.session.release(uri)).collect();
        let (Ok(runtime), Some(client)) = (tokio::runtime::Handle::try_current(), self.client.upgrade())
        else {
            return;
        };
        if uris.is_empty() || self.session.is_over() {
            return;
        }
        let session = Arc::clone(&self.session);
        runtime.spawn(async move {
            for uri in uris {
                let _ =
                    session.ask_for(&client, method::RESOURCES_UNSUBSCRIBE, &SubscribeParams::new(uri)).await;
            }
        });
    }
}

/// Waits as long as the session lasts: it is not answered, it breaks.
pub(crate) async fn listen(
    client: &Arc<Inner>,
    session: Arc<Session>,
    id: RequestId,
    inbox: Arc<Mutex<Inbox>>,
) -> Result<ServerReply, RequestFault> {
    let wanted = lock(&inbox).filter().clone();
    let ear = Arc::new(Ear { inbox: Arc::clone(&inbox), heard: Notify::new() });
    session.listen(Arc::downgrade(&ear) as Weak<dyn Listener>);
    let mut subscribed = Subscribed { client: Arc::downgrade(client), session, uris: Vec::new() };
    let session = Arc::clone(&subscribed.session);
    // A server that tells nothing from the start has not broken.
    let hears = session.hears();
    let mut ended = Box::pin(async move {
        tokio::select! {
            () = session.over() => {}
            () = session.deafened(), if hears => {}
        }
    });
    let granted = subscribe(client, &mut subscribed, &wanted, hears).await?;
    let acknowledged = IncomingNotification {
        method: method::SUBSCRIPTIONS_ACKNOWLEDGED.to_owned(),
        params: to_raw_value(&AcknowledgedParams::new(&id, granted)).ok(),
    };
    ear.hear(&acknowledged);
    loop {
        tokio::select! {
            biased;
            () = &mut ended => {
                let text = "the session on which the server told of changes is over, or tells nothing more";
                return Err(RequestFault::Transport(TransportError::new(Closed, text)));
            }
            // Whoever polls this takes what is in the inbox.
            () = ear.heard.notified() => {}
        }
    }
}

/// What will be told of what is wanted.
async fn subscribe(
    client: &Arc<Inner>,
    subscribed: &mut Subscribed,
    wanted: &SubscriptionFilter,
    hears: bool,
) -> Result<SubscriptionFilter, RequestFault> {
    let session = Arc::clone(&subscribed.session);
    let can = session.capabilities();
    let mut granted = SubscriptionFilter::new();
    let list =
        |asked: Option<bool>, name| asked.filter(|asked| *asked && hears && offers(can, name, "listChanged"));
    granted.tools_list_changed = list(wanted.tools_list_changed, "tools");
    granted.prompts_list_changed = list(wanted.prompts_list_changed, "prompts");
    granted.resources_list_changed = list(wanted.resources_list_changed, "resources");
    let uris = wanted.resource_subscriptions.iter().flatten();
    for uri in uris.filter(|_| hears && offers(can, "resources", "subscribe")) {
        let is_first = session.hold(uri);
        // From here on it is let go of again, whatever becomes of this.
        subscribed.uris.push(uri.clone());
        if is_first {
            let params = SubscribeParams::new(uri);
            match session.ask_for(client, method::RESOURCES_SUBSCRIBE, &params).await {
                Ok(_) => {}
                Err(RequestFault::Server(error)) => {
                    tracing::debug!(%error, "the server does not tell of a resource");
                    subscribed.uris.pop();
                    session.release(uri);
                    continue;
                }
                Err(fault) => return Err(fault),
            }
        }
        granted = granted.resource(uri);
    }
    Ok(granted)
}

fn offers(can: &ServerCapabilities, name: &str, what: &str) -> bool {
    can.0.get(name).and_then(|settings| settings.get(what)).and_then(serde_json::Value::as_bool) == Some(true)
}
