//! The record of a leg does not fit, or does not reach the store: the request goes on from the stored entries when it is sent again.

use super::{Build, Fleet, Pick, Play, World, limits};
use antiphon::{
    Result,
    server::{Ctx, State},
    tool,
};
use serde_json::json;

/// Charges, has long results, and asks.
#[tool(write_ahead)]
async fn long(ctx: &Ctx, world: State<World>) -> Result<String> {
    let charge = ctx.step("charge", async |s| Ok(world.does("charge", &s).await?));
    charge.reconcile(async |_| world.finds("charge").await).await?;
    for number in 0..3 {
        let name = format!("report {number}");
        let report = ctx.step(("report", number), async |s| {
            world.does(&name, &s).await?;
            Ok("x".repeat(6_000))
        });
        report.reconcile(async |_| Ok(world.finds(&name).await?.map(|_| "x".repeat(6_000)))).await?;
    }
    let name: Pick = ctx.elicit("Whose?").key("name").await?;
    Ok(name.name)
}

const DONE: [&str; 4] = ["charge", "report 0", "report 1", "report 2"];

/// A limit that the record reaches at the third step, and one that it does not reach.
const FULL: Build = |builder| builder.tool(long).limits(limits().state(24 * 1024));
const RAISED: Build = |builder| builder.tool(long).limits(limits().state(64 * 1024));

/// Each repetition has the error, with what is done. With a higher limit, the same request goes on.
#[tokio::test(start_paused = true)]
async fn a_record_over_the_limit_goes_on_when_the_limit_is_raised() {
    let mut fleet = Fleet::new(Play { then: RAISED, ..Play::of("long", FULL) });
    let mut params = json!({"name": "long", "arguments": {}});
    let mut errors = 0;
    while errors < 3 {
        let reply = fleet.settled("tools/call", &params).await;
        if reply["result"]["inputRequests"] == json!({}) {
            params["requestState"] = reply["result"]["requestState"].clone();
            continue;
        }
        assert_eq!(reply["error"]["data"]["reason"], "limit", "{reply}");
        assert_eq!(reply["error"]["data"]["done"][0], "charge", "{reply}");
        errors += 1;
    }
    fleet.world.process.die();
    let reply = fleet.settled("tools/call", &params).await;
    assert!(reply["result"]["inputRequests"]["name"].is_object(), "{reply}");
    fleet.ended(reply).did(&DONE);
}

/// The first process has a limit below the record; those after it have the usual one.
#[tokio::test(start_paused = true)]
async fn a_record_over_the_limit_is_an_error_and_no_step_is_lost() {
    let play = Play { then: RAISED, ..Play::of("long", FULL) };
    play.at_each_operation(|ended| {
        ended.did_nothing_twice();
        match ended.reply["error"].is_null() {
            true => ended.did(&DONE),
            // The error says what is done.
            false => assert!(ended.reply["error"]["data"]["done"].is_array(), "{ended:#?}"),
        }
    })
    .await;
}

/// The same with records that move to the store: each `put` may be the last operation of the process.
#[tokio::test(start_paused = true)]
async fn a_record_that_does_not_reach_the_store_is_built_again() {
    let build: Build = |builder| builder.tool(long).spill(true).limits(limits().state(24 * 1024));
    Play::of("long", build)
        .at_each_operation(|ended| {
            ended.came_to("Anna");
            ended.did(&DONE);
        })
        .await;
}
