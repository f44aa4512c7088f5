//! A legacy session over a pair of streams: all of it on one channel.

use crate::transport::{
    IncomingNotification, OutgoingRequest, ServerMessage, ServerReply, SessionLink, TransportError,
    TransportErrorKind::Closed, stdio::in_flight_requests::InFlightRequests,
};
use antiphon_wire::ProtocolVersion;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};

pub(crate) struct StreamLink {
    requests: Arc<InFlightRequests>,
    received: Mutex<mpsc::Receiver<ServerMessage>>,
}

impl StreamLink {
    pub(crate) fn new(requests: &Arc<InFlightRequests>) -> Result<Self, TransportError> {
        Ok(Self { received: Mutex::new(requests.begin_session()?), requests: Arc::clone(requests) })
    }
}

impl SessionLink for StreamLink {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(async move {
            let mut take =
                |notification: IncomingNotification| on_message(ServerMessage::Notification(notification));
            self.requests.admit(request)?.response(&mut take).await
        })
    }

    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(std::future::ready(self.requests.send(message)))
    }

    fn established(&self, _: &ProtocolVersion) {}

    fn listen<'a>(
        &'a self,
        ready: &'a mut (dyn FnMut() + Send),
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(async move {
            ready();
            let mut received = self.received.lock().await;
            while let Some(message) = received.recv().await {
                on_message(message);
            }
            let gone = || TransportError::new(Closed, "another session took the place of this one");
            Err(self.requests.ended().unwrap_or_else(gone))
        })
    }

    fn is_over(&self) -> bool {
        self.requests.has_ended()
    }

    // > For the stdio transport, the client **SHOULD** initiate shutdown by: First, closing the input stream
    // The transport ends the streams, not the session.
    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
