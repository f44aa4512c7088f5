//! A call in which everything went wrong, once each.

use super::{
    Bench, Done, Fault, Guarantee, Outcome,
    finding::{About, Finding, Findings},
    run::run,
    tally,
};
use crate::client::Call;
use std::fmt;

/// What became of a call under every fault at every boundary.
#[derive(Clone, Debug)]
#[must_use = "ask it with `expect_same_result` and `expect_effects`"]
pub struct Report {
    pub(super) plain: Done,
    /// On the newer build alone.
    pub(super) upgraded: Option<Done>,
    runs: Vec<(Fault, Done)>,
    findings: Vec<Finding>,
}

impl Report {
    /// Runs the call once as it is, then once with each fault.
    pub(super) async fn make(bench: &Bench, call: &Call) -> Self {
        let plain = run(bench, call, None, false).await;
        let upgraded = match bench.upgrade {
            Some(_) => Some(run(bench, call, None, true).await),
            None => None,
        };
        let mut report = Self { plain, upgraded, runs: Vec::new(), findings: Vec::new() };
        if report.look_at_plain(bench) {
            for fault in Fault::all(bench, &report.plain) {
                let done = run(bench, call, Some(&fault), false).await;
                report.look_at(bench, &fault, &done);
                report.runs.push((fault, done));
            }
        }
        report
    }

    /// The call in which nothing went wrong.
    pub fn plain(&self) -> &Done {
        &self.plain
    }

    /// Every fault, and the call in which it happened. None, if the call does not succeed when nothing goes wrong.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = (&Fault, &Done)> {
        self.runs.iter().map(|(fault, done)| (fault, done))
    }

    /// All that must not be, effects aside.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// What is wrong with the effects, if this is guaranteed.
    pub fn effect_findings(&self, guarantee: Guarantee) -> Vec<Finding> {
        let found = |fault, text| Finding::new(fault, About::Effects, text);
        let mut findings: Vec<Finding> =
            tally::repeated(&self.plain).into_iter().map(|text| found(None, text)).collect();
        for (fault, done) in &self.runs {
            let repeated = if findings.is_empty() { tally::repeated(done) } else { Vec::new() };
            let wrong = tally::compare(self, fault, done, guarantee);
            findings.extend(repeated.into_iter().chain(wrong).map(|text| found(Some(fault), text)));
        }
        findings
    }

    /// Whatever happened, the call asked the same questions and ended with the same result; what had to be refused was;
    /// and the handler runs the same way twice.
    ///
    /// # Panics
    /// If not, with what was done to the call and what differs.
    #[track_caller]
    pub fn expect_same_result(&self) -> &Self {
        assert!(self.findings.is_empty(), "{} of {self}:{}", self.findings.len(), Findings(&self.findings));
        self
    }

    /// Whatever happened, the effects were as guaranteed.
    ///
    /// # Panics
    /// If not, with what was done to the call and what differs.
    #[track_caller]
    pub fn expect_effects(&self, guarantee: Guarantee) -> &Self {
        let findings = self.effect_findings(guarantee);
        assert!(findings.is_empty(), "{} of {self}:{}", findings.len(), Findings(&findings));
        self
    }

    /// Whether it is worth going on.
    fn look_at_plain(&mut self, bench: &Bench) -> bool {
        for done in [Some(&self.plain), self.upgraded.as_ref()].into_iter().flatten() {
            self.findings.extend(done.findings.iter().cloned());
            let fine = match &done.outcome {
                Outcome::Complete(_) => true,
                Outcome::Error(_) => bench.may_fail,
                Outcome::Refused | Outcome::Stopped(_) => false,
            };
            if !fine {
                let text = format!("the call comes to {}", done.came_to());
                self.findings.push(Finding::new(None, done.outcome.about(), text));
                return false;
            }
        }
        true
    }

    fn look_at(&mut self, bench: &Bench, fault: &Fault, done: &Done) {
        // What the handler does anyway is said once.
        let known = |finding: &Finding| {
            finding.about == About::Replay
                && self.plain.findings.iter().any(|plain| plain.text == finding.text)
        };
        self.findings.extend(done.findings.iter().filter(|finding| !known(finding)).cloned());
        if done.outcome == Outcome::Refused {
            return;
        }
        let about = done.outcome.about();
        let mut found = |text| self.findings.push(Finding::new(Some(fault), about, text));
        if let (Fault::Upgrade { .. }, Some(upgrade)) = (fault, &bench.upgrade)
            && upgrade.is_refused
        {
            if !done.outcome.refuses_a_version() {
                found(format!("a newer build was to refuse the call, but it came to {}", done.came_to()));
            }
            return;
        }
        let like = match (fault, &self.upgraded) {
            (Fault::Upgrade { .. }, Some(upgraded)) => upgraded,
            _ => &self.plain,
        };
        if done.outcome.comparable(bench) != like.outcome.comparable(bench) {
            let may =
                fault.repeats_first_leg() && self.plain.effects.all().iter().any(|effect| effect.leg == 1);
            let hint = if may {
                " (what stands before the first ask runs once per request sent: move it behind the ask, or \
                 `Bench::disregard` what it may change)"
            } else if matches!(fault, Fault::Upgrade { .. }) && done.outcome.refuses_a_version() {
                " (a build that is to refuse what an older one began is given with `Bench::upgrade_refused`)"
            } else {
                ""
            };
            found(format!(
                "the call comes to {}, and when nothing goes wrong to {}{hint}",
                done.came_to(),
                like.outcome
            ));
        } else if keeps_legs(fault) && done.asked() != like.asked() {
            let (asked, expected) = (done.asked().join(", "), like.asked().join(", "));
            found(format!("the call asks {asked}, and when nothing goes wrong {expected}"));
        }
    }
}

/// Whether nothing is asked again because of it.
fn keeps_legs(fault: &Fault) -> bool {
    !matches!(
        fault,
        Fault::Upgrade { .. }
            | Fault::Expire { .. }
            | Fault::PartOfTheAnswers { .. }
            | Fault::Nonsense { .. }
    )
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a call of {} legs under {} faults", self.plain.legs.len(), self.runs.len())
    }
}
