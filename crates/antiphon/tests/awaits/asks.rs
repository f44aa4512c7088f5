//! Questions and steps with `await`, over the sealed state.

use crate::common::tool_call::*;
use crate::common::*;
use antiphon::wire::AskSupport;
use antiphon::{
    Form, Result,
    server::{Answer, Ctx, NoArguments, Server, Tool, flow::Winner, operations::ReplayCheck},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

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
    let builder = Server::builder("await", "1").tool(tool.needs(AskSupport::FORM)).keys(ring(7));
    // A handler here keeps the rules.
    builder
        .replay_check(ReplayCheck::Always)
        .on_replay_fault(|fault| panic!("{fault}"))
        .build()
        .expect("the server can be built")
}

#[tokio::test]
async fn a_question_is_asked_once_and_a_step_runs_once() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    static CREATED: AtomicUsize = AtomicUsize::new(0);
    let make = || {
        server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
            RUNS.fetch_add(1, Ordering::Relaxed);
            let place: Place = ctx.elicit("Where?").await?;
            let id: String = ctx
                .step("create", async |s| {
                    CREATED.fetch_add(1, Ordering::Relaxed);
                    Ok(format!("db-{}-{}", place.region, s.key().len()))
                })
                .await?;
            let keep = ctx.elicit::<Confirm>(format!("Keep {id}?")).outcome().await?;
            Ok(match keep {
                Answer::Accept(Confirm { ok: true }) => format!("{id} is yours."),
                _ => "Dropped.".to_owned(),
            })
        }))
    };
    let mut talk = ToolCall::new(json!({}));
    let mut given = Value::Null;
    let mut reply;
    loop {
        // Each leg on an instance of its own.
        reply = talk.leg(&make(), given).await;
        if reply["result"]["resultType"] == "complete" {
            break;
        }
        let answers =
            json!({"place": accept(json!({"region": "eu"})), "confirm": accept(json!({"ok": true}))});
        given = talk.rounds.last().unwrap().iter().map(|key| (key.clone(), answers[key].clone())).collect();
    }
    assert_eq!(result_text(&reply), "db-eu-32 is yours.");
    assert_eq!(talk.rounds, [["place"], ["confirm"]]);
    // Three legs, the first two of which were checked.
    assert_eq!((RUNS.load(Ordering::Relaxed), CREATED.load(Ordering::Relaxed)), (5, 1));
}

#[tokio::test]
async fn questions_that_are_joined_leave_in_one_round() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let (a, b, roots) = tokio::join!(
            ctx.elicit::<Place>("Where?"),
            async { ctx.elicit::<Confirm>("Sure?").key("sure").await },
            ctx.roots(),
        );
        Ok(format!("{} {} {}", a?.region, b?.ok, roots?.len()))
    }));
    let mut talk = ToolCall::new(json!({}));
    let answers = json!({
        "place": accept(json!({"region": "eu"})),
        "sure": accept(json!({"ok": false})),
        "roots": {"roots": []},
    });
    assert_eq!(result_text(&talk.through(&server, &answers).await), "eu false 0");
    assert_eq!(talk.rounds, [["place", "sure", "roots"]]);
}

#[tokio::test]
async fn an_unwrapped_refusal_names_the_question_and_the_action() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        Ok(ctx.elicit::<Place>("Where?").await?.region)
    }));
    for (action, said_then) in [
        ("decline", "The user declined to answer `place`: Where?"),
        ("cancel", "The user dismissed `place` without an answer: Where?"),
    ] {
        let reply = ToolCall::new(json!({})).through(&server, &json!({"place": {"action": action}})).await;
        assert_eq!((result_text(&reply).as_str(), &reply["result"]["isError"]), (said_then, &json!(true)));
    }
}

#[tokio::test]
async fn an_error_that_is_swallowed_loses_no_question() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> String {
        if let Ok(place) = ctx.elicit::<Place>("Where?").await {
            return place.region;
        }
        "nowhere".to_owned()
    }));
    let reply =
        ToolCall::new(json!({})).through(&server, &json!({"place": accept(json!({"region": "eu"}))})).await;
    assert_eq!(result_text(&reply), "eu");
}

#[tokio::test]
async fn a_race_has_the_same_winner_on_every_leg() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let first = ctx
            .select(
                "first",
                (ctx.elicit::<Place>("Where?"), ctx.step("guess", async |_| Ok("here".to_owned()))),
            )
            .await;
        let first = match first {
            Winner::A(place) => place?.region,
            Winner::B(guess) => guess?,
        };
        let sure: Confirm = ctx.elicit(format!("{first}?")).await?;
        Ok(format!("{first} {}", sure.ok))
    }));
    let answers = json!({"place": accept(json!({"region": "eu"})), "confirm": accept(json!({"ok": true}))});
    let mut talk = ToolCall::new(json!({}));
    assert_eq!(result_text(&talk.through(&server, &answers).await), "here true");
    assert_eq!(talk.rounds, [["confirm"]]);
}

/// In `ctx.branch`, `?` converts each error in a block of its own, whatever awaits the blocks together.
#[tokio::test]
async fn the_error_of_a_branch_is_inferred() {
    async fn foreign() -> std::io::Result<&'static str> {
        Ok("7")
    }
    async fn text(text: &str) -> std::result::Result<u32, String> {
        text.parse().map_err(|_| format!("{text} is no number"))
    }
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let numbers = ["1", "2"].map(|number| ctx.branch(async move { Ok(number.parse::<u32>()?) }));
        let (place, number) = tokio::join!(
            ctx.branch(async {
                let place: Place = ctx.elicit("Where?").await?;
                Ok(format!("{} {}", place.region, foreign().await?))
            }),
            ctx.branch(async { Ok(foreign().await?.parse::<u32>()?) }),
        );
        let numbers = ctx.join_all(numbers).await.into_iter().collect::<Result<Vec<_>>>()?;
        let (three, four) = tokio::try_join!(
            ctx.branch(async { Ok(text("3").await?) }),
            ctx.branch(async {
                Ok(ctx.step("four", async |_| Ok(foreign().await?.len() as u32 + 3)).await?)
            }),
        )?;
        let race = (
            ctx.branch(async { Ok("x".parse::<u32>()?) }),
            ctx.branch(async { Ok(ctx.elicit::<Place>("And then?").key("then").await?.region) }),
        );
        let first = match ctx.select("race", race).await {
            Winner::A(number) => number.map_or("no number".to_owned(), |number| number.to_string()),
            Winner::B(region) => region?,
        };
        Ok(format!("{} {} {numbers:?} {three} {four} {first}", place?, number?))
    }));
    let answers = json!({"place": accept(json!({"region": "eu"}))});
    let reply = ToolCall::new(json!({})).through(&server, &answers).await;
    assert_eq!(result_text(&reply), "eu 7 7 [1, 2] 3 4 no number");
}
