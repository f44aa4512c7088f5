//! Every order of two runners, two legs, two sets of answers, a crash at each point, and time: the row keeps its promises.

use super::{Change, Operation, Phase, Reply, Row, transition};
use crate::{
    claim::{CallKey, Claim, ClaimRequest, Conflict, Fence, Fingerprint, Owner, Predecessor, RunnerId},
    clock::Micros,
    step::StepRecord,
};
use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

const TICK: Duration = Duration::from_millis(1);
const LEASE: Duration = Duration::from_millis(1);
const KEEP: Duration = Duration::from_millis(2);
/// The last tick. The first row may expire at the third, so a second one may begin.
const LAST_TICK: u32 = 3;
const CALL: CallKey = CallKey::from_bytes([1; 16]);
const ANSWERS: [Fingerprint; 2] = [Fingerprint::from_bytes([10; 16]), Fingerprint::from_bytes([11; 16])];

/// The store, its two runners, and what was promised to them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct System {
    tick: u32,
    row: Option<Row>,
    runners: [Runner; 2],
    /// The outcome of each leg that was committed in the life of the row.
    outcomes: [Option<u8>; 2],
    /// The moment before which the row must not be forgotten.
    promised: Micros,
    highest_fence: i64,
}

/// A runner: its fence, if it has one, and the number of its crashes and releases.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Runner {
    fence: Option<Fence>,
    crashes: u8,
    releases: u8,
}

/// An action of a runner, or of time.
#[derive(Clone, Copy, Debug)]
enum Action {
    Tick,
    Claim { runner: usize, leg: u32, answers: usize, take_over: bool },
    Renew(usize),
    Start(usize),
    End(usize),
    Commit(usize),
    Release(usize),
    Crash(usize),
}

fn actions(system: &System) -> Vec<Action> {
    let mut all = Vec::new();
    if system.tick < LAST_TICK {
        all.push(Action::Tick);
    }
    for (runner, state) in system.runners.iter().enumerate() {
        if state.fence.is_some() {
            all.extend([Action::Renew(runner), Action::Start(runner), Action::End(runner)]);
            all.push(Action::Commit(runner));
            if system.runners.iter().all(|runner| runner.releases == 0) {
                all.push(Action::Release(runner));
            }
        }
        if state.fence.is_some() && system.runners.iter().all(|runner| runner.crashes == 0) {
            all.push(Action::Crash(runner));
        }
        for (leg, take_over) in [(1, false), (1, true), (2, false), (2, true)] {
            all.push(Action::Claim { runner, leg, answers: 0, take_over });
        }
        // The other answers come from one runner only: the runners are alike.
        if runner == 1 && system.tick > 1 {
            all.push(Action::Claim { runner, leg: 1, answers: 1, take_over: true });
        }
    }
    all
}

/// Does the action, checks the promises, and returns the next state.
fn act(mut system: System, action: Action) -> System {
    let now = Micros::default().after(TICK * system.tick);
    let (name, fence) = match action {
        Action::Tick => {
            system.tick += 1;
            return system;
        }
        Action::Crash(runner) => {
            system.runners[runner].fence = None;
            system.runners[runner].crashes += 1;
            return system;
        }
        Action::Claim { runner, leg, answers, take_over } => {
            let id = RunnerId::from_bytes(
                [u8::try_from(runner).unwrap() * 8 + system.runners[runner].crashes; 16],
            );
            let after = (leg == 2).then_some(Predecessor { leg: 1, fingerprint: ANSWERS[0] });
            let request = ClaimRequest::new(CALL, leg, ANSWERS[answers], id, Owner::from_bytes([0; 16]));
            let request = request.lease(LEASE).keep(KEEP).after(after).take_over(take_over);
            return claim(system, runner, &request, now);
        }
        Action::Renew(runner) | Action::Start(runner) | Action::End(runner) => {
            (runner, &system.runners[runner].fence)
        }
        Action::Commit(runner) | Action::Release(runner) => (runner, &system.runners[runner].fence),
    };
    let (runner, fence) = (name, fence.clone().unwrap());
    let (start, end) = (StepRecord::started("s", 1), StepRecord::ended("s", vec![]));
    let outcome = [u8::try_from(runner).unwrap(), system.runners[runner].crashes];
    let operation = match action {
        Action::Renew(_) => Operation::Renew(&fence, LEASE),
        Action::Start(_) => Operation::Append(&fence, &start),
        Action::End(_) => Operation::Append(&fence, &end),
        Action::Commit(_) => Operation::Commit(&fence, &outcome),
        _ => Operation::Release(&fence),
    };
    let (change, reply) = transition(system.row.as_ref(), operation, now);
    let current = system.row.as_ref().is_some_and(|row| row.fence == fence.number() && !row.is_expired(now));
    if !current {
        assert_eq!(
            (&change, &reply),
            (&Change::Nothing, &Reply::FenceLost),
            "an old fence wrote: {action:?}"
        );
    }
    if let (Change::Update(after), Some(before)) = (&change, &system.row) {
        assert!(!matches!(before.phase, Phase::Done { .. }), "an outcome was replaced: {action:?}");
        if matches!(after.phase, Phase::Done { .. }) {
            let slot = &mut system.outcomes[after.leg as usize - 1];
            assert_eq!(*slot, None, "leg {} has two outcomes", after.leg);
            *slot = Some(outcome[0]);
        }
    }
    system.runners[runner].releases += u8::from(matches!(action, Action::Release(_)));
    if reply == Reply::FenceLost {
        system.runners[runner].fence = None;
    }
    system.row = change.apply(system.row);
    system
}

fn claim(mut system: System, runner: usize, request: &ClaimRequest, now: Micros) -> System {
    let (change, reply) = transition(system.row.as_ref(), Operation::Claim(request), now);
    let Reply::Claim(claim) = reply else { panic!("a claim replied {reply:?}") };
    let leased = |row: &Row| matches!(row.phase, Phase::Running { lease_until } if now < lease_until);
    let row = system.row.clone();
    let before = row.as_ref().filter(|row| now < system.promised || leased(row));
    if let Claim::Fresh(fence) = &claim {
        check_granted(&system, before, request, &change, fence, now);
        if matches!(change, Change::Create(_)) {
            system.outcomes = [None, None];
        }
        system.highest_fence = system.highest_fence.max(fence.number());
        system.promised = system.promised.max(now.after(KEEP));
        system.runners[runner].fence = Some(fence.clone());
    } else {
        assert_eq!(change, Change::Nothing, "a claim that was not granted wrote");
    }
    if let Claim::Done(outcome) = &claim {
        assert_eq!(system.outcomes[request.leg as usize - 1], Some(outcome[0]), "the outcome changed");
    }
    if let Some(row) = before
        && matches!(row.phase, Phase::Done { .. })
        && row.as_predecessor() == request.as_predecessor()
    {
        assert!(matches!(claim, Claim::Done(_)), "an outcome was lost: {claim:?}");
    }
    if before.is_some_and(|row| request.leg < row.leg) {
        assert_eq!(claim, Claim::Conflict(Conflict::EarlierLeg));
    }
    system.row = change.apply(system.row);
    system
}

/// Checks a claim that was granted.
fn check_granted(
    system: &System,
    before: Option<&Row>,
    request: &ClaimRequest,
    change: &Change,
    fence: &Fence,
    now: Micros,
) {
    let after = change.clone().apply(system.row.clone()).unwrap();
    assert_eq!(fence.number(), after.fence);
    let repeated = before.is_some_and(|row| row.fence == after.fence);
    if repeated {
        assert_eq!(before.map(|row| row.runner), Some(request.runner), "two runners with one fence");
    } else {
        assert!(fence.number() > system.highest_fence, "a fence was given twice");
    }
    match before {
        None => {}
        Some(row) => {
            assert!(!matches!(change, Change::Create(_)), "a row was forgotten early");
            assert!(request.leg >= row.leg);
            let same_leg = request.leg == row.leg;
            match row.phase {
                Phase::Done { .. } => assert!(!same_leg, "a leg with an outcome runs again"),
                Phase::Running { lease_until } if !repeated => {
                    assert!(same_leg && request.take_over && now >= lease_until, "two runners of one leg");
                }
                Phase::Running { .. } => {}
                Phase::Released => assert!(
                    !same_leg
                        || row.fingerprint == request.fingerprint
                        || row.marks.iter().all(|mark| mark.leg != row.leg),
                    "steps of other answers"
                ),
            }
        }
    }
}

#[test]
fn the_row_keeps_its_promises_in_every_order() {
    let start = System {
        tick: 1,
        row: None,
        runners: Default::default(),
        outcomes: [None, None],
        promised: Micros::default(),
        highest_fence: 0,
    };
    let mut seen = HashSet::from([start.clone()]);
    let mut waiting = VecDeque::from([start]);
    let (mut second_legs, mut take_overs) = (0_usize, 0_usize);
    while let Some(system) = waiting.pop_front() {
        for action in actions(&system) {
            let next = act(system.clone(), action);
            second_legs += usize::from(next.outcomes[1].is_some());
            take_overs += usize::from(
                matches!(action, Action::Claim { take_over: true, .. }) && next.row != system.row,
            );
            if seen.insert(next.clone()) {
                waiting.push_back(next);
            }
        }
    }
    // The search reached what it is for.
    assert!(seen.len() > 30_000, "{} states", seen.len());
    assert!(second_legs > 0 && take_overs > 0);
}
