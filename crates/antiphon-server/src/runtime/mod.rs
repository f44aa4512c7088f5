//! The parts of a server that a call needs: keys, identities, limits, the clock, and the counts of handlers.
//!
//! A call has no access to the lists that contain its tool: they change while it runs.

pub(crate) mod claims;
pub(crate) mod replay;
pub(crate) mod sealing;
pub(crate) mod state_only_clients;

use crate::{
    errors::{
        refusal::Refusal,
        refusal_log::{Loudness, RefusalLog, log_refusal},
    },
    identity::{
        account::Accounts,
        caller::{Caller, Identity},
        scopes::require_scopes,
    },
    options::{
        clock::Clock,
        limits::{Limits, OnExpired},
    },
    quota::request_budget::RequestBudget,
    reply::ServerInfo,
    runtime::{claims::Claims, replay::Replay, sealing::Sealing, state_only_clients::StateOnlyClients},
    subscribe::registry::SubscriptionRegistry,
    task_registry::Tasks,
};
use antiphon_seal::{Call, EntropyError, Principal};
use antiphon_wire::escaped;
use std::{
    any::Any,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
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
    /// Decides whether a leg ends at its next checkpoint.
    pub(crate) shed_when: Option<Box<ShedWhen>>,
    /// Decides which clients can take a result that holds state only.
    pub(crate) state_only_clients: StateOnlyClients,
    pub(crate) replay: Replay,
    /// True if the texts of hidden errors are sent to the client, for development.
    pub(crate) show_errors: bool,
    /// The number of steps of cancelled requests that still run.
    pub(crate) detached: watch::Sender<usize>,
    /// The number of handlers that run outside of sessions.
    pub(crate) running: AtomicUsize,
    /// The number of those among them that run for anonymous callers.
    pub(crate) running_anonymous: AtomicUsize,
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
