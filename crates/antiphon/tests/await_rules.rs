//! The rules of questions and steps with `await`, one by one.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

mod common;
#[path = "common/talk.rs"]
mod talk;

use antiphon::{
    Form, Result,
    server::{Ctx, NoArguments, Server, Tool, Won},
};
use common::*;
use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{convert::Infallible, time::Duration};
use talk::*;

#[derive(Deserialize, Form)]
struct Place {
    region: String,
}

#[derive(Deserialize, Form)]
struct Confirm {
    ok: bool,
}

/// A server with this tool, under the name `t`.
fn server(tool: Tool) -> Server {
    Server::builder("await", "1").tool(tool).keys(ring(7)).build().unwrap()
}

fn place(region: &str) -> Value {
    accept(json!({ "region": region }))
}

fn yes() -> Value {
    accept(json!({"ok": true}))
}

/// Legs with exactly these answers, one after the other. Gives the last response.
async fn legs(server: &Server, talk: &mut Talk, all: &[Value]) -> Value {
    let mut reply = Value::Null;
    for answers in all {
        reply = talk.leg(server, answers.clone()).await;
    }
    reply
}

async fn ok(text: &str) -> Result<String> {
    Ok(text.to_owned())
}

#[tokio::test]
async fn a_race_within_a_race_begins_no_step_out_of_turn() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let first = ctx.step("first", async |_| ok("first").await);
        let second = ctx.step("second", async |_| ok("second").await);
        let inner = ctx.select("inner", (second, ctx.elicit::<Place>("Where?")));
        match ctx.select("outer", (first, inner)).await {
            Won::A(first) => Ok(first?),
            Won::B(Won::A(second)) => Ok(second?),
            Won::B(Won::B(place)) => Ok(place?.region),
        }
    }));
    assert_eq!(said(&Talk::new(json!({})).leg(&server, Value::Null).await), "first");
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
            Won::A(_) => "first",
            Won::B(_) => "second",
        }
        .to_owned())
    }));
    let mut talk = Talk::new(json!({}));
    let answers = [Value::Null, json!({"go": yes()}), json!({"sure": yes(), "place": place("eu")})];
    assert_eq!(said(&legs(&server, &mut talk, &answers).await), "first");
    assert_eq!(talk.rounds, [["place", "go"], ["place", "sure"]]);
}

#[tokio::test(start_paused = true)]
async fn steps_begin_in_a_race_whoever_polls_them() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let several = async {
            let steps = (0..3).map(|n| ctx.step(("guess", n), async |_| ok("guess").await));
            steps.collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await.len()
        };
        Ok(match ctx.select("first", (several, ctx.elicit::<Place>("Where?"))).await {
            Won::A(count) => format!("{count} steps"),
            Won::B(_) => "an answer".to_owned(),
        })
    }));
    let mut talk = Talk::new(json!({}));
    let reply = tokio::time::timeout(Duration::from_secs(10), talk.leg(&server, Value::Null)).await;
    assert_eq!(said(&reply.expect("it ends")), "3 steps");
}

#[tokio::test]
async fn keys_may_look_like_the_seats_of_other_races() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let guess = ctx.step("guess", async |_| ok("guess").await);
        let never = std::future::pending::<Infallible>;
        let (Won::B(first) | Won::A(first)) = ctx.select("a", (never().map(|_| unreachable!()), guess)).await;
        let where_to = ctx.elicit::<Place>("Where?");
        let (Won::A(place) | Won::B(place)) =
            ctx.select("a:0>b", (where_to, never().map(|_| unreachable!()))).await;
        Ok(format!("{} {}", first?, place?.region))
    }));
    let reply = Talk::new(json!({})).through(&server, &json!({"place": place("eu")})).await;
    assert_eq!(said(&reply), "guess eu");
}
