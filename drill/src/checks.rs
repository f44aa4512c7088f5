//! The rules that must hold after a run, each with the examples that break it.

use crate::{
    fleet::{Fault, FaultKind},
    history::{CallEnd, Outcome, State},
    ledger::Effect,
    tools::{Level, steps},
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The time after a pause in which a step that had begun before it may have its effect, in microseconds.
const LATE: u64 = 1_000_000;

/// A rule and what breaks it.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) rule: &'static str,
    pub(crate) words: String,
    pub(crate) broken: Vec<String>,
}

/// The material of the checks.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) state: &'a State,
    pub(crate) effects: &'a [Effect],
    pub(crate) faults: &'a [Fault],
}

/// The effects of one step of one call.
type Steps<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a Effect>>;

impl Evidence<'_> {
    /// Checks all rules.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let mut steps: Steps<'_> = BTreeMap::new();
        for effect in self.effects {
            steps.entry((&effect.call, &effect.step)).or_default().push(effect);
        }
        vec![
            self.single_use(&steps),
            self.reconciled(&steps),
            self.rerun(&steps),
            self.same_replies(),
            self.one_winner(),
            self.one_run(),
            self.ends(),
            self.strangers(),
            self.liveness(),
        ]
    }

    fn ends_of(&self, level: Level) -> impl Iterator<Item = &CallEnd> {
        self.state.ends.iter().filter(move |end| end.level == level)
    }

    fn of_level<'s>(
        &self,
        steps: &'s Steps<'_>,
        level: Level,
    ) -> Vec<(&'s (&'s str, &'s str), &'s [&'s Effect])> {
        let calls: BTreeSet<&str> = self.ends_of(level).map(|end| end.call.as_str()).collect();
        steps
            .iter()
            .filter(|((call, _), _)| calls.contains(call))
            .map(|(step, effects)| (step, &effects[..]))
            .collect()
    }

    fn single_use(&self, steps: &Steps<'_>) -> Verdict {
        let all = self.of_level(steps, Level::Once);
        let twice = all
            .iter()
            .filter(|(_, effects)| effects.len() > 1)
            .map(|(step, effects)| describe(step, effects));
        let words = format!("single_use: at most one effect of each of {} steps", all.len());
        Verdict { rule: "I1", words, broken: twice.collect() }
    }

    fn reconciled(&self, steps: &Steps<'_>) -> Verdict {
        let all = self.of_level(steps, Level::Reconciled);
        let mut firsts: HashMap<(&str, u32, u64), u64> = HashMap::new();
        let pauses: Vec<&Fault> = self.faults.iter().filter(|fault| fault.kind == FaultKind::Pause).collect();
        for effect in self.effects {
            for pause in
                pauses.iter().filter(|pause| pause.process == effect.process && pause.until <= effect.at)
            {
                let first = firsts.entry((&effect.run, effect.process, pause.until)).or_insert(effect.at);
                *first = effect.at.min(*first);
            }
        }
        // The first effect of a run after the pause of its process: its step had begun before.
        let is_late = |effect: &Effect| {
            pauses.iter().any(|pause| {
                let first = firsts.get(&(&*effect.run, effect.process, pause.until));
                first == Some(&effect.at) && effect.at - pause.until < LATE
            })
        };
        let (mut broken, mut late) = (Vec::new(), 0);
        for (step, effects) in &all {
            let is_one_key = effects.iter().all(|effect| effect.key == effects[0].key);
            let more = effects.len() - 1;
            let excused = effects.iter().filter(|effect| is_late(effect)).count().min(more);
            if more > excused || !is_one_key {
                broken.push(describe(step, effects));
            }
            late += excused;
        }
        for end in self.ends_of(Level::Reconciled).filter(|end| end.outcome == Outcome::Result) {
            for step in steps_of(end) {
                if !steps.contains_key(&(&*end.call, &*step)) {
                    broken.push(format!("{} {step}: no effect", end.call));
                }
            }
        }
        let words = format!(
            "write_ahead with reconcile: one effect of each of {} steps, and {late} late ones of paused processes",
            all.len()
        );
        Verdict { rule: "I1", words, broken }
    }

    fn rerun(&self, steps: &Steps<'_>) -> Verdict {
        let all = self.of_level(steps, Level::Rerun);
        let keys = |effects: &[&Effect]| {
            effects.iter().map(|effect| effect.key.clone()).collect::<BTreeSet<_>>().len()
        };
        let other = all
            .iter()
            .filter(|(_, effects)| keys(effects) > 1)
            .map(|(step, effects)| describe(step, effects));
        let mut broken: Vec<String> = other.collect();
        for end in self.ends_of(Level::Rerun).filter(|end| end.outcome == Outcome::Result) {
            let missing =
                steps_of(end).into_iter().filter(|step| !steps.contains_key(&(&*end.call, &**step)));
            broken.extend(missing.map(|step| format!("{} {step}: no effect", end.call)));
        }
        // A step runs again after a fault only.
        for end in self.ends_of(Level::Rerun).filter(|end| !self.has_cause(end)) {
            let again = all.iter().filter(|((call, _), effects)| *call == end.call && effects.len() > 1);
            broken.extend(
                again.map(|(step, effects)| format!("{}, but nothing died", describe(step, effects))),
            );
        }
        let repeats: usize = all.iter().map(|(_, effects)| effects.len() - 1).sum();
        let words = format!(
            "rerun_after_crash: {repeats} repeats of {} steps, each under the key of its step",
            all.len()
        );
        Verdict { rule: "I1", words, broken }
    }

    fn same_replies(&self) -> Verdict {
        let (mut again, mut broken) = (0, Vec::new());
        for ((call, leg, _), by_answers) in &self.state.replies {
            for replies in by_answers.values() {
                again += replies.count.saturating_sub(1);
                if replies.results.len() > 1 {
                    broken.push(format!("{call} leg {leg}: {} different results", replies.results.len()));
                }
            }
        }
        let words = format!("{again} results that were sent again are byte for byte the first one");
        Verdict { rule: "I2", words, broken }
    }

    fn one_winner(&self) -> Verdict {
        let (mut legs, mut used, mut broken) = (0, 0, Vec::new());
        for ((call, leg, _), by_answers) in &self.state.replies {
            let winners = by_answers.values().filter(|replies| !replies.results.is_empty()).count();
            legs += u64::from(by_answers.len() > 1);
            used += by_answers.values().filter_map(|replies| replies.reasons.get("used")).sum::<u64>();
            if winners > 1 {
                broken.push(format!("{call} leg {leg}: {winners} sets of answers have results"));
            }
        }
        for rivalry in &self.state.rivalries {
            let count = |word: &str| rivalry.outcomes.iter().filter(|outcome| *outcome == word).count();
            if count("result") > 1 || count("used") > 1 || count("result") == 1 && count("used") != 1 {
                broken.push(format!("{}: two people have {}", rivalry.call, rivalry.outcomes.join(" and ")));
            }
        }
        let words = format!(
            "{legs} legs with different answers ({} at the same time): one wins, {used} replies are `used`",
            self.state.rivalries.len()
        );
        Verdict { rule: "I3", words, broken }
    }

    fn one_run(&self) -> Verdict {
        let mut broken = Vec::new();
        for ((call, leg, _), by_answers) in &self.state.replies {
            for replies in by_answers.values() {
                let processes: BTreeSet<&u32> = replies.results.values().collect();
                if processes.len() > 1 {
                    broken
                        .push(format!("{call} leg {leg}: processes {processes:?} sent results of their own"));
                }
            }
        }
        let words = "no process sends a result of its own for a leg that another one took over".to_owned();
        Verdict { rule: "I4", words, broken }
    }

    fn ends(&self) -> Verdict {
        let (mut unknown, mut broken) = (0, Vec::new());
        for end in &self.state.ends {
            match &end.outcome {
                Outcome::Result | Outcome::GaveUp(_) => (),
                Outcome::Refused(reason) => {
                    broken.push(format!("{} {}: {reason}", end.call, end.level.tool()))
                }
                Outcome::Unknown => unknown += 1,
            }
        }
        // Nobody may have seen it for a call without a fault, whatever its end is.
        let untouched = self.state.ends.iter().filter(|end| !self.has_cause(end));
        let untouched: BTreeSet<&str> = untouched.map(|end| end.call.as_str()).collect();
        for ((call, leg, _), by_answers) in &self.state.replies {
            let is_unknown =
                by_answers.values().any(|replies| replies.reasons.contains_key("outcome_unknown"));
            if is_unknown && untouched.contains(call.as_str()) {
                broken.push(format!("{call} leg {leg}: outcome_unknown, but nothing died"));
            }
        }
        let words = format!(
            "every call ends with a result or can be resumed, but for {unknown} `outcome_unknown`, each after a fault"
        );
        Verdict { rule: "I5", words, broken }
    }

    /// Returns true if a process had a fault during the call, or one of its requests was cut.
    fn has_cause(&self, end: &CallEnd) -> bool {
        let is_hit = self.faults.iter().any(|fault| fault.from <= end.until && fault.until >= end.from);
        is_hit || self.state.cuts.contains(&end.call)
    }

    fn strangers(&self) -> Verdict {
        let broken =
            self.state.stolen.iter().map(|call| format!("{call}: somebody else has a result")).collect();
        let words = format!("{} requests with the state of somebody else have no result", self.state.thefts);
        Verdict { rule: "I7", words, broken }
    }

    fn liveness(&self) -> Verdict {
        let (mut words, mut broken) = (Vec::new(), Vec::new());
        for level in [Level::Reconciled, Level::Rerun] {
            let all = self.ends_of(level).count();
            let done = self.ends_of(level).filter(|end| end.outcome == Outcome::Result).count();
            words.push(format!("{}: {done} of {all}", level.tool()));
            if all == 0 || done * 100 < all * 99 {
                let example = self.ends_of(level).find(|end| end.outcome != Outcome::Result);
                broken.push(format!("{}: {done} of {all} complete, such as {example:?}", level.tool()));
            }
        }
        Verdict { rule: "I9", words: format!("99 % of calls complete: {}", words.join(", ")), broken }
    }
}

fn steps_of(end: &CallEnd) -> Vec<String> {
    steps(&end.plan)
}

fn describe(step: &(&str, &str), effects: &[&Effect]) -> String {
    let runs: Vec<String> = effects.iter().map(|effect| format!("{} at {}", effect.run, effect.at)).collect();
    format!("{} {}: {} effects, of runs {}", step.0, step.1, effects.len(), runs.join(", "))
}
