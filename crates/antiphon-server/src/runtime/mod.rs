//! The parts of a server that a call needs: keys, identities, limits, the clock, and the counts of handlers.
//!
//! A call has no access to the lists that contain its tool: they change while it runs.

pub(crate) mod claims;
pub(crate) mod replay;

use crate::{
    errors::{
        refusal::Refusal,
        refusal_log::{Loudness, RefusalLog, log_refusal},
    },
    feed::Feed,
    identity::{
        Caller, Identity, KeptValues,
        account::{Accounts, require_scopes},
    },
    metrics::Meters,
    options::{
        Clock,
        limits::{Limits, OnExpired},
    },
    quota::RequestBudget,
    reply::ServerInfo,
    subscribe::SubscriptionRegistry,
    task_registry::Tasks,
};
use antiphon_seal::{Call, EntropyError, KeyError, KeyRing, Principal, Sealer, utc};
use antiphon_wire::{Implementation, escaped};
use arc_swap::{ArcSwap, Guard};
use claims::Claims;
use replay::Replay;
use serde_json::value::RawValue;
use std::{
    any::Any,
    error::Error as StdError,
    fmt, io,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::sync::watch;

/// The maximum number of characters of a cause in the log.
pub(crate) const CAUSE: usize = 2000;

/// The maximum size of a record in the store, in bytes: sealed and as text it fits every store.
const SPILLED_STATE: usize = 8 << 20;

/// The maximum size of the record of a task, in bytes: with the arguments and answers of a call, the sealed snapshot fits every store.
pub(crate) const TASK_STATE: usize = 4 << 20;

pub(crate) struct Runtime {
    /// The server that this is a part of.
    pub(crate) owner: Weak<dyn Any + Send + Sync>,
    pub(crate) name: String,
    /// The name and version that stand in every result.
    pub(crate) server_info: ServerInfo,
    pub(crate) sealing: Sealing,
    /// The store of calls, if the server has one.
    pub(crate) claims: Option<Claims>,
    /// The tasks, if calls may become tasks.
    pub(crate) tasks: Option<Tasks>,
    pub(crate) identity: Identity,
    pub(crate) accounts: Accounts,
    /// The bytes of the requests that are read, or wait for their reply.
    pub(crate) request_budget: RequestBudget,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    pub(crate) answer_timeout: Duration,
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) on_expired: OnExpired,
    /// The open subscriptions.
    pub(crate) subscriptions: Arc<SubscriptionRegistry>,
    /// Exchanges changes with other instances, if there is a feed for them.
    pub(crate) feed: Option<Arc<Feed>>,
    /// Decides whether a leg ends at its next checkpoint.
    pub(crate) shed_when: Option<Box<ShedWhen>>,
    /// Decides which clients can take a result that holds state only.
    pub(crate) state_only_clients: StateOnlyClients,
    pub(crate) replay: Replay,
    /// The values of layers that tasks keep.
    pub(crate) kept: KeptValues,
    /// True if the texts of hidden errors are sent to the client, for development.
    pub(crate) show_errors: bool,
    /// The number of steps of cancelled requests that still run.
    pub(crate) detached: watch::Sender<usize>,
    /// The number of handlers that run outside of sessions.
    pub(crate) running: AtomicUsize,
    /// The number of those among them that run for anonymous callers.
    pub(crate) running_anonymous: AtomicUsize,
    pub(crate) metrics: Arc<Meters>,
    /// The refusals that were logged.
    pub(crate) refusals: RefusalLog,
}

/// Decides whether work should go to another instance.
pub(crate) type ShedWhen = dyn Fn(&Load) -> bool + Send + Sync;

/// The load of a server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Load {
    /// The number of handlers that run now.
    pub handlers: usize,
    /// The maximum number of handlers: [`Limits::handlers`].
    pub limit: usize,
}

impl Runtime {
    /// Returns whether legs end at their next checkpoint.
    pub(crate) fn sheds(&self) -> bool {
        let load = || Load { handlers: self.running.load(Ordering::Relaxed), limit: self.limits.handlers };
        self.subscriptions.is_draining() || self.shed_when.as_ref().is_some_and(|sheds| sheds(&load()))
    }

    /// Begins a call at this time.
    pub(crate) fn begin_call(&self, now: SystemTime) -> Result<Call, EntropyError> {
        // A deadline that overflows is none.
        Call::begin(now, self.call_timeout.and_then(|time| now.checked_add(time)))
    }

    /// Returns true if records that are too large for a token move to the store.
    pub(crate) fn spills(&self) -> bool {
        self.claims.as_ref().is_some_and(|claims| claims.spills)
    }

    /// Returns the maximum size of a record, in bytes. That of a task does not leave the server.
    pub(crate) fn most_state(&self, in_task: bool, after_effect: bool) -> usize {
        if self.spills() {
            return SPILLED_STATE;
        }
        let most = if after_effect { self.limits.state_after_effect() } else { self.limits.engine.state };
        if in_task { most.max(TASK_STATE) } else { most }
    }

    /// Returns the limits that the engine enforces.
    pub(crate) fn engine_limits(&self) -> antiphon_engine::Limits {
        let limits = self.limits.engine;
        if self.spills() { antiphon_engine::Limits { state: SPILLED_STATE, ..limits } } else { limits }
    }

    /// Returns the refusal for a cause that was logged: the client receives the cause only during development.
    pub(crate) fn hidden(&self, cause: &str) -> Refusal {
        if self.show_errors { Refusal::UserFacing(cause.to_owned()) } else { Refusal::Internal }
    }

    /// Returns the principal of a request whose method binds no state.
    ///
    /// # Errors
    /// If the binder fails; the cause is in the log.
    pub(crate) fn identified(&self, method: &str, caller: &Caller<'_>) -> Result<Option<Principal>, Refusal> {
        self.identity.of(caller).map_err(|cause| {
            self.log_no_identity(&cause, method);
            Refusal::Internal
        })
    }

    /// Logs a request whose binder failed.
    pub(crate) fn log_no_identity(&self, cause: &(impl fmt::Display + ?Sized), method: &str) {
        let cause = escaped(cause);
        let loudness = self.refused(&format!("identity {cause}"));
        log_refusal!(loudness, { %cause, method = ?escaped(method) }, "no identity: refused");
    }

    /// Counts a refusal with this cause, and returns the level at which it is logged.
    pub(crate) fn refused(&self, cause: &str) -> Loudness {
        self.refusals.count(cause, self.clock.now())
    }

    /// Refuses a caller whose token lacks one of these scopes.
    pub(crate) fn require_scopes(&self, needed: &[String], caller: &Caller<'_>) -> Result<(), Refusal> {
        require_scopes(needed, caller, |cause| self.refused(cause))
    }

    /// Logs, once, the probable cause of a state under an unknown key.
    pub(crate) fn log_unknown_key(&self) {
        if self.sealing.is_first_unknown_key() {
            tracing::error!(
                server = %escaped(&self.name),
                "a requestState was sealed under a key this process does not have: a shared key ring is probably \
                 missing (`ServerBuilder::keys`, the same on every instance), or the server was restarted"
            );
        }
    }
}

/// The maximum time by which a first moment of the sealing key may be ahead, in seconds: clocks differ.
const AHEAD: u64 = 60;

/// The sealer that is in use, and the settings of the next one.
pub(crate) struct Sealing {
    sealer: ArcSwap<Sealer>,
    audience: String,
    max_token_len: usize,
    /// True if a codec seals: then there is no ring.
    has_codec: bool,
    /// True after an error about a state under an unknown key.
    unknown_key_logged: AtomicBool,
}

impl Sealing {
    pub(crate) fn new(sealer: Sealer, audience: String, max_token_len: usize, has_codec: bool) -> Self {
        Self {
            sealer: ArcSwap::from_pointee(sealer.with_max_token_len(max_token_len)),
            audience,
            max_token_len,
            has_codec,
            unknown_key_logged: AtomicBool::new(false),
        }
    }

    /// Returns the sealer, for one operation.
    pub(crate) fn sealer(&self) -> Guard<Arc<Sealer>> {
        self.sealer.load()
    }

    /// Replaces the ring. `now` is in Unix seconds.
    pub(crate) fn replace(&self, ring: &KeyRing, now: u64) -> Result<(), KeysError> {
        if self.has_codec {
            return Err(KeysError(Fault::Codec));
        }
        if self.audience.is_empty() {
            return Err(KeysError(Fault::NoAudience));
        }
        check_time(ring, now)?;
        let sealer = Sealer::new(ring, &self.audience).with_max_token_len(self.max_token_len);
        self.sealer.store(Arc::new(sealer));
        self.unknown_key_logged.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Returns `true` the first time under this ring.
    pub(crate) fn is_first_unknown_key(&self) -> bool {
        !self.unknown_key_logged.swap(true, Ordering::Relaxed)
    }
}

/// Refuses a ring whose own tokens do not open yet. `now` is in Unix seconds.
pub(crate) fn check_time(ring: &KeyRing, now: u64) -> Result<(), KeysError> {
    let from = ring.min_issued_at();
    if from > now.saturating_add(AHEAD) { Err(KeysError(Fault::Future(from))) } else { Ok(()) }
}

/// An error from replacing the keys of a server. The server continues with the keys that it had.
#[derive(Debug)]
pub struct KeysError(Fault);

#[derive(Debug)]
enum Fault {
    Read(io::Error),
    Key(KeyError),
    Codec,
    NoAudience,
    Future(u64),
}

impl From<io::Error> for KeysError {
    fn from(fault: io::Error) -> Self {
        Self(Fault::Read(fault))
    }
}

impl From<KeyError> for KeysError {
    fn from(error: KeyError) -> Self {
        Self(Fault::Key(error))
    }
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Fault::Read(_) => f.write_str("the key file cannot be read"),
            Fault::Key(_) => f.write_str("the keys are not valid"),
            Fault::Codec => f.write_str("this server seals with a codec, which has keys of its own"),
            Fault::NoAudience => {
                f.write_str("a key ring needs a named server, or an audience: use `.audience(..)`")
            }
            Fault::Future(from) => write!(
                f,
                "the sealing key opens tokens from {} on only, which is in the future",
                utc::format(*from)
            ),
        }
    }
}

impl StdError for KeysError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0 {
            Fault::Read(fault) => Some(fault),
            Fault::Key(error) => Some(error),
            Fault::Codec | Fault::NoAudience | Fault::Future(_) => None,
        }
    }
}

/// The clients that show such a result as a failure, and do not come back with its state. The name is that of
/// `clientInfo`.
///
/// | name | seen | source |
/// |---|---|---|
/// | `Anthropic/ClaudeAI` (claude.ai) | September 2026 | github.com/anthropics/claude-ai-mcp, issue 1027 |
const CANNOT: &[&str] = &["Anthropic/ClaudeAI"];

/// Returns whether a client accepts a result that holds state only, by a built-in table of clients that do not. At
/// present the table contains `Anthropic/ClaudeAI` (claude.ai; github.com/anthropics/claude-ai-mcp, issue 1027).
///
/// > Servers **MAY** return an `InputRequiredResult` that contains only `requestState`
pub fn accepts_state_only(client: Option<&Implementation>) -> bool {
    client.is_none_or(|client| !CANNOT.contains(&client.name.as_str()))
}

type Decides = dyn Fn(Option<&Implementation>) -> bool + Send + Sync;

/// The rule that decides which clients accept such a result.
pub(crate) struct StateOnlyClients(Option<Box<Decides>>);

impl StateOnlyClients {
    pub(crate) const BUILT_IN: Self = Self(None);

    pub(crate) fn decided_by(
        decides: impl Fn(Option<&Implementation>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Box::new(decides)))
    }

    /// Returns whether this client does. The text is parsed only here.
    pub(crate) fn include(&self, client_info: Option<&RawValue>) -> bool {
        let client = client_info.and_then(|text| serde_json::from_str(text.get()).ok());
        match &self.0 {
            Some(decides) => decides(client.as_ref()),
            None => accepts_state_only(client.as_ref()),
        }
    }
}

impl fmt::Debug for StateOnlyClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateOnlyClients").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_ai_cannot_others_can() {
        for (name, can) in [("Anthropic/ClaudeAI", false), ("Anthropic", true), ("inspector", true)] {
            assert_eq!(accepts_state_only(Some(&Implementation::new(name, "1"))), can, "{name}");
        }
        assert!(accepts_state_only(None));
    }
}
