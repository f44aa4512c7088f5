//! What a tool did to the world, counted by idempotency key.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

/// What the tool under test did outside of itself: charges, rows, messages. One per run, shared by all its replicas;
/// cheap to clone.
///
/// It stands where a payment provider or a database would: the tool calls [`perform`](Self::perform) from its steps,
/// with the idempotency key it would give the provider.
#[derive(Clone, Default)]
pub struct Effects(Arc<Inner>);

#[derive(Default)]
struct Inner {
    log: Mutex<Log>,
    shared: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

#[derive(Default)]
struct Log {
    happened: Vec<Effect>,
    /// The request whose handler is polled now.
    polled: Option<Place>,
    /// The request that was polled last: tasks that its handler left behind belong to it.
    last: Place,
    /// The run is over: what handlers of replicas that are gone still do is not told.
    closed: bool,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// What it was.
    pub name: String,
    /// Under which idempotency key.
    pub key: String,
    /// In which leg of the call, from 1; 0 where no leg can be told, as through a real client.
    pub leg: u16,
    /// In which of the requests that were sent, from 1.
    pub request: u32,
}

/// The request that something happens in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) leg: u16,
    pub(super) request: u32,
}

impl Effects {
    /// This happened, under this key. Gives the number of the key, from 1, among all keys that this has happened under:
    /// a provider that knows idempotency keys makes one thing for each, so that `format!("db-{number}")` names it.
    pub fn note(&self, name: impl Into<String>, key: impl Into<String>) -> usize {
        let place = self.place();
        self.note_at(name.into(), key.into(), place)
    }

    /// As [`note`](Self::note), the way a remote call is: a poll passes before it happens, and one before the caller
    /// hears of it. At both the bench can crash the replica, so that the thing has happened and nobody knows.
    pub async fn perform(&self, name: impl Into<String>, key: impl Into<String>) -> usize {
        // The handler's poll that begins it tells whose it is; a task may go on with it later.
        let place = self.place();
        next_poll().await;
        let number = self.note_at(name.into(), key.into(), place);
        next_poll().await;
        number
    }

    /// How often this happened.
    pub fn runs(&self, name: &str) -> usize {
        self.log().happened.iter().filter(|effect| effect.name == name).count()
    }

    /// Under how many keys this happened: how often a provider that knows idempotency keys did it.
    pub fn distinct_keys(&self, name: &str) -> usize {
        keys_of(&self.log().happened, name).len()
    }

    /// All that happened, in order.
    pub fn all(&self) -> Vec<Effect> {
        self.log().happened.clone()
    }

    /// What all replicas of a run have in common, such as a fake database: made by its `Default` when it is first asked
    /// for, one of each type.
    pub fn shared<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut shared = self.0.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let made = shared.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())).clone();
        made.downcast().unwrap_or_else(|_| Arc::default())
    }

    /// From here on, a handler of this request is polled; or none, with `None`.
    pub(super) fn polling(&self, place: Option<Place>) {
        let mut log = self.log();
        log.last = place.or(log.polled).unwrap_or(log.last);
        log.polled = place;
    }

    /// The run is over.
    pub(super) fn close(&self) {
        self.log().closed = true;
    }

    fn place(&self) -> Place {
        let log = self.log();
        log.polled.unwrap_or(log.last)
    }

    fn note_at(&self, name: String, key: String, place: Place) -> usize {
        let mut log = self.log();
        let keys = keys_of(&log.happened, &name);
        let number = keys.iter().position(|known| **known == key).unwrap_or(keys.len()) + 1;
        if !log.closed {
            log.happened.push(Effect { name, key, leg: place.leg, request: place.request });
        }
        number
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In the order they were first used.
fn keys_of<'a>(happened: &'a [Effect], name: &str) -> Vec<&'a String> {
    let mut seen = BTreeSet::new();
    let of_name = happened.iter().filter(|effect| effect.name == name);
    of_name.map(|effect| &effect.key).filter(|key| seen.insert(*key)).collect()
}

/// Ready at the poll after this one, which it asks for.
pub(super) async fn next_poll() {
    let mut asked = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.log().happened).finish()
    }
}
