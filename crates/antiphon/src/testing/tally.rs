//! Effects of a run, compared with those of a run in which nothing went wrong.

use super::{Done, Effect, Fault, Outcome, Report};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of effects when something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guarantee {
    /// What a server without a store promises. A step behind the first ask has one idempotency key, however often its
    /// leg is sent. What stands before the first ask runs once per request, each time under a new key: the call only
    /// begins with its first state.
    AtLeastOnce,
    /// Nothing stands before the first ask, so that each effect has one key, whatever happens: a provider that knows
    /// idempotency keys does it once.
    OneKeyEach,
}

/// How often one thing happened in one run.
#[derive(Debug, Default)]
struct Tally {
    /// Keys that were first used in the first leg.
    early: usize,
    /// Keys that were first used in a later leg.
    late: usize,
    /// How often it happened in each leg.
    runs: BTreeMap<u16, usize>,
}

impl Tally {
    fn of(effects: &[Effect], name: &str) -> Self {
        let (mut tally, mut seen) = (Self::default(), BTreeSet::new());
        for effect in effects.iter().filter(|effect| effect.name == name) {
            *tally.runs.entry(effect.leg).or_default() += 1;
            if seen.insert(&effect.key) {
                *(if effect.leg <= 1 { &mut tally.early } else { &mut tally.late }) += 1;
            }
        }
        tally
    }

    fn keys(&self) -> usize {
        self.early + self.late
    }

    fn runs(&self) -> usize {
        self.runs.values().sum()
    }
}

/// A key that was used in several legs: a recorded step runs in one.
pub(super) fn repeated(done: &Done) -> Vec<String> {
    let mut legs: BTreeMap<(String, String), BTreeSet<u16>> = BTreeMap::new();
    for effect in done.effects.all() {
        legs.entry((effect.name, effect.key)).or_default().insert(effect.leg);
    }
    let repeated = legs.into_iter().filter(|(_, legs)| legs.len() > 1);
    repeated
        .map(|((name, key), legs)| {
            let legs: Vec<String> = legs.iter().map(u16::to_string).collect();
            let legs = legs.join(", ");
            format!("`{name}` happened under the key `{key}` in the legs {legs}: it stands outside of a step")
        })
        .collect()
}

/// What is wrong with the effects of a disturbed run.
pub(super) fn compare(report: &Report, fault: &Fault, done: &Done, guarantee: Guarantee) -> Vec<String> {
    let (plain, disturbed) = (report.plain.effects.all(), done.effects.all());
    let newer = report.upgraded.as_ref().map(|done| done.effects.all()).unwrap_or_default();
    let names: BTreeSet<&str> =
        plain.iter().chain(&newer).chain(&disturbed).map(|effect| effect.name.as_str()).collect();
    let mut wrong = Vec::new();
    for name in names {
        let (expected, found) = (Tally::of(&plain, name), Tally::of(&disturbed, name));
        let fault = match fault {
            Fault::Upgrade { .. } => {
                let newer = Tally::of(&newer, name).keys();
                between(expected.keys().min(newer), expected.keys().max(newer), found.keys())
            }
            // What stood before the first ask may stand behind a state now.
            Fault::Drain { .. } => between(expected.keys(), expected.keys(), found.keys()),
            // The call went only so far.
            _ if done.outcome == Outcome::Refused => between(0, expected.keys(), found.keys()),
            _ => against(&expected, &found, done, guarantee),
        };
        wrong.extend(fault.map(|fault| format!("`{name}` {fault}")));
    }
    wrong
}

fn against(expected: &Tally, found: &Tally, done: &Done, guarantee: Guarantee) -> Option<String> {
    let sent = |leg: &u16| done.begun.get(leg).copied().unwrap_or(1).max(1);
    if expected.late != found.late {
        return Some(format!(
            "happened under {} keys behind the first ask, and under {} when nothing goes wrong",
            found.late, expected.late
        ));
    }
    let most = if guarantee == Guarantee::OneKeyEach { expected.early } else { expected.early * sent(&1) };
    if let Some(fault) = between(expected.early, most, found.early) {
        return Some(format!("{fault} before the first ask"));
    }
    // Whoever asks again shifts legs, but then sends each only once.
    let bound: usize = expected.runs.iter().map(|(leg, runs)| runs * sent(leg)).sum();
    let bound = bound.max(expected.runs());
    (found.runs() > bound)
        .then(|| format!("happened {} times; the requests that were sent allow {bound}", found.runs()))
}

fn between(least: usize, most: usize, found: usize) -> Option<String> {
    let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
    (!(least..=most).contains(&found)).then(|| format!("happened under {found} keys instead of {expected}"))
}
