//! The record of a leg does not fit, or does not reach the store: the request goes on from the stored entries when it is sent again.

use super::{Play, World, limits};
use antiphon::{
    Result,
    server::{Ctx, State},
    tool,
};

/// Charges, has a long result, and asks.
#[tool(write_ahead)]
async fn long(ctx: &Ctx, world: State<World>) -> Result<String> {
    let charge = ctx.step("charge", async |s| Ok(world.does("charge", &s).await?));
    charge.reconcile(async |_| world.finds("charge").await).await?;
    let report = ctx.step("report", async |s| {
        world.does("report", &s).await?;
        Ok("x".repeat(6_000))
    });
    report.reconcile(async |_| Ok(world.finds("report").await?.map(|_| "x".repeat(6_000)))).await?;
    let name: super::Pick = ctx.elicit("Whose?").key("name").await?;
    Ok(name.name)
}

/// The first process has a limit below the record; those after it have the usual one.
#[tokio::test(start_paused = true)]
async fn a_record_over_the_limit_is_an_error_and_no_step_is_lost() {
    let first: super::Build = |builder| builder.tool(long).limits(limits().state(8 * 1024));
    let then: super::Build = |builder| builder.tool(long).limits(limits().state(64 * 1024));
    let play = Play { then, ..Play::of("long", first) };
    play.at_each_operation(|ended| {
        ended.did_nothing_twice();
        match ended.died && ended.reply["error"].is_null() {
            true => ended.came_to("Anna"),
            // The error says what is done.
            false => assert!(ended.reply["error"]["data"]["done"].is_array() , "{ended:#?}"),
        }
    })
    .await;
}

/// The same with records that move to the store: each `put` may be the last operation of the process.
#[tokio::test(start_paused = true)]
async fn a_record_that_does_not_reach_the_store_is_built_again() {
    let build: super::Build = |builder| builder.tool(long).spill(true).limits(limits().state(8 * 1024));
    Play::of("long", build)
        .at_each_operation(|ended| {
            ended.came_to("Anna");
            ended.did(&["charge", "report"]);
        })
        .await;
}
