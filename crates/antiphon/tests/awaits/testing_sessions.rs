//! The bench's client of 2025: the same call in a session has the same result and the same effects.
#![cfg(feature = "macros")]

use antiphon::{
    Error, Form, Result,
    client::Call,
    seal::Principal,
    server::{
        Answer, Ask, AskError, Ctx, Json, NoArguments, Prompt, Reply, Resource, Server, ServerBuilder, State,
        TaskMode, Tool, asks::InputRequired, flow::Carrier, offers::IntoTool,
    },
    store::MemoryStore,
    testing::{Bench, Effects, Fault, Finding, Guarantee, Report, ScriptedUser, UserAnswer},
    tool,
    wire::{
        content::ResourceContents,
        forms::{FormField, FormSchema},
        sampling::SamplingMessage,
    },
};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

#[derive(serde::Deserialize, Form)]
struct Region {
    region: String,
}

#[derive(serde::Deserialize, Form)]
struct Amount {
    amount: u8,
}

fn person() -> ScriptedUser {
    ScriptedUser::new()
        .accept("region", json!({"region": "eu"}))
        .accept("amount", json!({"amount": 3}))
        .accept("confirm", json!({"value": true}))
        .consent("terms")
        .sample("sample", "a poem")
        .roots("roots", ["file:///here"])
}

fn bench<S>(tool: impl IntoTool<S> + Clone) -> Bench {
    let server = move |effects: &Effects| {
        Server::builder("shapes", "1").state(effects.clone()).tool(tool.clone()).logging(true)
    };
    Bench::new(server).user(person())
}

fn is_session(fault: &Fault) -> bool {
    *fault == Fault::Session
}

async fn report(bench: Bench, name: &str) -> Report {
    bench.only(is_session).run_all_faults(name, ()).await
}

/// Checks that the session was there, with the same result and effects.
#[track_caller]
fn is_the_same(report: &Report, text: &str, asked: &[&str]) {
    report.expect_same_result().expect_effects(Guarantee::AtMostOnce).plain().expect_text(text);
    let (fault, done) = report.runs().next().expect("the call is made in a session");
    assert!(*fault == Fault::Session && done.fault_occurred());
    done.expect_text(text).expect_asked(asked);
    assert_eq!(done.legs().len(), 1);
}

/// Asks twice, acts twice.
#[tool]
async fn order(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
    let Region { region } = ctx.elicit("Which region?").await?;
    let number: usize = ctx.step("create", async |s| Ok(cloud.perform("create", s.key()).await)).await?;
    let Amount { amount } = ctx.elicit("How many?").await?;
    let bill: usize = ctx.step("charge", async |s| Ok(cloud.perform("charge", s.key()).await)).await?;
    Ok(format!("{amount} db-{number} in {region}, bill {bill}"))
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_awaits_its_questions() {
    is_the_same(&report(bench(order), "order").await, "3 db-1 in eu, bill 1", &["region", "amount"]);
    let known = bench(order).principal(Principal::user("ann"));
    is_the_same(&report(known, "order").await, "3 db-1 in eu, bill 1", &["region", "amount"]);
}

/// Several questions at once.
#[tool]
async fn joined(ctx: &Ctx) -> Result<String> {
    let region = ctx.elicit::<Region>("Which region?");
    let amount = ctx.elicit::<Amount>("How many?");
    let (region, amount) = tokio::join!(region, amount);
    Ok(format!("{} {}", region?.region, amount?.amount))
}

/// A model, and the client's roots.
#[tool]
async fn sampled(ctx: &Ctx) -> Result<String> {
    let poem = ctx.sample([SamplingMessage::user("A poem, please.")], 9).await?;
    let roots = ctx.roots().await?;
    Ok(format!("{} {}", poem.content.first_text().unwrap_or_default(), roots.len()))
}

#[tokio::test(start_paused = true)]
async fn questions_of_every_kind() {
    is_the_same(&report(bench(joined), "joined").await, "eu 3", &["region", "amount"]);
    is_the_same(&report(bench(sampled), "sampled").await, "a poem 1", &["sample", "roots"]);
    // A person who errs, who leaves a question out, who says no, and who takes long.
    let errs = person().user_first("region", UserAnswer::accept(json!({"region": 7})));
    let asked = ["region", "region", "amount"];
    is_the_same(&report(bench(order).user(errs), "order").await, "3 db-1 in eu, bill 1", &asked);
    let leaves = person().user_first("region", UserAnswer::none());
    let report_of = report(bench(order).user(leaves), "order").await;
    is_the_same(&report_of, "3 db-1 in eu, bill 1", &["region", "amount"]);
    let slow = person()
        .user_first("region", UserAnswer::accept(json!({"region": "eu"})).after(Duration::from_secs(60)));
    is_the_same(
        &report(bench(order).user(slow), "order").await,
        "3 db-1 in eu, bill 1",
        &["region", "amount"],
    );
    let declines = bench(order).user(ScriptedUser::new().decline("region"));
    let declined = report(declines, "order").await;
    declined.expect_same_result().plain().expect_failure("declined");
}

/// Puts an answer in front of those that [`person`] gives.
trait First {
    fn user_first(self, key: &str, answer: UserAnswer) -> ScriptedUser;
}

impl First for ScriptedUser {
    fn user_first(self, key: &str, answer: UserAnswer) -> ScriptedUser {
        let rest = ScriptedUser::new().answer(key, answer).accept("region", json!({"region": "eu"}));
        drop(self);
        rest.accept("amount", json!({"amount": 3}))
    }
}

fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<Reply<String>>>>(handler: F) -> F {
    handler
}

/// Returns its questions, two in one round.
fn by_hand() -> Tool {
    let handler = lent(|ctx, _| {
        Box::pin(async move {
            let region =
                Ask::form("region", "Which region?", FormSchema::new(vec![FormField::text("region")]));
            let terms = Ask::url("terms", "Please read the terms.", "https://example.com/terms");
            let (Some(Answer::Accept(Region { region })), Some(_)) =
                (ctx.by_hand().form::<Region>(&region)?, ctx.by_hand().url(&terms))
            else {
                return Ok(InputRequired::ask(region).and(terms).into());
            };
            Ok(Reply::Complete(region))
        })
    });
    Tool::new("by_hand", handler)
}

#[tokio::test(start_paused = true)]
async fn questions_that_a_handler_returns() {
    let server = |effects: &Effects| Server::builder("shapes", "1").state(effects.clone()).tool(by_hand());
    let bench = Bench::new(server).user(person());
    is_the_same(&report(bench, "by_hand").await, "eu", &["region", "terms"]);
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources() {
    async fn choose(ctx: &Ctx) -> Result<String> {
        let Region { region } = ctx.elicit("Which region?").await?;
        Ok(region)
    }
    let server = |_: &Effects| {
        Server::builder("shapes", "1")
            .prompt(Prompt::new("choose", async |ctx: &Ctx, _: NoArguments| choose(ctx).await))
            .resource(Resource::new("ask://one", "one", async |ctx: &Ctx| {
                Ok::<_, Error>(ResourceContents::text("ask://one", choose(ctx).await?))
            }))
    };
    for call in [Call::prompt("choose", ()).unwrap(), Call::resource("ask://one")] {
        let bench = Bench::new(server).only(is_session);
        let report = bench.clone().user(person()).run_all_faults_on(&call).await;
        is_the_same(&report, "eu", &["region"]);
        // Who says no ends a prompt or a resource with an error.
        let refused = bench.user(ScriptedUser::new().decline("region")).may_fail();
        refused.run_all_faults_on(&call).await.expect_same_result();
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_no_session_has_in_full() {
    /// A list.
    #[tool]
    async fn list() -> Json<Vec<u8>> {
        Json(vec![1, 2])
    }
    report(bench(list), "list").await.expect_same_result();
}

/// Returns the findings of the session.
async fn findings(bench: Bench, name: &str) -> Vec<Finding> {
    let report = report(bench, name).await;
    let effects = report.effect_findings(Guarantee::OneKeyEach);
    report
        .findings()
        .iter()
        .chain(&effects)
        .filter(|found| found.fault == Some(Fault::Session))
        .cloned()
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_differs_in_a_session_is_found() {
    /// Another result.
    #[tool]
    async fn result(ctx: &Ctx) -> Result<String> {
        let Region { region } = ctx.elicit("Which region?").await?;
        Ok(if ctx.carrier() == Carrier::Pushed { "pushed".to_owned() } else { region })
    }

    /// Fails.
    #[tool]
    async fn fails(ctx: &Ctx) -> Result<String> {
        let Region { region } = ctx.elicit("Which region?").await?;
        if ctx.carrier() == Carrier::Pushed {
            return Err(Error::user_facing("not in a session"));
        }
        Ok(region)
    }

    /// Another effect.
    #[tool]
    async fn effect(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
        let Region { region } = ctx.elicit("Which region?").await?;
        let times = if ctx.carrier() == Carrier::Pushed { 2 } else { 1 };
        for time in 0..times {
            ctx.step(("create", time), async |s| Ok(cloud.perform("create", s.key()).await)).await?;
        }
        Ok(region)
    }

    /// Another question.
    #[tool]
    async fn question(ctx: &Ctx) -> Result<String> {
        if ctx.carrier() == Carrier::Pushed {
            let Amount { amount } = ctx.elicit("How many?").key("unknown").await?;
            return Ok(amount.to_string());
        }
        Ok("3".to_owned())
    }

    for (bench, name, text) in [
        (bench(result), "result", "pushed"),
        (bench(fails), "fails", "not in a session"),
        (bench(effect), "effect", "`create` happened 2 times instead of 1"),
        (bench(question), "question", "no answer to `unknown`"),
    ] {
        let found = findings(bench, name).await;
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert!(found[0].to_string().starts_with("a client in a session of 2025-11-25: "), "{}", found[0]);
        assert!(found[0].text.contains(text), "{}", found[0]);
    }
}

/// A question with a time of its own, and an answer that comes too late for it.
#[tokio::test(start_paused = true)]
async fn late_answers() {
    /// Asks for a minute.
    #[tool]
    async fn hurried(ctx: &Ctx) -> Result<String> {
        match ctx.elicit::<Region>("Which region?").timeout(Duration::from_secs(60)).await {
            Ok(Region { region }) => Ok(region),
            Err(AskError::Expired { .. }) => Ok("too late".to_owned()),
            Err(error) => Err(error.into()),
        }
    }
    for (after, text) in [(0, "eu"), (30, "eu"), (90, "too late"), (600, "too late")] {
        let answer = UserAnswer::accept(json!({"region": "eu"})).after(Duration::from_secs(after));
        let user = ScriptedUser::new().answer("region", answer);
        let report = report(bench(hurried).user(user), "hurried").await;
        report.expect_same_result().plain().expect_text(text);
    }
}

/// The fault does not happen to a tool that no session may call.
#[tokio::test(start_paused = true)]
async fn what_no_session_may_call() {
    let modern = |effects: &Effects| {
        Server::builder("shapes", "1").state(effects.clone()).tool(order).modern_only(true)
    };
    let bench = Bench::new(modern).user(person());
    assert_eq!(report(bench.clone(), "order").await.runs().len(), 0);
    let call = Call::tool("order", ()).unwrap();
    let done = bench.run(&call, Some(&Fault::Session)).await;
    assert!(!done.fault_occurred());
    done.expect_text("3 db-1 in eu, bill 1");

    let always = |effects: &Effects| {
        let builder = Server::builder("shapes", "1").state(effects.clone()).tool(order);
        antiphon::server::test_hooks::with_task_mode(builder, TaskMode::Required)
    };
    let done = Bench::new(always).user(person()).run(&call, Some(&Fault::Session)).await;
    assert!(!done.fault_occurred());
    done.expect_failure("tasks");

    // The page tells the server, and the client calls again: no matter of one call.
    let first = |effects: &Effects| {
        let handler = lent(|ctx, _| {
            Box::pin(async move {
                let terms = Ask::url("terms", "Please read the terms.", "https://example.com/terms");
                Ok(match ctx.by_hand().url(&terms) {
                    Some(_) => Reply::Complete("read".to_owned()),
                    None => InputRequired::ask(terms).urls_first().into(),
                })
            })
        });
        Server::builder("shapes", "1").state(effects.clone()).tool(Tool::new("first", handler))
    };
    let report = report(Bench::new(first).user(person()), "first").await;
    report.expect_same_result().expect_effects(Guarantee::AtMostOnce);
    let (_, done) = report.runs().next().unwrap();
    assert!(!done.fault_occurred());
}

/// Each level with a client of 2025.
#[tokio::test(start_paused = true)]
async fn levels() {
    for level in [ServerBuilder::single_use, ServerBuilder::write_ahead] {
        let server = move |effects: &Effects| {
            let store = effects.shared::<MemoryStore>();
            level(Server::builder("shapes", "1").state(effects.clone()).tool(order).store(store), true)
        };
        let report = report(Bench::new(server).user(person()), "order").await;
        is_the_same(&report, "3 db-1 in eu, bill 1", &["region", "amount"]);
    }
}

/// What other calls see, as in a database of the author.
#[derive(Default)]
struct Notes(Mutex<BTreeSet<String>>);

impl Notes {
    fn has(&self, note: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(note)
    }

    fn add(&self, note: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(note.to_owned());
    }

    fn remove(&self, note: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(note);
    }
}

fn is_session_crash(fault: &Fault) -> bool {
    matches!(fault, Fault::SessionCrash { .. })
}

/// Returns the findings after a session was lost in a crash, without those of the call without faults.
async fn after_crashes(bench: Bench, name: &str, guarantee: Guarantee) -> Vec<String> {
    let report = bench.only(is_session_crash).run_all_faults(name, ()).await;
    assert!(report.runs().len() > 0, "{report}");
    assert!(report.runs().all(|(fault, done)| is_session_crash(fault) && done.fault_occurred()), "{report}");
    let effects = report.effect_findings(guarantee);
    report.findings().iter().chain(&effects).map(ToString::to_string).collect()
}

/// Charges for an order, once, whoever calls.
#[tool]
async fn of_an_order(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
    let Region { region } = ctx.elicit("Which region?").await?;
    ctx.step("charge", async |_| Ok(cloud.perform("charge", "order 7").await)).await?;
    Ok(region)
}

/// Looks if it was charged, charges, and notes that.
#[tool]
async fn careful(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
    let notes = cloud.shared::<Notes>();
    if notes.has("charged") {
        return Ok("It is paid.".to_owned());
    }
    let Region { region } = ctx.elicit("Which region?").await?;
    ctx.step("charge", async |s| Ok(cloud.perform("charge", s.key()).await)).await?;
    notes.add("charged");
    Ok(region)
}

#[tokio::test(start_paused = true)]
async fn a_call_after_a_lost_session_is_another_call() {
    let none: Vec<String> = Vec::new();
    for guarantee in [Guarantee::AtLeastOnce, Guarantee::OneKeyEach, Guarantee::AtMostOnce] {
        assert_eq!(after_crashes(bench(order), "order", guarantee).await, none);
        assert_eq!(after_crashes(bench(of_an_order), "of_an_order", guarantee).await, none);
        assert_eq!(after_crashes(bench(careful), "careful", guarantee).await, none);
        for level in [ServerBuilder::single_use, ServerBuilder::write_ahead] {
            let server = move |effects: &Effects| {
                let store = effects.shared::<MemoryStore>();
                level(Server::builder("shapes", "1").state(effects.clone()).tool(order).store(store), true)
            };
            let bench = Bench::new(server).user(person());
            assert_eq!(after_crashes(bench, "order", guarantee).await, none);
        }
    }
}

/// What a lost call leaves behind must not make the next one pay twice, say what is not true, or fail.
#[tokio::test(start_paused = true)]
async fn what_a_lost_call_leaves_behind_is_found() {
    /// Does what a lost call has begun, and its own.
    #[tool]
    async fn pays_twice(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
        let notes = cloud.shared::<Notes>();
        if notes.has("begun") {
            ctx.step("earlier", async |s| Ok(cloud.perform("charge", s.key()).await)).await?;
        }
        let Region { region } = ctx.elicit("Which region?").await?;
        notes.add("begun");
        ctx.step("charge", async |s| Ok(cloud.perform("charge", s.key()).await)).await?;
        notes.remove("begun");
        Ok(region)
    }

    /// Says that it was charged before it was.
    #[tool]
    async fn lies(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
        let notes = cloud.shared::<Notes>();
        if notes.has("charged") {
            return Ok("It is paid.".to_owned());
        }
        let Region { region } = ctx.elicit("Which region?").await?;
        notes.add("charged");
        ctx.step("charge", async |s| Ok(cloud.perform("charge", s.key()).await)).await?;
        Ok(region)
    }

    /// Keeps others out while it asks.
    #[tool]
    async fn locks(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
        let notes = cloud.shared::<Notes>();
        if ctx.carrier() == Carrier::Pushed && notes.has("locked") {
            return Err(Error::user_facing("somebody else is at it"));
        }
        notes.add("locked");
        let Region { region } = ctx.elicit("Which region?").await?;
        notes.remove("locked");
        Ok(region)
    }

    let guarantee = Guarantee::AtLeastOnce;
    for (found, text) in [
        (
            after_crashes(bench(pays_twice), "pays_twice", guarantee).await,
            "`charge` happened 2 times instead of 1",
        ),
        (
            after_crashes(bench(lies), "lies", guarantee).await,
            "`charge` happened 0 times instead of 1 in the call after the lost one, which had done it 0 times",
        ),
        (after_crashes(bench(locks), "locks", guarantee).await, "somebody else is at it"),
    ] {
        assert!(!found.is_empty(), "{text}");
        for found in found {
            assert!(found.starts_with("a session lost in a crash after poll "), "{found}");
            assert!(found.contains(text), "{found}");
        }
    }
}
