//! The store of a server, and the settings of the claims in it.

use crate::{
    errors::BuildError,
    metrics::Meters,
    options::{Level, Settings},
};
use antiphon_seal::{CallSecret, Principal};
use antiphon_store::{CallStore, Owner, StoreReach, TimedStore};
use antiphon_wire::escaped;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

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
    pub(crate) lease: Duration,
    pub(crate) wait_timeout: Duration,
    pub(crate) first_request_ttl: Duration,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            wait_timeout: Duration::from_secs(10),
            first_request_ttl: Duration::from_secs(60),
        }
    }
}

impl ClaimOptions {
    /// Sets the time until a run that does not renew its claim counts as dead. A run renews it after a third of this time.
    /// At least twice the `step_grace` of the [limits](crate::Limits::step_grace). Default: 30 seconds.
    #[must_use]
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time;
        self
    }

    /// Sets the time for which a second delivery of a request waits for the reply to the first one. Default: 10 seconds.
    #[must_use]
    pub fn wait_timeout(mut self, time: Duration) -> Self {
        self.wait_timeout = time;
        self
    }

    /// Sets the time for which the first request of a call counts as delivered again, for clients that do not accept
    /// state only. Default: 60 seconds.
    #[must_use]
    pub fn first_request_ttl(mut self, time: Duration) -> Self {
        self.first_request_ttl = time;
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
                        tracing::warn!(error = %escaped(&error), "expired calls were not removed from the store");
                        return;
                    }
                }
            }
        });
    }
}

/// The store of a server and the settings of its claims, before the server is built.
#[derive(Debug, Default)]
pub(crate) struct AtMostOnce {
    pub(crate) store: Option<Arc<dyn CallStore>>,
    pub(crate) options: ClaimOptions,
    pub(crate) level: Level,
    pub(crate) spills: bool,
    pub(crate) single_instance: bool,
}

impl AtMostOnce {
    /// Times the operations of the store.
    pub(crate) fn timed(mut self, meters: &Arc<Meters>) -> Self {
        let meters = Arc::clone(meters);
        let observer = move |operation, succeeded, time| meters.stored(operation, succeeded, time);
        self.store = self.store.map(|store| Arc::new(TimedStore::new(store, observer)) as Arc<dyn CallStore>);
        self
    }

    /// Returns the claims of a server whose offers have at most this level.
    pub(crate) fn claims(
        self,
        level: Level,
        has_shared_keys: bool,
        step_grace: Duration,
    ) -> Result<Option<Claims>, BuildError> {
        let Some(store) = self.store else {
            return match level {
                Level::None => Ok(None),
                Level::SingleUse | Level::WriteAhead => Err(BuildError(
                    "`single_use` and `write_ahead` need a store of calls: set one with `.store(..)`"
                        .to_owned(),
                )),
            };
        };
        // Each instance would grant its own claim of the same leg.
        if (level != Level::None || self.spills)
            && store.reach() == StoreReach::Process
            && has_shared_keys
            && !self.single_instance
        {
            return Err(BuildError(
                "other processes with the same keys do not see a store in memory, and could run the same leg or miss its record: use a \
                 store that all instances share, or say `.single_instance(true)` if there is one only"
                    .to_owned(),
            ));
        }
        // A step of a cancelled request goes on alone, without a renewal of the lease.
        if level != Level::None && self.options.lease < step_grace.saturating_mul(2) {
            return Err(BuildError(format!(
                "a lease of {:?} is too short for a `step_grace` of {step_grace:?}: a lease takes at least twice that time",
                self.options.lease
            )));
        }
        Ok(Some(Claims::new(store, self.options, self.level, self.spills)))
    }
}

/// Returns the owner to whom a store charges the row.
pub(crate) fn owner(principal: Option<&Principal>) -> Owner {
    let secret = CallSecret::from_bytes(*b"owner of a row..");
    Owner::from_bytes(principal.map_or([0; 16], |principal| secret.principal_digest(principal).to_bytes()))
}
