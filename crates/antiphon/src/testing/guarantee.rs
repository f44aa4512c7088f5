//! Compares the effects of a run with those of a run without faults.

use super::{CallRun, Effect, Fault, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// The guarantee about effects when a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guarantee {
    /// The guarantee of a server without a store. A step after the first ask has one idempotency key, even if its leg is
    /// sent several times. A step before the first ask runs once per request, each time with a new key, because the call
    /// begins with its first state.
    AtLeastOnce,
    /// Each effect has one key with every fault, so a provider that supports idempotency keys acts once. This requires
    /// that there are no effects before the first ask.
    OneKeyEach,
    /// Each effect happens as often as without faults, and at most as often if the server refused to go on
    /// (`outcome_unknown`, an expired state). The guarantee of `single_use`, and of `write_ahead` if each step has
    /// [`reconcile`](crate::server::steps::Step::reconcile); with `rerun_after_crash` the guarantee is
    /// [`OneKeyEach`](Self::OneKeyEach).
    AtMostOnce,
}

/// The counts of one effect in one run.
#[derive(Debug, Default)]
struct Counts {
    /// The number of keys first used in the first leg.
    early: usize,
    /// The number of keys first used in a later leg.
    late: usize,
    /// The number of times it happened, by leg.
    runs: BTreeMap<u16, usize>,
}

impl Counts {
    fn of(effects: &[Effect], name: &str) -> Self {
        let (mut counts, mut seen) = (Self::default(), BTreeSet::new());
        for effect in effects.iter().filter(|effect| effect.name == name) {
            *counts.runs.entry(effect.leg).or_default() += 1;
            if seen.insert(&effect.key) {
                *(if effect.leg <= 1 { &mut counts.early } else { &mut counts.late }) += 1;
            }
        }
        counts
    }

    fn keys(&self) -> usize {
        self.early + self.late
    }

    fn runs(&self) -> usize {
        self.runs.values().sum()
    }
}

/// Returns a message for each key that was used in several legs. A recorded step runs in one leg only.
pub(super) fn repeated(done: &CallRun) -> Vec<String> {
    let mut legs: BTreeMap<(String, String), BTreeSet<u16>> = BTreeMap::new();
    for effect in done.effects.all() {
        legs.entry((effect.name, effect.key)).or_default().insert(effect.leg);
    }
    let repeated = legs.into_iter().filter(|(_, legs)| legs.len() > 1);
    repeated
        .map(|((name, key), legs)| {
            let legs: Vec<String> = legs.iter().map(u16::to_string).collect();
            let legs = legs.join(", ");
            format!("`{name}` happened under the key `{key}` in the legs {legs}: it is outside of a step")
        })
        .collect()
}

/// Returns the violations of `guarantee` in a run with a fault. `plain` is the run without faults, `upgraded` the same on
/// the newer build.
pub(super) fn compare(
    plain: &CallRun,
    upgraded: Option<&CallRun>,
    fault: &Fault,
    done: &CallRun,
    guarantee: Guarantee,
) -> Vec<String> {
    let (plain, disturbed) = (plain.effects.all(), done.effects.all());
    let newer = upgraded.map(|done| done.effects.all()).unwrap_or_default();
    let names: BTreeSet<&str> =
        plain.iter().chain(&newer).chain(&disturbed).map(|effect| effect.name.as_str()).collect();
    let mut wrong = Vec::new();
    for name in names {
        let (expected, found) = (Counts::of(&plain, name), Counts::of(&disturbed, name));
        let fault = match fault {
            Fault::Upgrade { .. } => {
                let newer = Counts::of(&newer, name).keys();
                between(expected.keys().min(newer), expected.keys().max(newer), found.keys())
            }
            // Effects before the first ask may be in a later leg now.
            Fault::Drain { .. } if guarantee != Guarantee::AtMostOnce => {
                between(expected.keys(), expected.keys(), found.keys())
            }
            Fault::SessionCrash { .. } if done.called_again.is_some() => {
                two_calls(&plain, &disturbed, name, done)
            }
            // The call ended early.
            _ if done.outcome == Outcome::Refused || done.is_unknown || done.is_exempt(fault) => {
                between(0, expected.keys(), found.keys()).or_else(|| match guarantee {
                    Guarantee::AtMostOnce => times(0, expected.runs(), found.runs()),
                    Guarantee::AtLeastOnce | Guarantee::OneKeyEach => None,
                })
            }
            // Nothing is interrupted in a session.
            _ if guarantee == Guarantee::AtMostOnce || *fault == Fault::Session => {
                times(expected.runs(), expected.runs(), found.runs())
            }
            _ => against(&expected, &found, done, guarantee),
        };
        wrong.extend(fault.map(|fault| format!("`{name}` {fault}")));
    }
    wrong
}

/// Checks the effects of a call whose session was lost, and of the call after it.
fn two_calls(plain: &[Effect], disturbed: &[Effect], name: &str, done: &CallRun) -> Option<String> {
    let first_of_next = done.called_again?;
    let (lost, next): (Vec<Effect>, Vec<Effect>) =
        disturbed.iter().cloned().partition(|effect| effect.request < first_of_next);
    let [expected, lost, next] = [plain, &lost, &next].map(|effects| Counts::of(effects, name).runs());
    // A tool may find out what the lost call has done, and do the rest.
    let least = expected.saturating_sub(lost);
    let of_next = |wrong| format!("{wrong} in the call after the lost one, which had done it {lost} times");
    times(0, expected, lost)
        .map(|wrong| format!("{wrong} in the lost call"))
        .or_else(|| times(least, expected, next).map(of_next))
}

fn against(expected: &Counts, found: &Counts, done: &CallRun, guarantee: Guarantee) -> Option<String> {
    let sent = |leg: &u16| done.begun.get(leg).copied().unwrap_or(1).max(1);
    if expected.late != found.late {
        return Some(format!(
            "happened under {} keys after the first ask, and under {} without faults",
            found.late, expected.late
        ));
    }
    let most = if guarantee == Guarantee::OneKeyEach { expected.early } else { expected.early * sent(&1) };
    if let Some(fault) = between(expected.early, most, found.early) {
        return Some(format!("{fault} before the first ask"));
    }
    // Questions that are asked again add legs, but each of those is sent once.
    let bound: usize = expected.runs.iter().map(|(leg, runs)| runs * sent(leg)).sum();
    let bound = bound.max(expected.runs());
    (found.runs() > bound)
        .then(|| format!("happened {} times; the requests that were sent allow {bound}", found.runs()))
}

fn between(least: usize, most: usize, found: usize) -> Option<String> {
    let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
    (!(least..=most).contains(&found)).then(|| format!("happened under {found} keys instead of {expected}"))
}

fn times(least: usize, most: usize, found: usize) -> Option<String> {
    let expected = match least {
        _ if least == most => least.to_string(),
        0 => format!("at most {most}"),
        _ => format!("{least} to {most}"),
    };
    (!(least..=most).contains(&found)).then(|| format!("happened {found} times instead of {expected}"))
}
