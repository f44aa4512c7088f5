//! A legacy session with one process.

use crate::transport::{
    OutgoingRequest, ServerMessage, ServerReply, SessionLink, TransportError,
    TransportErrorKind::Closed,
    child::{
        current::{Current, explain},
        process::Process,
    },
    stdio::session::StreamLink,
};
use antiphon_wire::ProtocolVersion;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex};

/// The streams of one process, and how it ended.
pub(crate) struct ChildLink {
    pub(crate) link: StreamLink,
    pub(crate) process: Arc<Process>,
    pub(crate) name: String,
    pub(crate) current: Arc<Mutex<Current>>,
}

impl ChildLink {
    async fn explained<T>(&self, outcome: Result<T, TransportError>) -> Result<T, TransportError> {
        match outcome {
            Err(error) if error.kind() == Closed => {
                Err(explain(&self.process, &self.name, &self.current, error).await)
            }
            outcome => outcome,
        }
    }
}

impl SessionLink for ChildLink {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(async move { self.explained(self.link.exchange(request, on_message).await).await })
    }

    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move { self.explained(self.link.send(message).await).await })
    }

    fn established(&self, version: &ProtocolVersion) {
        self.link.established(version);
    }

    fn listen<'a>(
        &'a self,
        ready: &'a mut (dyn FnMut() + Send),
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(async move { self.explained(self.link.listen(ready, on_message).await).await })
    }

    fn is_over(&self) -> bool {
        self.process.has_ended()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.link.end()
    }
}
