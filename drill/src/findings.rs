//! The findings of the checks: numbers, and the examples that break a rule.

use crate::{level::Level, rows::Count, task_findings::TaskFindings};
use std::collections::BTreeMap;

/// The examples that are kept for a broken rule.
const EXAMPLES: usize = 4;

/// A rule, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    SingleUse,
    Reconciled,
    Rerun,
    SameReplies,
    OneWinner,
    OneRun,
    Ends,
    Answers,
    Strangers,
    Rows,
    Liveness,
    Traces,
    Changes,
    TaskReconciled,
    TaskRerun,
    TaskSingle,
    TaskEnds,
    TaskAnswers,
    TaskAsked,
    TaskKept,
    TaskFinal,
    TaskStrangers,
    TaskCreated,
    TaskCancelled,
    TaskRows,
}

impl Rule {
    /// The rules for calls.
    pub(crate) const CALLS: [Self; 13] = [
        Self::SingleUse,
        Self::Reconciled,
        Self::Rerun,
        Self::SameReplies,
        Self::OneWinner,
        Self::OneRun,
        Self::Ends,
        Self::Answers,
        Self::Strangers,
        Self::Rows,
        Self::Liveness,
        Self::Traces,
        Self::Changes,
    ];

    /// The rules for tasks.
    pub(crate) const TASKS: [Self; 13] = [
        Self::TaskReconciled,
        Self::TaskRerun,
        Self::TaskSingle,
        Self::TaskEnds,
        Self::TaskAnswers,
        Self::TaskAsked,
        Self::TaskKept,
        Self::TaskFinal,
        Self::TaskStrangers,
        Self::TaskCreated,
        Self::TaskCancelled,
        Self::TaskRows,
        Self::Changes,
    ];

    /// Returns the number of the rule in docs/drill.md.
    pub(crate) fn number(self) -> &'static str {
        match self {
            Self::SingleUse | Self::Reconciled | Self::Rerun => "I1",
            Self::SameReplies => "I2",
            Self::OneWinner => "I3",
            Self::OneRun => "I4",
            Self::Ends => "I5",
            Self::Answers => "I6",
            Self::Strangers => "I7",
            Self::Rows => "I8",
            Self::Liveness => "I9",
            Self::Traces => "I10",
            Self::Changes => "I11",
            Self::TaskReconciled | Self::TaskRerun | Self::TaskSingle => "T1",
            Self::TaskEnds => "T2",
            Self::TaskAnswers => "T3",
            Self::TaskAsked => "T4",
            Self::TaskKept => "T5",
            Self::TaskFinal => "T6",
            Self::TaskStrangers => "T7",
            Self::TaskCreated => "T8",
            Self::TaskCancelled => "T9",
            Self::TaskRows => "T10",
        }
    }
}

/// The examples that break a rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broken {
    pub(crate) count: u64,
    pub(crate) examples: Vec<String>,
}

/// The numbers of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) effects: u64,
    /// The steps that had an effect, by level.
    pub(crate) steps: BTreeMap<Level, u64>,
    /// Effects of paused processes, after another process had found none.
    pub(crate) late: u64,
    /// Second effects of steps that run again.
    pub(crate) repeats: u64,
    /// Results that were sent again.
    pub(crate) again: u64,
    /// Legs with different answers, and those that two people answered at the same time.
    pub(crate) contested: u64,
    pub(crate) rivalries: u64,
    pub(crate) used: u64,
    /// Legs whose two people were told `used`, and of which a late copy of a request has the result.
    pub(crate) overtaken: u64,
    pub(crate) unknown: u64,
    pub(crate) cut: u64,
    pub(crate) answers: u64,
    pub(crate) thefts: u64,
    pub(crate) traced: u64,
    /// The changes that were published and arrived, in words.
    pub(crate) changes: Option<String>,
    /// The most rows at once, and those that are left after their time.
    pub(crate) most_rows: Count,
    pub(crate) rows_left: Count,
}

/// The findings of the checks so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) counts: Counts,
    /// The number of calls of each outcome.
    pub(crate) outcomes: BTreeMap<(Level, String), u64>,
    pub(crate) tasks: TaskFindings,
    broken: BTreeMap<Rule, Broken>,
}

impl Findings {
    /// Notes what breaks a rule.
    pub(crate) fn breaks(&mut self, rule: Rule, what: String) {
        let broken = self.broken.entry(rule).or_default();
        broken.count += 1;
        if broken.examples.len() < EXAMPLES {
            broken.examples.push(what);
        }
    }

    /// Notes that the effects of a call cannot be read.
    pub(crate) fn unreadable(&mut self, error: &str) {
        self.breaks(Rule::SingleUse, format!("the ledger cannot be read: {error}"));
    }

    /// Returns what breaks a rule.
    pub(crate) fn broken(&self, rule: Rule) -> Option<&Broken> {
        self.broken.get(&rule)
    }

    /// Returns an example of a broken rule.
    pub(crate) fn first_broken(&self) -> Option<&str> {
        self.broken.values().flat_map(|broken| &broken.examples).next().map(String::as_str)
    }

    /// Returns true if no rule is broken.
    pub(crate) fn holds(&self) -> bool {
        self.broken.is_empty()
    }
}
