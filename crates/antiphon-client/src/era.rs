//! Which era the server is of, and how that is found out.
//!
//! ```text
//!  Unknown --stdio: server/discover; HTTP: whatever comes first-----> Modern
//!     |                       |
//!     |                       | no modern answer, and no fault of the network
//!     +------ initialize <----+                                   ----> Legacy --it ends--> Ended --initialize--> Legacy
//! ```
//!
//! > The era determination is a property of the server, not of an individual request. Clients **SHOULD** cache the result for
//! > the lifetime of the server process (stdio) or origin (HTTP)

mod verdict;

use crate::{
    Client, Inner,
    fault::RequestFault,
    leg::{Wanted, Write},
    legacy::Session,
    transport::{
        ServerReply, Sessions, TransportError,
        TransportErrorKind::{Closed, Unreachable},
    },
};
use antiphon_wire::{PageParams, ProtocolVersion, RequestId, method, write_request};
use std::{mem::discriminant, sync::Arc};
use tokio::time::timeout;
use verdict::{Verdict, is_modern, is_no_modern, is_no_session, is_of_modern, judge, says_result_type};

/// Which revisions of the protocol a client speaks with its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Whichever the server speaks, the newest first. Over HTTP the first request is a modern one, and its answer tells;
    /// elsewhere `server/discover` comes first.
    #[default]
    Auto,
    /// A session, of the newest version before 2026-07-28 that the server speaks.
    Legacy,
    /// This version only, modern or legacy.
    Pinned(ProtocolVersion),
}

/// How a server conveys version and capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// With each request: 2026-07-28.
    Modern,
    /// Once, with the `initialize` handshake of a session: up to 2025-11-25.
    Legacy,
}

/// What is known of the server's era.
#[derive(Clone)]
pub(crate) enum Footing {
    Unknown,
    Modern,
    Legacy(Arc<Session>),
    /// It is of the legacy era, and the last session is over.
    Ended,
}

impl Client {
    /// The era of the server; none until its first answer.
    pub fn era(&self) -> Option<Era> {
        match self.inner.known().footing {
            Footing::Unknown => None,
            Footing::Modern => Some(Era::Modern),
            Footing::Legacy(_) | Footing::Ended => Some(Era::Legacy),
        }
    }

    /// Tells the server that the root directories are others now, where a session is open: it may ask again. Without a
    /// session there is nothing to tell, as roots are asked for when they are needed; nor without
    /// [`on_roots`](super::ClientBuilder::on_roots), as there are none then.
    pub async fn roots_changed(&self) {
        // > Both parties **MUST**: Only use capabilities that were successfully negotiated
        if !self.inner.desk.callbacks.declared().roots {
            return;
        }
        let Some(session) = self.inner.session_now() else { return };
        let message = antiphon_wire::write_notification(method::ROOTS_LIST_CHANGED, &serde_json::json!({}));
        if let Ok(message) = message
            && let Err(fault) = session.tell(message).await
        {
            tracing::debug!(%fault, "the server could not be told that the roots changed");
        }
    }
}

impl Mode {
    /// Where a client stands before its first request.
    pub(crate) fn footing(&self, has_sessions: bool) -> Footing {
        match self {
            Self::Auto if has_sessions => Footing::Unknown,
            Self::Pinned(version) if version.is_legacy() => Footing::Unknown,
            Self::Legacy => Footing::Unknown,
            _ => Footing::Modern,
        }
    }

    /// The version that `initialize` offers, and whether it must be that one; none if there is to be no session.
    fn offers(&self) -> Option<(ProtocolVersion, bool)> {
        match self {
            Self::Auto | Self::Legacy => Some((ProtocolVersion::LEGACY[0].clone(), false)),
            Self::Pinned(version) if version.is_legacy() => Some((version.clone(), true)),
            Self::Pinned(_) => None,
        }
    }
}

impl Inner {
    /// The session, if there is one.
    pub(crate) fn session_now(&self) -> Option<Arc<Session>> {
        match &self.known().footing {
            Footing::Legacy(session) => Some(Arc::clone(session)),
            _ => None,
        }
    }

    fn footing(&self) -> Footing {
        self.known().footing.clone()
    }

    /// Sends a request by a way that is not the plain one: on a session, or as the first of all.
    pub(crate) async fn send_elsewhere(
        &self,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<ServerReply, RequestFault> {
        match self.footing() {
            Footing::Modern => self.send_modern(wanted, write).await,
            Footing::Legacy(session) => self.send_on(session, wanted, write).await,
            Footing::Ended => self.send_on(self.session().await?, wanted, write).await,
            Footing::Unknown => self.send_first(wanted, write).await,
        }
    }

    /// Finds out the era, if it is not known.
    pub(crate) async fn settle(&self) -> Result<Footing, RequestFault> {
        if let Footing::Unknown = self.footing() {
            let wanted = Wanted::single(method::DISCOVER, self.bounds.leg_timeout);
            let reply = self.send_elsewhere(&wanted, &discover).await?;
            if let (Footing::Unknown, Err(error)) = (self.footing(), reply) {
                return Err(RequestFault::server(error, self.desk.declared));
            }
        }
        match self.footing() {
            Footing::Legacy(session) if session.is_over() => self.forget_session(&session),
            Footing::Ended => {}
            other => return Ok(other),
        }
        self.session().await.map(Footing::Legacy)
    }

    async fn send_first(&self, wanted: &Wanted<'_>, write: &Write<'_>) -> Result<ServerReply, RequestFault> {
        let sessions = self.transport.sessions();
        match (&self.mode, sessions) {
            (Mode::Auto, Some(sessions)) if sessions.probes_first() => {
                let _one = self.negotiating.lock().await;
                if let Footing::Unknown = self.footing()
                    && let Some(reply) = self.probe(sessions).await?
                    && wanted.method == method::DISCOVER
                {
                    return Ok(reply);
                }
            }
            (Mode::Auto, Some(sessions)) => return self.try_modern(sessions, wanted, write).await,
            _ => {
                self.session().await?;
            }
        }
        match self.footing() {
            Footing::Modern => self.send_modern(wanted, write).await,
            _ => self.send_on(self.session().await?, wanted, write).await,
        }
    }

    /// Asks who is there, on stdio. Gives the answer back if it is that of a modern server.
    ///
    /// > The server returns any other error, or does not respond within a reasonable timeout: the server is legacy. Fall back
    /// > to the `initialize` handshake.
    async fn probe(&self, sessions: &dyn Sessions) -> Result<Option<ServerReply>, RequestFault> {
        let wanted = Wanted::single(method::DISCOVER, self.bounds.leg_timeout.max(self.probe_timeout));
        let mut asked = Box::pin(self.send_modern(&wanted, &discover));
        let reply = match timeout(self.probe_timeout, &mut asked).await {
            Ok(reply) => reply,
            Err(_) => {
                // It may only be slow to start: who answers first decides.
                let mut session = Box::pin(self.initialize_behind_probe(sessions));
                tokio::select! {
                    biased;
                    session = &mut session => match session {
                        // It has read both by now: what it says of itself is on its way.
                        Err(fault) if is_of_modern(&fault) => asked.await,
                        session => {
                            drop(asked);
                            return self.stand_on(session?).map(|()| None);
                        }
                    },
                    reply = &mut asked => match judge(&reply) {
                        Verdict::Modern | Verdict::ModernOf(_) => reply,
                        _ => return self.stand_on(session.await?).map(|()| None),
                    }
                }
            }
        };
        match judge(&reply) {
            Verdict::Modern => self.stand_modern(None),
            Verdict::ModernOf(version) => self.stand_modern(Some(version)),
            Verdict::Neither(theirs) => return Err(RequestFault::Version { theirs }),
            Verdict::Legacy => {
                return match self.initialize(sessions).await {
                    Ok(session) => self.stand_on(session).map(|()| None),
                    // The connection broke twice: what it was at first says more.
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

    /// Shakes hands with a server that may not have survived the probe: some read on, and end with the next message. The
    /// process after them hears nothing but this.
    async fn initialize_behind_probe(&self, sessions: &dyn Sessions) -> Result<Arc<Session>, RequestFault> {
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
        sessions: &dyn Sessions,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<ServerReply, RequestFault> {
        let reply = self.send_modern(wanted, write).await;
        let asked = wanted.method == method::DISCOVER;
        match &reply {
            Ok(Ok(result)) if !asked && says_result_type(result) => self.stand_modern(None),
            // Whatever it was, it has run: not to be sent again.
            Ok(Ok(_)) if method::may_ask(wanted.method) => {}
            // Another version is what the caller follows to.
            Ok(Err(error)) if is_modern(error) => {
                if let Verdict::Modern | Verdict::ModernOf(_) = judge(&reply) {
                    self.stand_modern(None);
                }
            }
            Ok(_) => return self.settle_doubt(sessions, reply, wanted, write).await,
            Err(RequestFault::Transport(error)) if is_no_modern(error) => {
                return self.settle_doubt(sessions, reply, wanted, write).await;
            }
            Err(_) => {}
        }
        reply
    }

    /// The first answer may be that of either era.
    async fn settle_doubt(
        &self,
        sessions: &dyn Sessions,
        first: Result<ServerReply, RequestFault>,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<ServerReply, RequestFault> {
        let one = self.negotiating.lock().await;
        if let Footing::Unknown = self.footing() {
            // An error that both eras know is the request's own, if the server is modern: every modern one can be discovered.
            let mut judged = judge(&first);
            if wanted.method != method::DISCOVER && first.is_ok() {
                let single = Wanted::single(method::DISCOVER, self.bounds.leg_timeout);
                judged = judge(&self.send_modern(&single, &discover).await);
            }
            match judged {
                Verdict::Modern => self.stand_modern(None),
                Verdict::ModernOf(version) => self.stand_modern(Some(version)),
                Verdict::Neither(theirs) => return Err(RequestFault::Version { theirs }),
                Verdict::Nothing => {}
                Verdict::Legacy => match self.initialize(sessions).await {
                    Ok(session) => self.stand_on(session)?,
                    Err(fault) if is_no_session(&fault) => return first,
                    Err(fault) => return Err(fault),
                },
            }
        }
        drop(one);
        match self.footing() {
            Footing::Legacy(session) => self.send_on(session, wanted, write).await,
            Footing::Ended => self.send_on(self.session().await?, wanted, write).await,
            Footing::Modern | Footing::Unknown => first,
        }
    }

    /// The session, opened anew if there is none.
    async fn session(&self) -> Result<Arc<Session>, RequestFault> {
        let _one = self.negotiating.lock().await;
        if let Footing::Legacy(session) = self.footing()
            && !session.is_over()
        {
            return Ok(session);
        }
        let none =
            || TransportError::new(Unreachable, "this transport carries no sessions of legacy versions");
        let sessions = self.transport.sessions().ok_or_else(none).map_err(RequestFault::Transport)?;
        match self.initialize(sessions).await {
            Ok(session) => {
                self.stand_on(Arc::clone(&session))?;
                Ok(session)
            }
            Err(fault) => {
                // > re-probing if the cached assumption later fails.
                let mut known = self.known();
                if self.mode == Mode::Auto && discriminant(&known.footing) == discriminant(&Footing::Ended) {
                    known.footing = Footing::Unknown;
                }
                Err(fault)
            }
        }
    }

    /// Shakes hands by the newest transport that the server knows.
    async fn initialize(&self, sessions: &dyn Sessions) -> Result<Arc<Session>, RequestFault> {
        let Some((version, exactly)) = self.mode.offers() else {
            return Err(RequestFault::Version { theirs: Vec::new() });
        };
        let link = sessions.open().map_err(RequestFault::Transport)?;
        let fault = match Session::open(self, link, &version, exactly).await {
            // > If it fails with the following HTTP status codes "400 Bad Request", "404 Not Found" or "405 Method Not
            // > Allowed": Issue a GET request to the server URL, expecting that this will open an SSE stream and return an
            // > `endpoint` event as the first event.
            Err(fault) if is_no_session(&fault) => fault,
            opened => return opened,
        };
        let Some(older) = sessions.open_older() else { return Err(fault) };
        match older.await {
            Ok(link) => Session::open(self, link, &version, exactly).await,
            Err(error) => {
                tracing::debug!(%error, "the server does not speak HTTP+SSE either");
                Err(fault)
            }
        }
    }

    /// Sends a request on a session, and once more on another one if the server says that it forgot this one: it did nothing
    /// then.
    async fn send_on(
        &self,
        mut session: Arc<Session>,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<ServerReply, RequestFault> {
        if wanted.carries {
            return Err(RequestFault::PendingOnSession);
        }
        let mut again = true;
        loop {
            if session.is_over() {
                self.forget_session(&session);
                session = self.session().await?;
            }
            if wanted.method == method::DISCOVER {
                return session.discovered().map(Ok);
            }
            session.want_level(self, wanted.log_level).await;
            let reply = session.converse(self, wanted, write).await;
            match &reply {
                Err(RequestFault::Transport(error)) if error.is_session_lost() => {
                    tracing::info!(server = %self.identity(), "the server forgot the session: another one is opened");
                    self.forget_session(&session);
                    if std::mem::replace(&mut again, false) {
                        session = self.session().await?;
                        continue;
                    }
                }
                _ if session.is_over() => self.forget_session(&session),
                _ => {}
            }
            return reply;
        }
    }

    fn forget_session(&self, session: &Arc<Session>) {
        let mut known = self.known();
        if matches!(&known.footing, Footing::Legacy(present) if Arc::ptr_eq(present, session)) {
            known.footing = Footing::Ended;
        }
        drop(known);
        session.give_up();
    }

    fn stand_modern(&self, version: Option<ProtocolVersion>) {
        self.known().footing = Footing::Modern;
        if let Some(version) = version {
            self.change_version(version);
        }
    }

    fn stand_on(&self, session: Arc<Session>) -> Result<(), RequestFault> {
        self.change_version(session.version().clone());
        let mut known = self.known();
        known.info = Some(session.server_info().clone());
        known.capabilities = Some(session.capabilities().clone());
        known.footing = Footing::Legacy(session);
        Ok(())
    }

    /// Whether the client may go on with another version than it began with.
    pub(crate) fn follows(&self) -> bool {
        !matches!(self.mode, Mode::Pinned(_))
    }

    /// The way on from a modern server's refusal of the version, where it speaks a legacy one as well.
    pub(crate) async fn follow_to_session(&self, theirs: &[String]) -> Result<bool, RequestFault> {
        let speaks_legacy = theirs.iter().any(|version| ProtocolVersion::legacy(version).is_some());
        let (Mode::Auto, true, Some(sessions)) = (&self.mode, speaks_legacy, self.transport.sessions())
        else {
            return Ok(false);
        };
        let _one = self.negotiating.lock().await;
        if self.session_now().is_none() {
            self.stand_on(self.initialize(sessions).await?)?;
        }
        Ok(true)
    }
}

fn discover(id: &RequestId, meta: antiphon_wire::Meta) -> Result<Vec<u8>, serde_json::Error> {
    write_request(id, method::DISCOVER, &PageParams::new(meta, None))
}
