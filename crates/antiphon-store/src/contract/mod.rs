//! The contract of a store, as tests: [`check_all`] runs them on a store of your own, as they run on every store of this crate.
//!
//! ```
//! use std::sync::Arc;
//!
//! use antiphon_store::contract::{Subject, check_all};
//! use antiphon_store::{Micros, MemoryStore, StoreClock};
//!
//! # fn main() {
//! # let mut future = std::pin::pin!(async {
//! let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
//! let store = Arc::new(MemoryStore::new().clock(clock));
//! // Two handles to the same rows, as two instances of a server have them.
//! check_all(&Subject::new(store.clone(), store, hand)).await;
//! # });
//! # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! # assert!(future.as_mut().poll(&mut context).is_ready());
//! # }
//! # use std::future::Future as _;
//! ```
//!
//! [`check_tasks`] does the same for a store of tasks:
//!
//! ```
//! use std::sync::Arc;
//!
//! use antiphon_store::contract::{TaskSubject, check_tasks};
//! use antiphon_store::{MemoryTasks, Micros, StoreClock};
//!
//! # fn main() {
//! # let mut future = std::pin::pin!(async {
//! let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
//! let tasks = Arc::new(MemoryTasks::new().clock(clock));
//! check_tasks(&TaskSubject::new(tasks.clone(), tasks, hand)).await;
//! # });
//! # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! # assert!(future.as_mut().poll(&mut context).is_ready());
//! # }
//! # use std::future::Future as _;
//! ```
//!
//! A store needs a clock that a test can move: moments are compared exactly, and no test waits. Every check panics with the case
//! that failed. The checks use new calls and new tasks each time, so they may run several times on the same rows.
//! [`check_task_engine`] checks an engine of tasks, in real time or in the paused time of tokio.
//! `check_tasks` expects fewer than 10,000 tasks in the store, and no other program that creates or ends tasks meanwhile.

mod claims;
mod crashes;
mod engines;
mod expiry;
mod races;
mod tasks;

pub use claims::{check_claims, check_fences};
pub use crashes::{FaultyStore, StoreFault, check_crashes, check_store_errors};
pub use engines::check_task_engine;
pub use expiry::{check_clock_jumps, check_expiry};
pub use races::{check_races, check_random_orders};
pub use tasks::{TaskSubject, check_random_tasks, check_tasks};

use crate::{
    changes::{ChangeChannel, ChangeFeed, ChangeWatch, MAX_CHANGE},
    check::MAX_VALUE,
    claim::{BlobDigest, CallKey, Claim, ClaimRequest, Fence, Fingerprint, Owner, RunnerId},
    clock::ManualStoreClock,
    error::StoreErrorKind,
    store::CallStore,
};
use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

/// Runs every check, and 50 random orders of 40 operations.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_all(subject: &Subject) {
    check_claims(subject).await;
    check_fences(subject).await;
    check_crashes(subject).await;
    check_expiry(subject).await;
    check_blobs(subject).await;
    check_clock_jumps(subject).await;
    check_races(subject).await;
    check_store_errors(subject).await;
    check_random_orders(subject, 0..50, 40).await;
}

/// The lease of the checks.
const LEASE: Duration = Duration::from_secs(30);
/// The time for which the checks keep a row.
const KEEP: Duration = Duration::from_secs(600);

/// A store under test.
#[derive(Debug)]
pub struct Subject {
    first: Arc<dyn CallStore>,
    second: Arc<dyn CallStore>,
    clock: ManualStoreClock,
    /// Distinguishes the calls of this subject from those of earlier ones in the same rows.
    nonce: u64,
    calls: AtomicU64,
}

impl Subject {
    /// Returns a subject of two handles to the same rows, and the hand of the clock that both use. Two handles are two
    /// instances of a server: two connections, two pools.
    #[must_use]
    pub fn new(first: Arc<dyn CallStore>, second: Arc<dyn CallStore>, clock: ManualStoreClock) -> Self {
        Self {
            first,
            second,
            clock,
            nonce: RandomState::new().build_hasher().finish(),
            calls: AtomicU64::new(0),
        }
    }

    /// Returns the number of a call that has no row.
    fn next_call(&self) -> CallKey {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let digest = BlobDigest::of(&[self.nonce.to_be_bytes(), number.to_be_bytes()].concat());
        let (half, _) = digest.as_bytes().split_at(16);
        CallKey::from_bytes(half.try_into().unwrap_or([0; 16]))
    }

    /// Returns the claim of leg 1 of a new call by runner 1.
    fn new_request(&self) -> ClaimRequest {
        request(self.next_call(), 1, 1, 1)
    }

    /// Claims through the first handle; the claim must be granted.
    async fn granted(&self, request: &ClaimRequest) -> Fence {
        match self.first.claim(request).await {
            Ok(Claim::Fresh(fence)) => fence,
            other => panic!("{request:?} was not granted: {other:?}"),
        }
    }

    /// Claims through the second handle.
    async fn claimed(&self, request: &ClaimRequest) -> Claim {
        self.second.claim(request).await.unwrap_or_else(|error| panic!("{request:?} failed: {error:?}"))
    }
}

/// Returns the claim of a leg with answers and a runner that have numbers.
fn request(call: CallKey, leg: u32, answers: u8, runner: u8) -> ClaimRequest {
    let owner = Owner::from_bytes([7; 16]);
    ClaimRequest::new(call, leg, self::answers(answers), RunnerId::from_bytes([runner; 16]), owner)
        .lease(LEASE)
        .keep(KEEP)
}

/// Returns the fingerprint of answers that have a number.
fn answers(number: u8) -> Fingerprint {
    Fingerprint::from_bytes([number; 16])
}

/// The result of an operation without what differs between stores: numbers of fences, texts of errors.
fn outcome_of<T>(result: Result<T, crate::error::StoreError>) -> Result<T, StoreErrorKind> {
    result.map_err(|error| error.kind())
}

// Blobs: immutable, named by their digest, kept for the longest time that was asked for.

const OWNER: Owner = Owner::from_bytes([7; 16]);

/// Checks that blobs come back unchanged, are kept long enough, and expire.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_blobs(subject: &Subject) {
    let (first, second) = (&*subject.first, &*subject.second);
    let unique = subject.new_request().call;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let bodies =
        [unique.as_bytes().to_vec(), [unique.as_bytes(), &all_bytes[..]].concat(), vec![b'x'; 300_000]];
    for body in &bodies {
        let digest = first.put(body, KEEP, OWNER).await.unwrap_or_else(|error| panic!("put: {error:?}"));
        assert_eq!(digest, BlobDigest::of(body));
        let again = second.put(body, Duration::from_secs(1), OWNER).await;
        assert_eq!(again.unwrap_or_else(|error| panic!("put again: {error:?}")), digest);
        subject.clock.advance(KEEP - Duration::from_micros(1));
        second.sweep(10_000).await.unwrap_or_else(|error| panic!("sweep: {error:?}"));
        assert_eq!(get(subject, digest).await.as_ref(), Some(body), "a blob within its time");
        // A second time for which it is kept begins.
        second.put(body, KEEP, OWNER).await.unwrap_or_else(|error| panic!("put once more: {error:?}"));
        subject.clock.advance(KEEP - Duration::from_micros(1));
        assert_eq!(get(subject, digest).await.as_ref(), Some(body), "a blob within its second time");
        subject.clock.advance(Duration::from_micros(1));
        assert_eq!(get(subject, digest).await, None, "a blob after its time");
        second.sweep(10_000).await.unwrap_or_else(|error| panic!("sweep: {error:?}"));
        assert_eq!(get(subject, digest).await, None, "a blob after the sweep");
        // A blob may come back.
        first.put(body, KEEP, OWNER).await.unwrap_or_else(|error| panic!("put after its end: {error:?}"));
        assert_eq!(get(subject, digest).await.as_ref(), Some(body), "a blob that came back");
    }
    assert_eq!(get(subject, BlobDigest::of(b"never stored")).await, None);
    let too_large = first.put(&vec![0; MAX_VALUE + 1], KEEP, OWNER).await;
    assert_eq!(too_large.map_err(|error| error.kind()), Err(StoreErrorKind::Invalid));
}

async fn get(subject: &Subject, digest: BlobDigest) -> Option<Vec<u8>> {
    let first = subject.first.get(digest).await.unwrap_or_else(|error| panic!("get: {error:?}"));
    let second = subject.second.get(digest).await.unwrap_or_else(|error| panic!("get: {error:?}"));
    assert_eq!(first, second, "two handles");
    first
}

/// Checks a feed, through two handles, as two instances of a server have them. The check waits until messages arrive.
///
/// # Panics
///
/// If the feed breaks a rule. The text names the case.
pub async fn check_changes(first: &Arc<dyn ChangeFeed>, second: &Arc<dyn ChangeFeed>) {
    let nonce = RandomState::new().build_hasher().finish();
    let channel = |name: &str| ChangeChannel::of(&format!("{name} {nonce}"));
    check_channels(first, second, channel("ours"), channel("theirs")).await;
    check_dropped_futures(first, second, channel("dropped")).await;
    check_refusals(first, channel("refused")).await;
}

/// Checks that each watch returns what was published on its channel since it was opened, in order.
async fn check_channels(
    first: &Arc<dyn ChangeFeed>,
    second: &Arc<dyn ChangeFeed>,
    ours: ChangeChannel,
    theirs: ChangeChannel,
) {
    publish(first, theirs, "before").await;
    let mut watches = [open(first, ours).await, open(second, ours).await, open(first, ours).await];
    let mut foreign = open(second, theirs).await;
    let longest = "x".repeat(MAX_CHANGE);
    let messages = ["one", "two of \"it\", with {signs}", &*longest, "two of \"it\", with {signs}", "last"];
    for (number, message) in messages.into_iter().enumerate() {
        publish(first, theirs, "of another server").await;
        publish(if number % 2 == 0 { first } else { second }, ours, message).await;
    }
    for watch in &mut watches {
        expect(watch, &messages).await;
    }
    expect(&mut foreign, &["of another server"; 5]).await;
}

/// Checks that a dropped future loses nothing, and that a watch has nothing from before.
async fn check_dropped_futures(
    first: &Arc<dyn ChangeFeed>,
    second: &Arc<dyn ChangeFeed>,
    channel: ChangeChannel,
) {
    let mut early = open(second, channel).await;
    let is_pending = early.next().as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
    assert!(is_pending, "nothing was published");
    publish(first, channel, "after a dropped future").await;
    let mut late = open(second, channel).await;
    publish(first, channel, "after a late watch").await;
    expect(&mut early, &["after a dropped future", "after a late watch"]).await;
    expect(&mut late, &["after a late watch"]).await;
}

/// Checks that messages are checked.
async fn check_refusals(feed: &Arc<dyn ChangeFeed>, channel: ChangeChannel) {
    let too_long = "x".repeat(MAX_CHANGE + 1);
    for (case, message) in [("empty", ""), ("too long", &*too_long), ("a line", "a\nb"), ("no ASCII", "ä")] {
        let refused = feed.publish(channel, message).await.map_err(|error| error.kind());
        assert_eq!(refused, Err(StoreErrorKind::Invalid), "{case}");
    }
}

async fn publish(feed: &Arc<dyn ChangeFeed>, channel: ChangeChannel, message: &str) {
    feed.publish(channel, message).await.unwrap_or_else(|error| panic!("publish: {error:?}"));
}

async fn open(feed: &Arc<dyn ChangeFeed>, channel: ChangeChannel) -> Box<dyn ChangeWatch> {
    feed.watch(channel).await.unwrap_or_else(|error| panic!("watch: {error:?}"))
}

async fn expect(watch: &mut Box<dyn ChangeWatch>, messages: &[&str]) {
    for message in messages {
        let next = watch.next().await;
        assert_eq!(next.as_deref().ok(), Some(*message), "{next:?}");
    }
}
