//! The operations of the store that a leg costs: the section "Cost" of docs/stores.md.

use super::*;
use antiphon::{server::flow::Winner, testing::store_contract::FaultyStore};
use futures_util::{StreamExt as _, stream::FuturesUnordered};

type Shape = for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<()>>;

async fn step(ctx: &Ctx, name: &'static str) -> Result<()> {
    Ok(ctx.step(name, async |_| Ok(())).await?)
}

/// Runs the last leg of a call. The operations are those with `single_use` and with `write_ahead`.
async fn check(what: &str, shape: Shape, expected: [usize; 2]) {
    let mut found = [0; 2];
    for (at, write_ahead) in [false, true].into_iter().enumerate() {
        let faulty = Arc::new(FaultyStore::new(store().0));
        let shared: Arc<dyn CallStore> = Arc::clone(&faulty) as _;
        let tool = tool(move |ctx| {
            async move {
                ctx.elicit::<Pick>("Which?").key("pick").await?;
                shape(ctx).await?;
                ok("mug").await
            }
            .boxed()
        });
        let level: fn(ServerBuilder) -> ServerBuilder =
            if write_ahead { |it| it.write_ahead(true) } else { |it| it.single_use(true) };
        let server = built(tool, &shared, level);
        let mut call = ToolCall::new(json!({}));
        call.leg(&server, Value::Null).await;
        let before = faulty.operations();
        let reply = call.leg(&server, pick("mug")).await;
        assert_eq!(result_text(&reply), "mug", "{what}: {reply}");
        found[at] = faulty.operations() - before;
    }
    assert_eq!(found, expected, "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_leg_costs_these_operations() {
    check("no step", |_| async { Ok(()) }.boxed(), [2, 3]).await;
    check("one step", |ctx| step(ctx, "a").boxed(), [2, 5]).await;
    check(
        "three steps, one after the other",
        |ctx| {
            async {
                step(ctx, "a").await?;
                step(ctx, "b").await?;
                step(ctx, "c").await
            }
            .boxed()
        },
        [2, 9],
    )
    .await;
    check(
        "three steps at once",
        |ctx| {
            async {
                let steps = ["a", "b", "c"].map(|name| step(ctx, name));
                ctx.join_all(steps).await.into_iter().collect()
            }
            .boxed()
        },
        [2, 9],
    )
    .await;
    check(
        "three steps in a set",
        |ctx| {
            async {
                let steps = ["a", "b", "c"].map(|name| step(ctx, name));
                let mut set: FuturesUnordered<_> = steps.into_iter().collect();
                while let Some(ended) = set.next().await {
                    ended?;
                }
                Ok(())
            }
            .boxed()
        },
        [2, 9],
    )
    .await;
    // The winner is one more, before the line behind the race runs.
    check(
        "a race of two steps",
        |ctx| {
            async {
                match ctx.select("race", (step(ctx, "a"), step(ctx, "b"))).await {
                    Winner::A(ended) | Winner::B(ended) => ended,
                }
            }
            .boxed()
        },
        [2, 6],
    )
    .await;
}
