//! The connection of a client to its server, and the state of the server's era.

use crate::{
    request::{
        core::Core,
        deadline::RequestDeadline,
        fault::RequestFault,
        notifications::NotificationSink,
        spec::{BodyWriter, RequestSpec},
    },
    session::{
        legacy::Session,
        mode::{Era, Mode},
        task_watch::TaskWatches,
    },
    transport::{OutgoingRequest, ServerReply, Transport},
};
use antiphon_wire::{Meta, ProtocolVersion};
use std::sync::{Arc, Mutex, PoisonError};

/// A client's connection to its server: the transport, and the session if the server is a legacy one.
pub(crate) struct Connection {
    pub(crate) core: Arc<Core>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) mode: Mode,
    /// Held while the era is detected, or a session is opened.
    pub(crate) negotiating: tokio::sync::Mutex<()>,
    /// The tasks that wait for their changes.
    pub(crate) task_watches: TaskWatches,
    state: Mutex<EraState>,
}

/// The server's era, as far as it is known.
#[derive(Clone)]
pub(crate) enum EraState {
    Unknown,
    Modern,
    Legacy(Arc<Session>),
    /// The server is of the legacy era, and the last session is over.
    Ended,
}

impl Connection {
    pub(crate) fn new(core: Arc<Core>, transport: Arc<dyn Transport>, mode: Mode) -> Self {
        let detects = mode.detects(transport.sessions().is_some());
        let state = Mutex::new(if detects { EraState::Unknown } else { EraState::Modern });
        let (negotiating, task_watches) = (tokio::sync::Mutex::default(), TaskWatches::default());
        Self { core, transport, mode, negotiating, task_watches, state }
    }

    pub(crate) fn era_state(&self) -> EraState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_modern(&self) -> bool {
        matches!(*self.state.lock().unwrap_or_else(PoisonError::into_inner), EraState::Modern)
    }

    /// The era of the server; none until its first answer.
    pub(crate) fn era(&self) -> Option<Era> {
        match self.era_state() {
            EraState::Unknown => None,
            EraState::Modern => Some(Era::Modern),
            EraState::Legacy(_) | EraState::Ended => Some(Era::Legacy),
        }
    }

    /// The session, if there is one.
    pub(crate) fn current_session(&self) -> Option<Arc<Session>> {
        match self.era_state() {
            EraState::Legacy(session) => Some(session),
            _ => None,
        }
    }

    /// Stores that the server is modern, and that it supports `version`, if that is given.
    pub(crate) fn set_modern(&self, version: Option<ProtocolVersion>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = EraState::Modern;
        if let Some(version) = version {
            self.core.change_version(version);
        }
    }

    /// Stores that the server is a legacy one, with this session.
    pub(crate) fn set_session(&self, session: Arc<Session>) {
        self.core.change_version(session.version().clone());
        let mut known = self.core.known();
        known.info = Some(session.server_info().clone());
        known.capabilities = Some(session.capabilities().clone());
        drop(known);
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = EraState::Legacy(session);
    }

    /// Ends the use of a session, unless another one replaced it already.
    pub(crate) fn drop_session(&self, session: &Arc<Session>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(&*state, EraState::Legacy(present) if Arc::ptr_eq(present, session)) {
            *state = EraState::Ended;
        }
        drop(state);
        session.give_up();
    }

    /// Resets the era after a new session was refused, so that the next request detects the era again.
    ///
    /// > re-probing if the cached assumption later fails.
    pub(crate) fn doubt_era(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.mode == Mode::Auto && matches!(*state, EraState::Ended) {
            *state = EraState::Unknown;
        }
    }

    /// Returns `true` if the client may change to another version than its first one.
    pub(crate) fn may_change_version(&self) -> bool {
        !matches!(self.mode, Mode::Pinned(_))
    }

    /// Sends a request to a modern server: version and capabilities are in its `_meta`.
    pub(crate) async fn send_modern(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        let core = &*self.core;
        let id = core.next_id();
        let version = core.known().version.clone();
        let capabilities = if spec.draft { &core.draft_capabilities } else { &core.capabilities };
        let mut meta = Meta::for_request(&version, Some(&core.info), capabilities);
        let deadline = RequestDeadline::new(spec.timeout, core.bounds.progress_stretches);
        let mut sink = NotificationSink::new(core, spec, &deadline);
        if !spec.quiet {
            sink.request_all(&id, &mut meta);
        }
        let body = write(&id, meta).map_err(RequestFault::Unwritable)?;
        let request = OutgoingRequest { headers: spec.headers.clone(), ..spec.request(id, version, body) };
        let mut on_notification = |notification| sink.on_notification(notification);
        // Dropping the exchange cancels the request.
        let reply = deadline.within(self.transport.exchange(request, &mut on_notification)).await;
        reply.map_err(RequestFault::Timeout)?.map_err(RequestFault::Transport)
    }
}
