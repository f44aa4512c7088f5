//! The rules that must hold for each call, checked when nothing of the call is under way any more.

use crate::{
    fault::{Fault, FaultKind},
    findings::{Findings, Rule},
    history::{CallRecord, Outcome},
    ledger::Effect,
    level::Level,
    log::{self, Life, Record},
    plan::{FORGETFUL, may_lose, steps, wrong_choices},
    trace::Trace,
};
use std::collections::{BTreeMap, BTreeSet};

/// The time after a pause in which a step that had begun before it may have its effect, in microseconds.
const LATE: u64 = 1_000_000;

/// The material of the checks of one call.
#[derive(Debug)]
struct Evidence<'a> {
    record: &'a CallRecord,
    effects: &'a [Effect],
    faults: &'a [Fault],
    /// The log of the call that has the final result.
    trace: Trace,
}

impl Record for CallRecord {
    fn life(&self) -> &Life {
        &self.life
    }

    fn life_mut(&mut self) -> &mut Life {
        &mut self.life
    }

    fn check(&self, evidence: &log::Evidence<'_>, findings: &mut Findings) {
        let trace = evidence.traces.of(id_of(self));
        Evidence { record: self, effects: evidence.effects, faults: evidence.faults, trace }.check(findings);
    }
}

/// Returns the id of a call that has its final result: see `handler::run`.
fn id_of(record: &CallRecord) -> &str {
    let Some(Outcome::Result(text)) = &record.outcome else { return "" };
    text.rsplit('|').next().unwrap_or_default()
}

impl Evidence<'_> {
    /// Checks all rules.
    fn check(&self, findings: &mut Findings) {
        let mut steps: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
        for effect in self.effects {
            steps.entry(&effect.step).or_default().push(effect);
        }
        let Findings { counts, outcomes, .. } = findings;
        let level = self.record.level;
        counts.calls += 1;
        counts.cut += u64::from(self.record.is_cut);
        counts.effects += number(self.effects.len());
        *counts.steps.entry(level).or_default() += number(steps.len());
        *outcomes.entry((level, self.outcome())).or_default() += 1;
        self.one_effect(&steps, findings);
        self.missing_effects(&steps, findings);
        self.replies(findings);
        self.rivalries(findings);
        self.end(findings);
        self.answers(findings);
        self.strangers(findings);
        self.traced(findings);
    }

    /// Notes that the call breaks a rule.
    fn breaks(&self, findings: &mut Findings, rule: Rule, what: &str) {
        let CallRecord { life, level, plan, .. } = self.record;
        findings.breaks(rule, format!("{} ({} {plan}): {what}", life.call, level.tool()));
    }

    fn outcome(&self) -> String {
        match &self.record.outcome {
            None => "none".to_owned(),
            Some(Outcome::Result(_)) => "result".to_owned(),
            Some(Outcome::Unknown) => "outcome_unknown".to_owned(),
            Some(Outcome::GaveUp(reason)) => format!("gave up after {reason}"),
            Some(Outcome::Refused(reason)) => format!("refused: {reason}"),
            Some(Outcome::SessionError(_)) => "error in a session".to_owned(),
            Some(Outcome::SessionLost) => "session lost".to_owned(),
        }
    }

    /// Returns true if a fault may have interrupted a step of the call.
    fn has_cause(&self) -> bool {
        let CallRecord { life, processes, is_cut, .. } = self.record;
        let is_of = |process: u32| processes.contains(&process);
        *is_cut || self.faults.iter().any(|fault| fault.may_interrupt(is_of, life.from, life.until))
    }

    fn one_effect(&self, steps: &BTreeMap<&str, Vec<&Effect>>, findings: &mut Findings) {
        for (step, effects) in steps {
            let keys: BTreeSet<&str> = effects.iter().map(|effect| &*effect.key).collect();
            let more = effects.len() - 1;
            let (rule, holds) = match self.record.level {
                Level::Once => (Rule::SingleUse, more == 0),
                Level::Reconciled => {
                    let excused = effects
                        .iter()
                        .filter(|effect| is_late(effect, self.effects, self.faults))
                        .count()
                        .min(more);
                    findings.counts.late += number(excused);
                    (Rule::Reconciled, more <= excused && keys.len() == 1)
                }
                Level::Rerun => {
                    findings.counts.repeats += number(more);
                    (Rule::Rerun, keys.len() == 1 && (more == 0 || self.has_cause()))
                }
            };
            if !holds {
                let runs: Vec<_> = effects.iter().map(|e| format!("{} at {}", e.run, e.at)).collect();
                let what = format!("step {step}: {} effects, of runs {}", effects.len(), runs.join(", "));
                self.breaks(findings, rule, &what);
            }
        }
    }

    /// A call that ended with its result has had the effect of each step, and of one branch of each choice; no call has those of two.
    fn missing_effects(&self, found: &BTreeMap<&str, Vec<&Effect>>, findings: &mut Findings) {
        let rule = match self.record.level {
            Level::Once => Rule::SingleUse,
            Level::Reconciled => Rule::Reconciled,
            Level::Rerun => Rule::Rerun,
        };
        let is_over = matches!(self.record.outcome, Some(Outcome::Result(_)));
        for wrong in wrong_choices(&self.record.plan, is_over, |step| found.contains_key(step)) {
            self.breaks(findings, rule, &wrong);
        }
        for step in steps(&self.record.plan).filter(|step| is_over && !found.contains_key(step.as_str())) {
            self.breaks(findings, rule, &format!("step {step}: no effect"));
        }
    }

    fn replies(&self, findings: &mut Findings) {
        for ((leg, _), by_answers) in &self.record.replies {
            let winners = by_answers.values().filter(|replies| !replies.results.is_empty()).count();
            if winners > 1 {
                let what = format!("leg {leg}: {winners} sets of answers have results");
                self.breaks(findings, Rule::OneWinner, &what);
            }
            findings.counts.contested += u64::from(by_answers.len() > 1);
            for replies in by_answers.values() {
                findings.counts.again += replies.count.saturating_sub(1);
                findings.counts.used += replies.reasons.get("used").copied().unwrap_or_default();
                if replies.results.len() > 1 {
                    let what = format!("leg {leg}: {} different results", replies.results.len());
                    self.breaks(findings, Rule::SameReplies, &what);
                }
                let processes: BTreeSet<&u32> = replies.results.values().collect();
                if processes.len() > 1 {
                    let what = format!("leg {leg}: processes {processes:?} sent results of their own");
                    self.breaks(findings, Rule::OneRun, &what);
                }
                // Nobody may see it in a call without a fault, whatever its end is.
                if replies.reasons.contains_key("outcome_unknown") && !self.has_cause() {
                    let what = format!("leg {leg}: outcome_unknown, but nothing died");
                    self.breaks(findings, Rule::Ends, &what);
                }
            }
        }
    }

    fn rivalries(&self, findings: &mut Findings) {
        findings.counts.rivalries += number(self.record.rivalries.len());
        for (leg, outcomes) in &self.record.rivalries {
            let count = |word: &str| outcomes.iter().filter(|outcome| *outcome == word).count();
            if count("used") > 1 && self.winners(*leg) == 1 {
                findings.counts.overtaken += 1;
            } else if count("result") > 1 || count("used") > 1 || count("result") == 1 && count("used") != 1 {
                let what = format!("two people have {}", outcomes.join(" and "));
                self.breaks(findings, Rule::OneWinner, &what);
            }
        }
    }

    /// Returns the number of sets of answers to a leg that have a result.
    fn winners(&self, leg: u32) -> usize {
        let of_leg = self.record.replies.iter().filter(|((found, _), _)| *found == leg);
        of_leg
            .flat_map(|(_, by_answers)| by_answers.values())
            .filter(|replies| !replies.results.is_empty())
            .count()
    }

    /// Returns true if two people were told `used` because a late copy of the request of one of them has won.
    ///
    /// While the request of the first one ran, the second one was told `used`. Then the first request was given back without a
    /// step, for example because the store was down, and the copy came before its repetition.
    fn is_overtaken(&self) -> bool {
        let last = self.record.rivalries.last();
        last.is_some_and(|(leg, outcomes)| {
            *leg + 1 == self.record.legs
                && outcomes.iter().all(|word| word == "used")
                && self.winners(*leg) == 1
        })
    }

    fn is_forgetful(&self) -> bool {
        self.record.plan == FORGETFUL
    }

    fn end(&self, findings: &mut Findings) {
        match &self.record.outcome {
            Some(Outcome::Refused(reason)) if reason == "flow_diverged" && self.is_forgetful() => (),
            Some(Outcome::Result(_)) if self.is_forgetful() => {
                self.breaks(findings, Rule::Ends, "a result without a question that was declined");
            }
            Some(Outcome::Result(_) | Outcome::GaveUp(_)) => (),
            Some(Outcome::Unknown) => findings.counts.unknown += 1,
            // Its leg has a result, and nobody waits for that: see `rivalries`.
            Some(Outcome::Refused(reason)) if reason == "used" && self.is_overtaken() => (),
            Some(Outcome::Refused(reason)) => self.breaks(findings, Rule::Ends, reason),
            Some(Outcome::SessionError(text)) if self.effects.is_empty() || !invites(text) => (),
            Some(Outcome::SessionError(text)) => {
                self.breaks(findings, Rule::Ends, &format!("it invites to have the effects again: {text}"));
            }
            Some(Outcome::SessionLost) => (),
            None => self.breaks(findings, Rule::Ends, "no end"),
        }
    }

    /// The final result has each accepted answer once, and no other one; no accepted answer was asked for again.
    fn answers(&self, findings: &mut Findings) {
        for key in &self.record.asked_again {
            let what = format!("the question {key} was asked again after its answer was accepted");
            self.breaks(findings, Rule::Answers, &what);
        }
        let Some(Outcome::Result(text)) = &self.record.outcome else { return };
        let counts = |answer: &&str| !answer.is_empty() && !may_lose(key_of(answer));
        let mut found: Vec<&str> = text.split('|').next().unwrap_or_default().split(',').collect();
        found.retain(counts);
        found.sort_unstable();
        let mut accepted: Vec<&str> = self.record.accepted.values().map(String::as_str).collect();
        accepted.retain(counts);
        accepted.sort_unstable();
        findings.counts.answers += number(accepted.len());
        if found != accepted {
            let what = format!("accepted were {accepted:?}, and the result has {found:?}");
            self.breaks(findings, Rule::Answers, &what);
        }
    }

    fn strangers(&self, findings: &mut Findings) {
        findings.counts.thefts += self.record.thefts;
        if self.record.stolen > 0 {
            self.breaks(findings, Rule::Strangers, "somebody else has a result");
        }
    }

    /// The log of the fleet has each leg of the call under the call's one id.
    fn traced(&self, findings: &mut Findings) {
        if !matches!(self.record.outcome, Some(Outcome::Result(_))) || self.record.in_session {
            return;
        }
        let missing: Vec<u32> =
            (1..self.record.legs).filter(|leg| !self.trace.rounds.contains(leg)).collect();
        findings.counts.traced += u64::from(self.record.legs);
        if !missing.is_empty() || !self.trace.runs.contains(&self.record.legs) {
            let what =
                format!("legs {missing:?} of {} are not in the log: {:?}", self.record.legs, self.trace);
            self.breaks(findings, Rule::Traces, &what);
        }
    }
}

/// Returns true if an error says that its request may be sent again.
fn invites(text: &str) -> bool {
    ["end the same request again", "end it again later", "end the first request again"]
        .iter()
        .any(|words| text.contains(words))
}

/// Returns true for the first effect of a run after the pause of its process: its step had begun before.
pub(crate) fn is_late(effect: &Effect, effects: &[Effect], faults: &[Fault]) -> bool {
    let pauses = faults.iter().filter(|fault| {
        fault.kind == FaultKind::Pause && fault.process == Some(effect.process) && fault.until <= effect.at
    });
    let is_first = |since: u64| {
        let of_run = effects.iter().filter(|other| other.run == effect.run && other.at >= since);
        of_run.map(|other| other.at).min() == Some(effect.at)
    };
    pauses.into_iter().any(|pause| effect.at - pause.until < LATE && is_first(pause.until))
}

/// Returns the key of the question that an answer is for: see `Leg::answer`.
fn key_of(answer: &str) -> &str {
    answer.splitn(3, '-').nth(2).unwrap_or_default()
}

pub(crate) fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
