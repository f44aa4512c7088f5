//! The drill of tasks: people create tasks, poll them at any instance, answer, and cancel.

mod answers;
mod checks;
mod findings;
mod history;
mod person;
mod plan;
mod record;
mod report;
mod request;

pub(crate) use self::{
    findings::TaskFindings,
    history::TaskHistory,
    person::TaskScript,
    report::{conclude, report},
};
use crate::tools::Level;

/// A tool whose calls are tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TaskTool {
    /// Steps that read the ledger after a crash.
    Reconciled,
    /// Steps that run again after a crash.
    Rerun,
    /// Steps whose outcome is unknown after a crash.
    Single,
    /// A call with a first round that becomes a task then; its steps read the ledger after a crash.
    Promoted,
}

impl TaskTool {
    pub(crate) const ALL: [Self; 4] = [Self::Reconciled, Self::Rerun, Self::Single, Self::Promoted];

    /// Returns the name of the tool.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Reconciled => "task_reconciled",
            Self::Rerun => "task_rerun",
            Self::Single => "task_single",
            Self::Promoted => "promoted",
        }
    }

    /// Returns the protection of the steps.
    pub(crate) fn level(self) -> Level {
        match self {
            Self::Reconciled | Self::Promoted => Level::Reconciled,
            Self::Rerun => Level::Rerun,
            Self::Single => Level::Once,
        }
    }
}
