//! The findings of the checks: numbers, and the examples that break a rule.

use crate::{history::CallRecord, tools::Level};
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
}

impl Rule {
    pub(crate) const ALL: [Self; 12] = [
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
    /// The most rows of calls and of blobs at once, and those that are left after their time.
    pub(crate) most_rows: (u64, u64),
    pub(crate) rows_left: (u64, u64),
}

/// The findings of the checks so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) counts: Counts,
    /// The number of calls of each outcome.
    pub(crate) outcomes: BTreeMap<(Level, String), u64>,
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

    /// Notes that a call breaks a rule.
    pub(crate) fn call_breaks(&mut self, rule: Rule, record: &CallRecord, what: &str) {
        let CallRecord { call, level, plan, .. } = record;
        self.breaks(rule, format!("{call} ({} {plan}): {what}", level.tool()));
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
