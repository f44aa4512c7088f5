//! Steps that were begun and are not polled while a question waits: the author's fault, told at once.

use super::*;
use crate::common::one_tool::built;
use antiphon::{
    server::ServerBuilder,
    testing::{Bench, ScriptedUser},
};
use futures_util::poll;
use std::pin::pin;
use tokio::time::{Instant, sleep};

/// A step that is kept while its handler asks, and awaited behind that.
fn keeping(ctx: &Ctx) -> BoxFuture<'_, Result<String>> {
    async {
        let mut slow = pin!(ctx.step("slow", async |_| {
            sleep(ms(200)).await;
            ok("slow").await
        }));
        tokio::select! {
            done = &mut slow => return Ok(done?),
            () = sleep(ms(20)) => {}
        }
        ctx.elicit::<Sure>("It takes long. Go on?").await?;
        Ok(slow.await?)
    }
    .boxed()
}

/// A step that is begun and never polled or dropped again.
fn forgetting(ctx: &Ctx) -> BoxFuture<'_, Result<String>> {
    async {
        let mut slow = Box::pin(ctx.step("slow", async |_| std::future::pending::<Result<u8>>().await));
        assert!(poll!(&mut slow).is_pending());
        std::mem::forget(slow);
        ctx.elicit::<Sure>("It takes long. Go on?").await?;
        ok("").await
    }
    .boxed()
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_kept_beside_a_question_ends_the_leg_at_once() {
    for handler in [keeping as for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>, forgetting] {
        let server = server(tool(handler));
        // Later calls of a tool that asks are polled in another way.
        for call in 0..3 {
            take_log();
            let begun = Instant::now();
            let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
            assert_eq!(reply["error"]["code"], -32603, "{call}: {reply}");
            assert!(begun.elapsed() < Duration::from_secs(1), "{call}: after {:?}", begun.elapsed());
            let log = take_log();
            let is_it = |line: &str| line.contains("ERROR") && line.contains("slow");
            assert!(log.lines().any(is_it), "{call}: {log}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_bench_names_a_step_that_is_kept_beside_a_question() {
    let bench = Bench::new(|_| Server::builder("stalled", "1").tool(tool(keeping)))
        .user(ScriptedUser::new().accept("sure", json!({"ok": true})));
    let done = bench.call("t", ()).await;
    assert!(done.causes().iter().any(|cause| cause.contains("slow")), "{:?}", done.causes());
}

#[tokio::test(start_paused = true)]
async fn in_a_session_a_step_that_is_kept_goes_on_once_it_is_polled() {
    let reply = in_session(&impatient(tool(keeping)), &json!({"It takes long. Go on?": yes()})).await;
    assert_eq!(result_text(&reply), "slow");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_polled_beside_a_question_is_waited_for() {
    let polls = tool(|ctx| {
        async {
            let slow = ctx.step("slow", async |_| {
                sleep(Duration::from_secs(5)).await;
                ok("slow").await
            });
            let (done, sure) = tokio::join!(slow, ctx.elicit::<Sure>("Go on?"));
            sure?;
            Ok(done?)
        }
        .boxed()
    });
    let server = built(polls, |builder: ServerBuilder| builder);
    let mut talk = ToolCall::new(json!({}));
    assert_eq!(result_text(&talk.through(&server, &json!({"sure": yes()})).await), "slow");
    assert_eq!(talk.rounds, [["sure"]]);
}
