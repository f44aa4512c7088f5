//! Many runners at once, through both handles, of which one wins; and random orders of operations of two runners, compared with
//! the memory store reply by reply.

use crate::{
    claim::{Claim, Fence, Owner, Predecessor},
    clock::StoreClock,
    contract::{KEEP, LEASE, Subject, outcome_of, request},
    error::StoreErrorKind,
    memory::MemoryStore,
    step::{Appended, StepRecord},
    store::CallStore,
};
use futures_util::future::{join, join_all};
use std::{ops::Range, time::Duration};

const RUNNERS: u8 = 24;

/// Checks that of many claims, takeovers and records at once, one is granted.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_races(subject: &Subject) {
    for _ in 0..4 {
        claims_at_once(subject).await;
        records_at_once(subject).await;
        an_outcome_and_a_takeover_at_once(subject).await;
        blobs_at_once(subject).await;
    }
}

/// Exactly one of many claims of one leg is granted, and then one of many takeovers.
async fn claims_at_once(subject: &Subject) {
    let call = subject.new_request().call;
    for take_over in [false, true] {
        let requests: Vec<_> = (0..RUNNERS)
            .map(|runner| request(call, 1, 1, runner + 50 * u8::from(take_over)).take_over(take_over))
            .collect();
        let claims = join_all(requests.iter().enumerate().map(|(number, request)| {
            let store = if number % 2 == 0 { &subject.first } else { &subject.second };
            store.claim(request)
        }))
        .await;
        let mut granted = 0;
        for claim in claims {
            match claim {
                Ok(Claim::Fresh(_)) => granted += 1,
                Ok(Claim::InFlight { retry_after }) => assert_eq!(retry_after, LEASE),
                other => panic!("claims at once, take_over {take_over}: {other:?}"),
            }
        }
        assert_eq!(granted, 1, "claims at once, take_over {take_over}");
        subject.clock.advance(LEASE);
    }
}

/// The first of many records with one name is stored, and the others get it.
async fn records_at_once(subject: &Subject) {
    let fence = subject.granted(&subject.new_request()).await;
    let records: Vec<_> = (0..RUNNERS).map(|number| StepRecord::ended("pay", [number])).collect();
    let results = join_all(records.iter().enumerate().map(|(number, record)| {
        let store = if number % 2 == 0 { &subject.first } else { &subject.second };
        store.append(&fence, record)
    }))
    .await;
    let stored = subject.first.load(fence.call()).await.unwrap_or_default();
    assert_eq!(stored.len(), 1, "{stored:?}");
    for (record, result) in records.iter().zip(results) {
        let expected = if *record == stored[0] {
            Appended::First
        } else {
            Appended::Existing(stored[0].value().to_vec())
        };
        assert_eq!(outcome_of(result), Ok(expected));
    }
}

/// Either the outcome is stored and returned, or the leg is taken over and the outcome is refused.
async fn an_outcome_and_a_takeover_at_once(subject: &Subject) {
    let first = subject.new_request();
    let fence = subject.granted(&first).await;
    subject.clock.advance(LEASE);
    let other = request(first.call, 1, 1, 2).take_over(true);
    let (committed, claim) =
        join(subject.first.commit(&fence, b"outcome"), subject.second.claim(&other)).await;
    match (outcome_of(committed), outcome_of(claim)) {
        (Ok(()), Ok(Claim::Done(outcome))) => assert_eq!(outcome, b"outcome"),
        (Err(StoreErrorKind::FenceLost), Ok(Claim::Fresh(_))) => {}
        other => panic!("an outcome and a takeover at once: {other:?}"),
    }
}

/// One blob, stored by many at once.
async fn blobs_at_once(subject: &Subject) {
    let body = subject.new_request().call.to_string();
    let owner = Owner::from_bytes([7; 16]);
    let stores = (0..RUNNERS).map(|number| if number % 2 == 0 { &subject.first } else { &subject.second });
    for result in join_all(stores.map(|store| store.put(body.as_bytes(), KEEP, owner))).await {
        let digest = result.unwrap_or_else(|error| panic!("blobs at once: {error:?}"));
        assert_eq!(outcome_of(subject.first.get(digest).await), Ok(Some(body.clone().into_bytes())));
    }
}

/// An operation of a random order.
#[derive(Clone, Debug)]
enum Operation {
    Claim {
        runner: usize,
        leg: u32,
        answers: u8,
        take_over: bool,
        after: Option<(u32, u8)>,
        lease: u64,
        keep: u64,
    },
    Renew {
        runner: usize,
        lease: u64,
    },
    Append {
        runner: usize,
        record: StepRecord,
    },
    Commit {
        runner: usize,
        outcome: u8,
    },
    Release {
        runner: usize,
    },
    Load,
    Sweep,
    Advance(u64),
}

/// A reply without the numbers of fences.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Granted,
    Claim(Claim),
    Appended(Appended),
    Loaded(Vec<StepRecord>),
    Done,
    Failed(StoreErrorKind),
}

/// Compares a store with the memory store in random orders of operations of two runners: one order for each seed.
///
/// # Panics
///
/// If a reply differs. The text has the seed and the operations up to the difference.
pub async fn check_random_orders(subject: &Subject, seeds: Range<u64>, operations: usize) {
    for seed in seeds {
        check(subject, seed, operations).await;
    }
}

async fn check(subject: &Subject, seed: u64, operations: usize) {
    let mut random = Random(seed);
    let hand = subject.clock.clone();
    let model = MemoryStore::new().clock(StoreClock::from_fn(move || hand.now()));
    let call = subject.new_request().call;
    let mut fences: [Fences; 2] = Default::default();
    let mut history = Vec::new();
    for _ in 0..operations {
        let operation = random.operation();
        history.push(operation.clone());
        let runner = operation.runner();
        let own = runner.and_then(|runner| fences[runner].clone());
        let store = if random.below(2) == 0 { &*subject.first } else { &*subject.second };
        if let Operation::Advance(seconds) = operation {
            subject.clock.advance(Duration::from_secs(seconds));
            continue;
        }
        let (actual, granted) = run(store, call, &operation, own.as_ref().map(|(actual, _)| actual)).await;
        let (expected, model_granted) =
            run(&model, call, &operation, own.as_ref().map(|(_, model)| model)).await;
        assert_eq!(actual, expected, "the model replies otherwise: seed {seed}, {history:#?}");
        if let (Some(runner), Some(granted), Some(model_granted)) = (runner, granted, model_granted) {
            fences[runner] = Some((granted, model_granted));
        }
    }
}

/// The last fence of a runner, at the store and at the model.
type Fences = Option<(Fence, Fence)>;

async fn run(
    store: &dyn CallStore,
    call: crate::claim::CallKey,
    operation: &Operation,
    fence: Option<&Fence>,
) -> (Reply, Option<Fence>) {
    let never_given = Fence::new(call, 1);
    let fence = fence.unwrap_or(&never_given);
    let seconds = Duration::from_secs;
    let done = |result: Result<(), _>| outcome_of(result).map_or_else(Reply::Failed, |()| Reply::Done);
    let reply = match operation {
        Operation::Claim { runner, leg, answers, take_over, after, lease, keep } => {
            let runner = u8::try_from(*runner).unwrap_or(0);
            let after = after
                .map(|(leg, answers)| Predecessor { leg, fingerprint: crate::contract::answers(answers) });
            let request = request(call, *leg, *answers, runner).take_over(*take_over).after(after);
            match outcome_of(store.claim(&request.lease(seconds(*lease)).keep(seconds(*keep))).await) {
                Ok(Claim::Fresh(fence)) => return (Reply::Granted, Some(fence)),
                Ok(claim) => Reply::Claim(claim),
                Err(kind) => Reply::Failed(kind),
            }
        }
        Operation::Renew { lease, .. } => done(store.renew(fence, seconds(*lease)).await),
        Operation::Append { record, .. } => {
            outcome_of(store.append(fence, record).await).map_or_else(Reply::Failed, Reply::Appended)
        }
        Operation::Commit { outcome, .. } => done(store.commit(fence, &[*outcome]).await),
        Operation::Release { .. } => done(store.release(fence).await),
        Operation::Load => outcome_of(store.load(call).await).map_or_else(Reply::Failed, Reply::Loaded),
        // The number of removed rows differs: the store has those of other checks.
        Operation::Sweep => done(store.sweep(100).await.map(drop)),
        Operation::Advance(_) => Reply::Done,
    };
    (reply, None)
}

impl Operation {
    fn runner(&self) -> Option<usize> {
        match self {
            Self::Claim { runner, .. }
            | Self::Renew { runner, .. }
            | Self::Append { runner, .. }
            | Self::Commit { runner, .. }
            | Self::Release { runner } => Some(*runner),
            Self::Load | Self::Sweep | Self::Advance(_) => None,
        }
    }
}

/// Pseudorandom numbers, the same for the same seed: SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(super) fn small(&mut self, limit: u8) -> u8 {
        u8::try_from(self.below(limit.into())).unwrap_or(0)
    }

    fn operation(&mut self) -> Operation {
        let runner = usize::from(self.small(2));
        match self.below(16) {
            0..=5 => Operation::Claim {
                runner,
                leg: 1 + u32::from(self.small(3)),
                // Mostly the same answers, so that claims meet.
                answers: u8::from(self.below(5) == 0),
                take_over: self.below(3) == 0,
                after: (self.below(3) == 0)
                    .then(|| (1 + u32::from(self.small(2)), u8::from(self.below(5) == 0))),
                lease: 1 + self.below(3),
                keep: 4 + self.below(12),
            },
            6 => Operation::Renew { runner, lease: 1 + self.below(12) },
            7..=9 => {
                let step = ["a", "b"][usize::from(self.small(2))];
                let record = match self.below(3) {
                    0 => StepRecord::ended(step, [self.small(4)]),
                    attempt => StepRecord::started(step, u32::try_from(attempt).unwrap_or(1))
                        .with_value([self.small(4)]),
                };
                Operation::Append { runner, record }
            }
            10..=11 => Operation::Commit { runner, outcome: self.small(2) },
            12 => Operation::Release { runner },
            13 => Operation::Load,
            14 => Operation::Sweep,
            _ => Operation::Advance(1 + self.below(4)),
        }
    }
}
