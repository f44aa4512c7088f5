//! Who wants to hear of changes, across all connections of the process.
//!
//! Nothing is queued: a change marks what a subscription has still to tell, and a mark is there or not. So what waits for
//! a slow client is bounded by what it asked for.

use crate::{Limits, refusal::Refusal};
use futures_util::task::AtomicWaker;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

/// Which list changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
}

impl ListKind {
    pub(crate) const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];
}

/// A flag for each list.
pub(crate) type Lists = [bool; ListKind::ALL.len()];

/// Tells every open subscription what changed.
#[derive(Default)]
pub(crate) struct Hub {
    members: Mutex<Members>,
    /// Subscriptions end, and new ones end at once.
    draining: AtomicBool,
}

#[derive(Default)]
struct Members {
    next: u64,
    all: HashMap<u64, Arc<Member>>,
    /// How long all that they named is.
    bytes: usize,
    /// Who asked for a resource, and as which of theirs.
    by_uri: HashMap<String, BTreeMap<u64, u32>>,
}

/// What one subscription asked for, and has still to tell.
struct Member {
    lists: Lists,
    marks: Mutex<Marks>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Marks {
    lists: Lists,
    resources: BTreeSet<u32>,
}

/// One subscription's place in the hub, free again when dropped.
pub(crate) struct Membership {
    hub: Arc<Hub>,
    number: u64,
    member: Arc<Member>,
    /// By their numbers; those that were forgotten are empty.
    uris: Mutex<Vec<String>>,
}

/// What a subscription hears.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    ListChanged(ListKind),
    /// By its place among the URIs asked for.
    ResourceUpdated(u32),
    /// The server ends it.
    End,
}

impl Hub {
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Joins one subscription; each URI once.
    pub(crate) fn join(
        self: &Arc<Self>,
        lists: Lists,
        uris: Vec<String>,
        limits: &Limits,
    ) -> Result<Membership, Refusal> {
        let member = Arc::new(Member { lists, marks: Mutex::default(), waker: AtomicWaker::new() });
        let mut members = self.members();
        let bytes = members.bytes + length(&uris);
        if members.all.len() >= limits.subscriptions || bytes > limits.all_subscription_uri_bytes {
            return Err(Refusal::Busy);
        }
        members.bytes = bytes;
        let number = members.next;
        members.next += 1;
        members.all.insert(number, Arc::clone(&member));
        for (uri, index) in uris.iter().zip(0..) {
            members.by_uri.entry(uri.clone()).or_default().insert(number, index);
        }
        drop(members);
        Ok(Membership { hub: Arc::clone(self), number, member, uris: Mutex::new(uris) })
    }

    pub(crate) fn list_changed(&self, kind: ListKind) {
        for member in self.members().all.values().filter(|member| member.lists[kind as usize]) {
            member.mark(|marks| marks.lists[kind as usize] = true);
        }
    }

    pub(crate) fn resource_updated(&self, uri: &str) {
        let members = self.members();
        for (number, index) in members.by_uri.get(uri).into_iter().flatten() {
            if let Some(member) = members.all.get(number) {
                member.mark(|marks| {
                    marks.resources.insert(*index);
                });
            }
        }
    }

    /// Ends every subscription, and those to come.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        for member in self.members().all.values() {
            member.waker.wake();
        }
    }

    /// How many subscriptions are open.
    pub(crate) fn len(&self) -> usize {
        self.members().all.len()
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        // Each change of it leaves it whole.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// More resources than one subscription may name.
pub(crate) fn too_many(limits: &Limits) -> Refusal {
    let (count, bytes) = (limits.subscription_uris, limits.subscription_uri_bytes);
    let text = format!("A subscription may name {count} resources, with {bytes} bytes of URIs in all");
    Refusal::Limit { name: "subscription", text }
}

pub(crate) fn length(uris: &[String]) -> usize {
    uris.iter().map(String::len).sum()
}

impl Member {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self, mark: impl FnOnce(&mut Marks)) {
        mark(&mut self.marks());
        self.waker.wake();
    }
}

impl Membership {
    /// The URI of this number, unless it was forgotten.
    pub(crate) fn uri(&self, index: u32) -> Option<String> {
        self.uris().get(index as usize).filter(|uri| !uri.is_empty()).cloned()
    }

    /// All URIs that it names.
    pub(crate) fn named(&self) -> Vec<String> {
        self.uris().iter().filter(|uri| !uri.is_empty()).cloned().collect()
    }

    /// Names one more resource, within the bounds of one subscription.
    pub(crate) fn name(&self, uri: String, limits: &Limits) -> Result<(), Refusal> {
        let (mut uris, mut members) = (self.uris(), self.hub.members());
        if uris.contains(&uri) || uri.is_empty() {
            return Ok(());
        }
        let named = uris.iter().filter(|uri| !uri.is_empty()).count();
        if named >= limits.subscription_uris || length(&uris) + uri.len() > limits.subscription_uri_bytes {
            return Err(too_many(limits));
        }
        if members.bytes + uri.len() > limits.all_subscription_uri_bytes {
            return Err(Refusal::Busy);
        }
        members.bytes += uri.len();
        let free = uris.iter().position(String::is_empty);
        let index = free.unwrap_or(uris.len());
        // There are at most as many as the limit.
        members
            .by_uri
            .entry(uri.clone())
            .or_default()
            .insert(self.number, u32::try_from(index).unwrap_or(u32::MAX));
        match free {
            Some(at) => uris[at] = uri,
            None => uris.push(uri),
        }
        Ok(())
    }

    /// Names a resource no more.
    pub(crate) fn forget(&self, uri: &str) {
        let (mut uris, mut members) = (self.uris(), self.hub.members());
        let Some(at) = uris.iter().position(|known| known == uri && !uri.is_empty()) else { return };
        uris[at].clear();
        // Its number may be that of another soon.
        self.member.marks().resources.retain(|index| *index as usize != at);
        members.bytes -= uri.len();
        members.leave(uri, self.number);
    }

    fn uris(&self) -> MutexGuard<'_, Vec<String>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next change, each told once however often it happened meanwhile.
    pub(crate) fn poll_heard(&self, cx: &mut Context<'_>) -> Poll<Heard> {
        // Registered first: a change between the look and the registration would be missed.
        self.member.waker.register(cx.waker());
        let mut marks = self.member.marks();
        if let Some(kind) =
            ListKind::ALL.into_iter().find(|kind| std::mem::take(&mut marks.lists[*kind as usize]))
        {
            return Poll::Ready(Heard::ListChanged(kind));
        }
        if let Some(index) = marks.resources.pop_first() {
            return Poll::Ready(Heard::ResourceUpdated(index));
        }
        if self.hub.draining.load(Ordering::Acquire) {
            return Poll::Ready(Heard::End);
        }
        Poll::Pending
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let uris = std::mem::take(&mut *self.uris());
        let mut members = self.hub.members();
        members.all.remove(&self.number);
        members.bytes -= length(&uris);
        for uri in &uris {
            members.leave(uri, self.number);
        }
    }
}

impl Members {
    fn leave(&mut self, uri: &str, number: u64) {
        if let Some(numbers) = self.by_uri.get_mut(uri) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_uri.remove(uri);
            }
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("subscriptions", &self.len()).finish_non_exhaustive()
    }
}
