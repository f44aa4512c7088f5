//! An error of the store at each operation of a leg: the effect happens at most once, and no outcome changes.

use std::cell::Cell;
use std::sync::Arc;

use super::faulty::{FaultyStore, StoreFault};
use super::subject::{LEASE, Subject, request};
use crate::claim::{Claim, ClaimRequest};
use crate::error::{StoreError, Written};
use crate::step::{Appended, StepRecord};
use crate::store::CallStore;

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
