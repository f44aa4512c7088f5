//! The tools under test: one handler that follows the plan in its arguments, at three levels of protection, as a call or as a
//! task.

use crate::ledger::Ledger;
use antiphon::{
    Error, Form, Result,
    server::{Ctx, TaskMode, Tool, Winner},
};
use futures_util::future::{BoxFuture, FutureExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The protection of a tool, by the tool's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Level {
    /// `single_use`.
    Once,
    /// `write_ahead`, with steps that read the ledger after a crash.
    Reconciled,
    /// `write_ahead`, with steps that run again after a crash.
    Rerun,
}

impl Level {
    pub(crate) const ALL: [Self; 3] = [Self::Once, Self::Reconciled, Self::Rerun];

    /// Returns the name of the tool.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Once => "single_use",
            Self::Reconciled => "reconciled",
            Self::Rerun => "rerun",
        }
    }
}

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

/// The arguments of a call.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Order {
    pub(crate) call: String,
    /// One letter for each part, see [`run`].
    pub(crate) plan: String,
}

#[derive(Debug, Deserialize, Form)]
struct Choice {
    name: String,
}

/// The parts of a call's handler.
struct Run<'a> {
    ctx: &'a Ctx,
    ledger: &'a Ledger,
    level: Level,
    call: &'a str,
    name: String,
    slow: Duration,
}

/// The size of a step's result, so that the records of longer calls move to the store.
const RESULT: usize = 300;

/// Returns the tools of a version. `slow` is the time of a slow step.
pub(crate) fn tools(ledger: &Ledger, slow: Duration, version: u32) -> Vec<Tool> {
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
    let tasks = TaskTool::ALL.into_iter().map(|kind| {
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

/// Follows the plan: `s` a step, `l` a slow step, `j` two steps at once, `q` a question, `b` two questions at once, `p` a question
/// and a step at once, `w` a question against a step, `c` a checkpoint, `t` the place at which a call becomes a task. From version 2
/// on, there is one more step at the end. The result has the answers, the run and the call's id. A task that was cancelled has
/// one step that compensates.
async fn run(
    ctx: &Ctx,
    order: Order,
    ledger: &Ledger,
    level: Level,
    slow: Duration,
    version: u32,
) -> Result<String> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let name = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let run = Run { ctx, ledger, level, call: &order.call, name, slow };
    let id = ctx.call_id().map(|id| id.to_string()).unwrap_or_default();
    tracing::debug!(call = %id, leg = ctx.leg(), run = run.name, of = order.call, "a handler runs");
    let answers = match run.follow(&order.plan).await {
        Err(error) if ctx.is_task() => {
            run.step(COMPENSATION, 0, Duration::from_millis(5)).await?;
            return Err(error);
        }
        answers => answers?,
    };
    if version > 1 {
        run.step("u", 0, Duration::from_millis(5)).await?;
    }
    Ok(format!("{}|{}|{id}", answers.join(","), run.name))
}

/// The name of the step that compensates.
pub(crate) const COMPENSATION: &str = "x";

impl Run<'_> {
    /// Follows a plan. Returns the answers.
    async fn follow(&self, plan: &str) -> Result<Vec<String>> {
        let (run, ctx) = (self, self.ctx);
        let mut answers = Vec::new();
        for (number, part) in (0u32..).zip(plan.bytes()) {
            match part {
                b's' => run.step("s", number, Duration::from_millis(15)).await?,
                b'l' => run.step("l", number, run.slow).await?,
                b'j' => {
                    let steps = ["j", "k"].map(|name| run.step(name, number, Duration::from_millis(15)));
                    ctx.join_all(steps).await.into_iter().collect::<Result<()>>()?;
                }
                b'q' => answers.push(run.ask("q", number).await?),
                b'b' => {
                    let (one, two) = tokio::join!(run.ask("b", number), run.ask("d", number));
                    answers.extend([one?, two?]);
                }
                b'p' => {
                    let work = run.step("p", number, Duration::from_millis(250));
                    let (answer, done) = tokio::join!(run.ask("q", number), work);
                    done?;
                    answers.push(answer?);
                }
                b'w' => {
                    let work = run.step("w", number, Duration::from_millis(5));
                    match ctx.select(("select", number), (run.ask("v", number), work)).await {
                        Winner::A(answer) => answers.push(answer?),
                        Winner::B(done) => done?,
                    }
                }
                b'c' => ctx.checkpoint().nth(number).now().await,
                b't' => ctx.into_task().await?,
                _ => return Err(Error::user_facing("a plan has unknown parts")),
            }
        }
        Ok(answers)
    }
    async fn ask(&self, name: &'static str, number: u32) -> Result<String> {
        let text = format!("Which {name}{number} of {}?", self.call);
        let choice = self.ctx.elicit::<Choice>(text).key(name).nth(number).await?;
        Ok(choice.name)
    }

    /// Runs a step whose effect is a line of the ledger, at its begin.
    async fn step(&self, name: &'static str, number: u32, time: Duration) -> Result<()> {
        let step = self.ctx.step((name, number), async |attempt| {
            self.ledger
                .append(self.call, &format!("{name}{number}"), attempt.key(), &self.name)
                .map_err(|_| Error::user_facing("the ledger cannot be written"))?;
            tokio::time::sleep(time).await;
            Ok("r".repeat(RESULT))
        });
        match self.level {
            Level::Once | Level::Rerun => drop(step.await?),
            Level::Reconciled => {
                let reconciled = step.reconcile(async |key| {
                    let found = self.ledger.has(self.call, &key);
                    found
                        .map(|found| found.then(|| "r".repeat(RESULT)))
                        .map_err(|error| Error::user_facing(error.to_string()))
                });
                drop(reconciled.await?);
            }
        }
        Ok(())
    }
}
