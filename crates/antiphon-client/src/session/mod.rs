//! The connection to a server of either era, and the sessions of legacy servers.
//!
//! A [`Connection`] sends requests (requests). Its first request detects the era (detect) from the
//! replies. A modern server receives every request with version and capabilities. A legacy server has
//! a session (legacy), with a handshake, a task, and open asks of the server. The calls that became tasks of a modern server
//! wait for its reports over one subscription (task_stream, task_watch).

pub(crate) mod detect;
pub(crate) mod legacy;
pub(crate) mod requests;
pub(crate) mod server_asks;
pub(crate) mod shared;
pub(crate) mod task_stream;
pub(crate) mod task_watch;

use crate::{
    layer::Layers,
    request::{
        BodyWriter, Core, NotificationSink, RequestSpec,
        deadline::RequestDeadline,
        fault::{RequestFault, common_version, supported},
        note_leg,
    },
    trace::otel,
    transport::{
        OutgoingRequest, ServerReply, Transport, TransportError,
        TransportErrorKind::{Closed, HttpStatus, Malformed},
    },
};
use antiphon_wire::{
    DiscoverResult, ErrorCode, ErrorObject, Meta, PageParams, ProtocolVersion, RequestId, lock::Lock, method,
    write_request,
};
use legacy::Session;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use task_watch::TaskWatches;

/// A client's connection to its server: the transport, and the session if the server is a legacy one.
pub(crate) struct Connection {
    pub(crate) core: Arc<Core>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) mode: Mode,
    /// The layers around every request, if there are any.
    pub(crate) layers: Option<Layers>,
    /// Held while the era is detected, or a session is opened.
    pub(crate) negotiating: tokio::sync::Mutex<()>,
    /// The tasks that wait for their changes.
    pub(crate) task_watches: TaskWatches,
    state: Lock<EraState>,
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
    pub(crate) fn new(
        core: Arc<Core>,
        transport: Arc<dyn Transport>,
        mode: Mode,
        layers: Option<Layers>,
    ) -> Self {
        let detects = mode.detects(transport.sessions().is_some());
        let state = Lock::new(if detects { EraState::Unknown } else { EraState::Modern });
        let (negotiating, task_watches) = (tokio::sync::Mutex::default(), TaskWatches::default());
        Self { core, transport, mode, layers, negotiating, task_watches, state }
    }

    pub(crate) fn era_state(&self) -> EraState {
        self.state.lock().clone()
    }

    pub(crate) fn is_modern(&self) -> bool {
        matches!(*self.state.lock(), EraState::Modern)
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
        *self.state.lock() = EraState::Modern;
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
        *self.state.lock() = EraState::Legacy(session);
    }

    /// Ends the use of a session, unless another one replaced it already.
    pub(crate) fn drop_session(&self, session: &Arc<Session>) {
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
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
        otel::inject(&mut meta);
        note_leg(spec, &id);
        if let Some(added) = spec.added {
            added.add_to(&mut meta);
        }
        let body = write(&id, meta).map_err(RequestFault::Unwritable)?;
        let headers = spec.added_headers().chain(spec.headers.iter().cloned()).collect();
        let request = OutgoingRequest { headers, ..spec.request(id, version, body) };
        let mut on_notification = |notification| sink.on_notification(notification);
        // Dropping the exchange cancels the request.
        let reply = deadline.within(self.transport.exchange(request, &mut on_notification)).await;
        reply.map_err(RequestFault::Timeout)?.map_err(RequestFault::Transport)
    }
}

/// The revisions of the protocol that a client uses with its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The newest revision that the server supports. Over HTTP the first request is a modern one, and its reply decides; on
    /// other transports `server/discover` is sent first.
    #[default]
    Auto,
    /// A session of the newest version before 2026-07-28 that the server supports.
    Legacy,
    /// Exactly this version, modern or legacy.
    Pinned(ProtocolVersion),
}

/// The two ways in which servers convey version and capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// The version is in each request: 2026-07-28.
    Modern,
    /// The version is agreed on once, in the `initialize` handshake of a session: up to 2025-11-25.
    Legacy,
}

impl Mode {
    /// Returns `true` if the first request detects the era of the server. `has_sessions`: the transport has sessions.
    pub(crate) fn detects(&self, has_sessions: bool) -> bool {
        match self {
            Self::Auto => has_sessions,
            Self::Legacy => true,
            Self::Pinned(version) => version.is_legacy(),
        }
    }

    /// The versions that may be used. `has_sessions`: the transport has sessions.
    pub(crate) fn versions(&self, has_sessions: bool) -> Vec<ProtocolVersion> {
        let (modern, legacy) = match self {
            Self::Auto if has_sessions => (ProtocolVersion::MODERN, ProtocolVersion::LEGACY),
            Self::Auto => (ProtocolVersion::MODERN, &[][..]),
            Self::Legacy => (&[][..], ProtocolVersion::LEGACY),
            Self::Pinned(version) => (std::slice::from_ref(version), &[][..]),
        };
        [modern, legacy].concat()
    }

    /// The version that `initialize` offers, and `true` if the server must choose that one. None if no session may be
    /// opened.
    pub(crate) fn offers(&self) -> Option<(ProtocolVersion, bool)> {
        match self {
            Self::Auto | Self::Legacy => Some((ProtocolVersion::LEGACY[0].clone(), false)),
            Self::Pinned(version) if version.is_legacy() => Some((version.clone(), true)),
            Self::Pinned(_) => None,
        }
    }
}

/// The era that a reply shows.
pub(crate) enum Verdict {
    Modern,
    /// The server is modern and supports this version.
    ModernOf(ProtocolVersion),
    /// The server may be a legacy one: the client tries to open a session.
    Legacy,
    /// The server supports none of the versions of this client.
    Neither(Vec<String>),
    /// The reply shows no era: the request failed for another reason.
    Nothing,
}

/// Returns the era that a reply to `server/discover` shows.
pub(crate) fn verdict(reply: &Result<ServerReply, RequestFault>) -> Verdict {
    match reply {
        Ok(Ok(result)) => match serde_json::from_str::<DiscoverResult>(result.get()) {
            Ok(discovered) => {
                choose(discovered.supported_versions.iter().map(|one| one.as_str().to_owned()).collect())
            }
            // Some servers answer every request with some result.
            Err(_) => Verdict::Legacy,
        },
        Ok(Err(error)) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => choose(supported(error)),
        Ok(Err(error)) if is_modern_error(error) => Verdict::Modern,
        // > The fallback **MUST NOT** be keyed to one specific error code
        Ok(Err(_)) => Verdict::Legacy,
        // Some servers end if the first message is not `initialize`. The next process receives `initialize` first.
        Err(RequestFault::Transport(error)) if error.kind() == Closed && !error.is_final() => Verdict::Legacy,
        Err(RequestFault::Transport(error)) if is_legacy_only(error) => Verdict::Legacy,
        Err(_) => Verdict::Nothing,
    }
}

/// Returns the best of the versions that a server names.
fn choose(theirs: Vec<String>) -> Verdict {
    if let Some(version) = common_version(theirs.iter().map(String::as_str)) {
        return Verdict::ModernOf(version);
    }
    let speaks_legacy = theirs.iter().any(|version| ProtocolVersion::legacy(version).is_some());
    if speaks_legacy { Verdict::Legacy } else { Verdict::Neither(theirs) }
}

/// Returns `true` for the errors that only modern servers send.
pub(crate) fn is_modern_error(error: &ErrorObject) -> bool {
    matches!(
        error.code,
        ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
    )
}

/// Returns `true` for the statuses of a server that does not support modern requests. Other statuses are about authorization,
/// rate or failure, and are returned to the caller.
pub(crate) fn is_legacy_only(error: &TransportError) -> bool {
    match error.kind() {
        HttpStatus(status) => matches!(status, 400 | 402 | 404..=406 | 409..=418 | 422 | 424 | 426 | 428),
        _ => false,
    }
}

/// Returns `true` if the server refused `initialize` as unknown.
pub(crate) fn is_session_refused(fault: &RequestFault) -> bool {
    match fault {
        RequestFault::Transport(error) => is_legacy_only(error) || error.kind() == Malformed,
        RequestFault::Server(error) => !is_modern_error(error),
        _ => false,
    }
}

/// Returns the fault that explains most, of the faults of two attempts: `earlier`, unless the fallback got a clear answer.
pub(crate) fn more_telling(earlier: RequestFault, fallback: RequestFault) -> RequestFault {
    if tells_more(&fallback, &earlier) { fallback } else { earlier }
}

/// Returns `true` if the fault of a fallback explains more than that of the attempt before.
pub(crate) fn tells_more(fallback: &RequestFault, earlier: &RequestFault) -> bool {
    let rank = rank(fallback);
    rank >= CLEAR && rank > self::rank(earlier)
}

/// The lowest rank of an answer that is about more than the URL or the era.
const CLEAR: u8 = 2;

fn rank(fault: &RequestFault) -> u8 {
    match fault {
        RequestFault::Transport(error) => match error.kind() {
            // The answers of a URL without such an endpoint.
            HttpStatus(404..=406 | 415 | 501) => 0,
            HttpStatus(401 | 403 | 407 | 429 | 500..) => 4,
            HttpStatus(400) => 1,
            HttpStatus(_) => CLEAR,
            _ => 1,
        },
        RequestFault::Server(error) if error.code == ErrorCode::METHOD_NOT_FOUND => CLEAR,
        _ => 3,
    }
}

/// Returns `true` if a modern server refused `initialize` and names a version that is supported here.
pub(crate) fn is_other_version(fault: &RequestFault) -> bool {
    match fault {
        RequestFault::Version { theirs, .. } => common_version(theirs.iter().map(String::as_str)).is_some(),
        _ => false,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithResultType<'a> {
    #[serde(borrow, default)]
    result_type: Option<&'a RawValue>,
}

/// Returns `true` if the result has a `resultType`. Legacy results have none.
pub(crate) fn has_result_type(result: &RawValue) -> bool {
    serde_json::from_str::<WithResultType<'_>>(result.get()).is_ok_and(|typed| typed.result_type.is_some())
}

/// Writes the message of a `server/discover`.
pub(crate) fn discover(id: &RequestId, meta: Meta) -> Result<Vec<u8>, serde_json::Error> {
    write_request(id, method::DISCOVER, &PageParams::new(meta, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::fault::RequestFault;

    #[test]
    fn a_missing_common_version_is_told_with_the_versions_of_the_mode() {
        let legacy = "2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05";
        let pinned = |version: &'static str| Mode::Pinned(ProtocolVersion::new(version));
        let hint = "; with the mode `auto`, this client speaks 2026-07-28";
        for (mode, has_sessions, theirs, expected) in [
            (Mode::Legacy, true, "2026-07-28", format!("{legacy}, the server 2026-07-28{hint}")),
            (pinned("2025-06-18"), true, "2026-07-28", format!("2025-06-18, the server 2026-07-28{hint}")),
            (pinned("2024-11-05"), true, "2025-03-26", "2024-11-05, the server 2025-03-26".to_owned()),
            (pinned("2026-07-28"), true, "2025-11-25", "2026-07-28, the server 2025-11-25".to_owned()),
            (Mode::Auto, true, "2024-10-07", format!("2026-07-28, {legacy}, the server 2024-10-07")),
            (Mode::Auto, false, "2025-11-25", "2026-07-28, the server 2025-11-25".to_owned()),
        ] {
            let fault = RequestFault::no_version(vec![theirs.to_owned()]);
            let text = fault.with_own_versions(&mode.versions(has_sessions)).to_string();
            assert_eq!(
                text,
                format!("no common protocol version: this client speaks {expected}"),
                "{mode:?}"
            );
        }
    }
}
