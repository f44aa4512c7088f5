//! The cause of a call's end, for the author: in the log, and in `causes` of the bench.

use super::*;
use antiphon::testing::{Bench, CallRun, ScriptedUser};

/// The number of an order, which an older version records as text.
#[tokio::test]
async fn a_recorded_result_of_another_type_is_divergence() {
    let old = server(tool(|ctx| {
        async {
            let number: String = ctx.step("number", async |_| ok("seven").await).await?;
            ctx.elicit::<Sure>("Sure?").await?;
            Ok(number)
        }
        .boxed()
    }));
    let new = server(tool(|ctx| {
        async {
            let number: u64 = ctx.step("number", async |_| Ok(7)).await?;
            ctx.elicit::<Sure>("Sure?").await?;
            Ok(number.to_string())
        }
        .boxed()
    }));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&old, Value::Null).await;
    take_log();
    let reply = settled(&mut talk, &new, json!({"sure": yes()})).await;
    assert_eq!(refused(&reply), (-32603, "flow_diverged"), "{reply}");
    let log = take_log();
    assert!(log.contains("number") && !log.contains("seven"), "{log}");
    // The state stays good for the version that can read it.
    assert_eq!(result_text(&settled(&mut talk, &old, json!({"sure": yes()})).await), "seven");
}

/// Runs a call of this tool on the bench.
async fn done(handler: for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>) -> CallRun {
    let bench = Bench::new(move |_| Server::builder("causes", "1").tool(tool(handler)));
    bench.user(ScriptedUser::new().accept("sure", json!({"ok": true}))).call("t", ()).await
}

#[tokio::test(start_paused = true)]
async fn the_mistakes_of_an_author_are_causes() {
    let used_twice = done(|ctx| {
        async {
            for _ in 0..2 {
                ctx.step("charge", async |_| ok("").await).await?;
            }
            ok("").await
        }
        .boxed()
    });
    let asked_twice = done(|ctx| {
        async {
            let both = tokio::join!(ctx.elicit::<Sure>("Sure?"), ctx.elicit::<Sure>("Really?"));
            Ok(both.0?.ok.to_string())
        }
        .boxed()
    });
    let inside = done(|ctx| {
        async {
            ctx.step("charge", async |_| Ok(ctx.elicit::<Sure>("Sure?").await.is_ok())).await?;
            ok("").await
        }
        .boxed()
    });
    for (done, cause) in [
        (used_twice.await, "`charge` is used twice"),
        (asked_twice.await, "`sure` is used twice"),
        (inside.await, "is inside of the step `charge`"),
    ] {
        done.expect_failure("Internal error");
        assert!(done.causes().iter().any(|said| said.contains(cause)), "{cause}: {:?}", done.causes());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_left_with_the_record_first_is_a_cause() {
    let done = done(|ctx| {
        async {
            ctx.step("charge", async |_| ok("").await).await?;
            panic!("a test's own panic")
        }
        .boxed()
    })
    .await;
    done.expect_failure("");
    assert!(done.causes().iter().any(|cause| cause.contains("a test's own panic")), "{:?}", done.causes());
}
