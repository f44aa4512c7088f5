//! Races: answers first, in source order; then steps begin in source order.

use super::*;
use antiphon::server::flow::Winner;
use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use std::{convert::Infallible, time::Duration};

#[tokio::test]
async fn a_race_within_a_race_begins_no_step_out_of_turn() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let first = ctx.step("first", async |_| ok("first").await);
        let second = ctx.step("second", async |_| ok("second").await);
        let inner = ctx.select("inner", (second, ctx.elicit::<Place>("Where?")));
        match ctx.select("outer", (first, inner)).await {
            Winner::A(first) => Ok(first?),
            Winner::B(Winner::A(second)) => Ok(second?),
            Winner::B(Winner::B(place)) => Ok(place?.region),
        }
    }));
    assert_eq!(result_text(&ToolCall::new(json!({})).leg(&server, Value::Null).await), "first");
}

#[tokio::test]
async fn of_two_answers_the_first_in_source_order_wins_whatever_was_recorded_before() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let second = async {
            ctx.elicit::<Confirm>("Go?").key("go").await?;
            ctx.step("prepare", async |_| ok("").await).await?;
            let sure: Confirm = ctx.elicit("Sure?").key("sure").await?;
            Ok::<_, antiphon::Error>(sure)
        };
        Ok(match ctx.select("outer", (ctx.elicit::<Place>("Where?"), second)).await {
            Winner::A(_) => "first",
            Winner::B(_) => "second",
        }
        .to_owned())
    }));
    let mut talk = ToolCall::new(json!({}));
    let answers = [Value::Null, json!({"go": yes()}), json!({"sure": yes(), "place": place("eu")})];
    assert_eq!(result_text(&legs(&server, &mut talk, &answers).await), "first");
    assert_eq!(talk.rounds, [["place", "go"], ["place", "sure"]]);
}

#[tokio::test(start_paused = true)]
async fn of_two_answers_the_first_wins_whoever_polls_it() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let asks = async { ctx.elicit::<Place>("Where?").await.is_ok() };
        let guesses = async { ctx.step("guess", async |_| ok("guess").await).await.is_ok() };
        let both = [asks.boxed(), guesses.boxed()].into_iter().collect::<FuturesUnordered<_>>();
        Ok(match ctx.select("first", (both.collect::<Vec<_>>(), ctx.elicit::<Confirm>("Sure?"))).await {
            Winner::A(_) => "both",
            Winner::B(_) => "sure",
        }
        .to_owned())
    }));
    let mut talk = ToolCall::new(json!({}));
    let answers = json!({"place": place("eu"), "confirm": yes()});
    assert_eq!(result_text(&legs(&server, &mut talk, &[Value::Null, answers]).await), "both");
}

#[tokio::test(start_paused = true)]
async fn steps_begin_in_a_race_whoever_polls_them() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let several = async {
            let steps = (0..3).map(|n| ctx.step(("guess", n), async |_| ok("guess").await));
            steps.collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await.len()
        };
        Ok(match ctx.select("first", (several, ctx.elicit::<Place>("Where?"))).await {
            Winner::A(count) => format!("{count} steps"),
            Winner::B(_) => "an answer".to_owned(),
        })
    }));
    let mut talk = ToolCall::new(json!({}));
    let reply = tokio::time::timeout(Duration::from_secs(10), talk.leg(&server, Value::Null)).await;
    assert_eq!(result_text(&reply.expect("it ends")), "3 steps");
}

#[tokio::test]
async fn keys_may_look_like_the_seats_of_other_races() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let guess = ctx.step("guess", async |_| ok("guess").await);
        let never = std::future::pending::<Infallible>;
        let (Winner::B(first) | Winner::A(first)) =
            ctx.select("a", (never().map(|_| unreachable!()), guess)).await;
        let where_to = ctx.elicit::<Place>("Where?");
        let (Winner::A(place) | Winner::B(place)) =
            ctx.select("a:0>b", (where_to, never().map(|_| unreachable!()))).await;
        Ok(format!("{} {}", first?, place?.region))
    }));
    let reply = ToolCall::new(json!({})).through(&server, &json!({"place": place("eu")})).await;
    assert_eq!(result_text(&reply), "guess eu");
}
#[tokio::test(start_paused = true)]
async fn a_branch_that_only_waits_may_win_while_a_step_runs() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let waits = async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        };
        let guess = ctx.step("guess", async |_| {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            ok("guess").await
        });
        let (first, place) = tokio::join!(ctx.select("first", (waits, guess)), ctx.elicit::<Place>("Where?"));
        let first = match first {
            Winner::A(()) => "waited",
            Winner::B(_) => "guessed",
        };
        Ok(format!("{first} {}", place?.region))
    }));
    let mut talk = ToolCall::new(json!({}));
    assert_eq!(
        result_text(&legs(&server, &mut talk, &[Value::Null, json!({"place": place("eu")})]).await),
        "waited eu"
    );
    assert_eq!(talk.rounds, [["place"]]);
}

#[tokio::test(start_paused = true)]
async fn a_step_of_a_loser_runs_to_its_end_and_no_line_behind_it() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    static BEHIND: AtomicUsize = AtomicUsize::new(0);
    let server = server(tool!(|ctx| {
        let loses = async {
            let guess = ctx
                .step("guess", async |_| {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    ENDED.fetch_add(1, SeqCst);
                    ok("guess").await
                })
                .await;
            BEHIND.fetch_add(1, SeqCst);
            guess
        };
        let wins = async { tokio::time::sleep(Duration::from_millis(10)).await };
        let asks = ctx.elicit::<Place>("Where?");
        let Winner::A(()) = ctx.select("first", (wins, loses, asks)).await else { return ok("lost").await };
        let sure: Confirm = ctx.elicit("Sure?").await?;
        Ok(sure.ok.to_string())
    }));
    let mut talk = ToolCall::new(json!({}));
    assert_eq!(
        result_text(&legs(&server, &mut talk, &[Value::Null, json!({"confirm": yes()})]).await),
        "true"
    );
    // The loser's question is not asked.
    assert_eq!(talk.rounds, [["confirm"]]);
    assert_eq!((ENDED.load(SeqCst), BEHIND.load(SeqCst)), (1, 0));
}

#[tokio::test]
async fn an_answer_to_a_loser_holds_nothing_up() {
    let server = server(tool!(|ctx| {
        let asked = (ctx.elicit::<Place>("Where?"), ctx.elicit::<Confirm>("Sure?"));
        let Winner::A(_) = ctx.select("first", asked).await else { return ok("the second").await };
        // It is not passed as if it had been passed before.
        ctx.checkpoint().now().await;
        ok("the first").await
    }));
    let mut talk = ToolCall::new(json!({}));
    let both = json!({"place": place("eu"), "confirm": yes()});
    let reply = legs(&server, &mut talk, &[Value::Null, both]).await;
    assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
    assert_eq!(result_text(&talk.leg(&server, Value::Null).await), "the first");
}

/// An answer in the losing branch comes before the winner, which does not wait any more when the handler runs again: the race looks
/// again once the answer is delivered.
#[tokio::test(start_paused = true)]
async fn a_race_is_decided_by_its_record_behind_an_answer_of_the_loser() {
    let server = server(tool!(|ctx| {
        let wins = async {
            match ctx.leg() {
                1 => std::future::pending().await,
                2 => tokio::time::sleep(Duration::from_millis(20)).await,
                _ => {}
            }
        };
        let loses = async {
            ctx.elicit::<Place>("Where?").await?;
            ctx.elicit::<Confirm>("Sure?").key("never").await
        };
        // A set polls only what was woken.
        let mut set: FuturesUnordered<_> = [ctx.select("first", (wins, loses))].into_iter().collect();
        let Some(Winner::A(())) = set.next().await else { return ok("lost").await };
        let sure: Confirm = ctx.elicit("Sure?").key("sure").await?;
        Ok(sure.ok.to_string())
    }));
    let mut talk = ToolCall::new(json!({}));
    let answers = [Value::Null, json!({"place": place("eu")}), json!({"sure": yes()})];
    assert_eq!(result_text(&legs(&server, &mut talk, &answers).await), "true");
    assert_eq!(talk.rounds, [["place"], ["sure"]]);
}
