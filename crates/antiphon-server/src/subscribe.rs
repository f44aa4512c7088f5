//! The subscriptions of all connections of the process: the notifications that clients have requested.
//!
//! Changes are not queued: a subscription has one flag for each list or resource, which a change sets. So the memory
//! for a slow client is bounded by its subscriptions.

use crate::{
    errors::refusal::Refusal,
    feed::{ListKind, resource_digest},
    identity::account::{Account, CallerInfo},
    options::limits::Limits,
    quota::{Quota, QuotaExceeded, QuotaLimits, QuotaPermit},
};
use antiphon_store::BlobDigest;
use antiphon_wire::lock::Lock;
use futures_util::{future::BoxFuture, task::AtomicWaker};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

/// The rule by which notifications to one subscriber are sent: the layers of the server, if it has any.
#[derive(Default)]
pub(crate) struct NotificationFilter(Option<Box<Permits>>);

/// Returns whether a notification of this method, about this resource, task or URL, may be sent.
type Permits = dyn Fn(&str, Option<&str>) -> BoxFuture<'static, bool> + Send + Sync;

impl NotificationFilter {
    pub(crate) fn new(
        permits: impl Fn(&str, Option<&str>) -> BoxFuture<'static, bool> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Box::new(permits)))
    }

    /// Returns whether a notification may be sent.
    pub(crate) async fn permits(&self, method: &str, target: Option<&str>) -> bool {
        match &self.0 {
            None => true,
            Some(permits) => permits(method, target).await,
        }
    }
}

/// A rule that says who sees a change.
type SeenBy<'a> = &'a dyn Fn(&CallerInfo) -> bool;

/// A flag for each list.
pub(crate) type ListFlags = [bool; ListKind::ALL.len()];

/// The open subscriptions, which are notified of changes.
#[derive(Default)]
pub(crate) struct SubscriptionRegistry {
    subscribers: Lock<Subscribers>,
    places: Arc<Quota>,
    /// The cost of all that is watched, in bytes.
    bytes: Arc<Quota>,
    /// True if subscriptions end, and new ones end at once.
    draining: AtomicBool,
}

#[derive(Default)]
struct Subscribers {
    next: u64,
    all: HashMap<u64, Arc<Subscriber>>,
    /// The subscribers of a URI, each with the index of the URI in its subscription.
    by_uri: HashMap<String, BTreeMap<u64, u32>>,
    /// The URIs by their digests, if other instances report changes.
    by_digest: Option<HashMap<BlobDigest, String>>,
}

/// One subscription: its lists, its caller, and its pending changes.
struct Subscriber {
    lists: ListFlags,
    /// The caller whose lists and resources are watched.
    caller: Lock<Option<Arc<CallerInfo>>>,
    pending: Lock<PendingChanges>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct PendingChanges {
    lists: ListFlags,
    resources: BTreeSet<u32>,
}

/// One subscription in the registry. Dropping the handle ends the subscription.
pub(crate) struct SubscriptionHandle {
    registry: Arc<SubscriptionRegistry>,
    number: u64,
    subscriber: Arc<Subscriber>,
    state: Lock<SubscriptionState>,
}

/// The URIs of a subscription, and its parts of the quotas.
struct SubscriptionState {
    /// The URIs by index; removed ones are empty.
    uris: Vec<String>,
    bytes: QuotaPermit,
    place: QuotaPermit,
}

/// The lists, resources and tasks that a subscription watches.
#[derive(Debug, Default)]
pub(crate) struct WatchList {
    pub(crate) lists: ListFlags,
    /// Each URI occurs once.
    pub(crate) uris: Vec<String>,
    /// The number of tasks.
    pub(crate) tasks: usize,
    /// The caller whose lists and resources these are.
    pub(crate) caller: Option<Arc<CallerInfo>>,
}

/// A change for one subscription.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    ListChanged(ListKind),
    /// The index of the URI in the subscription.
    ResourceUpdated(u32),
    /// The server ends the subscription.
    End,
}

impl SubscriptionRegistry {
    /// Returns an empty registry. `has_feed` is true if other instances report changes.
    pub(crate) fn new(has_feed: bool) -> Self {
        let by_digest = has_feed.then(HashMap::new);
        Self {
            subscribers: Lock::new(Subscribers { by_digest, ..Subscribers::default() }),
            ..Self::default()
        }
    }

    /// Returns the subscribed URI with this digest.
    pub(crate) fn uri_with(&self, digest: BlobDigest) -> Option<String> {
        self.subscribers().by_digest.as_ref()?.get(&digest).cloned()
    }

    /// Returns all subscribed URIs.
    pub(crate) fn all_uris(&self) -> Vec<String> {
        self.subscribers().by_uri.keys().cloned().collect()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Adds a subscription of this account.
    pub(crate) fn join(
        self: &Arc<Self>,
        account: Account,
        watched: WatchList,
        limits: &Limits,
    ) -> Result<SubscriptionHandle, Refusal> {
        let WatchList { lists, uris, tasks, caller } = watched;
        let place = self.places.take(account, &place_limits(limits)).map_err(busy)?;
        let mut bytes = self.bytes.nothing(account);
        let cost = uris.iter().map(|uri| cost_of(uri)).sum::<usize>() + tasks * TASK_COST;
        bytes.grow(cost, &byte_limits(limits)).map_err(busy)?;
        let subscriber = Arc::new(Subscriber {
            lists,
            caller: Lock::new(caller),
            pending: Lock::default(),
            waker: AtomicWaker::new(),
        });
        let mut subscribers = self.subscribers();
        let number = subscribers.next;
        subscribers.next += 1;
        subscribers.all.insert(number, Arc::clone(&subscriber));
        for (uri, index) in uris.iter().zip(0..) {
            subscribers.watch(uri, number, index);
        }
        drop(subscribers);
        let state = Lock::new(SubscriptionState { uris, bytes, place });
        Ok(SubscriptionHandle { registry: Arc::clone(self), number, subscriber, state })
    }

    /// Reports a change of a list to those of its subscribers that see the change, or to all of them.
    pub(crate) fn list_changed(&self, kind: ListKind, seen_by: Option<SeenBy<'_>>) {
        let subscribers = self.subscribers();
        let watching = subscribers.all.values().filter(|subscriber| subscriber.lists[kind as usize]);
        let watching: Vec<Arc<Subscriber>> = watching.cloned().collect();
        // The rule is the author's code: it runs without the lock.
        drop(subscribers);
        for subscriber in watching {
            if seen_by.is_none_or(|rule| subscriber.caller().is_some_and(|caller| rule(&caller))) {
                subscriber.change(|pending| pending.lists[kind as usize] = true);
            }
        }
    }

    /// Reports a change of a resource to those of its subscribers that see the resource, or to all of them.
    pub(crate) fn resource_updated(&self, uri: &str, seen_by: Option<SeenBy<'_>>) {
        let seen = seen_by.map(|rule| {
            let subscribers = self.subscribers();
            let named = subscribers.by_uri.get(uri).into_iter().flatten();
            let known =
                named.filter_map(|(number, _)| Some((*number, subscribers.all.get(number)?.caller())));
            let known: Vec<_> = known.collect();
            drop(subscribers);
            known
                .into_iter()
                .filter(|(_, caller)| caller.as_deref().is_some_and(rule))
                .map(|(number, _)| number)
                .collect()
        });
        let seen: Option<BTreeSet<u64>> = seen;
        let subscribers = self.subscribers();
        for (number, index) in subscribers.by_uri.get(uri).into_iter().flatten() {
            let is_seen = seen.as_ref().is_none_or(|seen| seen.contains(number));
            if let Some(subscriber) = subscribers.all.get(number).filter(|_| is_seen) {
                subscriber.change(|pending| {
                    pending.resources.insert(*index);
                });
            }
        }
    }

    /// Ends every subscription, including later ones.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        for subscriber in self.subscribers().all.values() {
            subscriber.waker.wake();
        }
    }

    /// Returns the number of open subscriptions.
    pub(crate) fn len(&self) -> usize {
        self.subscribers().all.len()
    }

    fn subscribers(&self) -> MutexGuard<'_, Subscribers> {
        // Each change is complete before the lock is released.
        self.subscribers.lock()
    }
}

/// Returns the refusal of a subscription with too many resources.
pub(crate) fn limit_exceeded(limits: &Limits) -> Refusal {
    let (count, bytes) = (limits.subscription_uris, limits.subscription_uri_bytes);
    let text = format!("A subscription may name {count} resources, with {bytes} bytes of URIs in all");
    Refusal::Limit { name: "subscription", text }
}

/// The bytes that one subscribed URI takes beside its text: its places in the subscription and in the registry, and the
/// envelope of its notification.
const URI_COST: usize = 512;

fn cost_of(uri: &str) -> usize {
    uri.len() + URI_COST
}

/// The bytes that one watched task takes: its key, and the digest of what was sent of it.
const TASK_COST: usize = 128;

/// One caller may have one in so many of the subscriptions, and of what they watch.
const SHARE_OF_CALLER: usize = 4;

fn place_limits(limits: &Limits) -> QuotaLimits {
    shared(limits, limits.subscriptions)
}

fn byte_limits(limits: &Limits) -> QuotaLimits {
    shared(limits, limits.all_subscription_uri_bytes)
}

fn shared(limits: &Limits, all: usize) -> QuotaLimits {
    let each = all.div_ceil(SHARE_OF_CALLER);
    QuotaLimits::new(limits, all, each, each)
}

fn busy(full: QuotaExceeded) -> Refusal {
    let QuotaExceeded { limit, all, theirs } = full;
    tracing::debug!(?limit, all, theirs, "too many subscriptions, or too much watched: one was refused");
    Refusal::Busy
}

pub(crate) fn total_length(uris: &[String]) -> usize {
    uris.iter().map(String::len).sum()
}

impl Subscriber {
    fn caller(&self) -> Option<Arc<CallerInfo>> {
        self.caller.lock().clone()
    }

    fn pending(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending.lock()
    }

    fn change(&self, change: impl FnOnce(&mut PendingChanges)) {
        change(&mut self.pending());
        self.waker.wake();
    }
}

impl SubscriptionHandle {
    /// Sets the caller whose lists and resources are watched.
    pub(crate) fn set_caller(&self, caller: CallerInfo) {
        *self.subscriber.caller.lock() = Some(Arc::new(caller));
    }

    /// Returns the URI with this index, unless it was removed.
    pub(crate) fn uri(&self, index: u32) -> Option<String> {
        self.state().uris.get(index as usize).filter(|uri| !uri.is_empty()).cloned()
    }

    /// Returns all subscribed URIs.
    pub(crate) fn named_uris(&self) -> Vec<String> {
        self.state().uris.iter().filter(|uri| !uri.is_empty()).cloned().collect()
    }

    /// Adds a resource, within the limits of one subscription.
    pub(crate) fn add_uri(&self, uri: String, limits: &Limits) -> Result<(), Refusal> {
        let (mut state, mut subscribers) = (self.state(), self.registry.subscribers());
        let SubscriptionState { uris, bytes, .. } = &mut *state;
        let has_left = !subscribers.all.contains_key(&self.number);
        if has_left || uris.contains(&uri) || uri.is_empty() {
            return Ok(());
        }
        let named_uris = uris.iter().filter(|uri| !uri.is_empty()).count();
        if named_uris >= limits.subscription_uris
            || total_length(uris) + uri.len() > limits.subscription_uri_bytes
        {
            return Err(limit_exceeded(limits));
        }
        bytes.grow(cost_of(&uri), &byte_limits(limits)).map_err(busy)?;
        let free = uris.iter().position(String::is_empty);
        let index = free.unwrap_or(uris.len());
        // There are at most as many as the limit allows.
        subscribers.watch(&uri, self.number, u32::try_from(index).unwrap_or(u32::MAX));
        match free {
            Some(at) => uris[at] = uri,
            None => uris.push(uri),
        }
        Ok(())
    }

    /// Removes a resource.
    pub(crate) fn remove_uri(&self, uri: &str) {
        let (mut state, mut subscribers) = (self.state(), self.registry.subscribers());
        let SubscriptionState { uris, bytes, .. } = &mut *state;
        let Some(at) = uris.iter().position(|known| known == uri && !uri.is_empty()) else { return };
        uris[at] = String::new();
        // Another URI may have this index soon.
        self.subscriber.pending().resources.retain(|index| *index as usize != at);
        bytes.shrink(bytes.amount().saturating_sub(cost_of(uri)));
        subscribers.leave(uri, self.number);
    }

    /// Removes the subscription and its resources from the registry, as dropping the handle does.
    pub(crate) fn leave(&self) {
        let (mut state, mut subscribers) = (self.state(), self.registry.subscribers());
        let SubscriptionState { uris, bytes, place } = &mut *state;
        subscribers.all.remove(&self.number);
        bytes.shrink(0);
        place.shrink(0);
        for uri in &std::mem::take(uris) {
            subscribers.leave(uri, self.number);
        }
    }

    fn state(&self) -> MutexGuard<'_, SubscriptionState> {
        self.state.lock()
    }

    /// Polls for the next change. A change that happened several times is returned once.
    pub(crate) fn poll_change(&self, cx: &mut Context<'_>) -> Poll<Change> {
        // Registered first: otherwise a change between the check and the registration would be missed.
        self.subscriber.waker.register(cx.waker());
        let mut pending = self.subscriber.pending();
        if let Some(kind) =
            ListKind::ALL.into_iter().find(|kind| std::mem::take(&mut pending.lists[*kind as usize]))
        {
            return Poll::Ready(Change::ListChanged(kind));
        }
        if let Some(index) = pending.resources.pop_first() {
            return Poll::Ready(Change::ResourceUpdated(index));
        }
        if self.registry.draining.load(Ordering::Acquire) {
            return Poll::Ready(Change::End);
        }
        Poll::Pending
    }
}

impl Drop for SubscriptionHandle {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Subscribers {
    fn watch(&mut self, uri: &str, number: u64, index: u32) {
        if let Some(by_digest) = self.by_digest.as_mut().filter(|_| !self.by_uri.contains_key(uri)) {
            by_digest.insert(resource_digest(uri), uri.to_owned());
        }
        self.by_uri.entry(uri.to_owned()).or_default().insert(number, index);
    }

    fn leave(&mut self, uri: &str, number: u64) {
        if let Some(numbers) = self.by_uri.get_mut(uri) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_uri.remove(uri);
                self.by_digest.as_mut().map(|by_digest| by_digest.remove(&resource_digest(uri)));
            }
        }
    }
}

impl fmt::Debug for SubscriptionRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionRegistry").field("subscriptions", &self.len()).finish_non_exhaustive()
    }
}
