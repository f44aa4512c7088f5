//! The effects of a tool, counted by idempotency key.

use crate::store::{MemoryStore, StoreClock};
use std::{
    any::{Any, TypeId, type_name},
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

/// A log of the external effects of the tool under test, such as charges, rows and messages. All replicas of a run
/// share one log; a clone is cheap and refers to the same log.
///
/// `Effects` is the fake of a payment provider or a database: the tool calls [`perform`](Self::perform) in its steps,
/// with the idempotency key that it would send to the provider.
#[derive(Clone, Default)]
pub struct Effects(Arc<Inner>);

#[derive(Default)]
struct Inner {
    log: Mutex<Log>,
    shared: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

#[derive(Default)]
struct Log {
    effects: Vec<Effect>,
    /// The request whose handler is being polled.
    polled: Option<Origin>,
    /// The request that was polled last. Effects of tasks that its handler spawned are attributed to that request.
    last: Origin,
    /// True after the end of the run: later effects, from handlers of crashed replicas, are not recorded.
    closed: bool,
}

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// The name given to [`Effects::perform`] or [`Effects::note`].
    pub name: String,
    /// The idempotency key.
    pub key: String,
    /// The leg of the call, from 1; 0 if the leg is not known, as through a real client.
    pub leg: u16,
    /// The number of the request in the run, from 1.
    pub request: u32,
}

/// The request that an effect belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) leg: u16,
    pub(super) request: u32,
}

impl Effects {
    /// Records an effect at once. Returns the number of the key, from 1, among all keys of effects of this name. A
    /// provider that supports idempotency keys creates one object per key, so `format!("db-{number}")` can name it.
    pub fn note(&self, name: impl Into<String>, key: impl Into<String>) -> usize {
        let origin = self.origin();
        self.note_at(name.into(), key.into(), origin)
    }

    /// Records an effect as a remote call does: the returned future is pending once before the effect is recorded and
    /// once after. The bench can crash the replica at both points, also when the effect has happened and its result is
    /// lost. Returns the same number as [`note`](Self::note).
    pub async fn perform(&self, name: impl Into<String>, key: impl Into<String>) -> usize {
        // The first poll is a poll of the handler; a spawned task may continue later.
        let origin = self.origin();
        next_poll().await;
        let number = self.note_at(name.into(), key.into(), origin);
        next_poll().await;
        number
    }

    /// The number of times that the effect happened.
    pub fn runs(&self, name: &str) -> usize {
        self.log().effects.iter().filter(|effect| effect.name == name).count()
    }

    /// The number of distinct keys of the effect: the number of times that a provider with idempotency keys acted.
    pub fn distinct_keys(&self, name: &str) -> usize {
        keys_of(&self.log().effects, name).len()
    }

    /// All effects, in the order in which they happened.
    pub fn all(&self) -> Vec<Effect> {
        self.log().effects.clone()
    }

    /// Returns a value that all replicas of a run share, such as a fake database. The run has one value per type, made
    /// with `Default` on first use. A [`MemoryStore`] of a run has the run's [clock](Self::store_clock).
    pub fn shared<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut shared = self.values();
        let made = shared.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())).clone();
        made.downcast().unwrap_or_else(|_| Arc::default())
    }

    /// Returns the value that [`Bench::provide`](super::Bench::provide) made for this run.
    ///
    /// # Panics
    /// If the bench provides no value of this type.
    pub fn provided<T: Send + Sync + 'static>(&self) -> Arc<T> {
        let made = self.values().get(&TypeId::of::<T>()).cloned();
        made.and_then(|made| made.downcast().ok())
            .unwrap_or_else(|| panic!("the bench provides no `{}`: use `Bench::provide`", type_name::<T>()))
    }

    /// Returns the clock of the run, for a store: leases then end on the bench's clock. Without a bench it is the system's
    /// clock.
    pub fn store_clock(&self) -> StoreClock {
        StoreClock::clone(&self.shared())
    }

    /// Returns the effects of a new run with this clock.
    pub(super) fn of_run(clock: StoreClock) -> Self {
        let effects = Self::default();
        effects.put(clock.clone());
        effects.put(MemoryStore::new().clock(clock));
        effects
    }

    /// Stores the value of its type.
    pub(super) fn put<T: Send + Sync + 'static>(&self, value: T) {
        self.values().insert(TypeId::of::<T>(), Arc::new(value));
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>> {
        self.0.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the request whose handler is being polled; `None` after the poll.
    pub(super) fn polling(&self, origin: Option<Origin>) {
        let mut log = self.log();
        log.last = origin.or(log.polled).unwrap_or(log.last);
        log.polled = origin;
    }

    /// Ends the run: later effects are not recorded.
    pub(super) fn close(&self) {
        self.log().closed = true;
    }

    fn origin(&self) -> Origin {
        let log = self.log();
        log.polled.unwrap_or(log.last)
    }

    fn note_at(&self, name: String, key: String, origin: Origin) -> usize {
        let mut log = self.log();
        let keys = keys_of(&log.effects, &name);
        let number = keys.iter().position(|known| **known == key).unwrap_or(keys.len()) + 1;
        if !log.closed {
            log.effects.push(Effect { name, key, leg: origin.leg, request: origin.request });
        }
        number
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The distinct keys of the effect, in the order of their first use.
fn keys_of<'a>(effects: &'a [Effect], name: &str) -> Vec<&'a String> {
    let mut seen = BTreeSet::new();
    let of_name = effects.iter().filter(|effect| effect.name == name);
    of_name.map(|effect| &effect.key).filter(|key| seen.insert(*key)).collect()
}

/// Completes at the second poll, and wakes the task for that poll.
pub(super) async fn next_poll() {
    let mut polled = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.log().effects).finish()
    }
}
