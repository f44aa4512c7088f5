//! The bench and handlers that ask with `await`: what keeps the rules, and what breaks them.
#![cfg(feature = "macros")]

use antiphon::wire::AskSupport;
use antiphon::{
    Form, Result,
    client::Call,
    server::{AskError, Ctx, NoArguments, Server, ServerBuilder, Tool},
    testing::{Bench, Effects, Fault, Finding, FindingKind, Guarantee, Report, ScriptedUser, UserAnswer},
};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

#[derive(serde::Deserialize, Form)]
struct Region {
    region: String,
}

#[derive(serde::Deserialize, Form)]
struct Keep {
    days: u8,
}

type Handler = for<'a> fn(&'a Ctx, &'a Replica) -> BoxFuture<'a, Result<String>>;

/// The effects and the memory of one replica.
#[derive(Clone)]
struct Replica {
    effects: Effects,
    memory: Arc<Mutex<Option<String>>>,
}

impl Replica {
    /// Does it, under this key; gives the number of the key.
    async fn perform(&self, name: &str, key: &str) -> Result<usize> {
        Ok(self.effects.perform(name, key).await)
    }
}

/// Returns the closure unchanged. The bound lets its future borrow the context.
fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>>>(handler: F) -> F {
    handler
}

fn server(effects: &Effects, handler: Handler) -> ServerBuilder {
    let replica = Replica { effects: effects.clone(), memory: Arc::default() };
    let run = lent(move |ctx, _| {
        let replica = replica.clone();
        Box::pin(async move { handler(ctx, &replica).await })
    });
    Server::builder("tools", "1.0").tool(Tool::new("tool", run).needs(AskSupport::FORM))
}

fn bench(handler: Handler) -> Bench {
    let person =
        ScriptedUser::new().accept("region", json!({"region": "eu"})).accept("keep", json!({"days": 3}));
    Bench::new(move |effects| server(effects, handler)).user(person)
}

async fn run_all_faults(handler: Handler) -> Report {
    bench(handler).run_all_faults("tool", ()).await
}

/// Asks, does, asks, does.
fn order<'a>(ctx: &'a Ctx, replica: &'a Replica) -> BoxFuture<'a, Result<String>> {
    Box::pin(async move {
        let Region { region } = ctx.elicit("Which region?").await?;
        let number: usize = ctx.step("create", async |s| replica.perform("create", s.key()).await).await?;
        let Keep { days } = ctx.elicit("For how long?").await?;
        let bill: usize = ctx.step("charge", async |s| replica.perform("charge", s.key()).await).await?;
        Ok(format!("db-{number} in {region} for {days} days, bill {bill}"))
    })
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_keeps_the_rules() {
    let report = run_all_faults(order).await;
    report.expect_same_result().expect_effects(Guarantee::OneKeyEach);
    report.plain().expect_text("db-1 in eu for 3 days, bill 1").expect_asked(&["region", "keep"]);
    assert_eq!(report.plain().legs().len(), 3);
    let call = Call::tool("tool", ()).unwrap();
    bench(order).run_through_client(&call).await.expect_text("db-1 in eu for 3 days, bill 1");
    for (fault, done) in report.runs() {
        assert!(done.fault_occurred() || matches!(fault, Fault::ReversedAnswers), "{fault} did not happen");
    }
}

/// Checks the legs in which a step's effect happens, by fault. The key is always the same.
#[tokio::test(start_paused = true)]
async fn steps_that_are_cut_off() {
    let check = async |fault: Fault, expected: &[u16]| {
        let done = bench(order).run(&Call::tool("tool", ()).unwrap(), Some(&fault)).await;
        assert!(done.fault_occurred(), "{fault}");
        done.expect_text("db-1 in eu for 3 days, bill 1");
        let effects = done.effects().all();
        let legs: Vec<u16> =
            effects.iter().filter(|effect| effect.name == "charge").map(|effect| effect.leg).collect();
        assert_eq!((legs.as_slice(), done.effects().distinct_keys("charge")), (expected, 1), "{fault}");
        assert_eq!(
            (done.effects().runs("create"), done.effects().distinct_keys("create")),
            (1, 1),
            "{fault}"
        );
    };
    // Gone with its replica before it happened, or after.
    check(Fault::Crash { leg: 3, polls: 1 }, &[3]).await;
    check(Fault::Crash { leg: 3, polls: 2 }, &[3, 3]).await;
    // The request is cancelled, and the step goes on to its end.
    check(Fault::Disconnect { leg: 3, polls: 1 }, &[3, 3]).await;
    check(Fault::Disconnect { leg: 3, polls: 2 }, &[3, 3]).await;
}

/// A person answers too late for a question, but in time for the state.
#[tokio::test(start_paused = true)]
async fn a_person_who_is_late() {
    let handler: Handler = |ctx, _| {
        Box::pin(async move {
            let asked = ctx.elicit::<Region>("Which region?").timeout(Duration::from_secs(60)).await;
            Ok(asked.map_or_else(|error| error.to_string(), |Region { region }| region))
        })
    };
    let answers = |after: u64| {
        let says = UserAnswer::accept(json!({"region": "eu"})).after(Duration::from_secs(after));
        let person = ScriptedUser::new().answer("region", says);
        Bench::new(move |effects| server(effects, handler)).user(person)
    };
    answers(59).call("tool", ()).await.expect_text("eu");
    answers(200).call("tool", ()).await.expect_text("The user did not answer `region` in time");
    let done = answers(1000).call("tool", ()).await;
    done.expect_failure("Invalid or expired requestState");
}

/// A finding of the bench in a handler that breaks a rule.
#[derive(Debug)]
enum FoundBy {
    /// The bench finds it by the results, and says so in these words.
    Result(&'static str),
    /// The bench finds it because it does not run the same way twice.
    Replay(&'static str),
    /// The bench finds it by the effects, whatever is guaranteed.
    Effects(&'static str),
    /// The bench finds it by the effects, if each is to have one key.
    OneKeyEach(&'static str),
}

async fn check(handler: Handler, caught: FoundBy) {
    let report = run_all_faults(handler).await;
    let words =
        |findings: &[Finding]| findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let results = words(report.findings());
    let [effects, keys] = [Guarantee::AtLeastOnce, Guarantee::OneKeyEach]
        .map(|guarantee| words(&report.effect_findings(guarantee)));
    match caught {
        FoundBy::Replay(text) => {
            let found =
                |finding: &Finding| finding.kind == FindingKind::Replay && finding.text.contains(text);
            assert!(report.findings().iter().any(found), "{caught:?}: {results}");
        }
        FoundBy::Result(text) => assert!(results.contains(text), "{caught:?}: {results}"),
        FoundBy::Effects(text) => {
            assert!(effects.contains(text) && keys.contains(text), "{caught:?}: {effects}")
        }
        FoundBy::OneKeyEach(text) => {
            assert_eq!((results.as_str(), effects.as_str()), ("", ""), "{caught:?}");
            assert!(keys.contains(text), "{caught:?}: {keys}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_effect_outside_of_a_step() {
    let handler: Handler = |ctx, replica| {
        Box::pin(async move {
            let Region { region } = ctx.elicit("Which region?").await?;
            replica.perform("mail", "to the owner").await?;
            let Keep { days } = ctx.elicit("For how long?").await?;
            Ok(format!("{region}, {days}"))
        })
    };
    let text = "without any fault: `mail` happened under the key `to the owner` in the legs 2, 3: \
                it is outside of a step";
    check(handler, FoundBy::Effects(text)).await;
}

/// Its provider cannot know that it is the same charge.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_made_anew() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let handler: Handler = |ctx, replica| {
        Box::pin(async move {
            let Region { region } = ctx.elicit("Which region?").await?;
            let key = MADE.fetch_add(1, Ordering::SeqCst).to_string();
            let _: usize = ctx.step("charge", async |_| replica.perform("charge", &key).await).await?;
            Ok(region)
        })
    };
    check(handler, FoundBy::Effects("`charge` happened under 2 keys after the first ask, and under 1")).await;
}

#[tokio::test(start_paused = true)]
async fn an_effect_before_the_first_ask() {
    let handler: Handler = |ctx, replica| {
        Box::pin(async move {
            let _: usize = ctx.step("reserve", async |s| replica.perform("reserve", s.key()).await).await?;
            let Region { region } = ctx.elicit("Which region?").await?;
            Ok(region)
        })
    };
    check(handler, FoundBy::OneKeyEach("`reserve` happened under 2 keys instead of 1 before the first ask"))
        .await;
}

/// The same, where the result tells of it.
#[tokio::test(start_paused = true)]
async fn a_result_with_an_effect_before_the_first_ask() {
    let handler: Handler = |ctx, replica| {
        Box::pin(async move {
            let number: usize =
                ctx.step("reserve", async |s| replica.perform("reserve", s.key()).await).await?;
            let Region { region } = ctx.elicit("Which region?").await?;
            Ok(format!("seat {number} in {region}"))
        })
    };
    check(handler, FoundBy::Result("move it behind the ask")).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_kept_in_memory() {
    let handler: Handler = |ctx, replica| {
        Box::pin(async move {
            let Region { region } = ctx.elicit("Which region?").await?;
            let kept = replica
                .memory
                .lock()
                .unwrap()
                .get_or_insert(format!("{region} of leg {}", ctx.leg()))
                .clone();
            let Keep { days } = ctx.elicit("For how long?").await?;
            Ok(format!("{kept}, {days}"))
        })
    };
    check(handler, FoundBy::Result("crash before leg 3: the call ends with the result")).await;
    check(handler, FoundBy::Result("another replica on each leg: the call ends with the result")).await;
}

#[tokio::test(start_paused = true)]
async fn the_time_in_a_question() {
    let handler: Handler = |ctx, _| {
        Box::pin(async move {
            let Region { region } = ctx.elicit(format!("Which region, at {:?}?", Instant::now())).await?;
            Ok(region)
        })
    };
    check(handler, FoundBy::Replay("Its text changes each time")).await;
}

#[tokio::test(start_paused = true)]
async fn the_order_of_a_hash_map_in_a_question() {
    let handler: Handler = |ctx, _| {
        Box::pin(async move {
            let prices: HashMap<&str, u32> =
                ["eu", "us", "ap", "sa", "af", "me"].into_iter().zip(1..).collect();
            let Region { region } = ctx.elicit(format!("Which of {:?}?", prices.keys())).await?;
            let Keep { days } = ctx.elicit("For how long?").await?;
            Ok(format!("{region}, {days}"))
        })
    };
    check(handler, FoundBy::Replay("Its text changes each time")).await;
}

#[tokio::test(start_paused = true)]
async fn a_path_that_depends_on_chance() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let handler: Handler = |ctx, replica| {
        Box::pin(async move {
            let Region { region } = ctx.elicit("Which region?").await?;
            let way = ["left", "right"][RUNS.fetch_add(1, Ordering::SeqCst) % 2];
            let _: usize = ctx.step(way, async |s| replica.perform(way, s.key()).await).await?;
            let Keep { days } = ctx.elicit("For how long?").await?;
            Ok(format!("{region}, {days}"))
        })
    };
    check(handler, FoundBy::Replay("the tool now takes a different path")).await;
}

/// A deadline for the person is `timeout`: which of the two comes first here, nobody remembers.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_given_up() {
    let handler: Handler = |ctx, _| {
        Box::pin(async move {
            let Keep { days } = ctx.elicit("For how long?").await?;
            let asked = ctx.elicit::<Region>("Which region?");
            let region = tokio::time::timeout(Duration::from_millis(1), asked).await;
            let region =
                region.map_or("none".to_owned(), |given| given.map_or_else(|e| e.to_string(), |r| r.region));
            Ok(format!("{region}, {days}"))
        })
    };
    check(handler, FoundBy::Replay("dropped the question `region`")).await;
}

/// Twice the same first request is two calls, and each has its own chance.
#[tokio::test(start_paused = true)]
async fn chance_that_is_the_same_on_every_leg() {
    let handler: Handler = |ctx, _| {
        Box::pin(async move {
            let Region { region } =
                ctx.elicit(format!("Which region for ticket {}?", ctx.random_u64("ticket"))).await?;
            Ok(region)
        })
    };
    run_all_faults(handler).await.expect_same_result();
}

/// The servers' clock goes with the time that passes while they wait.
#[tokio::test(start_paused = true)]
async fn a_page_that_is_never_finished() {
    let never = lent(|ctx, _| {
        Box::pin(async move {
            let page = ctx.elicit_url("Pay.", |r| format!("https://pay.example/{r}"));
            Ok(match page.until(async || false).timeout(Duration::from_secs(45)).await {
                Err(AskError::Expired { .. }) => "too late".to_owned(),
                paid => {
                    paid?;
                    "paid".to_owned()
                }
            })
        })
    });
    let bench = Bench::new(move |_| Server::builder("tools", "1.0").tool(Tool::new("tool", never)));
    let done = bench.user(ScriptedUser::new().consent("url")).call("tool", ()).await;
    done.expect_text("too late");
    // 20 seconds of each leg, and the last one is too late.
    assert_eq!(done.legs().len(), 4);
}

/// A mistake is hidden from the caller, and the author sees all of it.
#[tokio::test(start_paused = true)]
async fn why_a_call_fails() {
    let twice: Handler = |ctx, _| {
        Box::pin(async move {
            let Region { region } = ctx.elicit("Which region?").await?;
            ctx.elicit::<Region>("And which other one?").await?;
            Ok(region)
        })
    };
    let panics: Handler = |_, _| Box::pin(async move { panic!("this test panics here") });
    let library: Handler = |_, _| Box::pin(async move { Ok("x".parse::<u8>()?.to_string()) });
    let cases = [
        (twice, true, "Internal error", "is used twice, at crates"),
        (panics, true, "Internal error", "this test panics here"),
        // That is a result of the tool, and the same every time.
        (library, false, "failed", "invalid digit"),
    ];
    for (handler, is_found, told, cause) in cases {
        let done = bench(handler).call("tool", ()).await;
        done.expect_failure(told);
        assert!(done.causes().concat().contains(cause), "{:?}", done.causes());
        let panic = std::panic::catch_unwind(|| done.expect_text("eu").text().to_owned()).unwrap_err();
        let panic = panic.downcast_ref::<String>().unwrap();
        assert!(panic.contains(told) && panic.contains(cause), "{panic}");
        let report = bench(handler).run_all_faults("tool", ()).await;
        let found = report.findings().iter().any(|finding| finding.text.contains(cause));
        assert_eq!(found, is_found, "{:?}", report.findings());
    }
}

/// The bench checks a tool's declarations too.
#[tokio::test(start_paused = true)]
async fn a_step_before_a_question_that_is_not_needed() {
    let bench = bench(order);
    let careless = Bench::new(|effects| {
        let effects = effects.clone();
        let run = lent(move |ctx, _| {
            let effects = effects.clone();
            Box::pin(async move {
                let id: String = ctx
                    .step("create", async |s| {
                        effects.note("create", s.key());
                        Ok("db-1".to_owned())
                    })
                    .await?;
                let Keep { days } = ctx.elicit(format!("Keep {id}?")).await?;
                Ok(format!("{id} for {days} days"))
            })
        });
        Server::builder("tools", "1.0").tool(Tool::new("tool", run))
    });
    let person =
        ScriptedUser::new().accept("region", json!({"region": "eu"})).accept("keep", json!({"days": 3}));
    assert_eq!(bench.call("tool", ()).await.findings(), []);
    let report = careless.user(person).run_all_faults("tool", ()).await;
    // Once, though it is so in every run.
    let found: Vec<String> = report.findings().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("runs the step `create` before the question `keep`"), "{found:?}");
}

/// Chance in a result is found too, unless it is said to be of no matter.
#[tokio::test(start_paused = true)]
async fn chance_in_a_result() {
    let handler: Handler = |ctx, _| {
        Box::pin(async move {
            let Region { region } = ctx.elicit("Which region?").await?;
            Ok(format!("{region} at {:?}", Instant::now()))
        })
    };
    check(handler, FoundBy::Result("the call ends with the result")).await;
    let person = ScriptedUser::new().accept("region", json!({"region": "eu"}));
    let bench = Bench::new(move |effects| server(effects, handler)).user(person);
    let bench = bench.disregard(|result| result["content"] = json!("of no matter"));
    bench.run_all_faults("tool", ()).await.expect_same_result();
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "outside of a step")]
async fn expectations_panic_with_what_was_found() {
    let handler: Handler = |ctx, replica| {
        Box::pin(async move {
            replica.perform("mail", "one").await?;
            let Region { region } = ctx.elicit("Which region?").await?;
            Ok(region)
        })
    };
    run_all_faults(handler).await.expect_same_result().expect_effects(Guarantee::AtLeastOnce);
}
