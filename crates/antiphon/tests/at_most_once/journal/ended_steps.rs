//! A step that ended is in the record of its leg, whatever ends the leg, and whether the run that replied has reached it or not.

use super::{Build, Pick, Play, World, limits, millis};
use antiphon::{
    Error, Result,
    server::{Ctx, State, StepError},
    tool,
};

/// Asks, and then charges beside `other`, which ends the leg.
async fn beside(
    ctx: &Ctx,
    world: &World,
    lookup: u64,
    charge: u64,
    other: impl Future<Output = Result<()>>,
) -> Result<String> {
    let _: Pick = ctx.elicit("Whose?").key("name").await?;
    let (ended, charged) = tokio::join!(other, async {
        world.waits(lookup).await;
        let step = ctx.step("charge", async |s| {
            world.waits(charge).await;
            world.does("charge", &s).await
        });
        step.reconcile(async |_| world.finds("charge").await).await
    });
    ended?;
    Ok(charged?)
}

/// A step of this time, which has no effect.
async fn work(ctx: &Ctx, world: &World, time: u64) -> Result<(), StepError> {
    let work = ctx.step("work", async |_| {
        world.waits(time).await;
        Ok(())
    });
    work.reconcile(async |_| Ok(None)).await
}

/// Makes the call a task while `charge` runs.
#[tool(task = "optional", write_ahead)]
async fn into_task(ctx: &Ctx, world: State<World>) -> Result<String> {
    let ends = async {
        work(ctx, &world, 1).await?;
        ctx.into_task().await
    };
    beside(ctx, &world, 0, 30, ends).await
}

/// Ends the leg at a checkpoint while `charge` runs.
#[tool(write_ahead)]
async fn checkpoint(ctx: &Ctx, world: State<World>) -> Result<String> {
    let ends = async {
        work(ctx, &world, 1).await?;
        ctx.checkpoint().now().await;
        Ok(())
    };
    beside(ctx, &world, 0, 30, ends).await
}

/// Asks while `charge` is behind a lookup that is longer than the grace of a leg.
#[tool(write_ahead)]
async fn question(ctx: &Ctx, world: State<World>) -> Result<String> {
    let ends = async {
        work(ctx, &world, 70).await?;
        ctx.elicit::<Pick>("Sure?").key("sure").await?;
        Ok(())
    };
    beside(ctx, &world, 66, 0, ends).await
}

/// Fails for now while `charge` is behind a lookup.
#[tool(write_ahead)]
async fn failure(ctx: &Ctx, world: State<World>) -> Result<String> {
    let ends = async {
        let work = ctx.step("work", async |_| {
            world.waits(70).await;
            if world.notes("work") < 3 {
                return Err(StepError::retry(Error::user_facing("not now")));
            }
            Ok(())
        });
        Ok(work.reconcile(async |_| Ok(None)).await?)
    };
    beside(ctx, &world, 66, 0, ends).await
}

/// Returns its result while `charge` is behind a lookup: the branch that does not charge wins.
#[tool(write_ahead)]
async fn result(ctx: &Ctx, world: State<World>) -> Result<String> {
    let _: Pick = ctx.elicit("Whose?").key("name").await?;
    let charges = async {
        world.waits(20).await;
        ctx.step("charge", async |s| Ok(world.does("charge", &s).await?))
            .reconcile(async |_| world.finds("charge").await)
            .await?;
        world.waits(1000).await;
        Ok::<_, Error>(())
    };
    let works = async { Ok::<_, Error>(work(ctx, &world, 40).await?) };
    ctx.select("first", (charges, works)).await;
    ctx.elicit::<Pick>("Sure?").key("sure").await?;
    Ok("charge".to_owned())
}

/// Becomes a task by time, while `charge` runs.
#[tool(task = "optional", write_ahead, promote_after = "1s")]
async fn by_time(ctx: &Ctx, world: State<World>) -> Result<String> {
    let ends = async {
        work(ctx, &world, 1050).await?;
        ctx.step("more", async |_| Ok(())).reconcile(async |_| Ok(None)).await?;
        Ok(())
    };
    beside(ctx, &world, 0, 1100, ends).await
}

const BUILD: Build = |builder| {
    builder.tool(into_task).tool(checkpoint).tool(question).tool(failure).tool(result).tool(by_time)
};

/// Runs the tool whose leg ends in this way.
fn play(tool: &'static str) -> Play {
    Play { promotes: matches!(tool, "into_task" | "by_time"), ..Play::of(tool, BUILD) }
}

fn once(ended: &super::Ended) {
    ended.did_nothing_twice();
    ended.came_to("charge");
}

each_tool! {
    a_step_that_ended_does_not_run_again_after_the_client_hung_up:
    async |tool| play(tool).at_each_time(millis(110), once).await;
    into_task checkpoint question failure result by_time
}

each_tool! {
    a_step_that_ended_does_not_run_again_after_a_crash:
    async |tool| play(tool).at_each_operation(once).await;
    into_task checkpoint question failure result by_time
}

each_tool! {
    /// The time of a step that goes on without its client is bounded. Beyond it the step is interrupted, and `reconcile` decides.
    a_step_beyond_its_grace_is_reconciled_when_the_request_is_sent_again:
    async |tool| {
        let first: Build = |builder| BUILD(builder).limits(limits().step_grace(millis(5)));
        Play { first, ..play(tool) }.at_each_time(millis(80), once).await;
    };
    into_task checkpoint question failure result by_time
}
