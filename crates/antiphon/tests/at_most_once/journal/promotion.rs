//! A call that becomes a task has one record for both: nothing that was done before or meanwhile runs again in the task.

use super::{Ended, Pick, Play, World, millis};
use antiphon::{
    Result,
    server::{Ctx, State},
    tool,
};

async fn step(ctx: &Ctx, world: &World, name: &'static str, time: u64) -> Result<String> {
    let step = ctx.step(name, async |s| {
        let did = world.does(name, &s).await?;
        world.waits(time).await;
        Ok(did)
    });
    Ok(step.reconcile(async |_| world.finds(name).await).await?)
}

/// The lookup before `into_task` is quick in the first run, and slower than the steps beside it in the next one.
#[tool(task = "optional", write_ahead)]
async fn slower(ctx: &Ctx, world: State<World>) -> Result<String> {
    let _: Pick = ctx.elicit("Which?").key("name").await?;
    let time = if world.notes("run") == 1 { 5 } else { 100 };
    let (promoted, worked) = tokio::join!(
        async {
            world.waits(time).await;
            ctx.into_task().await
        },
        async {
            step(ctx, &world, "one", 20).await?;
            step(ctx, &world, "two", 1).await
        }
    );
    promoted?;
    worked
}

/// Becomes a task by time, while the loser of a race runs.
#[tool(task = "optional", write_ahead, promote_after = "1s")]
async fn by_time(ctx: &Ctx, world: State<World>) -> Result<String> {
    let (x, y) = (ctx.scope("x"), ctx.scope("y"));
    ctx.select("first", (step(&x, &world, "one", 500), step(&y, &world, "loser", 1500))).await;
    step(ctx, &world, "two", 600).await?;
    step(ctx, &world, "three", 1).await?;
    let _: Pick = ctx.elicit("Go on?").key("name").await?;
    Ok("two".to_owned())
}

const BUILD: super::Build = |builder| builder.tool(slower).tool(by_time);

fn once(ended: &Ended) {
    ended.did_nothing_twice();
    ended.came_to("two");
    assert!(ended.names().contains(&"one") && ended.names().contains(&"two"), "{ended:#?}");
}

each_tool! {
    a_task_is_created_from_the_record_of_its_leg_after_any_crash:
    async |tool| Play { promotes: true, ..Play::of(tool, BUILD) }.at_each_operation(once).await;
    slower by_time
}

each_tool! {
    a_task_is_created_from_the_record_of_its_leg_after_the_client_hung_up:
    async |tool| Play { promotes: true, ..Play::of(tool, BUILD) }.at_each_time(millis(60), once).await;
    slower by_time
}

/// The same request twice at once, or after a crash, is one task: the reply names it.
#[tokio::test(start_paused = true)]
async fn the_request_that_created_a_task_returns_it_again() {
    // `Play::task` follows the id of the first reply that arrives: a second task would act again.
    let play = Play { promotes: true, hangs_up: Some(millis(8)), ..Play::of("slower", BUILD) };
    play.at_each_operation(once).await;
}
