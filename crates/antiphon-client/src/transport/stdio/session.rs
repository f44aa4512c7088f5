//! A legacy session over a pair of streams: all of it on one channel.

use crate::transport::{
    IncomingNotification, OutgoingRequest, ServerMessage, ServerReply, SessionLink, TransportError,
    TransportErrorKind::Closed, stdio::table::Table,
};
use antiphon_wire::ProtocolVersion;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};

pub(crate) struct StreamLink {
    table: Arc<Table>,
    heard: Mutex<mpsc::Receiver<ServerMessage>>,
}

impl StreamLink {
    pub(crate) fn new(table: &Arc<Table>) -> Result<Self, TransportError> {
        Ok(Self { heard: Mutex::new(table.begin_session()?), table: Arc::clone(table) })
    }
}

impl SessionLink for StreamLink {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        hear: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(async move {
            let mut take =
                |notification: IncomingNotification| hear(ServerMessage::Notification(notification));
            self.table.admit(request)?.response(&mut take).await
        })
    }

    fn tell(&self, message: Vec<u8>) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(std::future::ready(self.table.say(message)))
    }

    fn established(&self, _: &ProtocolVersion) {}

    fn listen<'a>(
        &'a self,
        ready: &'a mut (dyn FnMut() + Send),
        hear: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(async move {
            ready();
            let mut heard = self.heard.lock().await;
            while let Some(message) = heard.recv().await {
                hear(message);
            }
            let gone = || TransportError::new(Closed, "another session took the place of this one");
            Err(self.table.ended().unwrap_or_else(gone))
        })
    }

    fn is_over(&self) -> bool {
        self.table.has_ended()
    }

    // > For the stdio transport, the client **SHOULD** initiate shutdown by: First, closing the input stream
    // That is the transport's.
    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
