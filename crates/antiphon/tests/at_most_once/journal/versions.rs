//! The next process has another version of the handler, or other words for a question: no two branches act.

use super::{Ended, Pick, Play, World};
use antiphon::{
    Result,
    server::{Ctx, State, StepError, flow::Winner},
    tool,
};

async fn step(ctx: &Ctx, world: &World, name: &str, did: &str, time: u64) -> Result<String, StepError> {
    let step = ctx.step(name, async |s| {
        world.waits(time).await;
        world.does(did, &s).await
    });
    step.reconcile(async |_| world.finds(did).await).await
}

/// Two offers, then a booking of the first one, under one path for both.
async fn books(ctx: &Ctx, world: &World, times: [u64; 2]) -> Result<String> {
    let won = ctx
        .select(
            "first",
            (step(ctx, world, "x", "offer x", times[0]), step(ctx, world, "y", "offer y", times[1])),
        )
        .await;
    let best = match won {
        Winner::A(x) => (x?, "x").1,
        Winner::B(y) => (y?, "y").1,
    };
    ctx.elicit::<Pick>("Go on?").key("on").await?;
    let scope = ctx.scope(best);
    Ok(step(&scope, world, "book", &format!("book {best}"), 1).await?)
}

mod v1 {
    use super::*;

    #[tool(name = "gone", write_ahead, version = 1)]
    pub(super) async fn gone(ctx: &Ctx, world: State<World>) -> Result<String> {
        let won = ctx
            .select("first", (step(ctx, &world, "x", "offer x", 20), step(ctx, &world, "y", "offer y", 10)))
            .await;
        let (Winner::A(best) | Winner::B(best)) = won;
        Ok(step(ctx, &world, "book", &format!("book {}", best?), 1).await?)
    }

    #[tool(name = "words", write_ahead, version = 1)]
    pub(super) async fn words(ctx: &Ctx, world: State<World>) -> Result<String> {
        ctx.elicit::<Pick>("Which of two?").key("name").await?;
        ctx.elicit::<Pick>("Really?").key("really").await?;
        books(ctx, &world, [20, 10]).await
    }
}

mod v2 {
    use super::*;

    /// The race is not there any more.
    #[tool(name = "gone", write_ahead, version = 2)]
    pub(super) async fn gone(ctx: &Ctx, world: State<World>) -> Result<String> {
        Ok(step(ctx, &world, "other", "other", 1).await?)
    }

    /// Another question, and the other offer is faster.
    #[tool(name = "words", write_ahead, version = 2)]
    pub(super) async fn words(ctx: &Ctx, world: State<World>) -> Result<String> {
        ctx.elicit::<Pick>("Which of three?").key("name").await?;
        ctx.elicit::<Pick>("Really?").key("really").await?;
        books(ctx, &world, [10, 20]).await
    }
}

fn upgrades(tool: &'static str) -> Play {
    let first: super::Build = |builder| builder.tool(v1::gone).tool(v1::words);
    let then: super::Build = |builder| builder.tool(v2::gone).tool(v2::words);
    Play { then, ..Play::of(tool, first) }
}

#[tokio::test(start_paused = true)]
async fn a_version_without_a_stored_race_has_diverged_before_any_step() {
    upgrades("gone")
        .at_each_operation(|ended: &Ended| {
            ended.did_nothing_twice();
            let names = ended.names();
            if names.iter().any(|did| did.starts_with("book")) && ended.reply["error"].is_object() {
                // An interrupted step that is not there any more has its own error.
                assert!(matches!(ended.reason(), "flow_diverged" | "outcome_unknown"), "{ended:#?}");
            }
            // Steps of the older version that were begun belong to no version any more.
            assert!(!(names.contains(&"other") && names.len() > 1), "{ended:#?}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_other_words_opens_no_second_branch() {
    upgrades("words")
        .at_each_operation(|ended: &Ended| {
            ended.did_nothing_twice();
            let books = ended.names().iter().filter(|did| did.starts_with("book")).count();
            assert!(books <= 1, "{ended:#?}");
            match ended.reason() {
                "" => assert!(books == 1 && ended.text().starts_with("book"), "{ended:#?}"),
                reason => assert_eq!(reason, "flow_diverged", "{ended:#?}"),
            }
        })
        .await;
}
