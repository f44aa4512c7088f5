//! The handler of a random call: it follows a plan.

use super::{super::*, process::Process, random::Random};
use std::sync::Mutex;

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

/// The parts of a call: `s` a step, `j` two steps at once, `q` a question, `b` two questions at once, `c` a checkpoint.
pub(super) fn plan(random: &mut Random) -> String {
    let length = 1 + random.below(5);
    (0..length).map(|_| random.one_of(&['s', 's', 'q', 'q', 'j', 'b', 'c'])).collect()
}

/// Returns the steps that have ended when the call has.
pub(super) fn steps(plan: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for (number, part) in plan.chars().enumerate() {
        match part {
            's' => steps.push(format!("s{number}")),
            'j' => steps.extend([format!("j{number}"), format!("k{number}")]),
            _ => {}
        }
    }
    steps
}

/// Returns the tool `t` of this process.
pub(super) fn planned(plan: String, level: Level, ledger: Ledger, process: Arc<Process>) -> Tool {
    let tool = tool(move |ctx| {
        let (plan, ledger, process) = (plan.clone(), ledger.clone(), Arc::clone(&process));
        async move { Run { ctx, level, ledger, process }.follow(&plan).await }.boxed()
    });
    tool.rerun_after_crash(level == Level::Rerun)
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
                _ => self.ctx.checkpoint().nth(number).now().await,
            }
        }
        Ok(answers)
    }

    async fn ask(&self, name: &'static str, number: u32) -> Result<String> {
        Ok(self.ctx.elicit::<Pick>("Which?").key(name).nth(number).await?.name)
    }

    async fn step(&self, name: &'static str, number: u32) -> Result<()> {
        let step = self.ctx.step((name, number), async |attempt| {
            self.process.event_of_step().await;
            self.ledger.add(format!("{name}{number}"), attempt.key().to_owned());
            self.process.event_of_step().await;
            Ok(())
        });
        match self.level {
            Level::Reconciled => {
                Ok(step.reconcile(async |key| Ok(self.ledger.has(&key).then_some(()))).await?)
            }
            _ => Ok(step.await?),
        }
    }
}
