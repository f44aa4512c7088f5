//! The numbers of a run of tasks.

use crate::tools::TaskTool;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of a run of tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskFindings {
    /// The tasks that were checked, with those whose creation nobody received.
    pub(crate) tasks: u64,
    /// Tasks that nobody knows: the reply was lost.
    pub(crate) orphans: u64,
    /// The number of tasks of each end.
    pub(crate) outcomes: BTreeMap<(TaskTool, String), u64>,
    pub(crate) effects: u64,
    /// The steps that had an effect.
    pub(crate) steps: BTreeMap<TaskTool, u64>,
    /// Effects of paused processes, after another process had found none.
    pub(crate) late: u64,
    /// Second effects of steps that run again.
    pub(crate) repeats: u64,
    pub(crate) unknown: u64,
    pub(crate) questions: u64,
    /// Questions that were asked again under another key, after an answer that was not valid.
    pub(crate) again: u64,
    /// Answers that were sent, and those in results.
    pub(crate) sent: u64,
    pub(crate) answers: u64,
    /// Questions with different answers.
    pub(crate) contested: u64,
    pub(crate) polls: u64,
    /// Replies that came after the end of their task.
    pub(crate) after_end: u64,
    pub(crate) thefts: u64,
    /// The different errors that strangers got.
    pub(crate) refusals: BTreeSet<String>,
    pub(crate) promotions: u64,
    pub(crate) compensated: u64,
}
