//! A tool that keeps the rules comes through every fault on the bench.

use antiphon::{
    client::{Call, calls::CallKind},
    seal::{Codec, CodecError, Principal},
    server::{
        Answer, Ask, Ctx, NoArguments, Prompt, Reply, Resource, ResourceTemplate, Server, ServerBuilder,
        Tool, asks::InputRequired, flow::OnVersion, operations::OnExpired,
    },
    testing::{
        Bench, DuplicateTiming, Effects, Fault, FindingKind, Guarantee, Outcome, Question, ScriptedUser,
        UserAnswer,
    },
    wire::{
        AskKind, AskSupport,
        content::ResourceContents,
        forms::{FormField, FormSchema},
    },
};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::{sync::Mutex, time::Duration};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    name: String,
}

#[derive(serde::Deserialize)]
struct Region {
    region: String,
}

#[derive(serde::Deserialize)]
struct Guests {
    guests: u8,
}

fn region() -> Ask {
    Ask::form("region", "Which region?", FormSchema::new(vec![FormField::text("region")]))
}

fn guests() -> Ask {
    Ask::form("guests", "How many?", FormSchema::new(vec![FormField::integer("guests")]))
}

fn terms() -> Ask {
    Ask::url("terms", "Please read the terms.", "https://example.com/terms")
}

/// Three legs: a form; a form, a page and the roots in one round; an effect under a key of the call.
async fn order(ctx: &Ctx, order: Order, effects: Effects) -> antiphon::Result<Reply<String>> {
    let place = match (ctx.by_hand().state(), ctx.by_hand().form::<Region>(&region())?) {
        (Some(place), _) => place.to_owned(),
        (None, Some(Answer::Accept(Region { region }))) => region,
        (None, Some(_)) => return Ok(Reply::Complete("nowhere".to_owned())),
        (None, None) => return Ok(region().into()),
    };
    let roots = Ask::roots("roots");
    let answers = (
        ctx.by_hand().form::<Guests>(&guests())?,
        ctx.by_hand().url(&terms()),
        ctx.by_hand().listed_roots(&roots),
    );
    let (Some(Answer::Accept(Guests { guests: count })), Some(agreed), Some(listed)) = answers else {
        return Ok(InputRequired::ask(guests()).and(terms()).and(roots).with_state(place).into());
    };
    let key = format!("{}/create", ctx.call_id().expect("this is a later leg"));
    let number = effects.perform("create", key).await;
    let (agreed, listed) = (agreed.accepted().is_some(), listed.roots.len());
    Ok(Reply::Complete(format!("{}-{number} in {place} for {count}, {agreed}, {listed}", order.name)))
}

/// Returns the closure unchanged. The bound lets its future borrow the context.
fn lent<A, F: for<'a> Fn(&'a Ctx, A) -> BoxFuture<'a, antiphon::Result<Reply<String>>>>(handler: F) -> F {
    handler
}

fn server(effects: &Effects) -> ServerBuilder {
    let effects = effects.clone();
    let handler = lent(move |ctx, args| Box::pin(order(ctx, args, effects.clone())));
    Server::builder("orders", "1.0").tool(Tool::new("order", handler))
}

fn person() -> ScriptedUser {
    ScriptedUser::new()
        .accept("region", json!({"region": "eu"}))
        .accept("guests", json!({"guests": 3}))
        .consent("terms")
        .roots("roots", ["file:///here"])
}

fn bench() -> Bench {
    Bench::new(server).user(person())
}

fn orders() -> Value {
    json!({"name": "db"})
}

const RESULT: &str = "db-1 in eu for 3, true, 1";

#[tokio::test(start_paused = true)]
async fn a_call_in_which_nothing_goes_wrong() {
    let done = bench().call("order", orders()).await;
    done.expect_text(RESULT).expect_asked(&["region", "guests", "terms", "roots"]);
    assert_eq!((done.effects().runs("create"), done.effects().distinct_keys("create")), (1, 1));
    let legs = done.legs();
    assert_eq!(legs.len(), 3);
    assert_eq!(legs[1].asked[1], ("terms".to_owned(), AskKind::Url));
    // Two polls for the effect, one for what follows it.
    assert_eq!([legs[0].polls, legs[1].polls, legs[2].polls], [1, 1, 3]);
    assert_eq!(done.effects().all()[0].leg, 3);
}

#[tokio::test(start_paused = true)]
async fn every_fault_at_every_boundary() {
    let newer = |effects: &Effects| server(effects).instructions("newer");
    let report = bench().upgrade(newer).run_all_faults("order", orders()).await;
    report.expect_same_result().expect_effects(Guarantee::OneKeyEach).expect_effects(Guarantee::AtLeastOnce);
    let count = |which: fn(&Fault) -> bool| report.runs().filter(|(fault, _)| which(fault)).count();
    for (found, expected) in [
        (count(|fault| matches!(fault, Fault::Crash { polls: 0, .. })), 3),
        (count(|fault| matches!(fault, Fault::Crash { polls: 1.., .. })), 2),
        (count(|fault| matches!(fault, Fault::Disconnect { .. })), 2),
        (count(|fault| matches!(fault, Fault::Drain { .. })), 3),
        (count(|fault| matches!(fault, Fault::Move)), 1),
        (count(|fault| matches!(fault, Fault::Duplicate { .. })), 9),
        (count(|fault| matches!(fault, Fault::Replay { .. })), 3),
        (count(|fault| matches!(fault, Fault::Tamper { .. })), 2),
        (count(|fault| matches!(fault, Fault::Expire { .. })), 2),
        (count(|fault| matches!(fault, Fault::Upgrade { .. })), 2),
        (count(|fault| matches!(fault, Fault::PartialAnswers { leg: 3 })), 1),
        (count(|fault| matches!(fault, Fault::ReversedAnswers)), 1),
        (count(|fault| matches!(fault, Fault::UnsolicitedAnswer { .. })), 3),
        (count(|fault| matches!(fault, Fault::InvalidAnswers { .. })), 2),
        (count(|fault| matches!(fault, Fault::SlowUser)), 1),
    ] {
        assert_eq!(found, expected, "{report}");
    }
    for (fault, done) in report.runs() {
        assert!(done.fault_occurred(), "{fault} did not happen");
        let refused = matches!(fault, Fault::Expire { .. });
        assert_eq!(*done.outcome() == Outcome::Refused, refused, "{fault}");
    }
}

/// Checks the number of effects, and of their keys, by fault.
#[tokio::test(start_paused = true)]
async fn effects_by_key() {
    let check = async |fault: Fault, runs: usize| {
        let done = bench().run(&Call::tool("order", orders()).unwrap(), Some(&fault)).await;
        assert!(done.fault_occurred(), "{fault}");
        done.expect_text(RESULT);
        let found = (done.effects().runs("create"), done.effects().distinct_keys("create"));
        assert_eq!(found, (runs, 1), "{fault}");
    };
    check(Fault::Crash { leg: 3, polls: 1 }, 1).await; // before it happens
    check(Fault::Crash { leg: 3, polls: 2 }, 2).await; // before anybody hears of it
    check(Fault::Disconnect { leg: 3, polls: 2 }, 2).await;
    check(Fault::Crash { leg: 2, polls: 0 }, 1).await;
    check(Fault::Duplicate { leg: 2, timing: DuplicateTiming::AfterReply }, 1).await;
    check(Fault::Duplicate { leg: 3, timing: DuplicateTiming::AfterReply }, 2).await;
    check(Fault::Duplicate { leg: 3, timing: DuplicateTiming::ConcurrentOnAnotherReplica }, 2).await;
    check(Fault::Replay { leg: 2, after: 2 }, 1).await;
    check(Fault::Replay { leg: 2, after: 3 }, 2).await; // continued to the end again
    check(Fault::Tamper { leg: 3 }, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_cannot_happen_is_reported() {
    let call = Call::tool("order", orders()).unwrap();
    for fault in [
        Fault::Crash { leg: 2, polls: 1 },
        Fault::Crash { leg: 9, polls: 0 },
        Fault::PartialAnswers { leg: 2 },
        Fault::Replay { leg: 2, after: 9 },
    ] {
        let done = bench().run(&call, Some(&fault)).await;
        done.expect_text(RESULT);
        assert!(!done.fault_occurred(), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn late_answers_are_asked_again_if_the_server_says_so() {
    let patient = |effects: &Effects| server(effects).on_expired(OnExpired::AskAgain);
    let report = Bench::new(patient).user(person()).run_all_faults("order", orders()).await;
    report.expect_same_result().expect_effects(Guarantee::OneKeyEach);
    let (_, late) = report.runs().find(|(fault, _)| **fault == Fault::Expire { leg: 3 }).unwrap();
    late.expect_text(RESULT)
        .expect_asked(&["region", "guests", "terms", "roots", "guests", "terms", "roots"]);
    // Beyond the time of the whole call, nothing is.
    let hurried = |effects: &Effects| {
        server(effects).on_expired(OnExpired::AskAgain).call_timeout(Duration::from_secs(600))
    };
    let report = Bench::new(hurried).user(person()).run_all_faults("order", orders()).await;
    report.expect_same_result();
    let (_, late) = report.runs().find(|(fault, _)| **fault == Fault::Expire { leg: 2 }).unwrap();
    assert_eq!(*late.outcome(), Outcome::Refused);
}

/// Checks the questions and the result for the answers of several persons.
#[tokio::test(start_paused = true)]
async fn people() {
    let check = async |person: ScriptedUser, asked: &[&str], text: &str| {
        let done = Bench::new(server).user(person).call("order", orders()).await;
        done.expect_asked(asked).expect_text(text);
    };
    let rest = ["guests", "terms", "roots"];
    check(person(), &["region", "guests", "terms", "roots"], RESULT).await;
    check(ScriptedUser::new().decline("region"), &["region"], "nowhere").await;
    check(ScriptedUser::new().cancel("region"), &["region"], "nowhere").await;
    let wrong_first =
        ScriptedUser::new().accept("region", json!({"region": 7})).accept("region", json!({"region": "eu"}));
    let wrong_first =
        wrong_first.accept("guests", json!({"guests": 3})).consent("terms").roots("roots", ["file:///here"]);
    check(wrong_first, &[&["region", "region"], &rest[..]].concat(), RESULT).await;
    let in_part = ScriptedUser::new().answer("terms", UserAnswer::none()).decline("terms");
    let in_part = in_part.accept("region", json!({"region": "eu"})).accept("guests", json!({"guests": 3}));
    let in_part = in_part.roots("roots", Vec::<String>::new());
    check(in_part, &[&["region"], &rest[..], &["terms"]].concat(), "db-1 in eu for 3, false, 0").await;
    let reads = person().answer_with("region", |question: &Question<'_>| {
        assert_eq!((question.key, question.times, question.request.kind()), ("region", 1, AskKind::Form));
        UserAnswer::accept(json!({"region": "us"}))
    });
    // The first line of a key is said first.
    check(reads, &[&["region"], &rest[..]].concat(), RESULT).await;
}

/// The same tool through a real client, and what a real client does not do.
#[tokio::test(start_paused = true)]
async fn through_a_real_client() {
    let call = Call::tool("order", orders()).unwrap();
    let done = bench().run_through_client(&call).await;
    done.expect_text(RESULT).expect_asked(&["region", "guests", "terms", "roots"]);
    assert_eq!(done.effects().distinct_keys("create"), 1);

    let stopped = async |person: ScriptedUser, why: &str| {
        let done = Bench::new(server).user(person).run_through_client(&call).await;
        match done.outcome() {
            Outcome::Stopped(told) => assert!(told.contains(why), "{told}"),
            other => panic!("{other}"),
        }
    };
    stopped(ScriptedUser::new(), "the scripted user has no answer to `region`").await;
    stopped(ScriptedUser::new().answer("region", UserAnswer::none()), "leaves `region` unanswered").await;
    let unknown = bench().run_through_client(&Call::tool("other", ()).unwrap()).await;
    unknown.expect_failure("other");
}

#[tokio::test(start_paused = true)]
async fn a_script_without_an_answer() {
    let done = Bench::new(server).call("order", orders()).await;
    assert_eq!(
        *done.outcome(),
        Outcome::Stopped(
            "the scripted user has no answer to `region`: add one, such as `.accept(\"region\", ..)`"
                .to_owned()
        )
    );
}

async fn choose(ctx: &Ctx) -> antiphon::Result<Reply<String>> {
    Ok(match ctx.by_hand().form::<Region>(&region())? {
        None => region().into(),
        Some(Answer::Accept(Region { region })) => Reply::Complete(region),
        Some(_) => return Err(antiphon::Error::user_facing("no region was chosen")),
    })
}

/// The same question from a prompt, a resource and a template: [`choose`] says what comes of it.
fn everything(_: &Effects) -> ServerBuilder {
    fn contents(reply: Reply<String>) -> Reply<ResourceContents> {
        match reply {
            Reply::Complete(text) => Reply::Complete(ResourceContents::text("ask://one", text)),
            Reply::InputRequired(required) => required.into(),
        }
    }
    Server::builder("everything", "1.0")
        .tool(Tool::new("choose", async |ctx: &Ctx, _: NoArguments| choose(ctx).await))
        .prompt(Prompt::new("choose", async |ctx: &Ctx, _: NoArguments| choose(ctx).await))
        .resource(Resource::new("ask://one", "one", async |ctx: &Ctx| choose(ctx).await.map(contents)))
        .template(ResourceTemplate::new(
            "ask://many/{id}",
            "many",
            async |ctx: &Ctx, _: Map<String, Value>| choose(ctx).await.map(contents),
        ))
}

#[tokio::test(start_paused = true)]
async fn prompts_resources_and_callers() {
    let calls = [
        Call::tool("choose", ()).unwrap(),
        Call::prompt("choose", ()).unwrap(),
        Call::resource("ask://one"),
        Call::resource("ask://many/7"),
    ];
    for call in calls {
        let bench =
            Bench::new(everything).user(ScriptedUser::new().accept("region", json!({"region": "eu"})));
        bench.run(&call, None).await.expect_text("eu");
        bench.run_all_faults_on(&call).await.expect_same_result();
        let report = bench.clone().principal(Principal::user("alice")).run_all_faults_on(&call).await;
        report.expect_same_result();
        assert!(report.runs().len() > 10, "{report}");

        // Who says no ends a prompt or a resource with an error, which is an end like any other if it was meant.
        let refusing = bench.user(ScriptedUser::new().decline("region"));
        refusing.run(&call, None).await.expect_failure("no region was chosen");
        let report = refusing.run_all_faults_on(&call).await;
        assert_eq!(report.findings().is_empty(), call.kind() == CallKind::Tool, "{:?}", report.findings());
        refusing.may_fail().run_all_faults_on(&call).await.expect_same_result();
    }
}

/// A newer build that refuses what an older one began; and one that asks more.
#[tokio::test(start_paused = true)]
async fn builds() {
    let build = |version: u32| {
        move |effects: &Effects| {
            let effects = effects.clone();
            let handler = lent(move |ctx, args| Box::pin(order(ctx, args, effects.clone())));
            Server::builder("orders", "1.0")
                .tool(Tool::new("order", handler).version(version).on_version(OnVersion::Reject))
        }
    };
    let report =
        Bench::new(build(1)).upgrade_refused(build(2)).user(person()).run_all_faults("order", orders()).await;
    report.expect_same_result();
    let report =
        Bench::new(build(1)).upgrade_refused(build(1)).user(person()).run_all_faults("order", orders()).await;
    let found: Vec<String> = report.findings().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("newer build from leg 2 on: the newer build must refuse the call"),
        "{found:?}"
    );
    let report =
        Bench::new(build(1)).upgrade(build(2)).user(person()).run_all_faults("order", orders()).await;
    assert!(report.findings()[0].text.contains("`Bench::upgrade_refused`"), "{:?}", report.findings());
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "needs a newer build")]
async fn a_newer_build_that_is_not_there() {
    let call = Call::tool("order", orders()).unwrap();
    let _ = bench().run(&call, Some(&Fault::Upgrade { leg: 2 })).await;
}

/// Hides the state from nobody, and notices nothing.
struct Plain;

impl Codec for Plain {
    fn seal(&self, plaintext: &[u8]) -> Result<String, CodecError> {
        Ok(plaintext.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn open(&self, token: &str) -> Result<Vec<u8>, CodecError> {
        let digits = (0..token.len()).step_by(2).map(|at| token.get(at..at + 2).unwrap_or("?"));
        digits.map(|digits| u8::from_str_radix(digits, 16).map_err(CodecError::new)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_codec_that_takes_any_state() {
    let careless = |effects: &Effects| server(effects).codec(Box::new(Plain));
    let report = Bench::new(careless).user(person()).run_all_faults("order", orders()).await;
    let about: Vec<FindingKind> = report.findings().iter().map(|finding| finding.kind).collect();
    assert!(about.contains(&FindingKind::Refusal), "{:?}", report.findings());
    for finding in report.findings() {
        assert!(matches!(finding.fault, Some(Fault::Tamper { .. })), "{finding}");
    }
}

#[tokio::test]
async fn effects_are_numbered_by_key_and_shared() {
    let effects = Effects::default();
    let same = effects.clone();
    assert_eq!(
        (effects.note("charge", "a"), same.note("charge", "b"), effects.note("charge", "a")),
        (1, 2, 1)
    );
    assert_eq!((effects.perform("refund", "a").await, effects.perform("charge", "b").await), (1, 2));
    assert_eq!((same.runs("charge"), same.distinct_keys("charge"), same.runs("nothing")), (4, 2, 0));
    effects.shared::<Mutex<Vec<u8>>>().lock().unwrap().push(7);
    assert_eq!(*same.shared::<Mutex<Vec<u8>>>().lock().unwrap(), [7]);
    assert_eq!(Effects::default().shared::<Mutex<Vec<u8>>>().lock().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn only_some_faults() {
    let bench = bench().only(|fault| matches!(fault, Fault::Move | Fault::SlowUser));
    let report = bench.run_all_faults("order", orders()).await;
    assert_eq!(
        report.runs().map(|(fault, _)| fault.clone()).collect::<Vec<_>>(),
        [Fault::Move, Fault::SlowUser]
    );
    assert_eq!(report.to_string(), "a call of 3 legs with 2 faults");
}

/// A call that ends before its questions says why.
#[tokio::test(start_paused = true)]
async fn a_call_that_asks_less_says_why() {
    let check = async |call: &Call, user: ScriptedUser, asked: &[&str], why: &str| {
        let done = Bench::new(everything).user(user).run(call, None).await;
        let text = panic_text(|| _ = done.expect_asked(asked));
        for part in [why, &format!("{asked:?}")] {
            assert!(text.contains(part), "{text}");
        }
    };
    let (tool, refuses) = (Call::tool("choose", ()).unwrap(), ScriptedUser::new().decline("region"));
    check(&tool, refuses.clone(), &["region", "confirm"], "no region was chosen").await;
    check(&Call::prompt("choose", ()).unwrap(), refuses.clone(), &["confirm"], "no region was chosen").await;
    check(&Call::resource("ask://two"), refuses, &["region"], "Resource not found").await;
    check(&tool, ScriptedUser::new(), &[], "the scripted user has no answer to `region`").await;
    let cannot = ScriptedUser::new().declares(AskSupport::NONE);
    check(&tool, cannot, &["region"], "capabilit").await;
    // A cause that only the log has.
    let broken = |_: &Effects| {
        Server::builder("broken", "1.0").tool(Tool::new("choose", async |_: &Ctx, _: NoArguments| {
            Err::<String, _>(antiphon::Error::from(std::io::Error::other("the disk is full")))
        }))
    };
    let done = Bench::new(broken).run(&tool, None).await;
    let text = panic_text(|| _ = done.expect_asked(&["region"]));
    assert!(text.contains("the disk is full"), "{text}");
}

/// Returns the message of a panic.
fn panic_text(run: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("it panics");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

/// No message has a member that is disregarded.
#[tokio::test(start_paused = true)]
async fn what_is_disregarded_is_not_printed() {
    fn timed(effects: &Effects) -> ServerBuilder {
        let effects = effects.clone();
        let handler = lent(move |ctx: &Ctx, _: Order| {
            let effects = effects.clone();
            Box::pin(async move {
                let Some(Answer::Accept(Region { region })) = ctx.by_hand().form::<Region>(&region())? else {
                    return Ok(region().into());
                };
                // The time, and something that differs between runs and is compared.
                let number = effects.perform("create", format!("{:?}", ctx.call_id())).await;
                let runs = effects.runs("create");
                Ok(Reply::Complete(format!("at 12:34 {region} {number} {runs}")))
            })
        });
        Server::builder("timed", "1.0").tool(Tool::new("order", handler))
    }
    let bench = Bench::new(timed).user(person()).disregard(|result| {
        if let Some(text) = result.pointer_mut("/content/0/text") {
            *text = text.as_str().unwrap_or_default().replace("12:34", "..").into();
        }
    });
    let report = bench.run_all_faults("order", orders()).await;
    let found: Vec<String> = report.findings().iter().map(ToString::to_string).collect();
    let of = |which: &str| found.iter().filter(|text| text.starts_with(which)).count();
    assert!(of("crash") > 0 && of("leg 2 sent") > 0, "{found:?}");
    for text in &found {
        assert!(text.contains("at .. eu 1 2") && !text.contains("12:34"), "{text}");
    }
}

/// A tool with scopes, called with a token.
#[tokio::test(start_paused = true)]
async fn a_caller_with_a_token() {
    let scoped = |effects: &Effects| {
        let effects = effects.clone();
        let handler = lent(move |ctx, args| Box::pin(order(ctx, args, effects.clone())));
        Server::builder("orders", "1.0").tool(Tool::new("order", handler).scopes(["order", "pay"]))
    };
    let bench = Bench::new(scoped).user(person());
    bench.clone().bearer(["pay", "order", "more"]).call("order", orders()).await.expect_text(RESULT);
    let known = bench.clone().principal(Principal::user("alice"));
    for bench in [bench.clone(), known] {
        let report = bench.bearer(["order", "pay"]).run_all_faults("order", orders()).await;
        report.expect_same_result().expect_effects(Guarantee::OneKeyEach);
    }
    bench.clone().call("order", orders()).await.expect_failure("scope");
    bench.bearer(["order"]).call("order", orders()).await.expect_failure("scope");
}
