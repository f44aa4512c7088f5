//! The handler of a random call: it follows a plan.

use super::{super::*, process::Process, random::Random};
use antiphon::server::{TaskMode, flow::Winner};
use futures_util::{
    StreamExt as _,
    stream::{self, FuturesUnordered, Stream},
};
use std::{sync::Mutex, time::Duration};

/// The level of the tool, and what happens to a step that a crash interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    SingleUse,
    WriteAhead,
    Rerun,
    Reconciled,
}

impl Level {
    pub(super) const ALL: [Self; 4] = [Self::SingleUse, Self::WriteAhead, Self::Rerun, Self::Reconciled];
}

/// An effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) step: String,
    pub(super) key: String,
}

/// The effects of the call, outside of the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Arc<Mutex<Vec<Effect>>>);

impl Ledger {
    pub(super) fn all(&self) -> Vec<Effect> {
        self.0.lock().unwrap().clone()
    }

    fn add(&self, step: String, key: String) {
        self.0.lock().unwrap().push(Effect { step, key });
    }

    fn has(&self, key: &str) -> bool {
        self.0.lock().unwrap().iter().any(|effect| effect.key == key)
    }
}

/// The plan of a handler that does not ask again what was declined: its call has to end as `flow_diverged`.
pub(super) const FORGETFUL: &str = "n";

/// Returns the parts of a call, one letter each: see [`Run::part`]. At some place it may become a task.
pub(super) fn plan(random: &mut Random, may_be_task: bool) -> String {
    if random.percent(4) {
        return FORGETFUL.to_owned();
    }
    let length = 1 + random.below(5);
    let parts = ['s', 's', 'q', 'q', 'j', 'b', 'c', 'w', 'r', 'r', 'f', 'u', 'p', 'h'];
    let mut plan: String = (0..length).map(|_| random.one_of(&parts)).collect();
    if may_be_task && random.percent(25) {
        // Behind its first leg: a first request that is sent again is another call.
        plan.insert(1 + random.below(length), 'm');
    }
    plan
}

/// Returns the steps that have ended when the call has.
pub(super) fn steps(plan: &str) -> Vec<String> {
    let names = |part| match part {
        's' | 'p' | 'h' | 'm' => "s",
        'j' | 'f' => "jk",
        'u' => "jkl",
        _ => "",
    };
    let all = plan.chars().enumerate();
    all.flat_map(|(number, part)| names(part).chars().map(move |name| format!("{name}{number}"))).collect()
}

/// Returns the numbers of the parts that choose: exactly one of their choices acts.
pub(super) fn choices(plan: &str) -> impl Iterator<Item = usize> {
    plan.chars().enumerate().filter(|(_, part)| "wrfu".contains(*part)).map(|(number, _)| number)
}

/// The effects of choices.
pub(super) const CHOICES: [&str; 3] = ["A", "B", "C"];

/// Returns the tool `t` of this process.
pub(super) fn planned(plan: String, level: Level, ledger: Ledger, process: Arc<Process>) -> Tool {
    let is_task = plan.contains('m');
    let tool = tool(move |ctx| {
        let (plan, ledger, process) = (plan.clone(), ledger.clone(), Arc::clone(&process));
        async move { Run { ctx, level, ledger, process }.follow(&plan).await }.boxed()
    });
    let mode = if is_task { TaskMode::Optional } else { TaskMode::Never };
    tool.rerun_after_crash(level == Level::Rerun).task(mode)
}

/// One run of the handler.
struct Run<'a> {
    ctx: &'a Ctx,
    level: Level,
    ledger: Ledger,
    process: Arc<Process>,
}

impl Run<'_> {
    async fn follow(&self, plan: &str) -> Result<String> {
        let mut answers = String::new();
        for (number, part) in (0_u32..).zip(plan.bytes()) {
            self.part(part, number, &mut answers).await?;
        }
        Ok(answers)
    }

    /// Runs a part of the plan:
    ///
    /// | letter | part |
    /// |---|---|
    /// | `s`, `q`, `c` | a step, a question, a checkpoint |
    /// | `j`, `b` | two steps at once, two questions at once |
    /// | `w`, `r` | a question against a step, a step against a step; then an effect of the winner |
    /// | `f`, `u` | steps in a `FuturesUnordered` and in `buffer_unordered`, each behind a wait that is no step; an effect of the first that ends |
    /// | `p` | a question beside a step that is behind a wait |
    /// | `h` | a step beside a checkpoint that ends the leg |
    /// | `m` | the place at which a call becomes a task, beside a step that is behind a wait |
    /// | `n` | a question that is asked on the first leg alone, and a step |
    async fn part(&self, part: u8, number: u32, answers: &mut String) -> Result<()> {
        match part {
            b's' => self.step("s", number).await?,
            b'j' => {
                let steps = ["j", "k"].map(|name| self.step(name, number));
                self.ctx.join_all(steps).await.into_iter().collect::<Result<()>>()?;
            }
            b'q' => answers.push_str(&self.ask("q", number).await?),
            b'b' => {
                let (one, two) = tokio::join!(self.ask("b", number), self.ask("d", number));
                answers.push_str(&one?);
                answers.push_str(&two?);
            }
            b'w' => {
                match self.ctx.select(("w", number), (self.ask("v", number), self.step("j", number))).await {
                    Winner::A(answer) => {
                        answers.push_str(&answer?);
                        self.step("A", number).await?;
                    }
                    Winner::B(ended) => {
                        ended?;
                        self.step("B", number).await?;
                    }
                }
            }
            b'r' => {
                let first = async {
                    self.step("j", number).await?;
                    self.step("l", number).await
                };
                match self.ctx.select(("r", number), (first, self.step("k", number))).await {
                    Winner::A(ended) => {
                        ended?;
                        self.step("A", number).await?;
                    }
                    Winner::B(ended) => {
                        ended?;
                        self.step("B", number).await?;
                    }
                }
            }
            b'f' => {
                let steps = [("j", "A"), ("k", "B")].map(|names| self.behind_wait(names, number));
                self.first_acts(steps.into_iter().collect::<FuturesUnordered<_>>(), number).await?;
            }
            b'u' => {
                let steps = [("j", "A"), ("k", "B"), ("l", "C")].map(|names| self.behind_wait(names, number));
                self.first_acts(stream::iter(steps).buffer_unordered(2), number).await?;
            }
            b'p' => {
                let (answer, ended) =
                    tokio::join!(self.ask("q", number), self.behind_wait(("s", ""), number));
                ended?;
                answers.push_str(&answer?);
            }
            b'h' => {
                let checkpoint = self.ctx.checkpoint().nth(number).now();
                tokio::join!(self.step("s", number), checkpoint).0?;
            }
            b'm' => {
                let (ended, becomes) =
                    tokio::join!(self.behind_wait(("s", ""), number), self.ctx.into_task());
                becomes?;
                ended?;
            }
            b'n' => {
                if self.ctx.leg() < 2 {
                    let _ = self.ctx.elicit::<Pick>("Sure?").key("n").outcome().await?;
                }
                // A set keeps a waker.
                let steps = [("j", "A")].map(|names| self.behind_wait(names, number));
                self.first_acts(steps.into_iter().collect::<FuturesUnordered<_>>(), number).await?;
            }
            _ => self.ctx.checkpoint().nth(number).now().await,
        }
        Ok(())
    }

    /// Runs all, and has the effect of the first one that ends.
    async fn first_acts(
        &self,
        steps: impl Stream<Item = Result<&'static str>> + Unpin,
        number: u32,
    ) -> Result<()> {
        let mut steps = steps;
        let mut first = None;
        while let Some(ended) = steps.next().await {
            let choice = ended?;
            if first.is_none() {
                first = Some(choice);
                self.step(choice, number).await?;
            }
        }
        Ok(())
    }

    /// Runs the first one of two steps after a wait that is no step: shorter than the grace of a leg, or longer. Returns the second one.
    async fn behind_wait(
        &self,
        (name, choice): (&'static str, &'static str),
        number: u32,
    ) -> Result<&'static str> {
        let time = [0, 20, 80, 300][(number as usize + usize::from(name.as_bytes()[0])) % 4];
        tokio::time::sleep(Duration::from_millis(time)).await;
        self.step(name, number).await?;
        Ok(choice)
    }

    async fn ask(&self, name: &'static str, number: u32) -> Result<String> {
        Ok(self.ctx.elicit::<Pick>("Which?").key(name).nth(number).await?.name)
    }

    async fn step(&self, name: &'static str, number: u32) -> Result<()> {
        let step = self.ctx.step((name, number), async |attempt| {
            self.process.event_of_step().await;
            tokio::time::sleep(self.time(name, number)).await;
            self.ledger.add(format!("{name}{number}"), attempt.key().to_owned());
            self.process.event_of_step().await;
            tokio::time::sleep(self.time(name, number)).await;
            Ok(())
        });
        match self.level {
            Level::Reconciled => {
                Ok(step.reconcile(async |key| Ok(self.ledger.has(&key).then_some(()))).await?)
            }
            _ => Ok(step.await?),
        }
    }

    /// The half of the time that a step takes: nothing, or some of the time of a wait.
    fn time(&self, name: &str, number: u32) -> Duration {
        let mixed = number * 7 + u32::from(name.as_bytes()[0]) * 5 + u32::from(self.ctx.leg());
        Duration::from_millis([0, 0, 5, 30][mixed as usize % 4])
    }
}
