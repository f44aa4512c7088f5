//! At most once: a leg is claimed in a store before its handler runs, and its reply is committed before it leaves.
//!
//! ```text
//!  admit ─▶ claim ─┬─ fresh ──▶ run ─▶ encode ─▶ seal ─▶ commit ─▶ reply
//!                  │             │ renew, until the fence is lost: no reply, no commit
//!                  │             └ no step began: release, the same request may run again
//!                  ├─ done ─────▶ open ─▶ the client's capabilities ─▶ the same reply
//!                  ├─ running ──▶ wait for that run, for a bounded time ─▶ `in_flight`
//!                  ├─ conflict ─▶ `used`
//!                  └─ unknown ──▶ taken over, or `outcome_unknown`
//! ```
//!
//! | level | a leg | a step |
//! |---|---|---|
//! | none | runs for each delivery of its request | at least once |
//! | [`single_use`](crate::ServerBuilder::single_use) | runs once for each state | at most once |
//! | [`write_ahead`](crate::ServerBuilder::write_ahead) | continues after a crash | its start and its end are stored |
//!
//! The first request of a call has no state to claim. It ends before its first new step, with state only, if the client
//! accepts such a result: the [`anchor`](claim::anchors). For the other clients, a caller with a principal claims a
//! digest of the request instead.

pub(crate) mod claim;
mod claimed_leg;
mod fingerprint;
mod outcome;
mod settings;
pub(crate) mod spill;
mod step_record;

pub(crate) use claim::{ClaimResult, claim};
pub(crate) use claimed_leg::{ClaimedLeg, OpenStep};
pub(crate) use outcome::StoredReply;
pub(crate) use settings::AtMostOnce;
pub(crate) use step_record::StepBegin;

use crate::settings::Settings;
use antiphon_store::CallStore;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The protection of a call against a second run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    #[default]
    None,
    SingleUse,
    WriteAhead,
}

/// The store of a server, and the settings of its claims.
#[derive(Debug)]
pub(crate) struct Claims {
    pub(crate) store: Arc<dyn CallStore>,
    pub(crate) options: ClaimOptions,
    /// The level of tools that set none.
    pub(crate) level: Level,
    /// True if large records move to the store.
    pub(crate) spills: bool,
    /// The second at which expired rows were removed last.
    swept: AtomicU64,
}

/// The times of claims in the [store](crate::ServerBuilder::store).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimOptions {
    /// The time until a run that does not renew its claim counts as dead. A run renews it after a third of this time.
    /// Default: 30 seconds.
    pub lease: Duration,
    /// The time for which a second delivery of a request waits for the reply to the first one. Default: 10 seconds.
    pub wait: Duration,
    /// The time for which the first request of a call counts as delivered again, for clients that do not accept
    /// state only. Default: 60 seconds.
    pub first_request: Duration,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            wait: Duration::from_secs(10),
            first_request: Duration::from_secs(60),
        }
    }
}

impl ClaimOptions {
    /// Sets [`lease`](Self::lease).
    #[must_use]
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time;
        self
    }

    /// Sets [`wait`](Self::wait).
    #[must_use]
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = time;
        self
    }

    /// Sets [`first_request`](Self::first_request).
    #[must_use]
    pub fn first_request(mut self, time: Duration) -> Self {
        self.first_request = time;
        self
    }
}

/// The seconds between two removals of expired rows.
const SWEEP_INTERVAL: u64 = 60;
/// The number of rows that one removal takes at most.
const SWEEP_LIMIT: usize = 1000;

impl Claims {
    pub(crate) fn new(store: Arc<dyn CallStore>, options: ClaimOptions, level: Level, spills: bool) -> Self {
        Self { store, options, level, spills, swept: AtomicU64::new(0) }
    }

    /// Returns the level of an item with these settings.
    pub(crate) fn level_of(&self, settings: &Settings) -> Level {
        settings.at_most_once.unwrap_or(self.level)
    }

    /// Removes expired rows in the background, if that was not done lately. `now` is in Unix seconds.
    pub(crate) fn sweep(&self, now: u64) {
        let last = self.swept.load(Ordering::Relaxed);
        let is_due = now.saturating_sub(last) >= SWEEP_INTERVAL;
        if !is_due || self.swept.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let store = Arc::clone(&self.store);
        runtime.spawn(async move {
            loop {
                match store.sweep(SWEEP_LIMIT).await {
                    Ok(swept) if swept.is_partial(SWEEP_LIMIT) => tokio::task::yield_now().await,
                    Ok(_) => return,
                    Err(error) => {
                        tracing::warn!(%error, "expired calls were not removed from the store");
                        return;
                    }
                }
            }
        });
    }
}
