//! The faults that are tried on a call, each at every boundary.

use super::{CallRun, DuplicateTiming, Fault, setup::Setup};

/// The maximum number of polls of one leg that are tried. In longer legs they are spread evenly.
const POLLS: usize = 64;

/// Returns every fault that applies to a call whose run without faults was `plain`.
pub(super) fn faults_of(setup: &Setup, plain: &CallRun) -> Vec<Fault> {
    let mut faults = vec![Fault::Move, Fault::ReversedAnswers, Fault::SlowUser];
    if plain.has_sessions {
        faults.push(Fault::Session);
    }
    let last = plain.legs.len() as u16;
    for leg in 1..=last {
        faults.push(Fault::Crash { leg, polls: 0 });
        let times = plain.legs[usize::from(leg) - 1].polls.saturating_sub(1);
        for polls in spread(times) {
            faults.extend([Fault::Crash { leg, polls }, Fault::Disconnect { leg, polls }]);
        }
        for timing in [
            DuplicateTiming::AfterReply,
            DuplicateTiming::Concurrent,
            DuplicateTiming::ConcurrentOnAnotherReplica,
        ] {
            faults.push(Fault::Duplicate { leg, timing });
        }
        faults.extend([Fault::Drain { leg }, Fault::UnsolicitedAnswer { leg }]);
        if leg > 1 {
            faults.extend((leg..=last).map(|after| Fault::Replay { leg, after }));
            faults.extend(of_later(setup, plain, leg));
        }
    }
    faults.retain(|fault| (setup.chosen)(fault));
    faults
}

/// Returns the crashes of an instance whose session makes the call. `whole`: the polls of the call in a session.
pub(super) fn session_crashes(setup: &Setup, whole: usize) -> Vec<Fault> {
    let crashes = spread(whole.saturating_sub(1)).map(|polls| Fault::SessionCrash { polls });
    crashes.filter(|fault| (setup.chosen)(fault)).collect()
}

/// Returns [`POLLS`] of the numbers of polls up to `times`.
fn spread(times: usize) -> impl Iterator<Item = usize> {
    (1..=times).step_by(times.div_ceil(POLLS).max(1))
}

/// Returns the faults that apply only to a leg with request state.
fn of_later(setup: &Setup, plain: &CallRun, leg: u16) -> Vec<Fault> {
    let mut faults = vec![Fault::Tamper { leg }, Fault::Expire { leg }];
    let asked = plain.legs[usize::from(leg) - 2].asked.len();
    if asked > 0 {
        faults.push(Fault::InvalidAnswers { leg });
    }
    if asked > 1 {
        faults.push(Fault::PartialAnswers { leg });
    }
    if setup.upgrade.is_some() {
        faults.push(Fault::Upgrade { leg });
    }
    faults
}
