//! Examples of the guide's chapter on mistakes: the text that the caller receives, and the questions before it.
#![cfg(feature = "macros")]

use antiphon::{
    Form, Result,
    server::{Ctx, Server, State},
    testing::{Bench, CallRun, Effects, Guarantee, Outcome, ScriptedUser},
    tool,
};
use serde_json::json;
use std::time::Duration;

#[derive(serde::Deserialize, Form)]
struct Place {
    region: String,
}

#[derive(serde::Deserialize, Form)]
struct Confirm {
    ok: bool,
}

fn server(effects: &Effects) -> antiphon::server::ServerBuilder {
    let builder = Server::builder("mistakes", "1").state(effects.clone()).tool(twice).tool(in_a_step);
    builder
        .tool(hurried)
        .tool(patient)
        .tool(huge)
        .tool(report_huge)
        .tool(guarded)
        .tool(reserve)
        .tool(clock)
        .tool(early)
}

fn bench() -> Bench {
    let person = ScriptedUser::new().accept("place", json!({"region": "eu"}));
    Bench::new(server).user(person.accept("confirm", json!({"ok": true})))
}

async fn call(name: &str) -> CallRun {
    bench().call(name, ()).await
}

#[tool(needs(form))]
async fn twice(ctx: &Ctx) -> Result<String> {
    let Place { region } = ctx.elicit("Where?").await?;
    for _ in 0..2 {
        ctx.step::<u8, _, _>("charge", async |_| Ok(1)).await?;
    }
    Ok(region)
}

#[tool(needs(form))]
async fn in_a_step(ctx: &Ctx) -> Result<String> {
    let Place { region } = ctx.elicit("Where?").await?;
    let sure: bool = ctx
        .step("charge", async |_| Ok(ctx.elicit::<Confirm>("Sure?").await.is_ok_and(|sure| sure.ok)))
        .await?;
    Ok(format!("{region} {sure}"))
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_an_internal_error() {
    for name in ["twice", "in_a_step"] {
        let done = call(name).await;
        done.expect_failure("Internal error").expect_asked(&["place"]);
        let cause = if name == "twice" { "is used twice" } else { "is inside of the step `charge`" };
        assert!(done.causes()[0].contains(cause), "{:?}", done.causes());
        let Outcome::Error(error) = done.outcome() else { panic!("{}", done.outcome()) };
        assert_eq!(error["code"], -32603, "{name}");
    }
}

/// Gives the person less than the grace.
#[tool(needs(form))]
async fn hurried(ctx: &Ctx) -> Result<String> {
    let asked = tokio::time::timeout(Duration::from_millis(10), ctx.elicit::<Place>("Where?")).await;
    Ok(asked.map_or_else(|_| Ok("nobody was asked".to_owned()), |place| place.map(|place| place.region))?)
}

/// Means to give the person a minute.
#[tool(needs(form))]
async fn patient(ctx: &Ctx) -> Result<String> {
    let asked = tokio::time::timeout(Duration::from_secs(60), ctx.elicit::<Place>("Where?")).await;
    Ok(asked.map_or_else(|_| Ok("too late".to_owned()), |place| place.map(|place| place.region))?)
}

#[tokio::test(start_paused = true)]
async fn a_timeout_around_a_question_always_wins_or_never_fires() {
    let hurried = call("hurried").await;
    assert_eq!((hurried.text(), hurried.asked().as_slice()), ("nobody was asked", &[] as &[&str]));
    call("patient").await.expect_text("eu").expect_asked(&["place"]);
}

#[tool(needs(form))]
async fn huge(ctx: &Ctx) -> Result<String> {
    let Place { region } = ctx.elicit("Where?").await?;
    let text: String = ctx.step("read", async |_| Ok("x".repeat(20_000))).await?;
    Ok(region + &text)
}

#[tool(needs(form))]
async fn report_huge(ctx: &Ctx) -> Result<String> {
    let Place { region } = ctx.elicit("Where?").await?;
    let fault = ctx.step::<String, _, _>("read", async |_| Ok("x".repeat(20_000))).await.unwrap_err();
    let Confirm { ok } = ctx.elicit(format!("{:?}", fault.code)).await?;
    Ok(format!("{region} {ok} {fault}"))
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_is_an_error_that_names_the_limit() {
    call("huge").await.expect_failure("A limit was reached: the step has run");
    let text = "eu true the step has run, but its result cannot be recorded: \
                it takes 20002 bytes of JSON; the limit is 16384";
    call("report_huge").await.expect_text(text).expect_asked(&["place", "confirm"]);
}

/// Undoes what was made, unless it comes to the end.
struct Undo<'a>(&'a Effects, bool);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.note("delete", "db-1");
        }
    }
}

#[tool(needs(form))]
async fn guarded(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
    let Place { region } = ctx.elicit("Where?").await?;
    ctx.step::<usize, _, _>("create", async |s| Ok(cloud.perform("create", s.key()).await)).await?;
    let mut undo = Undo(&cloud, false);
    let Confirm { ok } = ctx.elicit("Keep it?").await?;
    undo.1 = ok;
    Ok(region)
}

#[tokio::test(start_paused = true)]
async fn a_guard_undoes_at_every_question() {
    let done = call("guarded").await;
    done.expect_text("eu");
    assert_eq!(done.effects().runs("create"), 1);
    assert_ne!(done.effects().runs("delete"), 0);
}

/// Has a state before its first step.
#[tool(needs(form))]
async fn reserve(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
    ctx.checkpoint().now().await;
    let seat: usize = ctx.step("reserve", async |s| Ok(cloud.perform("reserve", s.key()).await)).await?;
    let Place { region } = ctx.elicit("Where?").await?;
    Ok(format!("seat {seat} in {region}"))
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_before_the_first_step_gives_it_one_key() {
    let report = bench().run_all_faults("reserve", ()).await;
    report.expect_same_result().expect_effects(Guarantee::OneKeyEach);
    assert_eq!(report.plain().legs().len(), 3);
}

#[tool(needs(form))]
async fn clock(ctx: &Ctx) -> Result<String> {
    Ok(ctx.elicit::<Place>(format!("Where, at {:?}?", std::time::Instant::now())).await?.region)
}

#[tool]
async fn early(ctx: &Ctx) -> Result<String> {
    let seat: u8 = ctx.step("reserve", async |_| Ok(1)).await?;
    Ok(ctx.elicit::<Place>(format!("Where is {seat}?")).await?.region)
}

#[tokio::test(start_paused = true)]
async fn the_reports_of_the_replay_check() {
    let given_up = "dropped the question `place`: use `.timeout(..)` instead of `timeout` or a timer, \
                    and `ctx.select` to select among futures";
    let too_early = "runs the step `reserve` before the question `place`, \
                     which not every client supports: declare it with `needs`";
    for (name, said) in [
        ("clock", "asks `place` differently when it runs again"),
        ("hurried", given_up),
        ("early", too_early),
    ] {
        let done = call(name).await;
        let found: Vec<&str> = done.findings().iter().map(|finding| finding.text.as_str()).collect();
        assert!(found.iter().any(|text| text.contains(said)), "{name}: {found:?}");
    }
}
