//! The tools under test: one handler that follows the plan in its arguments, at three levels of protection, as a call or as a
//! task.

use crate::{
    handler::{Order, run},
    ledger::Ledger,
    level::Level,
};
use antiphon::{
    Result,
    server::{Ctx, TaskMode, Tool},
};
use futures_util::future::{BoxFuture, FutureExt as _};
use std::{sync::Arc, time::Duration};

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

/// Returns the tools of a version; those whose calls are tasks if the store has tasks. `slow` is the time of a slow step.
pub(crate) fn tools(ledger: &Ledger, slow: Duration, version: u32, has_tasks: bool) -> Vec<Tool> {
    let tool = |name: &str, level: Level| {
        let ledger = Arc::new(ledger.clone());
        let handler = lent(move |ctx, order| {
            let ledger = Arc::clone(&ledger);
            async move { run(ctx, order, &ledger, level, slow, version).await }.boxed()
        });
        Tool::new(name, handler).version(version)
    };
    let calls = Level::ALL.into_iter().map(|level| {
        let tool = tool(level.tool(), level);
        match level {
            Level::Once => tool.single_use(true),
            Level::Reconciled => tool.write_ahead(true),
            Level::Rerun => tool.write_ahead(true).rerun_after_crash(true),
        }
    });
    let tasks = TaskTool::ALL.into_iter().filter(|_| has_tasks).map(|kind| {
        let tool = tool(kind.tool(), kind.level());
        match kind {
            TaskTool::Reconciled | TaskTool::Single => tool.task(TaskMode::Required),
            TaskTool::Rerun => tool.task(TaskMode::Required).rerun_after_crash(true),
            // Its first legs are those of a call.
            TaskTool::Promoted => tool.task(TaskMode::Optional).write_ahead(true),
        }
    });
    calls.chain(tasks).collect()
}

fn lent<F: for<'a> Fn(&'a Ctx, Order) -> BoxFuture<'a, Result<String>>>(handler: F) -> F {
    handler
}
