//! Futures in sets that poll only what was woken: every future that may go on is woken, once.

use super::*;
use antiphon::server::flow::Winner;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
};
use tokio::{sync::oneshot, task::yield_now, time::sleep};

/// The calls here are over after far fewer polls.
const MOST: usize = 5_000;

/// Counts the polls of this future. More than `most` fail the call, so that no test polls for ever.
async fn counted<F: Future>(polls: &AtomicUsize, most: usize, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        assert!(polls.fetch_add(1, SeqCst) < most, "more than {most} polls");
        future.as_mut().poll(cx)
    })
    .await
}

/// Returns the results on both carriers: the rounds of legs, and the session.
async fn on_both_carriers(
    handler: for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>,
    by_key: Value,
    by_message: Value,
) -> (String, String) {
    let legs = ToolCall::new(json!({})).through(&impatient(tool(handler)), &by_key).await;
    let session = in_session(&impatient(tool(handler)), &by_message).await;
    (result_text(&legs), result_text(&session))
}

/// A question and a race, joined, in a set: the step of the race is done before the question is answered.
fn question_beside_a_race(ctx: &Ctx) -> BoxFuture<'_, Result<String>> {
    async {
        let mut set = FuturesUnordered::new();
        set.push(async {
            let charge = ctx.step("charge", async |_| ok("charged").await);
            let race = ctx.select("w", (charge, ctx.elicit::<Sure>("Other?")));
            tokio::join!(ctx.elicit::<Pick>("Name?"), race)
        });
        let Some((name, Winner::A(charged))) = set.next().await else { return ok("the question won").await };
        Ok(format!("{} {}", name?.name, charged?))
    }
    .boxed()
}

#[tokio::test(start_paused = true)]
async fn a_question_beside_a_race_in_a_set_is_woken_by_its_answer() {
    let answers = (json!({"pick": pick("ada")}), json!({"Name?": pick("ada")}));
    let (legs, session) = on_both_carriers(question_beside_a_race, answers.0, answers.1).await;
    assert_eq!((legs.as_str(), session.as_str()), ("ada charged", "ada charged"));
}

/// A race in one member of a set waits for another member, whose step waits for a question.
fn race_that_waits_for_another_member(ctx: &Ctx) -> BoxFuture<'_, Result<String>> {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    counted(&POLLS, MOST, async {
        let (sender, receiver) = oneshot::channel();
        let first = async {
            let slow = ctx.step("x", async |_| {
                sleep(ms(20)).await;
                ok("x").await
            });
            let waits = async {
                ctx.step("s", async |_| ok("s").await).await?;
                Ok::<u8, Error>(receiver.await?)
            };
            let (slow, race) = tokio::join!(slow, ctx.select("w", (waits, pending::<()>())));
            let Winner::A(number) = race else { return ok("nothing").await };
            Ok(format!("{} {}", slow?, number?))
        };
        let second = async {
            ctx.step("y", async |_| {
                sleep(ms(5)).await;
                ok("y").await
            })
            .await?;
            ctx.elicit::<Sure>("Sure?").await?;
            let last = ctx.step("z", async |_| ok("z").await).await?;
            let _ = sender.send(7);
            Ok::<_, Error>(last)
        };
        let set = [first.boxed(), second.boxed()].into_iter().collect::<FuturesUnordered<_>>();
        let mut all: Vec<String> = set.collect::<Vec<_>>().await.into_iter().collect::<Result<_>>()?;
        all.sort();
        Ok(all.join(", "))
    })
    .boxed()
}

#[tokio::test(start_paused = true)]
async fn a_sibling_of_a_select_in_an_unordered_set_is_woken() {
    let answers = (json!({"sure": yes()}), json!({"Sure?": yes()}));
    let (legs, session) = on_both_carriers(race_that_waits_for_another_member, answers.0, answers.1).await;
    assert_eq!((legs.as_str(), session.as_str()), ("x 7, z", "x 7, z"));
}

static NESTED: AtomicUsize = AtomicUsize::new(0);
static SETS: AtomicUsize = AtomicUsize::new(0);

/// Races and sets within a set within a race.
fn nested_races(ctx: &Ctx) -> BoxFuture<'_, Result<String>> {
    let rounds = async {
        for round in 0..2_u64 {
            let step = ctx.step(("short", round), async |_| {
                sleep(ms(18)).await;
                ok("").await
            });
            let asks = ctx.elicit::<Sure>("Go on?").nth(round);
            ctx.select(("in", round), (step, asks)).await;
        }
    };
    let asks = |number: u64| async move {
        let asks = async { ctx.elicit::<Pick>("Name?").nth(number).await.is_ok() };
        let yields = async {
            yield_now().await;
            true
        };
        [asks.boxed(), yields.boxed()].into_iter().collect::<FuturesUnordered<_>>().count().await;
    };
    let members = [rounds.boxed(), asks(0).boxed(), asks(1).boxed()];
    let set =
        members.into_iter().map(|member| counted(&NESTED, MOST, member)).collect::<FuturesUnordered<_>>();
    let late = ctx.step("late", async |_| {
        sleep(ms(87)).await;
        ok("").await
    });
    let race = async {
        Ok(match ctx.select("out", (set.collect::<Vec<_>>(), late)).await {
            Winner::A(all) => format!("{} members", all.len()),
            Winner::B(_) => "late".to_owned(),
        })
    };
    counted(&NESTED, MOST, race).boxed()
}

/// A race over a set of sets.
fn race_over_sets(ctx: &Ctx) -> BoxFuture<'_, Result<String>> {
    let asks = |number: u64| async move {
        let asks = async { ctx.elicit::<Pick>("Name?").nth(number).await.is_ok() };
        [asks].into_iter().collect::<FuturesUnordered<_>>().count().await;
    };
    let step = async { drop(ctx.step("first", async |_| ok("").await).await) };
    let members = [step.boxed(), asks(0).boxed(), asks(1).boxed()];
    let set = members.into_iter().collect::<FuturesUnordered<_>>();
    let race = async {
        Ok(match ctx.select("w", (set.collect::<Vec<_>>(), ctx.elicit::<Sure>("Go on?"))).await {
            Winner::A(all) => format!("{} members", all.len()),
            Winner::B(_) => "the question".to_owned(),
        })
    };
    counted(&SETS, MOST, race).boxed()
}

/// Checks that neither carrier polls this race more often than a few hundred times.
async fn check_nested(handler: for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>, polls: &AtomicUsize) {
    let by_key = json!({"pick#0": pick("ada"), "pick#1": pick("bob"), "sure": yes(), "sure#0": yes(), "sure#1": yes()});
    let by_message = json!({"Name?": pick("ada"), "Go on?": yes()});
    let (legs, session) = on_both_carriers(handler, by_key, by_message).await;
    for said in [legs, session] {
        assert!(["3 members", "late", "the question"].contains(&&*said), "{said}");
    }
    let polls = polls.load(SeqCst);
    assert!(polls < 500, "{polls} polls");
}

#[tokio::test(start_paused = true)]
async fn races_in_a_set_in_a_race_are_polled_only_when_they_are_woken() {
    check_nested(nested_races, &NESTED).await;
}

#[tokio::test(start_paused = true)]
async fn sets_in_a_set_in_a_race_are_polled_only_when_they_are_woken() {
    check_nested(race_over_sets, &SETS).await;
}

/// A race whose steps wait until there is room for what they come to: seven run at once.
fn race_without_room(ctx: &Ctx) -> BoxFuture<'_, Result<String>> {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    let slow = (0..7_u64).map(|number| {
        ctx.step(("slow", number), async |_| {
            sleep(ms(3)).await;
            ok("").await
        })
    });
    let late = [ctx.step("late", async |_| ok("").await)].into_iter().collect::<FuturesUnordered<_>>();
    let race = ctx.select("w", (late.collect::<Vec<_>>(), ctx.step("later", async |_| ok("").await)));
    let both = async {
        let (slow, _) = tokio::join!(ctx.join_all(slow), race);
        Ok(format!("{} steps", slow.len()))
    };
    counted(&POLLS, 500, both).boxed()
}

#[tokio::test(start_paused = true)]
async fn a_race_that_waits_for_room_is_polled_only_when_it_is_woken() {
    let (legs, session) = on_both_carriers(race_without_room, json!({}), json!({})).await;
    assert_eq!((legs.as_str(), session.as_str()), ("7 steps", "7 steps"));
}

/// Number of steps and selects that are recorded.
const RECORDED: u64 = if cfg!(debug_assertions) { 2_000 } else { 8_000 };
/// Maximum of the average polls of a member of a set, for any number of members.
const POLLS_OF_EACH: usize = 8;

/// Runs one leg that records this many entries, and one that reads them again. Gives how often their futures were
/// polled on the second.
async fn polls_of_a_replay(
    polls: &'static AtomicUsize,
    recorded: u64,
    handler: for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>,
) -> usize {
    let server = limited(tool(handler), |limits| {
        limits.state(8 << 20).step_result(64).handler_timeout(Duration::from_secs(3600))
    });
    let mut talk = ToolCall::new(json!({}));
    let reply = talk.leg(&server, Value::Null).await;
    assert_eq!(asked(&reply), ["sure"], "{reply}");
    polls.store(0, SeqCst);
    let reply = talk.leg(&server, json!({"sure": yes()})).await;
    let polls = polls.load(SeqCst);
    let most = POLLS_OF_EACH * recorded as usize;
    assert!(polls <= most, "{polls} polls of {recorded} futures: more than {most}");
    assert_eq!(result_text(&reply), recorded.to_string());
    polls
}

#[tokio::test(start_paused = true)]
async fn recorded_steps_in_a_set_are_polled_a_few_times_each() {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    polls_of_a_replay(&POLLS, RECORDED, |ctx| {
        async {
            // They end in another order than they begin.
            let steps = (0..RECORDED).map(|number| {
                let step = ctx.step(("s", number), async move |_| {
                    sleep(ms(number * 7919 % RECORDED)).await;
                    ok("").await
                });
                // Far more than the test allows: it fails then instead of going on for minutes.
                counted(&POLLS, 40 * RECORDED as usize, step)
            });
            let steps = steps.collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await;
            ctx.elicit::<Sure>("Sure?").await?;
            Ok(steps.len().to_string())
        }
        .boxed()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn recorded_races_in_a_set_are_polled_a_few_times_each() {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    const RACES: u64 = RECORDED / 4;
    polls_of_a_replay(&POLLS, RACES, |ctx| {
        async {
            let races = (0..RACES).map(|number| {
                let step = ctx.step(("s", number), async move |_| {
                    sleep(ms(number * 7919 % RACES)).await;
                    ok("").await
                });
                counted(&POLLS, 40 * RACES as usize, ctx.select(("w", number), (step, pending::<()>())))
            });
            let races = races.collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await;
            ctx.elicit::<Sure>("Sure?").await?;
            Ok(races.len().to_string())
        }
        .boxed()
    })
    .await;
}
