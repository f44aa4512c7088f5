//! The part of a transport that sessions of legacy revisions need: messages in both directions.

use crate::transport::{IncomingNotification, OutgoingRequest, ServerReply, TransportError};
#[cfg(feature = "http")]
use antiphon_wire::{Incoming, lenient};
use antiphon_wire::{ProtocolVersion, RequestId};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::sync::Arc;

/// A transport that carries sessions of legacy revisions.
pub trait SessionTransport: Send + Sync {
    /// Returns `true` if a separate request detects the era of the server (stdio), `false` if the first request of the client
    /// detects it (HTTP).
    fn probes_first(&self) -> bool;

    /// Opens the link of a new session. Nothing is sent yet.
    ///
    /// # Errors
    /// [`TransportError`] if no session can be opened any more.
    fn open(&self) -> Result<Arc<dyn SessionLink>, TransportError>;

    /// Opens the link of a session by the older transport that this one replaced, if there is one. The client tries the older
    /// transport if the server refuses `initialize` as unknown.
    fn open_older(&self) -> Option<OpeningLink<'_>> {
        None
    }
}

/// The link of a session that is being opened.
pub type OpeningLink<'a> = BoxFuture<'a, Result<Arc<dyn SessionLink>, TransportError>>;

/// The link of one session. Dropping it ends its open requests.
pub trait SessionLink: Send + Sync {
    /// Sends a request and waits for its response. Messages that come with the response are passed to `on_message`. Dropping
    /// the future cancels the request, unless it is `initialize`.
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>>;

    /// Sends a notification, or a response to a request of the server.
    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, Result<(), TransportError>>;

    /// Called once client and server agreed on this version.
    fn established(&self, version: &ProtocolVersion);

    /// Receives the messages that belong to no request. Calls `ready` once the messages are being read, or once it is certain
    /// that none will arrive. Ends with an error if the session is over, and without an error if no message will arrive.
    fn listen<'a>(
        &'a self,
        ready: &'a mut (dyn FnMut() + Send),
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<(), TransportError>>;

    /// Returns `true` if no request can be answered any more.
    fn is_over(&self) -> bool;

    /// Ends the session.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// A message of the server on a session, other than a response.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerMessage {
    /// A notification.
    Notification(IncomingNotification),
    /// A request, which waits for a response.
    Request(IncomingRequest),
}

/// A request of the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IncomingRequest {
    /// The id, chosen by the server.
    pub id: RequestId,
    /// The method.
    pub method: String,
    /// The request's `params`, as raw JSON text.
    pub params: Option<Box<RawValue>>,
}

impl IncomingRequest {
    /// A request of the server, for transports outside of this crate.
    pub fn new(id: RequestId, method: impl Into<String>, params: Option<Box<RawValue>>) -> Self {
        Self { id, method: method.into(), params }
    }
}

impl From<antiphon_wire::Notification<'_>> for ServerMessage {
    fn from(notification: antiphon_wire::Notification<'_>) -> Self {
        Self::Notification(IncomingNotification::new(
            notification.method.into_owned(),
            notification.params.map(ToOwned::to_owned),
        ))
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

/// The maximum number of messages in one batch.
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
        // The parser of messages returns the cause.
        _ => vec![text],
    }
}

/// Returns `true` if a response with this id belongs to the request `asked`, also if its server repeats the number as text.
#[cfg(feature = "http")]
pub(crate) fn answers(answered: &RequestId, asked: &RequestId) -> bool {
    answered == asked || answered.text_as_number().as_ref() == Some(asked)
}

/// Sorts the messages on the stream of the request `id`, or of no request: returns the response, and passes on the rest.
#[cfg(feature = "http")]
pub(crate) fn sort(
    text: &[u8],
    id: Option<&RequestId>,
    on_message: &mut (dyn FnMut(ServerMessage) + Send),
) -> Result<Option<ServerReply>, antiphon_wire::Unreadable> {
    let mut reply = None;
    for message in messages(&lenient::repaired(text)) {
        match lenient::parse(message)? {
            Incoming::Notification(notification) => on_message(notification.into()),
            Incoming::Request(request) => on_message(request.into()),
            Incoming::Response(response)
                if id.is_some_and(|asked| response.id.as_ref().is_none_or(|of| answers(of, asked))) =>
            {
                reply = Some(response.outcome.map(ToOwned::to_owned));
            }
            Incoming::Response(_) => tracing::debug!("ignored a response, because no request waits for it"),
        }
    }
    Ok(reply)
}
