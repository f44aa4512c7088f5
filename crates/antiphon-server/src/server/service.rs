//! The server as a [`MessageService`].

use crate::{
    identity::Caller,
    offer::offers::Offers,
    outbox::Outbox,
    quota::RequestBudget,
    reply::ReplyMessage,
    request::receive::{Received, Request, speaks_for_itself},
    server::{
        Server,
        message_service::{CallOutcome, MessageService, MessageSession},
    },
    session::Session,
    task,
};
use antiphon_wire::{Notification, ProtocolVersion, Response, header::params::ParamHeaders};
use std::{fmt, sync::Arc, time::SystemTime};

/// A session of a [`Server`] with a client of an earlier revision.
#[derive(Clone)]
pub struct ServerSession {
    server: Server,
    pub(crate) session: Session,
}

/// A snapshot of the tools, prompts and resources that a [`Server`] offers.
#[derive(Clone)]
pub struct ServerOffers(Arc<Offers>);

impl MessageService for Server {
    type Session = ServerSession;
    type Offers = ServerOffers;

    fn offers(&self) -> ServerOffers {
        ServerOffers(self.current_offers())
    }

    async fn call(&self, offers: &ServerOffers, request: &Request<'_>, caller: &Caller<'_>) -> CallOutcome {
        self.begin(&offers.0, request, caller).await
    }

    fn param_headers<'a>(
        &self,
        offers: &'a ServerOffers,
        method: &str,
        target: &str,
    ) -> Option<&'a ParamHeaders> {
        offers.0.param_headers(method, target)
    }

    fn read<'a>(&self, message: &'a [u8]) -> Result<Received<'a>, ReplyMessage> {
        Self::read(self, message)
    }

    fn has_sessions(&self) -> bool {
        Self::has_sessions(self)
    }

    fn initialize(
        &self,
        request: antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<(ServerSession, ReplyMessage), ReplyMessage> {
        let (session, reply) = Self::initialize(self, &request, caller)?;
        Ok((ServerSession { server: self.clone(), session }, reply))
    }

    async fn call_without_session(
        &self,
        request: antiphon_wire::Request<'_>,
        version: ProtocolVersion,
        caller: &Caller<'_>,
    ) -> ReplyMessage {
        self.answer_without_session(request, version, caller).await
    }

    fn has_notification(&self, method: &str) -> bool {
        self.0.offers.load().profile.extensions.has_notification(method)
    }

    async fn notify(
        &self,
        notification: &Notification<'_>,
        session: Option<&ServerSession>,
        caller: &Caller<'_>,
    ) -> Result<(), ReplyMessage> {
        match session {
            // A modern message on the streams of a session belongs to no session.
            Some(session) if !speaks_for_itself(notification.params) => {
                session.session.notify_extension(self, notification, caller).await
            }
            _ => Self::notify(self, notification, caller).await,
        }
    }

    fn request_budget(&self) -> RequestBudget {
        self.0.runtime.request_budget.clone()
    }

    fn name(&self) -> &str {
        Self::name(self)
    }

    fn key_is_ephemeral(&self) -> bool {
        Self::key_is_ephemeral(self)
    }

    fn accepts_client_principals(&self) -> bool {
        self.0.runtime.identity.client_is_enough
    }

    fn now(&self) -> SystemTime {
        self.0.runtime.clock.now()
    }

    fn metrics_text(&self) -> Option<String> {
        Some(self.metrics().to_string())
    }

    fn drain(&self) {
        Self::drain(self);
    }

    fn is_draining(&self) -> bool {
        self.0.runtime.subscriptions.is_draining()
    }

    async fn finished(&self) {
        self.steps_ended().await;
    }
}

impl MessageSession for ServerSession {
    fn version(&self) -> &ProtocolVersion {
        self.session.version()
    }

    async fn call(&self, request: antiphon_wire::Request<'_>, caller: &Caller<'_>) -> Option<ReplyMessage> {
        self.session.answer(&self.server, request, caller).await
    }

    fn notify(&self, notification: &Notification<'_>) -> bool {
        self.session.on_notification(notification)
    }

    fn respond(&self, response: Response<'_>, caller: &Caller<'_>) -> Result<(), ReplyMessage> {
        self.session.take_response_of(&self.server, response, caller)
    }

    async fn send_messages(&self, outbox: &Outbox) {
        tokio::select! {
            () = self.session.send_notifications(outbox) => {}
            () = task::notify(&self.server.0.runtime, &self.session, outbox) => {}
        }
    }

    fn is_opened_by(&self, caller: &Caller<'_>) -> bool {
        self.server.is_opener(&self.session, caller)
    }

    fn may_listen(&self, caller: &Caller<'_>) -> Result<(), ReplyMessage> {
        self.session.check_notification_scopes(&self.server, caller)
    }

    fn follows(&self, previous: &Self) {
        self.session.follow(&previous.session);
    }

    fn input_ended(&self) {
        self.session.end_asks();
    }

    fn end(&self) {
        self.session.end();
    }

    fn is_ended(&self) -> bool {
        self.session.is_ended()
    }
}

impl fmt::Debug for ServerOffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOffers").finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.fmt(f)
    }
}
