//! A step in the branch that lost, or behind a lookup, does not keep its call from its end: it is resolved where it stands.

use super::{Ended, Pick, Play, World};
use antiphon::{
    Error, Result,
    server::{Ctx, State, StepError, flow::Winner},
    tool,
};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use serde_json::json;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A step of this time; its effect comes first.
async fn slow(ctx: &Ctx, world: &World, name: &'static str, time: u64) -> Result<String, StepError> {
    let step = ctx.step(name, async |s| {
        let did = world.does(name, &s).await?;
        world.waits(time).await;
        Ok(did)
    });
    step.reconcile(async |_| world.finds(name).await).await
}

#[tool(write_ahead)]
async fn race(ctx: &Ctx, world: State<World>) -> Result<String> {
    let won = ctx.select("first", (slow(ctx, &world, "fast", 10), slow(ctx, &world, "slow", 500))).await;
    Ok(match won {
        Winner::A(_) => "fast",
        Winner::B(_) => "slow",
    }
    .to_owned())
}

/// The loser is behind a lookup: before it, the winner has won again.
#[tool(write_ahead)]
async fn behind_a_lookup(ctx: &Ctx, world: State<World>) -> Result<String> {
    let loser = async {
        world.waits(5).await;
        slow(ctx, &world, "slow", 500).await
    };
    ctx.select("first", (slow(ctx, &world, "fast", 10), loser)).await;
    let _: Pick = ctx.elicit("Go on?").key("name").await?;
    slow(ctx, &world, "after", 1).await?;
    Ok("fast".to_owned())
}

/// Everything is joined; a lookup of 0.9 or 1.1 s comes before one step.
async fn looks_long(ctx: &Ctx, world: &World, time: u64) -> Result<String> {
    let (one, two) = tokio::join!(slow(ctx, world, "one", 20), async {
        world.waits(time).await;
        slow(ctx, world, "two", 20).await
    });
    one?;
    two?;
    let _: Pick = ctx.elicit("Go on?").key("name").await?;
    Ok("fast".to_owned())
}

#[tool(write_ahead)]
async fn long_lookup(ctx: &Ctx, world: State<World>) -> Result<String> {
    looks_long(ctx, &world, 900).await
}

#[tool(write_ahead)]
async fn longer_lookup(ctx: &Ctx, world: State<World>) -> Result<String> {
    looks_long(ctx, &world, 1100).await
}

/// A set that is dropped when its first step has ended.
#[tool(write_ahead)]
async fn dropped_set(ctx: &Ctx, world: State<World>) -> Result<String> {
    let _: Pick = ctx.elicit("Which?").key("name").await?;
    let mut set: FuturesUnordered<_> =
        [("fast", 10), ("slow", 500)].map(|(name, time)| slow(ctx, &world, name, time)).into_iter().collect();
    let first = set.next().await.expect("two steps")?;
    drop(set);
    slow(ctx, &world, "after", 1).await?;
    Ok(first)
}

/// One branch fails, and the other one is dropped while its step runs, or when it has ended in the same moment.
async fn try_both(ctx: &Ctx, world: &World, time: u64) -> Result<String> {
    let _: Pick = ctx.elicit("Which?").key("name").await?;
    let bad = async {
        let bad = ctx.step("bad", async |_| {
            world.waits(10).await;
            Err::<String, _>(Error::from(StepError::new("no")))
        });
        bad.reconcile(async |_| Ok(None)).await
    };
    let tried = tokio::try_join!(slow(ctx, world, "slow", time), bad);
    slow(ctx, world, "after", 1).await?;
    Ok(if tried.is_err() { "fast" } else { "both" }.to_owned())
}

#[tool(write_ahead)]
async fn tried(ctx: &Ctx, world: State<World>) -> Result<String> {
    try_both(ctx, &world, 10_000).await
}

#[tool(write_ahead)]
async fn tried_at_once(ctx: &Ctx, world: State<World>) -> Result<String> {
    try_both(ctx, &world, 10).await
}

/// Both branches of the race make the call a task, while a step of a third one runs.
#[tool(write_ahead, task = "optional")]
async fn both_promote(ctx: &Ctx, world: State<World>) -> Result<String> {
    let promotes = async |name, time| {
        slow(ctx, &world, name, time).await?;
        ctx.into_task().await?;
        world.waits(10_000).await;
        Ok::<_, Error>("promoted".to_owned())
    };
    let third = async { Ok::<_, Error>(slow(ctx, &world, "slow", 300).await?) };
    ctx.select("first", (promotes("one", 10), promotes("two", 10), third)).await;
    Ok("fast".to_owned())
}

const BUILD: super::Build = |builder| {
    let builder = builder.tool(race).tool(behind_a_lookup).tool(long_lookup).tool(longer_lookup);
    builder.tool(dropped_set).tool(tried).tool(tried_at_once).tool(both_promote)
};

fn ends(ended: &Ended) {
    ended.came_to("fast");
    ended.did_nothing_twice();
}

each_tool! {
    a_call_whose_steps_can_be_reconciled_ends_after_any_crash:
    async |tool| {
        let promotes = tool == "both_promote";
        Play { promotes, ..Play::of(tool, BUILD) }.at_each_operation(ends).await;
    };
    race behind_a_lookup long_lookup longer_lookup dropped_set tried tried_at_once both_promote
}

/// The race, and a question that the person declines.
#[tool(write_ahead)]
async fn declined(ctx: &Ctx, world: State<World>) -> Result<String> {
    ctx.select("first", (slow(ctx, &world, "fast", 10), slow(ctx, &world, "slow", 500))).await;
    ctx.elicit::<Pick>("Go on?").key("name").await?;
    Ok("fast".to_owned())
}

/// The error has each step that ended, also that of the branch that lost.
#[tokio::test(start_paused = true)]
async fn an_error_names_the_step_of_the_branch_that_lost_after_any_crash() {
    let play = Play::of("declined", |builder| builder.tool(declined));
    let play = Play { answer: |_| json!({"action": "decline"}), ..play };
    play.at_each_operation(|ended| {
        let (_, done) = ended.text().split_once("Completed before that: ").expect("steps are done");
        let (done, _) = done.split_once(". Do").expect("a sentence");
        let done: Vec<&str> = done.split(", ").map(|step| step.trim_matches('`')).collect();
        ended.did(&done);
        assert!(done.contains(&"fast") && (ended.died || done.contains(&"slow")), "{ended:#?}");
    })
    .await;
}

/// A step begins beside another one in the first run of the handler, and behind it in later ones; something else keeps the waker.
#[tool(write_ahead)]
async fn one_by_one(ctx: &Ctx, world: State<World>) -> Result<String> {
    let _: Pick = ctx.elicit("Which?").key("name").await?;
    let (one, two) = (slow(ctx, &world, "one", 20), slow(ctx, &world, "two", 20));
    let both = async {
        match world.notes("run") {
            1 => drop(tokio::try_join!(one, async {
                world.waits(5).await;
                two.await
            })?),
            _ => {
                one.await?;
                two.await?;
            }
        }
        Ok::<_, Error>(())
    };
    [both].into_iter().collect::<FuturesUnordered<_>>().next().await.expect("one future")?;
    Ok("both".to_owned())
}

/// A step of an earlier run waits for the others that its handler may still reach, and not for ever.
#[tokio::test(start_paused = true)]
async fn a_step_waits_for_a_bounded_time_for_one_that_is_reached_behind_it() {
    let waited = std::cell::Cell::new(false);
    let play = Play::of("one_by_one", |builder| builder.tool(one_by_one));
    play.at_each_operation(|ended| {
        ended.came_to("both");
        ended.did(&["one", "two"]);
        waited.set(waited.get() || ended.time >= 15 * SECOND);
    })
    .await;
    assert!(waited.get(), "no death has led to the wait");
}

/// `rerun_after_crash` in the place of `reconcile`: each effect is there twice at most, under one key.
#[tool(write_ahead, rerun_after_crash)]
async fn rerun(ctx: &Ctx, world: State<World>) -> Result<String> {
    let step = async |name: &'static str, time| {
        let step = ctx.step(name, async |s| {
            let did = world.does(name, &s).await?;
            world.waits(time).await;
            Ok(did)
        });
        step.await
    };
    ctx.select("first", (step("fast", 10), step("slow", 500))).await;
    step("after", 1).await?;
    Ok("fast".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_steps_run_again_ends_after_any_crash() {
    let play = Play::of("rerun", |builder| builder.tool(rerun));
    play.at_each_operation(|ended| {
        ended.came_to("fast");
        for name in ["fast", "slow", "after"] {
            let keys: Vec<_> =
                ended.effects.iter().filter(|(did, _)| did == name).map(|(_, key)| key).collect();
            assert!(keys.len() <= 1 + usize::from(ended.died), "{ended:#?}");
            assert!(keys.windows(2).all(|keys| keys[0] == keys[1]), "{ended:#?}");
        }
    })
    .await;
}

/// Without either, the loser's step is unknown by name only if the handler rests on it.
#[tool(write_ahead)]
async fn neither(ctx: &Ctx, world: State<World>) -> Result<String> {
    let step = async |name: &'static str, time| {
        ctx.step(name, async |s| {
            let did = world.does(name, &s).await?;
            world.waits(time).await;
            Ok(did)
        })
        .await
    };
    ctx.select("first", (step("fast", 10), step("slow", 500))).await;
    step("after", 1).await?;
    Ok("fast".to_owned())
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_step_is_unknown_by_name_only_where_the_call_rests_on_it() {
    let play = Play::of("neither", |builder| builder.tool(neither));
    play.at_each_operation(|ended| {
        ended.did_nothing_twice();
        if ended.reason() == "outcome_unknown" {
            let step = ended.reply["error"]["data"]["step"].as_str().expect("its name");
            assert!(ended.died && ["fast", "slow", "after"].contains(&step), "{ended:#?}");
            // The winner is stored before what follows it: then the loser is nobody's.
            assert!(step != "slow" || !ended.names().contains(&"after"), "{ended:#?}");
        } else {
            ended.came_to("fast");
        }
    })
    .await;
}
