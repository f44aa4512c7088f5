//! What a session of a legacy revision needs of a transport: a way in both directions.

use crate::transport::{IncomingNotification, OutgoingRequest, ServerReply, TransportError};
#[cfg(feature = "http")]
use antiphon_wire::Incoming;
use antiphon_wire::{ProtocolVersion, RequestId};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::sync::Arc;

/// How sessions travel over a transport.
pub trait Sessions: Send + Sync {
    /// Whether the era of the server is found out by a request of its own (stdio), or by what comes first (HTTP).
    fn probes_first(&self) -> bool;

    /// The way of a new session. Nothing is sent yet.
    ///
    /// # Errors
    /// If no session can be opened any more.
    fn open(&self) -> Result<Arc<dyn SessionLink>, TransportError>;

    /// The way of a session by the transport that came before this one, where there is one. Tried if the server refuses
    /// `initialize` as something that it does not know.
    fn open_older(&self) -> Option<Opened<'_>> {
        None
    }
}

/// The way of a session, once there is one.
pub type Opened<'a> = BoxFuture<'a, Result<Arc<dyn SessionLink>, TransportError>>;

/// The way of one session. Dropping it ends what it has open.
pub trait SessionLink: Send + Sync {
    /// Sends a request and waits for its response. What comes with it is handed to `hear`. Dropping the future cancels the
    /// request, unless it is `initialize`.
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        hear: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>>;

    /// Sends a notification, or a response to a request of the server.
    fn tell(&self, message: Vec<u8>) -> BoxFuture<'_, Result<(), TransportError>>;

    /// Client and server agreed on this version.
    fn established(&self, version: &ProtocolVersion);

    /// Reads what belongs to no request. `ready` is called once it is being read, or is known not to come at all. Ends with
    /// an error if the session is over, and without one if nothing will come.
    fn listen<'a>(
        &'a self,
        ready: &'a mut (dyn FnMut() + Send),
        hear: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<(), TransportError>>;

    /// Whether no request can be answered any more.
    fn is_over(&self) -> bool;

    /// Says that the session is no longer needed.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// What a server says on a session, responses aside.
#[derive(Debug)]
pub enum ServerMessage {
    /// Something happened.
    Notification(IncomingNotification),
    /// It asks something, and waits for the response.
    Request(IncomingRequest),
}

/// A request of the server.
#[derive(Clone, Debug)]
pub struct IncomingRequest {
    /// Chosen by the server.
    pub id: RequestId,
    /// What is wanted.
    pub method: String,
    /// With what.
    pub params: Option<Box<RawValue>>,
}

impl From<antiphon_wire::Notification<'_>> for ServerMessage {
    fn from(notification: antiphon_wire::Notification<'_>) -> Self {
        Self::Notification(IncomingNotification {
            method: notification.method.into_owned(),
            params: notification.params.map(ToOwned::to_owned),
        })
    }
}

impl From<antiphon_wire::Request<'_>> for ServerMessage {
    fn from(request: antiphon_wire::Request<'_>) -> Self {
        Self::Request(IncomingRequest {
            id: request.id,
            method: request.method.into_owned(),
            params: request.params.map(ToOwned::to_owned),
        })
    }
}

/// How many messages one batch may hold.
const MAX_BATCH: usize = 1000;

/// The messages in a text: one, or those of a batch.
///
/// > MCP implementations **MAY** support sending JSON-RPC batches, but **MUST** support receiving JSON-RPC batches.
pub(crate) fn messages(text: &[u8]) -> Vec<&[u8]> {
    let is_array = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if !is_array {
        return vec![text];
    }
    match serde_json::from_slice::<Vec<&RawValue>>(text) {
        Ok(batch) if (1..=MAX_BATCH).contains(&batch.len()) => {
            batch.into_iter().map(|one| one.get().as_bytes()).collect()
        }
        // Whoever reads it says what is wrong.
        _ => vec![text],
    }
}

/// Sorts what came on the stream of the request `id`, or of none: gives back its response, and hands on the rest.
#[cfg(feature = "http")]
pub(crate) fn sort(
    text: &[u8],
    id: Option<&RequestId>,
    hear: &mut (dyn FnMut(ServerMessage) + Send),
) -> Result<Option<ServerReply>, antiphon_wire::Unreadable> {
    let mut reply = None;
    for message in messages(text) {
        match Incoming::parse(message)? {
            Incoming::Notification(notification) => hear(notification.into()),
            Incoming::Request(request) => hear(request.into()),
            Incoming::Response(response)
                if id.is_some() && response.id.as_ref().is_none_or(|of| Some(of) == id) =>
            {
                reply = Some(response.outcome.map(ToOwned::to_owned));
            }
            Incoming::Response(_) => tracing::debug!("a response that nobody waits for: ignored"),
        }
    }
    Ok(reply)
}
