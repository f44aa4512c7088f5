//! The store in memory, in every order of two or three threads: runners of one leg, the clock, and the sweeper.

use antiphon_store::{
    Appended, CallKey, CallStore, Claim, ClaimRequest, Fence, Fingerprint, MemoryStore, Micros, Owner,
    RunnerId, StepRecord, StoreClock, StoreErrorKind, StoreFuture,
};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};
use std::{
    sync::atomic::{AtomicUsize as Plain, Ordering},
    task::{Context, Poll, Waker},
    time::Duration,
};

const LEASE: Duration = Duration::from_secs(10);

/// A store whose clock another thread moves.
struct Subject {
    store: MemoryStore,
    time: Arc<AtomicI64>,
}

impl Subject {
    fn new() -> Arc<Self> {
        let time = Arc::new(AtomicI64::new(1_800_000_000_000_000));
        let shown = Arc::clone(&time);
        let store = MemoryStore::new().clock(StoreClock::from_fn(move || Micros::new(shown.load(SeqCst))));
        Arc::new(Self { store, time })
    }

    /// Claims the leg as this runner.
    fn claim(&self, runner: u8) -> Claim {
        now(self.store.claim(&request(runner))).expect("the store has room")
    }

    fn commit(&self, fence: &Fence, runner: u8) -> bool {
        match now(self.store.commit(fence, &[runner])) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::FenceLost);
                false
            }
        }
    }
}

/// Every operation of this store is ready at once.
fn now<T>(mut operation: StoreFuture<'_, T>) -> Result<T, antiphon_store::StoreError> {
    match operation.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the store in memory waits for nothing"),
    }
}

fn request(runner: u8) -> ClaimRequest {
    let (call, owner) = (CallKey::from_bytes([1; 16]), Owner::from_bytes([2; 16]));
    let (fingerprint, runner) = (Fingerprint::from_bytes([3; 16]), RunnerId::from_bytes([runner; 16]));
    ClaimRequest::new(call, 1, fingerprint, runner, owner).lease(LEASE).take_over(true)
}

/// Two deliveries of one leg. Returns the largest number of runs in any order; with `obeys`, a runner whose claim is
/// refused does not run.
fn runs_of_two(obeys: bool) -> usize {
    let most = std::sync::Arc::new(Plain::new(0));
    let seen = std::sync::Arc::clone(&most);
    loom::model(move || {
        let (subject, effects) = (Subject::new(), Arc::new(AtomicUsize::new(0)));
        let runners: Vec<_> = [7, 8]
            .map(|runner| {
                let (subject, effects) = (Arc::clone(&subject), Arc::clone(&effects));
                thread::spawn(move || match subject.claim(runner) {
                    Claim::Fresh(fence) => {
                        effects.fetch_add(1, SeqCst);
                        assert!(subject.commit(&fence, runner));
                        Some(vec![runner])
                    }
                    Claim::Done(outcome) => Some(outcome),
                    Claim::InFlight { .. } => {
                        effects.fetch_add(usize::from(!obeys), SeqCst);
                        None
                    }
                    other => panic!("{other:?}"),
                })
            })
            .into_iter()
            .collect();
        let outcomes: Vec<_> = runners.into_iter().filter_map(|runner| runner.join().unwrap()).collect();
        let Claim::Done(outcome) = subject.claim(9) else { panic!("the outcome is stored") };
        assert!(outcomes.iter().all(|known| *known == outcome), "{outcomes:?} {outcome:?}");
        seen.fetch_max(effects.load(SeqCst), Ordering::SeqCst);
    });
    most.load(Ordering::SeqCst)
}

#[test]
fn one_of_two_runners_runs() {
    assert_eq!(runs_of_two(true), 1);
}

/// The model can fail: it finds the order in which a runner that ignores its claim runs beside the other.
#[test]
fn a_runner_that_ignores_its_claim_is_found() {
    assert_eq!(runs_of_two(false), 2);
}

/// The lease ends at any moment. Both may run, and one of them commits; the first record of a step stays.
#[test]
fn a_run_that_was_taken_over_changes_nothing() {
    loom::model(|| {
        let subject = Subject::new();
        let Claim::Fresh(first) = subject.claim(7) else { panic!("a new row is claimed") };
        let other = Arc::clone(&subject);
        let second = thread::spawn(move || {
            other.time.fetch_add(2 * LEASE.as_micros() as i64, SeqCst);
            match other.claim(8) {
                Claim::Fresh(fence) => {
                    let record = StepRecord::ended("step", [8]);
                    let value = match now(other.store.append(&fence, &record)).expect("the fence is new") {
                        Appended::First => vec![8],
                        Appended::Existing(value) => value,
                    };
                    (other.commit(&fence, 8), Some(value))
                }
                Claim::Done(outcome) => {
                    assert_eq!(outcome, [7]);
                    (false, None)
                }
                other => panic!("{other:?}"),
            }
        });
        let appended = now(subject.store.append(&first, &StepRecord::ended("step", [7])));
        let first_committed = subject.commit(&first, 7);
        let (second_committed, value) = second.join().unwrap();
        assert_ne!(first_committed, second_committed, "one of them commits");
        if let Some(value) = value {
            // A record that was confirmed is the one that the other run gets.
            assert_eq!(value, [if appended.is_ok() { 7 } else { 8 }]);
        }
        let Claim::Done(outcome) = subject.claim(9) else { panic!("the outcome is stored") };
        assert_eq!(outcome, [if first_committed { 7 } else { 8 }]);
    });
}

/// A row that counts is not swept, whatever runs beside the sweeper.
#[test]
fn the_sweeper_leaves_live_rows() {
    loom::model(|| {
        let subject = Subject::new();
        let (sweeper, reader) = (Arc::clone(&subject), Arc::clone(&subject));
        let sweeper = thread::spawn(move || now(sweeper.store.sweep(10)).expect("memory is swept").calls);
        let reader = thread::spawn(move || reader.store.rows());
        let Claim::Fresh(fence) = subject.claim(7) else { panic!("a new row is claimed") };
        assert!(subject.commit(&fence, 7));
        assert_eq!(sweeper.join().unwrap(), 0);
        assert!(reader.join().unwrap() <= 1);
        assert_eq!(subject.claim(8), Claim::Done(vec![7]));
    });
}
