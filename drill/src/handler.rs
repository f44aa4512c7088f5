//! The handler of all tools: it follows the plan in its arguments.

use crate::{ledger::Ledger, level::Level, plan::CHOICES};
use antiphon::{
    Error, Form, Result,
    server::{Ctx, flow::Winner},
};
use futures_util::{
    FutureExt as _, StreamExt as _,
    stream::{self, FuturesUnordered, Stream},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::sync::Notify;

/// The arguments of a call.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Order {
    pub(crate) call: String,
    /// One letter for each part, see [`Run::part`].
    pub(crate) plan: String,
}

#[derive(Debug, Deserialize, Form)]
struct Choice {
    name: String,
}

/// The parts of a call's handler.
pub(crate) struct Run<'a> {
    ctx: &'a Ctx,
    ledger: &'a Ledger,
    level: Level,
    call: &'a str,
    name: String,
    slow: Duration,
}

/// The times of steps.
const SHORT: Duration = Duration::from_millis(5);
const MIDDLE: Duration = Duration::from_millis(15);
const LONG: Duration = Duration::from_millis(250);

/// The size of a step's result, so that the records of longer calls move to the store.
const RESULT: usize = 300;

/// Follows the plan. From version 2 on, there is one more step at the end. The result has the answers, the run and the call's id. A
/// task that was cancelled has one step that compensates.
pub(crate) async fn run(
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
            run.step(COMPENSATION, 0, SHORT).await?;
            return Err(error);
        }
        answers => answers?,
    };
    if version > 1 {
        run.step("u", 0, SHORT).await?;
    }
    Ok(format!("{}|{}|{id}", answers.join(","), run.name))
}

/// The name of the step that compensates.
pub(crate) const COMPENSATION: &str = "x";

impl Run<'_> {
    /// Follows a plan. Returns the answers.
    async fn follow(&self, plan: &str) -> Result<Vec<String>> {
        let mut answers = Vec::new();
        for (number, part) in (0u32..).zip(plan.bytes()) {
            self.part(part, number, &mut answers).await?;
        }
        Ok(answers)
    }

    /// Runs a part of a plan:
    ///
    /// | letter | part |
    /// |---|---|
    /// | `s`, `l`, `q`, `c` | a step, a slow step, a question, a checkpoint |
    /// | `t` | the place at which a call becomes a task |
    /// | `j`, `b` | two steps at once, two questions at once |
    /// | `p` | a question beside a step |
    /// | `i` | a question beside a step, and beside a step behind a lookup, which is slow once the step has acted |
    /// | `w`, `r` | a question against a step, two steps against one that ends first; then an effect of the winner |
    /// | `f`, `u` | steps behind waits, in a `FuturesUnordered` and in `buffer_unordered`; an effect of the first one that ends |
    /// | `h` | a step beside a checkpoint that ends the leg |
    /// | `o` | a question behind a wait beside another question, whose answer a step follows |
    /// | `m` | a question behind a wait beside the place at which a call becomes a task, which a step follows |
    /// | `n` | a question that is not asked again when it was declined, and a step |
    async fn part(&self, part: u8, number: u32, answers: &mut Vec<String>) -> Result<()> {
        let (run, ctx) = (self, self.ctx);
        match part {
            b's' => run.step("s", number, MIDDLE).await?,
            b'l' => run.step("l", number, run.slow).await?,
            b'j' => {
                let steps = ["j", "k"].map(|name| run.step(name, number, MIDDLE));
                ctx.join_all(steps).await.into_iter().collect::<Result<()>>()?;
            }
            b'q' => answers.push(run.ask("q", number).await?),
            b'b' => {
                let (one, two) = tokio::join!(run.ask("b", number), run.ask("d", number));
                answers.extend([one?, two?]);
            }
            b'p' => {
                let (answer, done) = tokio::join!(run.ask("q", number), run.step("p", number, LONG));
                done?;
                answers.push(answer?);
            }
            b'i' => {
                let is_answered = Notify::new();
                let (answer, done, looked_up) = tokio::join!(
                    run.ask("q", number).inspect(|_| is_answered.notify_one()),
                    run.step("p", number, LONG * 3),
                    run.behind_lookup("i", number, &is_answered)
                );
                done.and(looked_up)?;
                answers.push(answer?);
            }
            b'w' | b'r' => run.race(part, number, answers).await?,
            b'f' => {
                let steps = ["j", "k"].map(|name| run.behind_wait(name, number));
                run.first_acts(steps.into_iter().collect::<FuturesUnordered<_>>(), number).await?;
            }
            b'u' => {
                let steps = ["j", "k", "l"].map(|name| run.behind_wait(name, number));
                run.first_acts(stream::iter(steps).buffer_unordered(2), number).await?;
            }
            b'h' => {
                let checkpoint = ctx.checkpoint().nth(number).now();
                tokio::join!(run.step("h", number, LONG), checkpoint).0?;
            }
            b'o' => {
                let (one, two) = tokio::join!(run.ask_behind_wait(number), async {
                    let answer = run.ask("d", number).await?;
                    run.step("o", number, LONG).await?;
                    Ok::<_, Error>(answer)
                });
                answers.extend([one?, two?]);
            }
            b'm' => {
                let (answer, done) = tokio::join!(run.ask_behind_wait(number), async {
                    ctx.into_task().await?;
                    run.step("m", number, LONG).await
                });
                done?;
                answers.push(answer?);
            }
            b'n' => {
                if ctx.leg() < 2 {
                    ctx.elicit::<Choice>("Sure?").key("n").outcome().await?;
                }
                // A set keeps a waker.
                let steps = ["n"].map(|name| run.behind_wait(name, number));
                run.first_acts(steps.into_iter().collect::<FuturesUnordered<_>>(), number).await?;
            }
            b'c' => ctx.checkpoint().nth(number).now().await,
            b't' => ctx.into_task().await?,
            _ => return Err(Error::user_facing("a plan has unknown parts")),
        }
        Ok(())
    }

    /// Runs a question or a step against a step, and has the effect of the winner.
    async fn race(&self, part: u8, number: u32, answers: &mut Vec<String>) -> Result<()> {
        let other = if part == b'w' { self.step("w", number, SHORT) } else { self.step("k", number, MIDDLE) };
        let first = async {
            if part == b'w' {
                return self.ask("v", number).await.map(Some);
            }
            self.step("j", number, LONG / 4).await?;
            self.step("l", number, LONG).await.map(|()| None)
        };
        match self.ctx.select(("select", number), (first, other)).await {
            Winner::A(answer) => {
                answers.extend(answer?);
                self.step(CHOICES[0], number, LONG / 2).await
            }
            Winner::B(done) => {
                done?;
                self.step(CHOICES[1], number, LONG / 2).await
            }
        }
    }

    /// Runs all, and has the effect of the first one that ends.
    async fn first_acts(
        &self,
        mut steps: impl Stream<Item = Result<usize>> + Unpin,
        number: u32,
    ) -> Result<()> {
        let mut is_first = true;
        while let Some(choice) = steps.next().await {
            let choice = choice?;
            if std::mem::take(&mut is_first) {
                self.step(CHOICES[choice], number, LONG / 2).await?;
            }
        }
        Ok(())
    }

    /// Waits without a record of it: shorter than the grace of a leg, or longer.
    async fn wait(&self, number: usize) {
        tokio::time::sleep(Duration::from_millis([0, 20, 80, 200][number % 4])).await;
    }

    /// Runs a step behind a wait. Returns the number of its choice.
    async fn behind_wait(&self, name: &'static str, number: u32) -> Result<usize> {
        let choice = match name {
            "k" => 1,
            "l" => 2,
            _ => 0,
        };
        self.wait(number as usize + choice * 3).await;
        self.step(name, number, MIDDLE).await?;
        Ok(choice)
    }

    /// Runs a step behind a wait that is no step. Once the step has acted, the wait is longer than the grace of a leg, unless the
    /// question beside it is answered: a run after a crash ends its leg before it reaches what the run before has stored.
    async fn behind_lookup(&self, name: &'static str, number: u32, is_answered: &Notify) -> Result<()> {
        let effects =
            self.ledger.read(self.call).map_err(|_| Error::user_facing("the ledger cannot be read"))?;
        if effects.iter().any(|effect| effect.step == format!("{name}{number}")) {
            let _ = tokio::time::timeout(LONG * 4, is_answered.notified()).await;
        }
        self.step(name, number, SHORT).await
    }

    async fn ask_behind_wait(&self, number: u32) -> Result<String> {
        self.wait(number as usize + 1).await;
        self.ask("q", number).await
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
