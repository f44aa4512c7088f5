//! Who wants to hear of changes, across all connections of the process.
//!
//! Nothing is queued: a change marks what a subscription has still to tell, and a mark is there or not. So what waits for
//! a slow client is bounded by what it asked for.

use super::{Limits, refusal::Refusal};
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
pub(super) enum ListKind {
    Tools,
    Prompts,
    Resources,
}

impl ListKind {
    pub(super) const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];
}

/// A flag for each list.
pub(super) type Lists = [bool; ListKind::ALL.len()];

/// Tells every open subscription what changed.
#[derive(Default)]
pub(super) struct Hub {
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
pub(super) struct Membership {
    hub: Arc<Hub>,
    number: u64,
    member: Arc<Member>,
    uris: Vec<String>,
}

/// What a subscription hears.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    ListChanged(ListKind),
    /// By its place among the URIs asked for.
    ResourceUpdated(u32),
    /// The server ends it.
    End,
}

impl Hub {
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Joins one subscription; each URI once.
    pub(super) fn join(
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
        Ok(Membership { hub: Arc::clone(self), number, member, uris })
    }

    pub(super) fn list_changed(&self, kind: ListKind) {
        for member in self.members().all.values().filter(|member| member.lists[kind as usize]) {
            member.mark(|marks| marks.lists[kind as usize] = true);
        }
    }

    pub(super) fn resource_updated(&self, uri: &str) {
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
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        for member in self.members().all.values() {
            member.waker.wake();
        }
    }

    /// How many subscriptions are open.
    pub(super) fn len(&self) -> usize {
        self.members().all.len()
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        // Each change of it leaves it whole.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn length(uris: &[String]) -> usize {
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
    pub(super) fn uri(&self, index: u32) -> &str {
        self.uris.get(index as usize).map_or("", String::as_str)
    }

    /// The next change, each told once however often it happened meanwhile.
    pub(super) fn poll_heard(&self, cx: &mut Context<'_>) -> Poll<Heard> {
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
        let mut members = self.hub.members();
        members.all.remove(&self.number);
        members.bytes -= length(&self.uris);
        for uri in &self.uris {
            if let Some(numbers) = members.by_uri.get_mut(uri) {
                numbers.remove(&self.number);
                if numbers.is_empty() {
                    members.by_uri.remove(uri);
                }
            }
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("subscriptions", &self.len()).finish_non_exhaustive()
    }
}
