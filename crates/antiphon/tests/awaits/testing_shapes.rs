//! Handlers of every shape on the bench: whatever goes wrong, they end as if nothing had.
#![cfg(feature = "macros")]

use antiphon::{
    Error, Form, Result,
    client::Call,
    server::{
        Ctx, NoArguments, Retry, Server, ServerBuilder, State, StepError, Tool,
        flow::{Migration, OnVersion, Winner},
        offers::IntoTool,
        steps::Attempt,
    },
    testing::{Bench, Effects, Fault, Guarantee, Outcome, ScriptedUser},
    tool,
    wire::{AskSupport, sampling::SamplingMessage},
};
use futures_util::future::BoxFuture;
use serde_json::json;

#[derive(serde::Deserialize, Form)]
struct Region {
    region: String,
}

#[derive(serde::Deserialize, Form)]
struct Amount {
    amount: u32,
}

#[derive(serde::Deserialize, Form)]
struct Confirm {
    yes: bool,
}

fn person() -> ScriptedUser {
    let person = ScriptedUser::new()
        .accept("region", json!({"region": "eu"}))
        .accept("amount", json!({"amount": 3}))
        .accept("confirm", json!({"yes": true}))
        .sample("sample", "a poem")
        .roots("roots", ["file:///here"]);
    let scoped = ["ann", "bob", "cid"].into_iter();
    let person = scoped.fold(person, |person, name| {
        person
            .accept(format!("{name}/amount"), json!({"amount": name.len()}))
            .accept(format!("{name}/confirm"), json!({"yes": name != "bob"}))
    });
    (0..4_u32)
        .fold(person, |person, number| person.accept(format!("amount#{number}"), json!({"amount": number})))
}

/// The name of a tool, what it says, and what it asks when nothing goes wrong.
async fn check<S>(tool: impl IntoTool<S> + Clone, name: &str, text: &str, asked: &[&str]) {
    let bench = Bench::new(move |effects| server(effects).tool(tool.clone())).user(person());
    let report = bench.run_all_faults(name, ()).await;
    report.expect_same_result().expect_effects(Guarantee::AtLeastOnce);
    report.plain().expect_text(text).expect_asked(asked);
    assert!(report.runs().len() > 10, "{report}");
}

fn server(effects: &Effects) -> ServerBuilder {
    Server::builder("shapes", "1.0").state(effects.clone())
}

async fn perform(effects: &Effects, name: &str, key: &str) -> Result<usize> {
    Ok(effects.perform(name, key).await)
}

/// Asks three kinds of question in one round, and does something beside them.
#[tool(needs(form, sampling, roots))]
async fn together(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
    let work = async {
        let Amount { amount } = ctx.elicit("How many?").await?;
        let done: usize = ctx.step("pack", async |s| perform(&effects, "pack", s.key()).await).await?;
        Ok::<_, Error>(format!("{amount} packed as {done}"))
    };
    let poem = async { Ok::<_, Error>(ctx.sample([SamplingMessage::user("A poem.")], 10).await?) };
    let roots = async { Ok::<_, Error>(ctx.roots().await?) };
    let (work, poem, roots) = tokio::try_join!(work, poem, roots)?;
    let Region { region } = ctx.elicit("Where to?").await?;
    let sent: usize = ctx.step("send", async |s| perform(&effects, "send", s.key()).await).await?;
    Ok(format!("{work}, {} {} {region} {sent}", poem.content.first_text().unwrap_or_default(), roots.len()))
}

#[tokio::test(start_paused = true)]
async fn questions_of_several_kinds_in_one_round() {
    let asked = ["amount", "sample", "roots", "region"];
    check(together, "together", "3 packed as 1, a poem 1 eu 1", &asked).await;
}

async fn share(ctx: &Ctx, effects: &Effects) -> Result<String> {
    let Amount { amount } = ctx.elicit("How much?").await?;
    let charged: usize = ctx.step("charge", async |s| perform(effects, "charge", s.key()).await).await?;
    let Confirm { yes } = ctx.elicit(format!("{amount}?")).await?;
    // Who does not want it gets it back.
    if !yes {
        let _: usize = ctx.step("refund", async |s| perform(effects, "refund", s.key()).await).await?;
    }
    Ok(format!("{amount}/{}/{yes}", charged > 0))
}

/// Charges three people side by side.
#[tool(needs(form))]
async fn split(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
    let scopes = ["ann", "bob", "cid"].map(|name| ctx.scope(name));
    // Not `map`: of a closure that takes a reference, the compiler cannot tell that its future is `Send`.
    let mut shares = Vec::new();
    for scope in &scopes {
        shares.push(share(scope, &effects));
    }
    let shares = ctx.join_all(shares).await;
    let shares: Vec<String> = shares.into_iter().collect::<Result<_>>()?;
    Ok(shares.join(" "))
}

#[tokio::test(start_paused = true)]
async fn people_side_by_side() {
    let asked = ["ann/amount", "bob/amount", "cid/amount", "ann/confirm", "bob/confirm", "cid/confirm"];
    check(split, "split", "3/true/true 3/true/false 3/true/true", &asked).await;
}

/// Asks in a loop, and charges in each turn.
#[tool(needs(form))]
async fn turns(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
    let mut all = 0;
    for turn in 0..4_u64 {
        let Amount { amount } = ctx.elicit(format!("How much in turn {turn}?")).nth(turn).await?;
        let _: usize =
            ctx.step(("charge", turn), async |s| perform(&effects, "charge", s.key()).await).await?;
        all += amount;
    }
    Ok(format!("{all} in all"))
}

#[tokio::test(start_paused = true)]
async fn a_loop() {
    check(turns, "turns", "6 in all", &["amount#0", "amount#1", "amount#2", "amount#3"]).await;
}

/// Ends a leg without a question, in the middle of its work, and where it is drained.
#[tool(needs(form))]
async fn checkpoints(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
    let half: usize = ctx.step("half", async |s| perform(&effects, "half", s.key()).await).await?;
    ctx.checkpoint().now().await;
    let rest: usize = ctx.step("rest", async |s| perform(&effects, "rest", s.key()).await).await?;
    ctx.checkpoint().key("drained").await;
    let Region { region } = ctx.elicit("Where?").await?;
    Ok(format!("{}/{} in {region}", half > 0, rest))
}

#[tokio::test(start_paused = true)]
async fn legs_without_a_question() {
    check(checkpoints, "checkpoints", "true/1 in eu", &["region"]).await;
    let bench = Bench::new(|effects| server(effects).tool(checkpoints)).user(person());
    let call = Call::tool("checkpoints", ()).unwrap();
    let [plain, drained] = [None, Some(Fault::Drain { leg: 2 })];
    let legs = async |fault: Option<Fault>| bench.run(&call, fault.as_ref()).await.legs().len();
    assert_eq!((legs(plain).await, legs(drained).await), (3, 4));
}

/// A question against work: whichever is first stays first.
#[tool(needs(form))]
async fn race(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
    let Amount { amount } = ctx.elicit("How many?").await?;
    let work = async { ctx.step("work", async |s| perform(&effects, "work", s.key()).await).await };
    let question = ctx.elicit::<Region>("Where?");
    let first = match ctx.select("first", (question, work)).await {
        Winner::A(region) => region?.region,
        Winner::B(number) => format!("work {}", number?),
    };
    let Confirm { yes } = ctx.elicit(format!("{first}?")).await?;
    Ok(format!("{amount} {first} {yes}"))
}

#[tokio::test(start_paused = true)]
async fn a_race() {
    check(race, "race", "3 work 1 true", &["amount", "confirm"]).await;
}

/// Fails once, then succeeds; and one that fails for good.
#[tool(needs(form))]
async fn flaky(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
    let Region { region } = ctx.elicit("Where?").await?;
    let attempts = async |s: Attempt| {
        perform(&effects, "try", s.key()).await?;
        if s.number() < 3 { Err(StepError::retry(StepError::new("not yet"))) } else { Ok(s.number()) }
    };
    let third: u32 = ctx.step_retry("try", Retry::times(5), attempts).await?;
    let refused = ctx.step::<u32, _, _>("refused", async |s| {
        perform(&effects, "refused", s.key()).await?;
        Err(StepError::new("no money").code("card").into())
    });
    let refused = refused.await.unwrap_err();
    let Confirm { yes } = ctx.elicit(refused.to_string()).await?;
    Ok(format!("{region} {third} {:?} {yes}", refused.code))
}

#[tokio::test(start_paused = true)]
async fn steps_that_fail() {
    check(flaky, "flaky", "eu 3 Some(\"card\") true", &["region", "confirm"]).await;
}

/// The older build.
#[tool(name = "sign_up", needs(form))]
async fn sign_up(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
    let Region { region } = ctx.elicit("Where?").await?;
    let account: usize = ctx.step("create", async |s| perform(&effects, "create", s.key()).await).await?;
    let Amount { amount } = ctx.elicit("How many?").await?;
    Ok(format!("account {account} in {region} for {amount}"))
}

/// The newer build asks once more, and has another name for its step.
async fn sign_up_newer(ctx: &Ctx, effects: &Effects) -> Result<String> {
    let Region { region } = ctx.elicit("Where?").await?;
    let account: usize =
        ctx.step("create_account", async |s| perform(effects, "create", s.key()).await).await?;
    let Amount { amount } = ctx.elicit("How many?").await?;
    let Confirm { yes } = ctx.elicit("Sure?").await?;
    Ok(format!("account {account} in {region} for {amount}, {yes}"))
}

/// Returns the closure unchanged. The bound lets its future borrow the context.
fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>>>(handler: F) -> F {
    handler
}

#[tokio::test(start_paused = true)]
async fn newer_builds() {
    let newer = |change: fn(Tool) -> Tool| {
        move |effects: &Effects| {
            let shared = effects.clone();
            let handler = lent(move |ctx, _| {
                let effects = shared.clone();
                Box::pin(async move { sign_up_newer(ctx, &effects).await })
            });
            server(effects).tool(change(Tool::new("sign_up", handler).needs(AskSupport::FORM).version(2)))
        }
    };
    let bench = Bench::new(|effects| server(effects).tool(sign_up)).user(person());
    let renamed = newer(|tool| tool.migrate(Migration::new().rename("create", "create_account")));
    let report = bench.clone().upgrade(renamed).run_all_faults("sign_up", ()).await;
    report.expect_same_result().expect_effects(Guarantee::OneKeyEach);
    let refusing = newer(|tool| tool.on_version(OnVersion::Reject));
    bench.clone().upgrade_refused(refusing).run_all_faults("sign_up", ()).await.expect_same_result();
    // Without a word of what became of the step, the call ends.
    let report = bench.upgrade(newer(|tool| tool)).run_all_faults("sign_up", ()).await;
    let ended = report.findings().iter().filter(|finding| finding.text.contains("flow_diverged")).count();
    assert_eq!(ended, report.findings().len());
    let (_, last) = report.runs().find(|(fault, _)| **fault == Fault::Upgrade { leg: 3 }).unwrap();
    assert!(matches!(last.outcome(), Outcome::Error(_)), "{}", last.outcome());
}
