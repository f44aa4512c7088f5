//! Panics that the handler catches: what stood around them is as before.

use super::*;
use antiphon::server::flow::Winner;
use std::panic::AssertUnwindSafe;

/// Steps, questions and a race behind a caught panic.
async fn goes_on(ctx: &Ctx) -> Result<String> {
    let first = ctx.step("first", async |_| ok("first").await).await?;
    let Pick { name } = ctx.elicit("Who?").await?;
    let second = ctx.step("second", async |_| ok("second").await);
    let second = match ctx.select("then", (second, std::future::pending::<()>())).await {
        Winner::A(second) => second?,
        Winner::B(()) => unreachable!("it never ends"),
    };
    Ok(format!("{first} {name} {second}"))
}

async fn check(handler: for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>) {
    let server = impatient(tool(handler));
    let answers = json!({"pick": pick("ada"), "url": {"action": "accept"}, "sure": yes()});
    assert_eq!(result_text(&ToolCall::new(json!({})).through(&server, &answers).await), "first ada second");
    let answers = json!({"Who?": pick("ada"), "Pay.": {"action": "accept"}, "Sure?": yes()});
    assert_eq!(result_text(&in_session(&server, &answers).await), "first ada second", "in a session");
}

#[tokio::test(start_paused = true)]
async fn a_caught_panic_of_a_race_whose_branch_panics_at_once() {
    check(|ctx| {
        async {
            let panics = async { panic!("a test's own panic") };
            let race = ctx.select("w", (ctx.elicit::<Sure>("Sure?"), panics));
            let caught: std::thread::Result<Winner<_, ()>> = AssertUnwindSafe(race).catch_unwind().await;
            assert!(caught.is_err());
            goes_on(ctx).await
        }
        .boxed()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_caught_panic_of_a_race_behind_an_answer() {
    check(|ctx| {
        async {
            let panics = async {
                let _ = ctx.elicit::<Sure>("Sure?").await;
                panic!("a test's own panic")
            };
            let race = ctx.select("w", (std::future::pending::<()>(), panics));
            let caught: std::thread::Result<Winner<_, ()>> = AssertUnwindSafe(race).catch_unwind().await;
            assert!(caught.is_err());
            goes_on(ctx).await
        }
        .boxed()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_caught_panic_of_a_check_behind_a_url() {
    check(|ctx| {
        async {
            let asked = ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}"));
            let paid = async { asked.until(async || -> bool { panic!("a test's own panic") }).await };
            assert!(AssertUnwindSafe(paid).catch_unwind().await.is_err());
            goes_on(ctx).await
        }
        .boxed()
    })
    .await;
}
