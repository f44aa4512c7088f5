//! A step with several attempts whose process dies in one of them, or between two.

use super::{Play, World};
use antiphon::{
    Error, Result,
    server::{Ctx, Retry, State, StepError},
    tool,
};

/// The first attempt has no effect; the second one has it.
async fn charge(ctx: &Ctx, world: &World, reconciles: bool) -> Result<String> {
    let step = ctx.step_retry("charge", Retry::times(6), async |s| {
        world.waits(5).await;
        if world.notes("attempt") == 1 {
            return Err(StepError::retry(Error::user_facing("not now")));
        }
        let did = world.does("charge", &s).await?;
        world.waits(5).await;
        Ok(did)
    });
    let charged = match reconciles {
        true => step.reconcile(async |_| world.finds("charge").await).await?,
        false => step.await?,
    };
    ctx.step("mail", async |s| Ok(world.does("mail", &s).await?))
        .reconcile(async |_| world.finds("mail").await)
        .await?;
    Ok(charged)
}

#[tool(name = "charge", write_ahead)]
async fn reconciled(ctx: &Ctx, world: State<World>) -> Result<String> {
    charge(ctx, &world, true).await
}

#[tool(name = "charge", write_ahead)]
async fn unresolved(ctx: &Ctx, world: State<World>) -> Result<String> {
    charge(ctx, &world, false).await
}

/// The attempt that was interrupted is resolved; one that ended without an outcome just runs again.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_interrupted_is_reconciled() {
    let play = Play::of("charge", |builder| builder.tool(reconciled));
    play.at_each_operation(|ended| {
        ended.came_to("charge");
        ended.did(&["charge", "mail"]);
    })
    .await;
}

/// Dead in the pause between two attempts, nothing was interrupted.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_interrupted_is_unknown_without_reconcile() {
    let play = Play::of("charge", |builder| builder.tool(unresolved));
    play.at_each_operation(|ended| {
        ended.did_nothing_twice();
        if ended.reason() == "outcome_unknown" {
            assert_eq!(ended.reply["error"]["data"]["step"], "charge", "{ended:#?}");
            assert!(ended.died && !ended.names().contains(&"mail"), "{ended:#?}");
        } else {
            ended.did(&["charge", "mail"]);
        }
    })
    .await;
}
