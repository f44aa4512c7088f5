//! The `initialize` handshake of a session.

use crate::{
    request::{core::Core, fault::RequestFault},
    transport::{OutgoingRequest, ServerMessage, ServerReply, SessionLink, TransportError},
};
use antiphon_wire::{
    ClientCapabilities, InitializeParams, InitializeResult, OutcomeFault, ProtocolVersion, escaped, method,
    write_request, write_result,
};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

/// The maximum number of pings that wait to be answered before the reply to `initialize`.
const PINGS: usize = 16;

/// Sends `initialize` and reads its result.
///
/// > The client **MUST** initiate this phase by sending an `initialize` request
pub(crate) async fn initialize(
    core: &Core,
    link: &dyn SessionLink,
    version: &ProtocolVersion,
) -> Result<InitializeResult, RequestFault> {
    // The capabilities of exactly the attached callbacks: on a session, asks arrive while the call runs.
    let mut capabilities = ClientCapabilities::for_asks(core.handlers.callbacks.declared());
    // > `listChanged` indicates whether the client will emit notifications when the list of roots changes.
    if let Some(roots) = capabilities.0.get_mut("roots") {
        *roots = json!({ "listChanged": true });
    }
    let params = InitializeParams::new(version.clone(), capabilities, core.info.clone());
    let id = core.next_id();
    let body = write_request(&id, method::INITIALIZE, &params).map_err(RequestFault::Unwritable)?;
    let request = OutgoingRequest::new(id, method::INITIALIZE, version.clone(), body);
    let limit = core.bounds.leg_timeout;
    let reply = timeout(limit, answering_pings(link, request)).await;
    let reply = reply.map_err(|_| RequestFault::Timeout(limit))?.map_err(RequestFault::Transport)?;
    let result = reply.map_err(|error| RequestFault::server(error, core.handlers.declared))?;
    serde_json::from_str(result.get())
        .map_err(|fault| RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None })
}

/// Sends `initialize`, and answers pings that come before the reply. Other messages are dropped.
///
/// > The server **SHOULD NOT** send requests other than pings and logging before receiving the `initialized` notification.
async fn answering_pings(
    link: &dyn SessionLink,
    request: OutgoingRequest,
) -> Result<ServerReply, TransportError> {
    let (to_pings, mut pings) = mpsc::channel(PINGS);
    let mut on_message = |message| match message {
        ServerMessage::Request(request) if request.method == method::PING => {
            // Further ones are dropped: those that wait are answered soon.
            let _ = to_pings.try_send(request.id);
        }
        _ => {}
    };
    let mut exchange = link.exchange(request, &mut on_message);
    let mut pongs = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            reply = &mut exchange => return reply,
            Some(id) = pings.recv(), if pongs.len() < PINGS => {
                if let Ok(pong) = write_result(&id, &json!({})) {
                    pongs.push(link.send(pong));
                }
            }
            Some(sent) = pongs.next() => {
                if let Err(fault) = sent {
                    tracing::debug!(fault = %escaped(&fault), "a ping could not be answered");
                }
            }
        }
    }
}
