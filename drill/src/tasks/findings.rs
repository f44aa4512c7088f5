//! The numbers of a run of tasks.

use super::TaskTool;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of a run of tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskFindings {
    /// The tasks that were checked, with those whose creation nobody received.
    pub(crate) tasks: u64,
    /// Tasks that nobody knows: the reply was lost.
    pub(super) orphans: u64,
    /// The number of tasks of each end.
    pub(super) outcomes: BTreeMap<(TaskTool, String), u64>,
    pub(super) effects: u64,
    /// The steps that had an effect.
    pub(super) steps: BTreeMap<TaskTool, u64>,
    /// Effects of paused processes, after another process had found none.
    pub(super) late: u64,
    /// Second effects of steps that run again.
    pub(super) repeats: u64,
    pub(super) unknown: u64,
    pub(super) questions: u64,
    /// Questions that were asked again under another key, after an answer that was not valid.
    pub(super) again: u64,
    /// Answers that were sent, and those in results.
    pub(super) sent: u64,
    pub(super) answers: u64,
    /// Questions with different answers.
    pub(super) contested: u64,
    pub(super) polls: u64,
    /// Replies that came after the end of their task.
    pub(super) after_end: u64,
    pub(super) thefts: u64,
    /// The different errors that strangers got.
    pub(super) refusals: BTreeSet<String>,
    pub(super) promotions: u64,
    pub(super) compensated: u64,
}
