//! A question that was refused, or a step, which the handler does not reach again: what follows in every shape of a join, and how
//! long it takes.

use super::{Pick, World, limits};
use crate::common::{
    mortal::Process,
    ring,
    tool_call::{ToolCall, accept, result_text},
};
use antiphon::{
    Error, Result,
    server::{Ctx, Server, ServerBuilder, State, operations::ReplayCheck},
    tool,
};
use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, join_all},
    stream::{self, FuturesUnordered},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// The time in which a leg ends that only waits for what does not come.
const BOUND: Duration = Duration::from_secs(20);

/// The shape in which the last step is awaited.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Alone,
    Macro,
    Ours,
    Few,
    Many,
    Set,
    Buffered,
    Try,
    Race,
}

const SHAPES: [Shape; 9] = [
    Shape::Alone,
    Shape::Macro,
    Shape::Ours,
    Shape::Few,
    Shape::Many,
    Shape::Set,
    Shape::Buffered,
    Shape::Try,
    Shape::Race,
];

/// Awaits the step `after` in this shape.
async fn after(ctx: &Ctx, world: &World, shape: Shape) -> Result<()> {
    let step = || -> BoxFuture<'_, Result<String>> {
        async { Ok(ctx.step("after", async |s| Ok(world.does("after", &s).await?)).await?) }.boxed()
    };
    let ready = |_| -> BoxFuture<'_, Result<String>> { async { Ok(String::new()) }.boxed() };
    match shape {
        Shape::Alone => drop(step().await?),
        Shape::Macro => drop(tokio::join!(step(), ready(0)).0?),
        Shape::Ours => drop(ctx.join_all([step(), ready(0)]).await.into_iter().collect::<Result<Vec<_>>>()?),
        Shape::Few => drop(join_all([step(), ready(0)]).await),
        // From 30 on, the function is a set of futures.
        Shape::Many => drop(join_all((0..40).map(ready).chain([step()])).await),
        Shape::Set => {
            drop([step(), ready(0)].into_iter().collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await)
        }
        Shape::Buffered => {
            drop(stream::iter([ready(0), step()]).buffer_unordered(2).collect::<Vec<_>>().await)
        }
        Shape::Try => drop(tokio::try_join!(step(), ready(0))?),
        Shape::Race => {
            ctx.select("last", (step(), std::future::pending::<()>())).await;
        }
    }
    Ok(())
}

/// A race of two questions. The second one is behind a lookup that is longer than the grace of a leg.
#[tool]
async fn race(ctx: &Ctx, world: State<World>, shape: State<Shape>) -> Result<String> {
    let (x, y) = (ctx.scope("x"), ctx.scope("y"));
    let behind = async {
        let (_, refused) = tokio::join!(
            y.step("before", async |_| {
                world.waits(24).await;
                Ok(1_u32)
            }),
            async {
                world.waits(56).await;
                y.elicit::<Pick>("B?").key("b").outcome().await
            }
        );
        refused.map(drop)
    };
    ctx.select("won", (async { x.elicit::<Pick>("A?").key("a").outcome().await.map(drop) }, behind)).await;
    after(ctx, &world, *shape).await?;
    Ok("done".to_owned())
}

/// The version of [`both`], its lookups, and the milliseconds of each.
#[derive(Clone, Copy, Debug)]
struct Both {
    has_step: bool,
    lookups: usize,
    lookup: u64,
}

/// Two questions and a step side by side.
#[tool]
async fn both(ctx: &Ctx, world: State<World>, shape: State<Shape>, both: State<Both>) -> Result<String> {
    let refused = async {
        ctx.elicit::<Pick>("B?").key("b").outcome().await?;
        Ok::<_, Error>(())
    };
    let worked = async {
        if both.has_step {
            for _ in 0..both.lookups {
                world.waits(both.lookup).await;
            }
            ctx.step("before", async |_| Ok(())).await?;
        }
        Ok::<_, Error>(())
    };
    let last = async {
        ctx.elicit::<Pick>("A?").key("a").await?;
        after(ctx, &world, *shape).await
    };
    let (refused, worked, last) = tokio::join!(refused, worked, last);
    refused.and(worked).and(last)?;
    Ok("done".to_owned())
}

fn world() -> World {
    World { process: Process::new(), effects: std::sync::Arc::default(), notes: std::sync::Arc::default() }
}

fn server(world: &World, shape: Shape, version: Both) -> Server {
    let builder: ServerBuilder = Server::builder("refusals", "1").keys(ring(7)).limits(limits());
    let builder = builder.replay_check(ReplayCheck::Off).state(world.clone()).state(shape).state(version);
    builder.tool(race).tool(both).build().unwrap()
}

const SAME: Both = Both { has_step: true, lookups: 1, lookup: 0 };

fn declined(key: &str) -> Value {
    json!({ key: {"action": "decline"} })
}

fn accepted(key: &str) -> Value {
    json!({ key: accept(json!({"name": "Anna"})) })
}

/// Sends the rest of the call; returns its last reply, and the longest time of a reply.
async fn rest(call: &mut ToolCall, server: &Server, answers: Value) -> (Value, Duration) {
    let (mut answers, mut longest) = (answers, Duration::ZERO);
    for _ in 0..10 {
        let begun = Instant::now();
        let reply = call.leg(server, answers).await;
        longest = longest.max(begun.elapsed());
        if reply["result"]["inputRequests"] != json!({}) {
            return (reply, longest);
        }
        answers = Value::Null;
    }
    panic!("the call does not end");
}

#[tokio::test(start_paused = true)]
async fn a_refused_question_of_the_loser_does_not_stop_what_follows_its_race() {
    for shape in SHAPES {
        let world = world();
        let server = server(&world, shape, SAME);
        let mut call = ToolCall::named("race");
        let reply = call.leg(&server, Value::Null).await;
        assert_eq!(call.rounds, [["x/a", "y/b"]], "{reply}");
        let reply = call.leg(&server, declined("y/b")).await;
        assert!(reply["result"]["inputRequests"]["x/a"].is_object(), "{shape:?}: {reply}");
        let (reply, time) = rest(&mut call, &server, accepted("x/a")).await;
        assert_eq!(result_text(&reply), "done", "{shape:?}: {reply}");
        assert!(time < BOUND, "{shape:?}: {time:?}");
        assert_eq!(world.effects.lock().unwrap().len(), 1, "{shape:?}");
    }
}

/// Another version reaches the recorded step no more: no new step runs, and the call ends soon.
#[tokio::test(start_paused = true)]
async fn a_call_that_has_diverged_ends_soon_in_every_shape() {
    for shape in SHAPES {
        let (world, version) = (world(), Both { has_step: false, ..SAME });
        let (old, new) = (server(&world, shape, SAME), server(&world, shape, version));
        let mut call = ToolCall::named("both");
        call.leg(&old, Value::Null).await;
        let reply = call.leg(&old, declined("b")).await;
        assert!(reply["result"]["inputRequests"]["a"].is_object(), "{shape:?}: {reply}");
        let (reply, time) = rest(&mut call, &new, accepted("a")).await;
        let why = &reply["error"]["data"]["reason"];
        assert_eq!(why, "flow_diverged", "{shape:?}: {reply}");
        assert!(time < BOUND, "{shape:?}: {time:?}");
        assert!(world.effects.lock().unwrap().is_empty(), "{shape:?}");
    }
}

/// A lookup of a few seconds before a recorded step is no divergence: the new step waits for it.
#[tokio::test(start_paused = true)]
async fn a_recorded_step_behind_a_lookup_is_waited_for() {
    for shape in SHAPES {
        for lookup in [40, 900, 3_000] {
            let world = world();
            let server = server(&world, shape, Both { lookup, ..SAME });
            let mut call = ToolCall::named("both");
            call.leg(&server, Value::Null).await;
            let answers = json!({"a": accept(json!({"name": "Anna"})), "b": {"action": "decline"}});
            let (reply, time) = rest(&mut call, &server, answers).await;
            assert_eq!(result_text(&reply), "done", "{shape:?} {lookup}: {reply}");
            assert!(time < BOUND, "{shape:?} {lookup}: {time:?}");
            assert_eq!(world.effects.lock().unwrap().len(), 1, "{shape:?} {lookup}");
        }
    }
}

/// A machine that is always late: the call ends all the same, while it is.
#[tokio::test(start_paused = true)]
async fn a_machine_that_is_always_late_does_not_hold_a_call() {
    let (world, slow) = (world(), Both { lookups: 200, lookup: 6_000, ..SAME });
    let (fast, slow) = (server(&world, SHAPES[0], SAME), server(&world, SHAPES[0], slow));
    let mut call = ToolCall::named("both");
    call.leg(&fast, Value::Null).await;
    call.leg(&fast, declined("b")).await;
    let stopped = async {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            tokio::time::advance(Duration::from_secs(15)).await;
        }
    };
    let (reply, time) = tokio::select! {
        ended = rest(&mut call, &slow, accepted("a")) => ended,
        () = stopped => unreachable!("it has no end"),
    };
    assert_eq!(reply["error"]["data"]["reason"], "flow_diverged", "{reply}");
    assert!(time < Duration::from_secs(300), "{time:?}");
}

/// A process that is stopped again and again for longer than that: the lookups that follow the first one had no time yet.
#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_waits_again() {
    for shape in SHAPES {
        let (world, slow) = (world(), Both { lookups: 4, lookup: 6_000, ..SAME });
        let (fast, slow) = (server(&world, shape, SAME), server(&world, shape, slow));
        let mut call = ToolCall::named("both");
        call.leg(&fast, Value::Null).await;
        call.leg(&fast, declined("b")).await;
        let stopped = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                tokio::time::advance(Duration::from_secs(15)).await;
            }
        };
        let ((reply, _), ()) = tokio::join!(rest(&mut call, &slow, accepted("a")), stopped);
        assert_eq!(result_text(&reply), "done", "{shape:?}: {reply}");
        assert_eq!(world.effects.lock().unwrap().len(), 1, "{shape:?}");
    }
}
