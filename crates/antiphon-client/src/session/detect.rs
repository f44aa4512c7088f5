//! Detection of the server's era.
//!
//! ```text
//!  Unknown --stdio: server/discover; HTTP: the first request--------> Modern
//!     |                       |
//!     |                       | no modern answer, and no fault of the network
//!     +------ initialize <----+                                   ----> Legacy --it ends--> Ended --initialize--> Legacy
//! ```
//!
//! > The era determination is a property of the server, not of an individual request. Clients **SHOULD** cache the result for
//! > the lifetime of the server process (stdio) or origin (HTTP)

use crate::{
    request::{BodyWriter, RequestSpec, fault::RequestFault},
    session::{
        Connection, EraState, Mode, Verdict, discover, has_result_type, is_legacy_only, is_modern_error,
        is_other_version, is_session_refused, legacy::Session, more_telling, tells_more, verdict,
    },
    transport::{
        ServerReply, SessionTransport, TransportError,
        TransportErrorKind::{Closed, Unreachable},
    },
};
use antiphon_wire::{ProtocolVersion, escaped, method};
use std::sync::Arc;
use tokio::time::timeout;

impl Connection {
    /// Sends a request in the way of the era: as a modern request, on a session, or as the first request.
    pub(crate) async fn send_by_era(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        match self.era_state() {
            EraState::Modern => self.send_modern(spec, write).await,
            EraState::Legacy(session) => self.send_on(session, spec, write).await,
            EraState::Ended => self.send_on(self.session().await?, spec, write).await,
            EraState::Unknown => self.send_first(spec, write).await,
        }
    }

    async fn send_first(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        let sessions = self.transport.sessions();
        match (&self.mode, sessions) {
            (Mode::Auto, Some(sessions)) if sessions.probes_first() => {
                let _one = self.negotiating.lock().await;
                if let EraState::Unknown = self.era_state()
                    && let Some(reply) = self.probe(sessions).await?
                    && spec.method == method::DISCOVER
                {
                    return Ok(reply);
                }
            }
            (Mode::Auto, Some(sessions)) => return self.try_modern(sessions, spec, write).await,
            _ => {
                self.session().await?;
            }
        }
        match self.era_state() {
            EraState::Modern => self.send_modern(spec, write).await,
            _ => self.send_on(self.session().await?, spec, write).await,
        }
    }

    /// Sends `server/discover` on stdio. Returns the reply of a modern server.
    ///
    /// > The server returns any other error, or does not respond within a reasonable timeout: the server is legacy. Fall back
    /// > to the `initialize` handshake.
    async fn probe(&self, sessions: &dyn SessionTransport) -> Result<Option<ServerReply>, RequestFault> {
        let spec = RequestSpec::single(
            method::DISCOVER,
            self.core.bounds.leg_timeout.max(self.core.bounds.probe_timeout),
        );
        let mut asked = Box::pin(self.send_modern(&spec, &discover));
        let reply = match timeout(self.core.bounds.probe_timeout, &mut asked).await {
            Ok(reply) => reply,
            Err(_) => {
                // The server may only be slow to start: the first reply decides.
                let mut session = Box::pin(self.initialize_behind_probe(sessions));
                tokio::select! {
                    biased;
                    session = &mut session => match session {
                        // The server has read both requests, so the reply to the probe will arrive.
                        Err(fault) if is_other_version(&fault) => asked.await,
                        session => {
                            drop(asked);
                            self.set_session(session?);
                            return Ok(None);
                        }
                    },
                    reply = &mut asked => match verdict(&reply) {
                        Verdict::Modern | Verdict::ModernOf(_) => reply,
                        _ => {
                            self.set_session(session.await?);
                            return Ok(None);
                        }
                    }
                }
            }
        };
        match verdict(&reply) {
            Verdict::Modern => self.set_modern(None),
            Verdict::ModernOf(version) => self.set_modern(Some(version)),
            Verdict::Neither(theirs) => return Err(RequestFault::no_version(theirs)),
            Verdict::Legacy => {
                return match self.initialize(sessions).await {
                    Ok(session) => {
                        self.set_session(session);
                        Ok(None)
                    }
                    // The connection broke twice: the first error has more information.
                    Err(RequestFault::Transport(_)) if matches!(reply, Err(RequestFault::Transport(_))) => {
                        reply.map(Some)
                    }
                    Err(fault) => Err(fault),
                };
            }
            Verdict::Nothing => return reply.map(Some),
        }
        Ok(reply.ok())
    }

    /// Opens a session with a server that the probe may have ended. Some servers still read, and end with the next message. The
    /// next process receives `initialize` first.
    async fn initialize_behind_probe(
        &self,
        sessions: &dyn SessionTransport,
    ) -> Result<Arc<Session>, RequestFault> {
        match self.initialize(sessions).await {
            Err(RequestFault::Transport(error)) if error.kind() == Closed && !error.is_final() => {
                self.initialize(sessions).await
            }
            came => came,
        }
    }

    /// Sends the first request over HTTP as a modern one.
    ///
    /// > If the body contains a recognized modern JSON-RPC error, the server speaks a modern version of MCP [...]. If the body
    /// > is empty or is not a recognized modern JSON-RPC error, fall back to `initialize`
    async fn try_modern(
        &self,
        sessions: &dyn SessionTransport,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        let reply = self.send_modern(spec, write).await;
        let asked = spec.method == method::DISCOVER;
        match &reply {
            Ok(Ok(result)) if !asked && has_result_type(result) => self.set_modern(None),
            // The request was carried out: it must not be sent again.
            Ok(Ok(_)) if method::may_ask(&spec.method) => {}
            // The caller changes to another version.
            Ok(Err(error)) if is_modern_error(error) => {
                if let Verdict::Modern | Verdict::ModernOf(_) = verdict(&reply) {
                    self.set_modern(None);
                }
            }
            Ok(_) => return self.settle_doubt(sessions, reply, spec, write).await,
            Err(RequestFault::Transport(error)) if is_legacy_only(error) => {
                return self.settle_doubt(sessions, reply, spec, write).await;
            }
            Err(_) => {}
        }
        reply
    }

    /// Detects the era after a reply that both eras can send.
    async fn settle_doubt(
        &self,
        sessions: &dyn SessionTransport,
        first: Result<ServerReply, RequestFault>,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        let one = self.negotiating.lock().await;
        if let EraState::Unknown = self.era_state() {
            // Both eras can send this reply. If `server/discover` succeeds, the server is modern, and the reply is that of the
            // request.
            let mut judged = verdict(&first);
            if spec.method != method::DISCOVER && first.is_ok() {
                let single = RequestSpec::single(method::DISCOVER, self.core.bounds.leg_timeout);
                judged = verdict(&self.send_modern(&single, &discover).await);
            }
            match judged {
                Verdict::Modern => self.set_modern(None),
                Verdict::ModernOf(version) => self.set_modern(Some(version)),
                Verdict::Neither(theirs) => return Err(RequestFault::no_version(theirs)),
                Verdict::Nothing => {}
                Verdict::Legacy => match self.initialize(sessions).await {
                    Ok(session) => self.set_session(session),
                    Err(fault) if is_session_refused(&fault) => return self.better(first, fault),
                    Err(fault) => return Err(fault),
                },
            }
        }
        drop(one);
        match self.era_state() {
            EraState::Legacy(session) => self.send_on(session, spec, write).await,
            EraState::Ended => self.send_on(self.session().await?, spec, write).await,
            EraState::Modern | EraState::Unknown => first,
        }
    }

    /// Returns the first reply, or the fault of the fallback if it explains more.
    fn better(
        &self,
        first: Result<ServerReply, RequestFault>,
        fallback: RequestFault,
    ) -> Result<ServerReply, RequestFault> {
        match first {
            Err(fault) => Err(more_telling(fault, fallback)),
            Ok(Err(error)) => {
                let fault = RequestFault::server(error.clone(), self.core.handlers.declared);
                if tells_more(&fallback, &fault) { Err(fallback) } else { Ok(Err(error)) }
            }
            result => result,
        }
    }

    /// Returns the session, and opens one if there is none.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, RequestFault> {
        let _one = self.negotiating.lock().await;
        if let EraState::Legacy(session) = self.era_state()
            && !session.is_over()
        {
            return Ok(session);
        }
        let none =
            || TransportError::new(Unreachable, "this transport carries no sessions of legacy versions");
        let sessions = self.transport.sessions().ok_or_else(none).map_err(RequestFault::Transport)?;
        match self.initialize(sessions).await {
            Ok(session) => {
                self.set_session(Arc::clone(&session));
                Ok(session)
            }
            Err(fault) => {
                self.doubt_era();
                Err(fault)
            }
        }
    }

    /// Opens a session by the newest transport that the server supports.
    async fn initialize(&self, sessions: &dyn SessionTransport) -> Result<Arc<Session>, RequestFault> {
        let Some((version, exactly)) = self.mode.offers() else {
            return Err(RequestFault::no_version(Vec::new()));
        };
        let link = sessions.open().map_err(RequestFault::Transport)?;
        let fault = match Session::open(&self.core, link, &version, exactly).await {
            // > If it fails with the following HTTP status codes "400 Bad Request", "404 Not Found" or "405 Method Not
            // > Allowed": Issue a GET request to the server URL, expecting that this will open an SSE stream and return an
            // > `endpoint` event as the first event.
            Err(fault) if is_session_refused(&fault) => fault,
            opened => return opened,
        };
        let Some(older) = sessions.open_older() else { return Err(fault) };
        match older.await {
            Ok(link) => Session::open(&self.core, link, &version, exactly)
                .await
                .map_err(|older| more_telling(fault, older)),
            Err(error) => {
                tracing::debug!(error = %escaped(&error), "the server does not speak HTTP+SSE either");
                Err(more_telling(fault, RequestFault::Transport(error)))
            }
        }
    }

    /// Sends a request on a session. If the server reports that session as unknown, it did not act, and the request is sent once
    /// more on another session.
    async fn send_on(
        &self,
        mut session: Arc<Session>,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        if spec.carries {
            return Err(RequestFault::PendingOnSession);
        }
        let mut again = true;
        loop {
            if session.is_over() {
                self.drop_session(&session);
                session = self.session().await?;
            }
            if spec.method == method::DISCOVER {
                return session.discovered().map(Ok);
            }
            session.want_level(spec.log_level).await;
            let reply = session.exchange(spec, write).await;
            match &reply {
                Err(RequestFault::Transport(error)) if error.is_session_lost() => {
                    tracing::info!(server = %escaped(&self.core.identity()), "the server no longer has the session: another one is opened");
                    self.drop_session(&session);
                    if std::mem::replace(&mut again, false) {
                        session = self.session().await?;
                        continue;
                    }
                }
                _ if session.is_over() => self.drop_session(&session),
                _ => {}
            }
            return reply;
        }
    }

    /// Opens a session after a modern server refused the version, if the server also supports a legacy version. Returns `false`
    /// if it does not.
    pub(crate) async fn follow_to_session(&self, theirs: &[String]) -> Result<bool, RequestFault> {
        let speaks_legacy = theirs.iter().any(|version| ProtocolVersion::legacy(version).is_some());
        let (Mode::Auto, true, Some(sessions)) = (&self.mode, speaks_legacy, self.transport.sessions())
        else {
            return Ok(false);
        };
        let _one = self.negotiating.lock().await;
        if self.current_session().is_none() {
            self.set_session(self.initialize(sessions).await?);
        }
        Ok(true)
    }
}
