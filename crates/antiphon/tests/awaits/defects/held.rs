//! A step that may not begin, in combinators of all kinds: the call ends within a bound. Some combinators keep a waker, and nobody
//! can tell if it belongs to the step or to code that still reaches the missing entry.

use super::*;
use antiphon::server::flow::Winner;
use futures_util::{StreamExt as _, future::join_all, stream};
use std::future::{pending, ready};
use tokio::time::{Instant, sleep};

/// The combinator around a step.
#[derive(Clone, Copy, Debug)]
enum Around {
    Nothing,
    Join,
    TryJoin,
    Select,
    TokioSelect,
    TokioSelectWithTimer,
    OwnJoinAll,
    JoinAll,
    JoinAllOfMany,
    Unordered,
    BufferUnordered,
}

use Around::*;

/// Each combinator, and whether it keeps a waker.
const ALL: [(Around, bool); 11] = [
    (Nothing, false),
    (Join, false),
    (TryJoin, false),
    (Select, false),
    (TokioSelect, false),
    (TokioSelectWithTimer, true),
    (OwnJoinAll, false),
    (JoinAll, false),
    (JoinAllOfMany, true),
    (Unordered, true),
    (BufferUnordered, true),
];

async fn step(ctx: &Ctx, effects: &Effects, name: &str) -> Result<()> {
    ctx.step(name, async |s| Ok(effects.note(name, s.key()))).await?;
    Ok(())
}

impl Around {
    /// Runs these two futures; one after the other where the combinator is around the second one only.
    async fn run<'f>(
        self,
        ctx: &'f Ctx,
        first: BoxFuture<'f, Result<()>>,
        second: BoxFuture<'f, Result<()>>,
    ) -> Result<()> {
        match self {
            Nothing => {
                first.await?;
                second.await
            }
            Join => {
                let (first, second) = tokio::join!(first, second);
                first.and(second)
            }
            TryJoin => tokio::try_join!(first, second).map(drop),
            Select => {
                let both = async { tokio::join!(first, second) };
                match ctx.select("w", (pending::<()>(), both)).await {
                    Winner::A(()) => Ok(()),
                    Winner::B((first, second)) => first.and(second),
                }
            }
            TokioSelect => {
                first.await?;
                tokio::select! {
                    done = second => done,
                    () = pending() => Ok(()),
                }
            }
            TokioSelectWithTimer => {
                first.await?;
                tokio::select! {
                    done = second => done,
                    () = sleep(Duration::from_secs(3600)) => Ok(()),
                }
            }
            OwnJoinAll => ctx.join_all([first, second]).await.into_iter().collect(),
            JoinAll => join_all([first, second]).await.into_iter().collect(),
            JoinAllOfMany => {
                let many = (0..40).map(|_| ready(Ok(())).boxed());
                join_all(many.chain([first, second])).await.into_iter().collect()
            }
            Unordered => {
                let both = [first, second].into_iter().collect::<stream::FuturesUnordered<_>>();
                both.collect::<Vec<_>>().await.into_iter().collect()
            }
            BufferUnordered => {
                let both = stream::iter([first, second]).buffer_unordered(2);
                both.collect::<Vec<_>>().await.into_iter().collect()
            }
        }
    }

    /// A version that only runs the step `new`.
    fn new_step(self, effects: &Effects) -> Tool {
        let effects = effects.clone();
        tool(move |ctx| {
            let effects = effects.clone();
            async move {
                self.run(ctx, ready(Ok(())).boxed(), step(ctx, &effects, "new").boxed()).await?;
                ok("done").await
            }
            .boxed()
        })
    }

    /// A version that comes to the step `old` after a lookup, and beside that runs the step `new`.
    fn new_step_beside_a_lookup(self, effects: &Effects, lookup: Duration) -> Tool {
        let effects = effects.clone();
        tool(move |ctx| {
            let effects = effects.clone();
            async move {
                let old = async {
                    sleep(lookup).await;
                    step(ctx, &effects, "old").await
                };
                self.run(ctx, old.boxed(), step(ctx, &effects, "new").boxed()).await?;
                ctx.elicit::<Sure>("More?").key("more").await?;
                ok("done").await
            }
            .boxed()
        })
    }
}

/// Sends the answers to the new version. Checks that the call ends with `flow_diverged` before the step begins, and at once, or
/// after the bound if the combinator keeps a waker.
async fn check(talk: &mut ToolCall, around: (Around, bool), new: Tool, answers: Value, bound: Duration) {
    let begun = Instant::now();
    let reply = settled(talk, &server(new), answers).await;
    assert_eq!(refused(&reply), (-32603, "flow_diverged"), "{around:?}: {reply}");
    let expected = if around.1 { bound } else { Duration::ZERO };
    let took = begun.elapsed();
    assert!(took >= expected && took < expected + ms(50), "{around:?}: {took:?} and not {expected:?}");
}

/// A version that asks before it acts, and then asks for a name.
fn asking() -> Server {
    server(tool(|ctx| {
        async {
            let sure = ctx.elicit::<Sure>("Sure?").outcome().await?.accepted();
            let Pick { name } = ctx.elicit("Who?").await?;
            Ok(format!("{name} {}", sure.is_some()))
        }
        .boxed()
    }))
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_just_came_ends_the_call_within_a_second() {
    for around in ALL {
        let effects = Effects::default();
        let mut talk = ToolCall::new(json!({}));
        talk.leg(&asking(), Value::Null).await;
        let answers = json!({"sure": {"action": "decline"}});
        check(&mut talk, around, around.0.new_step(&effects), answers, ms(1_000)).await;
        assert_eq!(effects.runs("new"), 0, "{around:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorded_refusal_ends_the_call_within_two_seconds() {
    for around in ALL {
        let effects = Effects::default();
        let mut talk = ToolCall::new(json!({}));
        legs(&asking(), &mut talk, &[Value::Null, json!({"sure": {"action": "decline"}})]).await;
        let answers = json!({"pick": pick("ada")});
        check(&mut talk, around, around.0.new_step(&effects), answers, ms(2_000)).await;
        assert_eq!(effects.runs("new"), 0, "{around:?}");
    }
}

/// A version with a step, and a question behind it.
fn with_step(effects: &Effects) -> Server {
    let effects = effects.clone();
    server(tool(move |ctx| {
        let effects = effects.clone();
        async move {
            step(ctx, &effects, "old").await?;
            ctx.elicit::<Sure>("More?").key("more").await?;
            ok("old").await
        }
        .boxed()
    }))
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_not_reached_ends_the_call_within_ten_seconds() {
    for around in ALL {
        let effects = Effects::default();
        let mut talk = ToolCall::new(json!({}));
        talk.leg(&with_step(&effects), Value::Null).await;
        check(&mut talk, around, around.0.new_step(&effects), json!({"more": yes()}), ms(10_000)).await;
        assert_eq!((effects.runs("old"), effects.runs("new")), (1, 0), "{around:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lookup_in_front_of_a_recorded_step_may_take_seconds() {
    for (around, _) in ALL {
        for lookup in [0, 30, 900, 3_000, 9_000] {
            let effects = Effects::default();
            let mut talk = ToolCall::new(json!({}));
            talk.leg(&with_step(&effects), Value::Null).await;
            let new = server(around.new_step_beside_a_lookup(&effects, ms(lookup)));
            let reply = settled(&mut talk, &new, json!({"more": yes()})).await;
            assert_eq!(result_text(&reply), "done", "{around:?} {lookup}");
            assert_eq!((effects.runs("old"), effects.runs("new")), (1, 1), "{around:?} {lookup}");
        }
    }
}
