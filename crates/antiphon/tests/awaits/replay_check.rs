//! Handlers that do not come to the same again, found before their first round has left; and those that do, of whom
//! nothing is said.

use crate::common::leak_check::load;
use crate::common::tool_call::*;
use crate::common::*;
use antiphon::{
    Error, Form, Result,
    server::{
        Answer, AskError, Ctx, Limits, NoArguments, Reply, Server, ServerBuilder, StepError, Tool,
        flow::Winner,
        operations::{FaultPlace, ReplayCheck, ReplayFault},
    },
    store::MemoryStore,
    wire::AskSupport,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, atomic::AtomicU32, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};

#[derive(Deserialize, Form)]
struct Place {
    region: String,
}

#[derive(Deserialize, Form)]
struct Confirm {
    ok: bool,
}

type Handler = for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>;

/// Returns the closure unchanged. The bound lets its future borrow the context.
fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>>>(handler: F) -> F {
    handler
}

type Faults = Arc<Mutex<Vec<ReplayFault>>>;

fn builder(tool: Tool, check: ReplayCheck) -> (ServerBuilder, Faults) {
    let faults = Faults::default();
    let heard = Arc::clone(&faults);
    let limits = Limits::default().handlers(1);
    let builder = Server::builder("replay", "1").tool(tool).keys(ring(7)).limits(limits);
    let builder = builder.replay_check(check).on_replay_fault(move |fault| {
        heard.lock().expect("nobody panics with it").push(fault.clone());
    });
    (builder, faults)
}

fn server(tool: Tool, check: ReplayCheck) -> (Server, Faults) {
    let (builder, faults) = builder(tool, check);
    (builder.build().expect("the server can be built"), faults)
}

fn fault_texts(faults: &Faults) -> Vec<String> {
    let mut faults: Vec<String> =
        faults.lock().expect("nobody panics with it").iter().map(in_short).collect();
    faults.dedup();
    faults
}

/// Its name and its keys.
fn in_short(fault: &ReplayFault) -> String {
    let debug = format!("{fault:?}");
    let name = debug.split(['(', ' ']).next().expect("a split has a first part");
    let FaultPlace { target, key, call, .. } = fault.place();
    assert!(target == "t" && call.is_some(), "{fault}");
    let text = fault.to_string();
    assert!(text.starts_with("`t` (call ") && text.contains(key), "{text}");
    match fault {
        ReplayFault::StepBeforeAsk { ask, .. } => format!("{name} {key} {ask}"),
        _ => format!("{name} {key}"),
    }
}

fn answers() -> Value {
    let place = accept(json!({"region": "eu"}));
    let (yes, no) = (accept(json!({"ok": true})), json!({"action": "decline"}));
    json!({"place": place, "region": place, "confirm": yes, "confirm#2": no, "no": no, "url": {"action": "accept"}})
}

/// Runs the tool to its end; `tool` says what is found.
async fn check_tool(tool: Tool, said_then: &str, expected: &[&str]) {
    let (server, faults) = server(tool, ReplayCheck::Always);
    let reply = ToolCall::new(json!({})).through(&server, &answers()).await;
    assert_eq!(
        (result_text(&reply).as_str(), fault_texts(&faults).as_slice()),
        (said_then, strings(expected).as_slice())
    );
    assert_eq!(load(&server), (0, 0));
}

fn strings(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

async fn check(handler: Handler, said_then: &str, expected: &[&str]) {
    check_tool(tool(handler).needs(AskSupport::FORM), said_then, expected).await;
}

fn tool(handler: Handler) -> Tool {
    Tool::new("t", lent(move |ctx, _| handler(ctx)))
}

/// Its first leg alone: such a handler may never come to an end.
async fn check_first_leg(handler: Handler, expected: &[&str]) {
    let (server, faults) = server(tool(handler).needs(AskSupport::FORM), ReplayCheck::Always);
    let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
    // The reply is the same with the check.
    assert_eq!(reply["result"]["resultType"], "input_required", "{reply}");
    assert_eq!(fault_texts(&faults), strings(expected));
}

fn next(counter: &AtomicU32) -> u32 {
    counter.fetch_add(1, Ordering::Relaxed)
}

#[tokio::test]
async fn a_question_that_changes() {
    check_first_leg(
        |ctx| {
            Box::pin(async {
                let numbers: HashMap<u32, ()> = (0..64).map(|number| (number, ())).collect();
                let text = format!("Which of {:?}?", numbers.keys().collect::<Vec<_>>());
                Ok(ctx.elicit::<Place>(text).await?.region)
            })
        },
        &["AskChanged place"],
    )
    .await;
    check_first_leg(
        |ctx| {
            Box::pin(async {
                let now = format!("It is {:?}. Where?", Instant::now());
                Ok(ctx.elicit::<Place>(now).await?.region)
            })
        },
        &["AskChanged place"],
    )
    .await;
    // What was answered is asked differently: all that stands behind it follows from that.
    check(
        |ctx| {
            static RUN: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                // The second run of the second leg.
                let is_other = next(&RUN) == 3;
                let place: Place = ctx.elicit(format!("Where, {is_other}?")).await?;
                let _: Confirm = ctx.elicit("Sure?").await?;
                Ok(place.region)
            })
        },
        "eu",
        &["AskChanged place"],
    )
    .await;
    check_first_leg(
        |ctx| Box::pin(async { Ok(ctx.elicit::<Place>(format!("{}. Where?", ctx.leg())).await?.region) }),
        &["AskChanged place"],
    )
    .await;
}

#[tokio::test]
async fn a_path_that_changes() {
    check_first_leg(
        |ctx| {
            static RUN: AtomicU32 = AtomicU32::new(0);
            Box::pin(async { Ok(ctx.elicit::<Place>("Where?").nth(next(&RUN)).await?.region) })
        },
        &["AskMissing place#0", "AskAdded place#1"],
    )
    .await;
    check_first_leg(
        |ctx| {
            static RUN: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                if next(&RUN) > 0 {
                    return Ok("not now".to_owned());
                }
                Ok(ctx.elicit::<Place>("Where?").await?.region)
            })
        },
        &["AskMissing place"],
    )
    .await;
    check_first_leg(
        |ctx| {
            static RUN: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                if next(&RUN) > 0 {
                    let () = ctx.step("late", async |_| panic!("it is not run to look")).await?;
                }
                Ok(ctx.elicit::<Place>("Where?").await?.region)
            })
        },
        &["StepAdded late"],
    )
    .await;
    check_first_leg(
        |ctx| {
            static RUN: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                let number: u32 = ctx.step_with("count", &next(&RUN), async |_| Ok(7)).await?;
                Ok(format!("{number} {}", ctx.elicit::<Place>("Where?").await?.region))
            })
        },
        &["Diverged count"],
    )
    .await;
    check_first_leg(
        |ctx| {
            static RUN: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                assert_eq!(next(&RUN), 0, "the second run of a test");
                Ok(ctx.elicit::<Place>("Where?").await?.region)
            })
        },
        &["Panicked "],
    )
    .await;
}

/// The first leg of a tool with a store ends in front of its first step, in both runs.
#[tokio::test(start_paused = true)]
async fn the_first_step_of_a_claimed_call() {
    let check = async |handler: Handler, expected: &[&str]| {
        for tool in [tool(handler).single_use(true), tool(handler).write_ahead(true)] {
            let (builder, faults) = builder(tool.needs(AskSupport::FORM), ReplayCheck::Always);
            let server = builder.store(MemoryStore::new()).single_instance(true).build().unwrap();
            let reply = ToolCall::new(json!({})).through(&server, &answers()).await;
            assert_eq!(result_text(&reply), "done", "{reply}");
            assert_eq!(fault_texts(&faults), strings(expected));
        }
    };
    async fn step(ctx: &Ctx, key: &str) -> Result<()> {
        Ok(ctx.step(key, async |_| Ok(())).await?)
    }
    check(|ctx| Box::pin(async { step(ctx, "a").await.map(|()| "done".to_owned()) }), &[]).await;
    check(
        |ctx| {
            Box::pin(async {
                step(ctx, "a").await?;
                ctx.elicit::<Place>("Where?").await?;
                step(ctx, "b").await.map(|()| "done".to_owned())
            })
        },
        &[],
    )
    .await;
    check(
        |ctx| {
            Box::pin(async {
                let place = async { ctx.elicit::<Place>("Where?").await.map_err(Error::from) };
                futures_util::future::try_join(step(ctx, "a"), place).await.map(|_| "done".to_owned())
            })
        },
        &[],
    )
    .await;
    check(
        |ctx| {
            Box::pin(async {
                let (one, two) = futures_util::future::join(step(ctx, "a"), step(ctx, "b")).await;
                one.and(two).map(|()| "done".to_owned())
            })
        },
        &[],
    )
    .await;
    // Another step is another path.
    check(
        |ctx| {
            static RUN: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                let key = if next(&RUN) % 3 == 1 { "other" } else { "a" };
                step(ctx, key).await.map(|()| "done".to_owned())
            })
        },
        &["StepAdded other"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up() {
    check(
        |ctx| {
            Box::pin(async {
                let place = timeout(Duration::from_millis(10), ctx.elicit::<Place>("Where?")).await;
                let sure: Confirm = ctx.elicit("Sure?").await?;
                Ok(format!("{} {}", place.is_ok(), sure.ok))
            })
        },
        "false true",
        &["AskDropped place"],
    )
    .await;
    check(
        |ctx| {
            Box::pin(async {
                tokio::select! {
                    place = ctx.elicit::<Place>("Where?") => return Ok(place?.region),
                    () = sleep(Duration::from_millis(10)) => {}
                }
                Ok(ctx.elicit::<Confirm>("Sure?").await?.ok.to_string())
            })
        },
        "true",
        &["AskDropped place"],
    )
    .await;
    // It is the end: the question was never heard.
    check(
        |ctx| {
            Box::pin(async {
                match ctx.elicit::<Place>("Where?").now_or_never() {
                    Some(place) => Ok(place?.region),
                    None => Ok("nowhere".to_owned()),
                }
            })
        },
        "nowhere",
        &["AskDropped place"],
    )
    .await;
    check(
        |ctx| {
            Box::pin(async {
                let slow = ctx.step("slow", async |_| {
                    sleep(Duration::from_secs(1)).await;
                    Ok(())
                });
                let slow = timeout(Duration::from_millis(10), slow).await;
                let sure: Confirm = ctx.elicit("Sure?").await?;
                Ok(format!("{} {}", slow.is_ok(), sure.ok))
            })
        },
        "false true",
        &["StepDropped slow"],
    )
    .await;
}

/// A step that is dropped because another one failed may have acted, if the call goes on and if it ends with the error.
#[tokio::test(start_paused = true)]
async fn a_step_that_another_one_cuts_off() {
    async fn both(ctx: &Ctx) -> Result<(), StepError> {
        let slow = ctx.step("slow", async |_| {
            sleep(Duration::from_secs(1)).await;
            Ok(())
        });
        let fails = ctx.step("fails", async |_| {
            tokio::task::yield_now().await;
            Err::<(), _>(StepError::new("full").into())
        });
        tokio::try_join!(slow, fails).map(drop)
    }
    check(
        |ctx| {
            Box::pin(async {
                let sure: Confirm = ctx.elicit("Sure?").await?;
                Ok(format!("{} {}", sure.ok, both(ctx).await.is_ok()))
            })
        },
        "true false",
        &["StepDropped slow"],
    )
    .await;
    check(
        |ctx| {
            Box::pin(async {
                let sure: Confirm = ctx.elicit("Sure?").await?;
                both(ctx).await?;
                Ok(sure.ok.to_string())
            })
        },
        "full",
        &["StepDropped slow"],
    )
    .await;
}

#[tokio::test]
async fn a_step_before_a_question_that_may_be_refused() {
    let handler: Handler = |ctx| {
        Box::pin(async {
            let () = ctx.step("create", async |_| Ok(())).await?;
            let place: Place = ctx.elicit("Where?").await?;
            let () = ctx.step("charge", async |_| Ok(())).await?;
            let _: Confirm = ctx.elicit("Sure?").await?;
            Ok(place.region)
        })
    };
    check_tool(tool(handler), "eu", &["StepBeforeAsk create place"]).await;
    check_tool(tool(handler).needs(AskSupport::FORM), "eu", &[]).await;
    // Once for each tool, however many calls.
    let (server, faults) = server(tool(handler), ReplayCheck::Always);
    for _ in 0..3 {
        ToolCall::new(json!({})).through(&server, &answers()).await;
    }
    assert_eq!(faults.lock().unwrap().len(), 1);
    // Who looks, or says what stands for an answer, has thought of it.
    let looks: Handler = |ctx| {
        Box::pin(async {
            let () = ctx.step("create", async |_| Ok(())).await?;
            Ok(ctx.elicit::<Place>("Where?").or_refuse("It needs a form.").await?.region)
        })
    };
    check_tool(tool(looks), "eu", &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_keeps_the_rules_has_no_report() {
    // A race loses by the record, not by accident.
    check(
        |ctx| {
            Box::pin(async {
                let guess = ctx.step("guess", async |_| {
                    sleep(Duration::from_secs(3)).await;
                    Ok("here".to_owned())
                });
                let late = async {
                    sleep(Duration::from_secs(9)).await;
                    let text: Result<String, StepError> = ctx.step("late", async |_| Ok(String::new())).await;
                    text
                };
                let text = match ctx.select("first", (ctx.elicit::<Place>("Where?"), guess, late)).await {
                    Winner::A(place) => place?.region,
                    Winner::B(text) | Winner::C(text) => text?,
                };
                ctx.elicit::<Confirm>(format!("{text}?")).await?;
                Ok(text)
            })
        },
        "here",
        &[],
    )
    .await;
    // What is beside an error goes with it, as long as nothing of it has run.
    check(
        |ctx| {
            Box::pin(async {
                let fails = ctx.step("fails", async |_| {
                    sleep(Duration::from_secs(1)).await;
                    Err::<(), _>(StepError::new("no").into())
                });
                let asks = async { Ok::<_, StepError>(ctx.elicit::<Place>("Where?").await) };
                let failed = tokio::try_join!(asks, fails);
                let ok = ctx.elicit::<Confirm>("All the same?").await?.ok;
                Ok(format!("{} {ok}", failed.is_err()))
            })
        },
        "true true",
        &[],
    )
    .await;
    check(
        |ctx| {
            Box::pin(async {
                let both =
                    tokio::try_join!(async { ctx.elicit::<Confirm>("Really?").key("no").await }, async {
                        let place = ctx.elicit::<Place>("Where?").await?;
                        let sure = ctx.elicit::<Confirm>(format!("{}?", place.region)).await?;
                        Ok(sure)
                    });
                Ok(format!(
                    "{} {}",
                    both.is_err(),
                    ctx.elicit::<Confirm>("And now?").nth(2).outcome().await?.accepted().is_some()
                ))
            })
        },
        "true false",
        &[],
    )
    .await;
    // It asks by hand: that is another way.
    let by_hand = Tool::new("t", async |ctx: &Ctx, _: NoArguments| {
        Ok::<_, Error>(match ctx.by_hand().form::<Map<String, Value>>(&region())? {
            Some(Answer::Accept(_)) => Reply::Complete("by hand"),
            _ => Reply::from(region()),
        })
    });
    check_tool(by_hand, "by hand", &[]).await;
    // Behind a checkpoint there is more to come.
    check(
        |ctx| {
            Box::pin(async {
                let () = ctx.step("first", async |_| Ok(())).await?;
                ctx.checkpoint().now().await;
                let () = ctx.step("second", async |_| Ok(())).await?;
                ctx.checkpoint().key("one-more").now().await;
                Ok(ctx.elicit::<Place>("Where?").await?.region)
            })
        },
        "eu",
        &[],
    )
    .await;
}

/// A declined question ends the branches beside it, in each way in which the handler receives the refusal.
#[tokio::test(start_paused = true)]
async fn a_refusal_ends_what_stands_beside_it() {
    check(
        |ctx| {
            Box::pin(async {
                // Nobody says anything to this.
                let place = async { ctx.elicit::<Place>("Where?").key("left").await.map_err(Error::from) };
                let url = ctx.elicit_url("Open.", |r| format!("https://page.example/{r}")).key("no");
                let opened = tokio::try_join!(place, async { url.await.map_err(Error::from) });
                let place =
                    async { ctx.elicit::<Place>("Where else?").key("too").await.map_err(Error::from) };
                let sure = async {
                    match ctx.elicit::<Confirm>("Sure?").nth(2).outcome().await? {
                        Answer::Accept(sure) => Ok(sure.ok),
                        _ => Err(Error::user_facing("not sure")),
                    }
                };
                let sure = tokio::try_join!(place, sure);
                let ok = ctx.elicit::<Confirm>("All the same?").await?.ok;
                Ok(format!("{} {} {ok}", opened.is_err(), sure.is_err()))
            })
        },
        "true true true",
        &[],
    )
    .await;
}

/// Work beside a question may take longer than the grace, or not.
#[tokio::test(start_paused = true)]
async fn how_far_other_work_comes_is_a_matter_of_time() {
    /// Takes longer than the grace every other time.
    async fn work(runs: &AtomicU32, is_slow_first: bool) {
        let is_slow = next(runs).is_multiple_of(2) == is_slow_first;
        sleep(Duration::from_millis(if is_slow { 70 } else { 30 })).await;
    }
    /// A question beside one that comes behind such work.
    async fn beside(ctx: &Ctx, runs: &AtomicU32, is_slow_first: bool) -> Result<String> {
        let sure = async {
            work(runs, is_slow_first).await;
            ctx.elicit::<Confirm>("Sure?").await
        };
        let (place, sure) = tokio::join!(ctx.elicit::<Place>("Where?"), sure);
        Ok(format!("{} {}", place?.region, sure?.ok))
    }
    check(
        |ctx| {
            static RUNS: AtomicU32 = AtomicU32::new(0);
            Box::pin(beside(ctx, &RUNS, true))
        },
        "eu true",
        &[],
    )
    .await;
    check(
        |ctx| {
            static RUNS: AtomicU32 = AtomicU32::new(0);
            Box::pin(beside(ctx, &RUNS, false))
        },
        "eu true",
        &[],
    )
    .await;
    check(
        |ctx| {
            static RUNS: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                let rate = async {
                    work(&RUNS, true).await;
                    ctx.step("rate", async |_| Ok(40_u32)).await
                };
                let (place, rate) = tokio::join!(ctx.elicit::<Place>("Where?"), rate);
                Ok(format!("{} {}", place?.region, rate?))
            })
        },
        "eu 40",
        &[],
    )
    .await;
}

/// A person may finish the page of a URL between the two runs.
#[tokio::test(start_paused = true)]
async fn the_second_run_does_not_look_behind_urls() {
    /// Waits for a payment, which the first `in_vain` checks do not find.
    async fn paid(ctx: &Ctx, looks: &AtomicU32, in_vain: u32) -> Result<(), AskError> {
        let url = ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}"));
        url.until(async || next(looks) >= in_vain).await
    }
    check(
        |ctx| {
            static LOOKS: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                // All that one leg has.
                paid(ctx, &LOOKS, 22).await?;
                Ok(ctx.elicit::<Place>("Where?").await?.region)
            })
        },
        "eu",
        &[],
    )
    .await;
    check(
        |ctx| {
            static LOOKS: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                let go_on = async {
                    paid(ctx, &LOOKS, 1).await?;
                    ctx.elicit::<Confirm>("Sure?").await
                };
                // One answer in the second leg, so that the other question is still open.
                let place = async {
                    ctx.elicit::<Confirm>("Really?").key("no").outcome().await?;
                    ctx.elicit::<Place>("Where?").await
                };
                let (sure, place) = tokio::join!(go_on, place);
                Ok(format!("{} {}", sure?.ok, place?.region))
            })
        },
        "true eu",
        &[],
    )
    .await;
}

#[tokio::test]
async fn the_second_run_takes_no_place_and_no_time_of_others() {
    // The server has one place for handlers, and the second run is in it.
    check(
        |ctx| {
            Box::pin(async {
                let (_, running) = load(&ctx.server());
                let place: Place = ctx.elicit(format!("Where, of {running}?")).await?;
                Ok(format!("{} {running}", place.region))
            })
        },
        "eu 1",
        &[],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_second_run_that_takes_too_long_has_no_report() {
    check_first_leg(
        |ctx| {
            static RUN: AtomicU32 = AtomicU32::new(0);
            Box::pin(async {
                if next(&RUN) > 0 {
                    sleep(Duration::from_secs(60)).await;
                }
                Ok(ctx.elicit::<Place>("Where?").await?.region)
            })
        },
        &[],
    )
    .await;
}

#[tokio::test]
async fn how_often_is_looked() {
    let handler: Handler = |ctx| {
        Box::pin(async {
            let _ = ctx.elicit::<Confirm>("Sure?").now_or_never();
            let _: Place = ctx.elicit("Where?").await?;
            Ok(ctx.call_id().unwrap().to_string())
        })
    };
    for (how, expects) in [
        (ReplayCheck::Off, (|_| false) as fn(u8) -> bool),
        (ReplayCheck::Sampled, |first| first % 16 == 0),
        (ReplayCheck::Always, |_| true),
    ] {
        let (server, faults) = server(tool(handler), how);
        let mut expected = BTreeSet::new();
        for _ in 0..100 {
            let call = result_text(&ToolCall::new(json!({})).through(&server, &answers()).await);
            if expects(u8::from_str_radix(&call[..2], 16).unwrap()) {
                expected.insert(call);
            }
        }
        let faults = faults.lock().unwrap();
        let found = faults.iter().map(|fault| fault.place().call.unwrap().to_string());
        assert_eq!(found.collect::<BTreeSet<_>>(), expected, "{how:?}");
    }
}

#[tokio::test]
async fn what_a_report_panics_of_ends_the_request() {
    let handler: Handler = |ctx| {
        Box::pin(async {
            let _ = ctx.elicit::<Confirm>("Sure?").now_or_never();
            Ok(ctx.elicit::<Place>("Where?").await?.region)
        })
    };
    let builder = Server::builder("replay", "1").tool(tool(handler)).keys(ring(7));
    let server =
        builder.replay_check(ReplayCheck::Always).on_replay_fault(|fault| panic!("{fault}")).build().unwrap();
    let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
    assert_eq!(reply["error"]["code"], -32603, "{reply}");
}
