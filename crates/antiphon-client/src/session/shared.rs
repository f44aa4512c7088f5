//! The state that a session shares with its task and its open asks.

use crate::{
    identity::ServerIdentity,
    request::core::Core,
    session::{listeners::Listeners, open_asks::OpenAsks},
    transport::{SessionLink, TransportError, TransportErrorKind::Closed},
};
use antiphon_wire::{InitializeResult, ProtocolVersion};
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::timeout};

/// The maximum time to send a notification or a response.
pub(crate) const SEND_WITHIN: Duration = Duration::from_secs(30);

/// The state that a session shares with its task and its open asks.
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) link: Arc<dyn SessionLink>,
    pub(crate) version: ProtocolVersion,
    pub(crate) hello: InitializeResult,
    pub(crate) server: ServerIdentity,
    pub(crate) open_asks: OpenAsks,
    pub(crate) listeners: Listeners,
    /// `true` once another session must replace this one.
    pub(crate) over: watch::Sender<bool>,
    /// `true` once no more messages arrive that belong to no request.
    pub(crate) stream_closed: watch::Sender<bool>,
}

impl Shared {
    pub(crate) fn new(
        core: Arc<Core>,
        link: Arc<dyn SessionLink>,
        version: ProtocolVersion,
        hello: InitializeResult,
    ) -> Self {
        let server = ServerIdentity::new(core.target(), Some(&hello.server_info));
        Self {
            core,
            link,
            version,
            hello,
            server,
            open_asks: OpenAsks::default(),
            listeners: Listeners::default(),
            over: watch::Sender::new(false),
            stream_closed: watch::Sender::new(false),
        }
    }

    /// Sends a notification, or the response to a request of the server.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let late = || TransportError::new(Closed, "the server takes no messages");
        timeout(SEND_WITHIN, self.link.send(message)).await.unwrap_or_else(|_| Err(late()))
    }
}
