//! The comparison of a call's runs with each fault.

use super::{
    CallRun, Fault, Guarantee, Outcome,
    finding::{Finding, FindingKind, Findings},
    guarantee,
    run::run,
    schedule::{faults_of, session_crashes},
    session::in_session,
    setup::Setup,
};
use crate::client::Call;
use std::fmt;

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
            guarantee::repeated(&self.plain).into_iter().map(|text| found(None, text)).collect();
        for (fault, done) in &self.runs {
            let repeated = if findings.is_empty() { guarantee::repeated(done) } else { Vec::new() };
            let wrong = guarantee::compare(&self.plain, self.upgraded.as_ref(), fault, done, guarantee);
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
