//! The rules that must hold for each task, checked when nothing of the task is under way any more.

use super::{
    answers::{key_before, path_of},
    plan::questions,
    record::{End, TaskRecord},
};
use crate::{
    checks::{is_late, number},
    findings::{Findings, Rule},
    handler::COMPENSATION,
    ledger::Effect,
    level::Level,
    log::{Evidence, Life, Record},
    plan::{steps, wrong_choices},
};
use std::collections::{BTreeMap, BTreeSet};

/// The time before an effect in which a fault may be the cause of its repetition, in microseconds: the clock of the fault and that
/// of the effect are read one after the other.
const BEFORE: u64 = 100_000;

type Steps<'a> = BTreeMap<&'a str, Vec<&'a Effect>>;

impl Record for TaskRecord {
    fn life(&self) -> &Life {
        &self.life
    }

    fn life_mut(&mut self) -> &mut Life {
        &mut self.life
    }

    fn check(&self, evidence: &Evidence<'_>, findings: &mut Findings) {
        let mut steps = Steps::new();
        for effect in evidence.effects {
            steps.entry(&effect.step).or_default().push(effect);
        }
        let tasks = &mut findings.tasks;
        tasks.tasks += 1;
        tasks.effects += number(evidence.effects.len());
        tasks.polls += self.polls;
        tasks.after_end += self.after_end;
        tasks.thefts += self.thefts;
        tasks.refusals.extend(self.refusals.iter().cloned());
        *tasks.steps.entry(self.tool).or_default() += number(steps.len());
        *tasks.outcomes.entry((self.tool, self.outcome())).or_default() += 1;
        for (rule, what) in &self.broken {
            self.breaks(findings, *rule, what);
        }
        self.effects(&steps, evidence, findings);
        if self.is_orphan {
            findings.tasks.orphans += 1;
            return;
        }
        findings.tasks.promotions += number(self.ids.len());
        self.questions(findings);
        self.ends(&steps, evidence, findings);
    }

    /// A task that nobody knows runs on.
    fn quiet_times(&self) -> u32 {
        if self.is_orphan { 3 } else { 1 }
    }
}

impl TaskRecord {
    fn breaks(&self, findings: &mut Findings, rule: Rule, what: &str) {
        let Self { life, tool, plan, ids, .. } = self;
        findings.breaks(rule, format!("{} ({} {plan}, {ids:?}): {what}", life.call, tool.tool()));
    }

    fn outcome(&self) -> String {
        match &self.end {
            _ if self.is_orphan => "nobody's".to_owned(),
            None => "no end".to_owned(),
            Some(end) if end.status() == "failed" => end.reason().to_owned(),
            Some(end) => end.status().to_owned(),
        }
    }

    /// The rule about effects.
    fn rule(&self) -> Rule {
        match self.tool.level() {
            Level::Reconciled => Rule::TaskReconciled,
            Level::Rerun => Rule::TaskRerun,
            Level::Once => Rule::TaskSingle,
        }
    }

    fn effects(&self, steps: &Steps<'_>, evidence: &Evidence<'_>, findings: &mut Findings) {
        for (step, effects) in steps {
            let keys: BTreeSet<&str> = effects.iter().map(|effect| &*effect.key).collect();
            let runs: BTreeSet<&str> = effects.iter().map(|effect| &*effect.run).collect();
            let more = effects.len() - 1;
            let may_repeat = match self.tool.level() {
                Level::Once => more == 0,
                Level::Reconciled => {
                    let is_late = |effect: &&&Effect| is_late(effect, evidence.effects, evidence.faults);
                    let late = effects.iter().filter(is_late).count().min(more);
                    findings.tasks.late += number(late);
                    more <= late
                }
                Level::Rerun => {
                    findings.tasks.repeats += number(more);
                    effects.windows(2).all(|pair| has_cause(evidence, pair[0], pair[1]))
                }
            };
            if keys.len() > 1 || runs.len() < effects.len() || !may_repeat {
                let found: Vec<_> =
                    effects.iter().map(|e| format!("{} at {} with {}", e.run, e.at, e.key)).collect();
                self.breaks(findings, self.rule(), &format!("step {step}: effects of {}", found.join(", ")));
            }
        }
    }

    /// A question is asked once: another key follows only after an answer that was not valid.
    fn questions(&self, findings: &mut Findings) {
        let paths = questions(self.plan);
        findings.tasks.questions += number(self.asked.len());
        for key in self.asked.keys() {
            if !paths.iter().any(|path| path == path_of(key)) {
                self.breaks(findings, Rule::TaskAsked, &format!("{key} is no question of the plan"));
            }
            let Some(before) = key_before(key) else { continue };
            findings.tasks.again += 1;
            if !self.has_invalid_answer(&before) {
                let what =
                    format!("{key} is {before}, asked twice: {:?}; sent were {:?}", self.asked, self.sent);
                self.breaks(findings, Rule::TaskAsked, &what);
            }
        }
        let answers = self.sent.values().flat_map(|sent| &sent.answers);
        let mut texts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for answer in answers {
            findings.tasks.sent += 1;
            texts.entry(&answer.key).or_default().extend(answer.text.as_deref());
        }
        findings.tasks.contested += number(texts.values().filter(|texts| texts.len() > 1).count());
    }

    fn ends(&self, found: &Steps<'_>, evidence: &Evidence<'_>, findings: &mut Findings) {
        let is_compensated = found.contains_key(format!("{COMPENSATION}0").as_str());
        findings.tasks.compensated += u64::from(is_compensated);
        let has_fault = evidence
            .faults
            .iter()
            .any(|fault| fault.may_interrupt(|_| true, self.life.from, self.life.until));
        // The step that compensates, or the one before it, may have no known outcome.
        let may_stop = self.tool.level() == Level::Once && has_fault;
        let is_over = self.end.as_ref().is_some_and(|end| end.status() == "completed");
        for wrong in wrong_choices(self.plan, is_over, |step| found.contains_key(step)) {
            self.breaks(findings, self.rule(), &wrong);
        }
        let Some(end) = &self.end else { return self.breaks(findings, Rule::TaskEnds, "no end") };
        match end.status() {
            "completed" => {
                self.result(end, findings);
                for step in steps(self.plan).filter(|step| !found.contains_key(step.as_str())) {
                    self.breaks(findings, self.rule(), &format!("step {step}: no effect"));
                }
                if is_compensated {
                    self.breaks(findings, Rule::TaskCancelled, "completed, and compensated");
                }
            }
            "cancelled" if !self.is_cancelled => {
                self.breaks(findings, Rule::TaskCancelled, "cancelled, but nobody asked for it");
            }
            "cancelled" if !is_compensated && !may_stop => {
                self.breaks(findings, Rule::TaskCancelled, "cancelled without its compensation");
            }
            "cancelled" => (),
            _ if end.reason() == "outcome_unknown" && may_stop => findings.tasks.unknown += 1,
            _ => self.breaks(findings, Rule::TaskEnds, &format!("failed: {}", end.reason())),
        }
    }

    /// The result has the answers that were sent first.
    fn result(&self, end: &End, findings: &mut Findings) {
        let Some(text) = end.text() else {
            return self.breaks(findings, Rule::TaskAnswers, "the result is an error");
        };
        let found: Vec<&str> = text.split('|').next().unwrap_or_default().split(',').collect();
        let paths = questions(self.plan);
        let is_right = found.len() == paths.len()
            && paths.iter().zip(&found).all(|(path, answer)| self.may_answer(path, answer));
        findings.tasks.answers += number(found.len());
        if !is_right {
            let what = format!("the result has {found:?}, and these answers were sent: {:?}", self.sent);
            self.breaks(findings, Rule::TaskAnswers, &what);
        }
    }
}

/// Returns true if a fault between two effects may have interrupted the first one.
fn has_cause(evidence: &Evidence<'_>, first: &Effect, second: &Effect) -> bool {
    let is_of = |process: u32| process == first.process;
    let since = first.at.saturating_sub(BEFORE);
    evidence.faults.iter().any(|fault| fault.may_interrupt(is_of, since, second.at))
}
