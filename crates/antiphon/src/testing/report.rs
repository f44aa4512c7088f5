//! The comparison of a call's runs with each fault, and of their effects with those of a run without faults.

use crate::client::Call;
use crate::testing::{
    CallRun, Effect, Fault, Outcome,
    call_run::{Finding, FindingKind, Findings},
    client::in_session,
    fault_injection::{faults_of, session_crashes},
    run::run,
    setup::Setup,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The runs of one call: one without faults, and one per fault and boundary.
#[derive(Clone, Debug)]
#[must_use = "check the report with `expect_same_result` and `expect_effects`"]
pub struct Report {
    plain: CallRun,
    /// The run on the newer build alone, without faults.
    upgraded: Option<CallRun>,
    runs: Vec<(Fault, CallRun)>,
    findings: Vec<Finding>,
}

impl Report {
    /// Runs the call once without faults, then once with each fault.
    pub(super) async fn make(setup: &Setup, call: &Call) -> Self {
        let plain = run(setup, call, None, false).await;
        let upgraded = match setup.upgrade {
            Some(_) => Some(run(setup, call, None, true).await),
            None => None,
        };
        let mut report = Self { plain, upgraded, runs: Vec::new(), findings: Vec::new() };
        if report.check_plain(setup) {
            for fault in faults_of(setup, &report.plain) {
                report.try_fault(setup, call, fault).await;
            }
            let polls = report.polls_in_session(setup, call).await;
            for fault in session_crashes(setup, polls) {
                report.try_fault(setup, call, fault).await;
            }
        }
        report
    }

    async fn try_fault(&mut self, setup: &Setup, call: &Call, fault: Fault) {
        let done = run(setup, call, Some(&fault), false).await;
        self.check_run(setup, &fault, &done);
        self.runs.push((fault, done));
    }

    /// Returns the number of polls of the call in a session; 0 if no session makes it to its end.
    async fn polls_in_session(&self, setup: &Setup, call: &Call) -> usize {
        if !self.plain.has_sessions || session_crashes(setup, usize::MAX).is_empty() {
            return 0;
        }
        let made = self.runs.iter().find(|(fault, _)| *fault == Fault::Session);
        let polls = |done: &CallRun| if done.fault_occurred { done.legs[0].polls } else { 0 };
        match made {
            Some((_, done)) => polls(done),
            None => polls(&run(setup, call, Some(&Fault::Session), false).await),
        }
    }

    /// The run without faults.
    pub fn plain(&self) -> &CallRun {
        &self.plain
    }

    /// The faults, each with its run. Empty if the run without faults does not succeed.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = (&Fault, &CallRun)> {
        self.runs.iter().map(|(fault, done)| (fault, done))
    }

    /// The faults after which the call ended as `outcome_unknown`, as the level of its tool permits: a person has to find out.
    /// They are no findings. `reconcile` and `rerun_after_crash` avoid them.
    pub fn unknown(&self) -> impl Iterator<Item = &Fault> {
        self.runs.iter().filter(|(_, done)| done.is_unknown).map(|(fault, _)| fault)
    }

    /// The findings, without those about effects.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the violations of `guarantee` in the effects.
    pub fn effect_findings(&self, guarantee: Guarantee) -> Vec<Finding> {
        let found = |fault, text| Finding::new(fault, FindingKind::Effects, text);
        let mut findings: Vec<Finding> =
            repeated(&self.plain).into_iter().map(|text| found(None, text)).collect();
        for (fault, done) in &self.runs {
            let repeated = if findings.is_empty() { repeated(done) } else { Vec::new() };
            let wrong = compare(&self.plain, self.upgraded.as_ref(), fault, done, guarantee);
            findings.extend(repeated.into_iter().chain(wrong).map(|text| found(Some(fault), text)));
        }
        findings
    }

    /// Asserts that [`findings`](Self::findings) is empty: every run asked the same questions and returned the same
    /// result, or is [unknown](Self::unknown); the server rejected every request that it must reject, and the handler is
    /// deterministic.
    ///
    /// # Panics
    /// If there are findings. The message lists each fault and the difference.
    #[track_caller]
    pub fn expect_same_result(&self) -> &Self {
        assert!(self.findings.is_empty(), "{} of {self}:{}", self.findings.len(), Findings(&self.findings));
        self
    }

    /// Asserts that the effects of every run comply with `guarantee`.
    ///
    /// # Panics
    /// If they do not. The message lists each fault and the difference.
    #[track_caller]
    pub fn expect_effects(&self, guarantee: Guarantee) -> &Self {
        let findings = self.effect_findings(guarantee);
        assert!(findings.is_empty(), "{} of {self}:{}", findings.len(), Findings(&findings));
        self
    }

    /// Checks the runs without faults. Returns false if they failed, so that runs with faults are useless.
    fn check_plain(&mut self, setup: &Setup) -> bool {
        for done in [Some(&self.plain), self.upgraded.as_ref()].into_iter().flatten() {
            self.findings.extend(done.findings.iter().cloned());
            let fine = match &done.outcome {
                Outcome::Complete(_) => true,
                Outcome::Error(_) => setup.may_fail,
                Outcome::Refused | Outcome::Stopped(_) => false,
            };
            if !fine {
                let text = format!("the call ends with {}", done.describe_compared(setup));
                self.findings.push(Finding::new(None, done.outcome.finding_kind(), text));
                return false;
            }
        }
        true
    }

    /// Compares a run with the one without faults.
    fn check_run(&mut self, setup: &Setup, fault: &Fault, done: &CallRun) {
        // Replay findings of the run without faults are not repeated.
        let known = |finding: &Finding| {
            finding.kind == FindingKind::Replay
                && self.plain.findings.iter().any(|plain| plain.text == finding.text)
        };
        self.findings.extend(done.findings.iter().filter(|finding| !known(finding)).cloned());
        if done.outcome == Outcome::Refused || done.is_unknown || done.is_exempt(fault) {
            return;
        }
        let kind = done.outcome.finding_kind();
        let mut found = |text| self.findings.push(Finding::new(Some(fault), kind, text));
        if let (Fault::Upgrade { .. }, Some(upgrade)) = (fault, &setup.upgrade)
            && upgrade.is_refused
        {
            if !done.outcome.refuses_a_version() {
                found(format!(
                    "the newer build must refuse the call, but the call ended with {}",
                    done.describe_compared(setup)
                ));
            }
            return;
        }
        if let Fault::SessionCrash { .. } = fault {
            // Another call may have another result, but no other end.
            if done.outcome.has_failed() && !self.plain.outcome.has_failed() {
                found(format!("the next call ends with {}", done.describe_compared(setup)));
            }
            return;
        }
        let like = match (fault, &self.upgraded) {
            (Fault::Upgrade { .. }, Some(upgraded)) => upgraded,
            _ => &self.plain,
        };
        let (mut ended, mut expected) = (done.outcome.comparable(setup), like.outcome.comparable(setup));
        if *fault == Fault::Session {
            (ended, expected) = (in_session(ended), in_session(expected));
        }
        if ended != expected {
            let may =
                fault.repeats_first_leg() && self.plain.effects.all().iter().any(|effect| effect.leg == 1);
            let hint = if may {
                " (code before the first ask runs once per request sent: move it behind the ask, or remove \
                 what it changes with `Bench::disregard`)"
            } else if matches!(fault, Fault::Upgrade { .. }) && done.outcome.refuses_a_version() {
                " (use `Bench::upgrade_refused` for a build that must refuse calls of an older one)"
            } else if done.outcome.is_in_flight() {
                " (the lease does not end on the bench's clock: give the store the clock of `Effects::store_clock`)"
            } else {
                ""
            };
            found(format!(
                "the call ends with {}, and without faults with {}{hint}",
                done.describe_compared(setup),
                like.outcome.disregarded(setup)
            ));
        } else if keeps_legs(fault) && done.asked() != like.asked() {
            let (asked, expected) = (done.asked().join(", "), like.asked().join(", "));
            found(format!("the call asks {asked}, and without faults {expected}"));
        }
    }
}

/// Returns true if the fault does not cause a question to be asked again.
fn keeps_legs(fault: &Fault) -> bool {
    !matches!(
        fault,
        Fault::Upgrade { .. }
            | Fault::Expire { .. }
            | Fault::PartialAnswers { .. }
            | Fault::InvalidAnswers { .. }
            | Fault::Session
    )
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a call of {} legs with {} faults", self.plain.legs.len(), self.runs.len())
    }
}

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
