//! A runner that dies between any two of its operations.

use crate::contract::{LEASE, Subject, request};
use crate::{
    claim::{BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner, Unknown},
    error::{StoreError, StoreErrorKind, Written},
    properties::StoreIdentity,
    step::{Appended, StepAttempt, StepRecord},
    store::{CallStore, StoreFuture, StoreReach, Swept},
};
use std::{
    cell::Cell,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// An operation of the runner that dies.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Renew,
    Start(&'static str, u32),
    End(&'static str),
    Commit,
}

/// The operations of a leg with two steps, the first of which needs two attempts.
const LEG: &[Operation] = &[
    Operation::Start("pay", 1),
    Operation::Renew,
    Operation::Start("pay", 2),
    Operation::End("pay"),
    Operation::Start("mail", 1),
    Operation::End("mail"),
    Operation::Commit,
];

/// The step that is interrupted after so many operations of [`LEG`].
const INTERRUPTED: &[Option<(&str, u32)>] =
    &[None, Some(("pay", 1)), Some(("pay", 1)), Some(("pay", 2)), None, Some(("mail", 1)), None];

/// Checks what another runner finds after a crash between any two operations, and that it can go on.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_crashes(subject: &Subject) {
    for done in 0..=LEG.len() {
        let first = subject.new_request();
        let call = first.call;
        let dead = subject.granted(&first).await;
        for operation in &LEG[..done] {
            run(&*subject.first, &dead, *operation).await;
        }
        subject.clock.advance(LEASE);
        let other = request(call, 1, 1, 2);
        let claim = subject.claimed(&other).await;
        if done == LEG.len() {
            assert_eq!(claim, Claim::Done(b"outcome".to_vec()), "after the commit");
            continue;
        }
        let step = INTERRUPTED[done].map(|(step, attempt)| StepAttempt { step: step.to_owned(), attempt });
        assert_eq!(claim, Claim::Unknown(Unknown { leg: 1, step }), "after {:?}", &LEG[..done]);
        assert_eq!(subject.claimed(&other).await, claim, "the information stays after {:?}", &LEG[..done]);

        let Claim::Fresh(fence) = subject.claimed(&other.clone().take_over(true)).await else {
            panic!("no takeover after {:?}", &LEG[..done])
        };
        let expected: Vec<_> = LEG[..done].iter().filter_map(|operation| record(*operation)).collect();
        let loaded = subject.second.load(call).await.unwrap_or_else(|error| panic!("load: {error:?}"));
        assert_eq!(loaded, expected, "the records of the dead runner");
        for operation in &LEG[done..] {
            run(&*subject.second, &fence, *operation).await;
        }
        assert_eq!(subject.claimed(&request(call, 1, 1, 3)).await, Claim::Done(b"outcome".to_vec()));
        let late = subject.first.commit(&dead, b"outcome").await;
        assert!(late.is_err_and(|error| error.is_fence_lost()), "the dead runner committed");
    }
}

async fn run(store: &dyn CallStore, fence: &Fence, operation: Operation) {
    let result = match operation {
        Operation::Renew => store.renew(fence, LEASE).await,
        Operation::Commit => store.commit(fence, b"outcome").await,
        Operation::Start(..) | Operation::End(_) => match record(operation) {
            Some(record) => store.append(fence, &record).await.map(drop),
            None => Ok(()),
        },
    };
    result.unwrap_or_else(|error| panic!("{operation:?}: {error:?}"));
}

fn record(operation: Operation) -> Option<StepRecord> {
    match operation {
        Operation::Start(step, attempt) => Some(StepRecord::started(step, attempt)),
        Operation::End(step) => Some(StepRecord::ended(step, format!("{step} done"))),
        Operation::Renew | Operation::Commit => None,
    }
}

// An error of the store at each operation of a leg: the effect happens at most once, and no outcome changes.

/// The number of operations of [`run_leg`]: claim, started, ended, commit.
const OPERATIONS: usize = 4;

/// The reaction of a runner to an error of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    Stop,
    Repeat,
}

/// The end of a leg, as its caller sees it.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Outcome(Vec<u8>),
    Unknown,
    StoreFailed,
}

/// Checks a store that fails at each operation of a leg, before and after the write.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_store_errors(subject: &Subject) {
    for operation in 0..OPERATIONS {
        for fault in StoreFault::ALL {
            for reaction in [Reaction::Stop, Reaction::Repeat] {
                check(subject, operation, fault, reaction).await;
            }
        }
    }
}

async fn check(subject: &Subject, operation: usize, fault: StoreFault, reaction: Reaction) {
    let case = (operation, fault, reaction);
    let faulty = FaultyStore::new(Arc::clone(&subject.first)).fail(operation, fault);
    let first = subject.new_request();
    let effects = Cell::new(0);
    let end = run_leg(&faulty, &first, &effects, reaction).await;
    if reaction == Reaction::Repeat {
        assert_eq!((end, effects.get()), (End::Outcome(b"outcome".to_vec()), 1), "{case:?}");
    } else {
        assert_eq!(end, End::StoreFailed, "{case:?}");
    }
    // The client sends the request again, to another instance, when the first runner counts as dead.
    subject.clock.advance(LEASE);
    let again = run_leg(&*subject.second, &request(first.call, 1, 1, 2), &effects, Reaction::Stop).await;
    assert!(effects.get() <= 1, "{case:?}: the effect happened {} times", effects.get());
    match again {
        End::Outcome(outcome) => assert_eq!((&outcome[..], effects.get()), (&b"outcome"[..], 1), "{case:?}"),
        End::Unknown => {
            let claimed = operation > 0 || fault == StoreFault::LostReply;
            assert!(claimed && reaction == Reaction::Stop, "{case:?}: the outcome is unknown");
        }
        End::StoreFailed => panic!("{case:?}: the store failed again"),
    }
}

/// Runs a leg with one step as a server does: claim, started, effect, ended, commit.
async fn run_leg(
    store: &dyn CallStore,
    request: &ClaimRequest,
    effects: &Cell<u32>,
    reaction: Reaction,
) -> End {
    let run = async {
        let fence = match repeat(reaction, async || store.claim(request).await).await? {
            Claim::Fresh(fence) => fence,
            Claim::Done(outcome) => return Ok(End::Outcome(outcome)),
            Claim::InFlight { .. } | Claim::Conflict(_) | Claim::Unknown(_) => return Ok(End::Unknown),
        };
        repeat(reaction, async || store.append(&fence, &StepRecord::started("pay", 1)).await).await?;
        effects.set(effects.get() + 1);
        let ended = StepRecord::ended("pay", *b"paid");
        if let Appended::Existing(value) =
            repeat(reaction, async || store.append(&fence, &ended).await).await?
        {
            assert_eq!(value, b"paid", "the record of this runner");
        }
        repeat(reaction, async || store.commit(&fence, b"outcome").await).await?;
        Ok::<_, StoreError>(End::Outcome(b"outcome".to_vec()))
    };
    run.await.unwrap_or(End::StoreFailed)
}

/// Runs an operation, and repeats it once after an error if the runner does so.
async fn repeat<T>(
    reaction: Reaction,
    operation: impl AsyncFn() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match operation().await {
        Err(error) if reaction == Reaction::Repeat => {
            assert!(error.is_temporary() && matches!(error.written(), Written::No | Written::Unknown));
            operation().await
        }
        result => result,
    }
}

/// A failure of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreFault {
    /// The store refused the operation: [`Written::No`].
    Refused,
    /// The operation did not reach the store, and the caller cannot know that: [`Written::Unknown`].
    LostRequest,
    /// The operation reached the store, and its confirmation was lost: [`Written::Unknown`].
    LostReply,
}

impl StoreFault {
    /// All faults.
    pub const ALL: [Self; 3] = [Self::Refused, Self::LostRequest, Self::LostReply];
}

/// A store that passes operations on to another one, and fails those that it is told to. It has the identity of that store, whose
/// [transactions](crate::Transact) do not pass through it.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn CallStore>,
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    operations: usize,
    faults: HashMap<usize, StoreFault>,
    down: Option<StoreFault>,
}

impl FaultyStore {
    /// Returns a store without faults.
    #[must_use]
    pub fn new(inner: Arc<dyn CallStore>) -> Self {
        Self { inner, plan: Mutex::default() }
    }

    /// Adds a fault of the operation with this number. The first operation has the number 0.
    #[must_use]
    pub fn fail(self, operation: usize, fault: StoreFault) -> Self {
        self.plan().faults.insert(operation, fault);
        self
    }

    /// Sets the fault of every operation from now on, or none.
    pub fn set_down(&self, fault: Option<StoreFault>) {
        self.plan().down = fault;
    }

    /// Returns the number of operations so far, with those that failed.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.plan().operations
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_fault(&self) -> Option<StoreFault> {
        let mut plan = self.plan();
        let number = plan.operations;
        plan.operations += 1;
        plan.faults.get(&number).copied().or(plan.down)
    }

    fn run<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        operation: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let fail = |kind, written| Err(StoreError::new(kind, written, name, "a fault on purpose"));
            match self.next_fault() {
                None => operation.await,
                Some(StoreFault::Refused) => fail(StoreErrorKind::Unreachable, Written::No),
                Some(StoreFault::LostRequest) => fail(StoreErrorKind::Timeout, Written::Unknown),
                Some(StoreFault::LostReply) => {
                    operation.await?;
                    fail(StoreErrorKind::Timeout, Written::Unknown)
                }
            }
        })
    }
}

impl CallStore for FaultyStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.run("claim", self.inner.claim(request))
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.run("renew", self.inner.renew(fence, lease))
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        self.run("append", self.inner.append(fence, record))
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        self.run("commit", self.inner.commit(fence, outcome))
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        self.run("release", self.inner.release(fence))
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.run("load", self.inner.load(call))
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        self.run("put", self.inner.put(blob, keep, owner))
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.run("get", self.inner.get(digest))
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.run("sweep", self.inner.sweep(limit))
    }

    fn reach(&self) -> StoreReach {
        self.inner.reach()
    }

    /// The tasks have no faults.
    fn tasks(&self) -> Option<Arc<dyn crate::TaskStore>> {
        self.inner.tasks()
    }

    /// The feed has no faults.
    fn change_feed(&self) -> Option<Arc<dyn crate::ChangeFeed>> {
        self.inner.change_feed()
    }

    fn identity(&self) -> Option<StoreIdentity> {
        self.inner.identity()
    }
}
