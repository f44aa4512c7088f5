//! An answer keeps its place and its meaning after a crash, and a step its key: in time, for this input, for this name.

use super::{Ended, Pick, Play, World};
use antiphon::{
    Result,
    server::{AskError, Ctx, State},
    tool,
};
use std::time::Duration;

async fn step(ctx: &Ctx, world: &World, name: &'static str) -> Result<String> {
    let step = ctx.step(name, async |s| Ok(world.does(name, &s).await?));
    Ok(step.reconcile(async |_| world.finds(name).await).await?)
}

/// An answer has thirty seconds; the next process is there after sixty.
#[tool(write_ahead)]
async fn in_time(ctx: &Ctx, world: State<World>) -> Result<String> {
    let answer = ctx.elicit::<Pick>("Buy?").key("buy").timeout(Duration::from_secs(30)).await;
    if let Err(AskError::Expired { .. }) = answer {
        step(ctx, &world, "apologise").await?;
        return Ok("too late".to_owned());
    }
    answer?;
    step(ctx, &world, "charge").await?;
    step(ctx, &world, "ship").await?;
    Ok("bought".to_owned())
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_came_in_time_is_not_late_after_a_crash() {
    let play = Play { gap: Duration::from_secs(60), ..Play::of("in_time", |builder| builder.tool(in_time)) };
    play.at_each_operation(|ended| match ended.text() {
        "bought" => ended.did(&["charge", "ship"]),
        text => {
            assert_eq!(text, "too late");
            ended.did(&["apologise"]);
        }
    })
    .await;
}

/// The price of each run is another one.
async fn pays(ctx: &Ctx, world: &World, reconciles: bool) -> Result<String> {
    let _: Pick = ctx.elicit("Which?").key("name").await?;
    let price = 10 + world.notes("run");
    let pay = ctx.step_with("pay", &price, async |s| {
        world.does("pay", &s).await?;
        Ok(price)
    });
    let paid = match reconciles {
        true => pay.reconcile(async |_| Ok(world.finds("pay").await?.map(|_| 11))).await?,
        false => pay.await?,
    };
    step(ctx, world, "mail").await?;
    Ok(if paid == price { "one price" } else { "two prices" }.to_owned())
}

#[tool(name = "pays", write_ahead)]
async fn pays_once(ctx: &Ctx, world: State<World>) -> Result<String> {
    pays(ctx, &world, true).await
}

#[tool(name = "pays", write_ahead, rerun_after_crash)]
async fn pays_again(ctx: &Ctx, world: State<World>) -> Result<String> {
    pays(ctx, &world, false).await
}

/// A result that was stored for another input is none for this one.
#[tokio::test(start_paused = true)]
async fn a_step_with_another_input_after_a_crash_has_diverged() {
    let builds: [super::Build; 2] = [|builder| builder.tool(pays_once), |builder| builder.tool(pays_again)];
    for build in builds {
        Play::of("pays", build)
            .at_each_operation(|ended| {
                ended.did_nothing_twice();
                if ended.reason() == "flow_diverged" {
                    assert!(ended.died, "{ended:#?}");
                } else {
                    ended.came_to("one price");
                }
            })
            .await;
    }
}

mod v1 {
    use super::*;

    #[tool(name = "renamed", write_ahead, version = 1)]
    pub(super) async fn renamed(ctx: &Ctx, world: State<World>) -> Result<String> {
        let name: Pick = ctx.elicit("Which?").key("name").await?;
        step(ctx, &world, "create").await?;
        step(ctx, &world, "mail").await?;
        Ok(name.name)
    }

    #[tool(name = "forgets", write_ahead, version = 1)]
    pub(super) async fn forgets(ctx: &Ctx, world: State<World>) -> Result<String> {
        let (one, two) =
            tokio::join!(ctx.elicit::<Pick>("One?").key("one"), ctx.elicit::<Pick>("Two?").key("two"));
        one?;
        two?;
        step(ctx, &world, "create").await?;
        step(ctx, &world, "mail").await?;
        Ok("Anna".to_owned())
    }
}

mod v2 {
    use super::*;

    #[tool(name = "renamed", write_ahead, version = 2, rename("create", "create_db"))]
    pub(super) async fn renamed(ctx: &Ctx, world: State<World>) -> Result<String> {
        let name: Pick = ctx.elicit("Which?").key("name").await?;
        let create = ctx.step("create_db", async |s| Ok(world.does("create", &s).await?));
        create.reconcile(async |_| world.finds("create").await).await?;
        step(ctx, &world, "mail").await?;
        Ok(name.name)
    }

    #[tool(name = "forgets", write_ahead, version = 2, forget("two"))]
    pub(super) async fn forgets(ctx: &Ctx, world: State<World>) -> Result<String> {
        ctx.elicit::<Pick>("One?").key("one").await?;
        step(ctx, &world, "create").await?;
        step(ctx, &world, "mail").await?;
        Ok("Anna".to_owned())
    }
}

fn both(ended: &Ended) {
    ended.came_to("Anna");
    ended.did(&["create", "mail"]);
}

/// The first process has the older version, those after it have the newer one.
fn upgrades(tool: &'static str) -> Play {
    let first: super::Build = |builder| builder.tool(v1::renamed).tool(v1::forgets);
    let then: super::Build = |builder| builder.tool(v2::renamed).tool(v2::forgets);
    Play { then, ..Play::of(tool, first) }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_the_next_version_renames_runs_once() {
    upgrades("renamed").at_each_operation(both).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_next_version_forgets_does_not_make_the_request_another_one() {
    upgrades("forgets").at_each_operation(both).await;
}
