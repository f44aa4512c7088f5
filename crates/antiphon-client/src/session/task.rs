//! The task of a session: receives the messages that belong to no request.

use crate::{
    asks::questions::Origin,
    session::{server_asks::ServerAsks, shared::Shared},
    transport::ServerMessage,
};
use antiphon_wire::{escaped, method};
use std::{error::Error as _, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// Receives the messages that belong to no request, and answers the asks among them. Sends to `ready` once the stream of
/// the session is read, or is known not to come.
pub(crate) async fn session_task(shared: Arc<Shared>, ready: oneshot::Sender<()>) {
    let mut ready = Some(ready);
    let mut is_ready = || {
        if let Some(ready) = ready.take() {
            let _ = ready.send(());
        }
    };
    let (to_requests, mut requests) = mpsc::channel(shared.core.bounds.max_asks.max(1));
    let mut on_message = |message| match message {
        ServerMessage::Notification(notification) => shared.on_notification(&notification),
        ServerMessage::Request(request) => {
            if to_requests.try_send(shared.open_asks.received(request)).is_err() {
                tracing::warn!("the server asks too much at once: one request is dropped");
            }
        }
    };
    let mut listening = shared.link.listen(&mut is_ready, &mut on_message);
    let server = shared.server.clone();
    let of_session = Origin { server, method: method::INITIALIZE, target: String::new(), arguments: None };
    let mut open = ServerAsks::new(&shared, of_session);
    let mut listens = true;
    while listens || !open.is_empty() {
        tokio::select! {
            biased;
            ended = &mut listening, if listens => {
                listens = false;
                shared.stream_closed.send_replace(true);
                if let Err(fault) = ended {
                    tracing::debug!(server = %escaped(&shared.server), fault = %escaped(&fault), "the server sends nothing more");
                    break;
                }
            }
            Some(request) = requests.recv() => {
                if let Err(fault) = open.take(request) {
                    tracing::warn!(server = %escaped(&shared.server), fault = %escaped(&fault), "a request of the server was refused");
                }
            }
            Some(fault) = open.next() => {
                if let Some(fault) = fault {
                    // The fault ends no call of the client, so only the log has it.
                    let cause = fault.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                    let fault = format!("{fault}{cause}");
                    tracing::warn!(server = %escaped(&shared.server), fault = %escaped(&fault), "an ask of the server was not answered");
                }
            }
        }
    }
    // Over HTTP, a session without a stream of its own continues: each request has its own stream.
    if shared.link.is_over() {
        shared.over.send_replace(true);
    }
}
