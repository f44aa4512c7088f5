//! Handlers that ask in a session: what is awaited is sent at once, and the handler goes on with the answer.

use crate::common::{
    session::{InSession, everything, plain},
    *,
};
use antiphon::{
    Form, Result,
    server::{
        Ask, Ctx, Limits, NoArguments, Prompt, Reply, Resource, Server, ServerBuilder, Tool,
        asks::InputRequired,
        flow::{Carrier, Winner},
    },
    wire::{
        AskSupport,
        forms::{FormField, FormSchema},
        sampling::SamplingMessage,
    },
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(Deserialize, Form)]
struct Place {
    /// Name of the region.
    #[form(max_length = 10)]
    region: String,
    #[form(default = 3)]
    count: i64,
}

#[derive(Deserialize, Form)]
struct Days {
    days: Vec<Day>,
}

#[derive(Deserialize, Form)]
enum Day {
    Mo,
    Tu,
}

#[derive(Deserialize, Form)]
struct Keep {
    keep: bool,
}

pub(super) fn built(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    change(Server::builder("asks", "1").keys(ring(7)).logging(true)).build().unwrap()
}

/// A server whose tool `t` runs this.
fn server<F>(run: F) -> Server
where
    F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>> + Send + Sync + 'static,
{
    built(|builder| builder.tool(tool("t", run)))
}

pub(super) fn tool<R, F>(name: &str, run: F) -> Tool
where
    F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, R> + Send + Sync + 'static,
    R: antiphon::server::offers::IntoOutcome<antiphon::wire::CallToolResult> + 'static,
{
    Tool::new(name, run)
}

pub(super) fn call() -> Value {
    plain(1, "tools/call", json!({"name": "t"}))
}

pub(super) fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

pub(super) fn text(reply: &Value) -> &str {
    assert_eq!(reply["id"], 1, "{reply}");
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}

fn place_or_not() -> Server {
    server(|ctx, _| {
        Box::pin(async move {
            assert_eq!(ctx.carrier(), Carrier::Pushed);
            let place: Place = ctx.elicit("Which region?").await?;
            Ok(format!("{} {}", place.region, place.count))
        })
    })
}

/// Answers of a person to a form, and the result of each.
#[tokio::test]
async fn one_form() {
    let bad = accept(json!({"region": "much too long a name"}));
    let long = "Region must have at most 10 characters";
    for (what, answers, reason, wanted) in [
        ("accepted", vec![accept(json!({"region": "eu"}))], None, "eu 3"),
        ("all of it", vec![accept(json!({"region": "eu", "count": 5, "other": 1}))], None, "eu 5"),
        (
            "declined",
            vec![json!({"action": "decline"})],
            None,
            "The user declined to answer `place`: Which region?",
        ),
        (
            "cancelled",
            vec![json!({"action": "cancel"})],
            None,
            "The user dismissed `place` without an answer: Which region?",
        ),
        ("bad, then good", vec![bad.clone(), accept(json!({"region": "eu"}))], Some(long), "eu 3"),
        (
            "no answer at all",
            vec![json!({}), accept(json!({"region": "us"}))],
            Some("could not be read"),
            "us 3",
        ),
    ] {
        let mut session = InSession::newest(&place_or_not()).await;
        session.send(call()).await;
        for (at, answer) in answers.iter().enumerate() {
            let asked = session.receive().await;
            assert_eq!(asked["method"], "elicitation/create", "{what}: {asked}");
            let params = &asked["params"];
            assert_eq!(
                (&params["mode"], &params["requestedSchema"]["type"]),
                (&json!("form"), &json!("object"))
            );
            let message = params["message"].as_str().unwrap();
            assert!(message.starts_with("Which region?"), "{what}: {message}");
            assert!(at == 0 || reason.is_some_and(|reason| message.contains(reason)), "{what}: {message}");
            session.answers(&asked, answer.clone()).await;
        }
        let reply = session.receive().await;
        assert!(text(&reply).starts_with(wanted), "{what}: {reply}");
    }
}

/// A client that does not do its part.
#[tokio::test]
async fn a_form_that_is_not_answered() {
    let bad = |request: &Value| json!({"jsonrpc": "2.0", "id": request["id"], "result": accept(json!({"region": 7}))});
    let refused = |request: &Value| {
        json!({"jsonrpc": "2.0", "id": request["id"],
        "error": {"code": -32603, "message": "no screen"}})
    };
    let rejected = |request: &Value| json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -1, "message": "no"}});
    type AnswerFn = dyn Fn(&Value) -> Value;
    let last = "`place` was asked 3 times without an answer that fits. Region must be text.";
    // The code of the error that leaves is told once.
    for (what, says, times, code, told) in [
        ("three times bad", &bad as &AnswerFn, 3, -32602, last),
        ("an error", &refused, 1, -32603, "The client did not answer `place`: no screen"),
        ("another error", &rejected, 1, -32603, "The client did not answer `place` (error -1): no"),
    ] {
        let mut session = InSession::newest(&place_or_not()).await;
        session.send(call()).await;
        for _ in 0..times {
            let asked = session.receive().await;
            session.send(says(&asked)).await;
        }
        let error = session.receive().await["error"].take();
        assert_eq!(error["code"], code, "{what}: {error}");
        assert_eq!(error["message"], told, "{what}");
    }
}

/// Answers that nobody waits for, under ids that are nobody's.
#[tokio::test]
async fn answers_to_nothing_are_dropped() {
    let mut session = InSession::newest(&place_or_not()).await;
    for id in [json!(0), json!(1), json!(-1), json!("1"), json!(u64::MAX)] {
        session.send(json!({"jsonrpc": "2.0", "id": id, "result": {}})).await;
    }
    session.send(call()).await;
    let asked = session.receive().await;
    session.send(json!({"jsonrpc": "2.0", "id": 77, "result": accept(json!({"region": "no"}))})).await;
    session.answers(&asked, accept(json!({"region": "eu"}))).await;
    // Once more: nobody waits any more.
    session.answers(&asked, accept(json!({"region": "us"}))).await;
    assert_eq!(text(&session.receive().await), "eu 3");
}

/// All kinds at once, in the order in which they are called for; answered in the other order.
#[tokio::test]
async fn what_is_asked_together_is_sent_together() {
    let server = server(|ctx, _| {
        Box::pin(async move {
            let (place, url, model, roots) = tokio::join!(
                ctx.elicit::<Place>("Where?"),
                ctx.elicit_url("Pay.", |r| format!("https://pay.example/{r}")).id("deposit-42"),
                ctx.sample([SamplingMessage::user("Hello?")], 10),
                ctx.roots(),
            );
            url?;
            Ok(format!("{} {} {}", place?.region, model?.model, roots?[0].uri))
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push(session.receive().await);
    }
    let methods: Vec<&str> = asked.iter().map(|asked| asked["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["elicitation/create", "elicitation/create", "sampling/createMessage", "roots/list"]);
    assert_eq!(
        (&asked[1]["params"]["mode"], &asked[1]["params"]["elicitationId"]),
        (&json!("url"), &json!("deposit-42"))
    );
    let model = json!({"role": "assistant", "content": {"type": "text", "text": "Yes."}, "model": "m"});
    let answers = [
        accept(json!({"region": "eu"})),
        json!({"action": "accept"}),
        model,
        json!({"roots": [{"uri": "file:///work"}]}),
    ];
    for (asked, answer) in asked.iter().zip(answers).rev() {
        session.answers(asked, answer).await;
    }
    assert_eq!(text(&session.receive().await), "eu m file:///work");
    // It is told once, to whom was asked.
    assert!(server.elicitation_complete("deposit-42"));
    assert!(!server.elicitation_complete("deposit-42") && !server.elicitation_complete("other"));
    let told = session.receive().await;
    assert_eq!(told["method"], "notifications/elicitation/complete");
    assert_eq!(told["params"], json!({"elicitationId": "deposit-42"}));
}

/// Each branch goes on as soon as it has its own answer, and steps run once.
#[tokio::test]
async fn branches_do_not_wait_for_each_other() {
    let (charges, count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&charges);
    let entered = Arc::clone(&count);
    let server = server(move |ctx, _| {
        entered.fetch_add(1, Ordering::SeqCst);
        let charges = Arc::clone(&counted);
        Box::pin(async move {
            let branch = async |name: &'static str| {
                let ctx = ctx.scope(name);
                let place: Place = ctx.elicit(format!("Where is {name}?")).await?;
                let charges = Arc::clone(&charges);
                let charged: usize =
                    ctx.step("charge", async move |_| Ok(charges.fetch_add(1, Ordering::SeqCst) + 1)).await?;
                let keep: Keep =
                    ctx.elicit(format!("{name}: {charged} charged. Keep {}?", place.region)).await?;
                Ok(format!("{name} {} {}", place.region, keep.keep))
            };
            let (a, b): (Result<String>, Result<String>) = tokio::join!(branch("a"), branch("b"));
            Ok(format!("{}, {}", a?, b?))
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let (a, b) = (session.receive().await, session.receive().await);
    session.answers(&b, accept(json!({"region": "us"}))).await;
    let keep_b = session.receive().await;
    assert_eq!(keep_b["params"]["message"], "b: 1 charged. Keep us?");
    session.answers(&a, accept(json!({"region": "eu"}))).await;
    let keep_a = session.receive().await;
    assert_eq!(keep_a["params"]["message"], "a: 2 charged. Keep eu?");
    session.answers(&keep_b, accept(json!({"keep": false}))).await;
    session.answers(&keep_a, accept(json!({"keep": true}))).await;
    assert_eq!(text(&session.receive().await), "a eu true, b us false");
    assert_eq!((charges.load(Ordering::SeqCst), count.load(Ordering::SeqCst)), (2, 1));
}

/// Combinators that poll only who was woken: each ask wakes its own.
#[tokio::test]
async fn an_answer_wakes_who_waits_for_it() {
    let server = server(|ctx, _| {
        Box::pin(async move {
            let asks = (0..40_u64).map(|row| ctx.elicit::<Keep>(format!("Row {row}?")).nth(row));
            let kept = futures_util::future::join_all(asks).await;
            let kept = kept.into_iter().filter(|keep| keep.as_ref().is_ok_and(|keep| keep.keep)).count();
            Ok(kept.to_string())
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let mut asked = Vec::new();
    for _ in 0..40 {
        asked.push(session.receive().await);
    }
    for (row, asked) in asked.iter().enumerate().rev() {
        session.answers(asked, accept(json!({"keep": row % 2 == 0}))).await;
    }
    assert_eq!(text(&session.receive().await), "20");
}

/// A question in a branch that loses is cancelled.
#[tokio::test]
async fn losers_are_cancelled() {
    let server = server(|ctx, _| {
        Box::pin(async move {
            let place = ctx.elicit::<Place>("Where?");
            let keep = ctx.elicit::<Keep>("Or keep it?");
            let won = match ctx.select("which", (place, keep)).await {
                Winner::A(place) => place?.region,
                Winner::B(keep) => keep?.keep.to_string(),
            };
            let sure: Keep = ctx.elicit("Sure?").key("sure").await?;
            Ok(format!("{won} {}", sure.keep))
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let (first, second) = (session.receive().await, session.receive().await);
    session.answers(&second, accept(json!({"keep": true}))).await;
    let cancelled = session.receive().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], first["id"]);
    let sure = session.receive().await;
    // Too late.
    session.answers(&first, accept(json!({"region": "eu"}))).await;
    session.answers(&sure, accept(json!({"keep": true}))).await;
    assert_eq!(text(&session.receive().await), "true true");
}

/// The time of an ask, and of its author's `timeout`.
#[tokio::test(start_paused = true)]
async fn asks_wait_so_long_and_no_longer() {
    for (what, within, took, wanted) in [
        ("ten minutes", None, 600, "`place` was not answered within 600 seconds"),
        ("its own", Some(30), 30, "expired: Expired"),
        ("longer than ten minutes", Some(3600), 3600, "expired: Expired"),
    ] {
        let server = server(move |ctx, _| {
            Box::pin(async move {
                let ask = ctx.elicit::<Place>("Where?");
                let ask = match within {
                    Some(within) => ask.timeout(Duration::from_secs(within)),
                    None => ask,
                };
                Ok(match ask.await {
                    Ok(place) => place.region,
                    Err(antiphon::server::AskError::Expired { .. }) => "expired: Expired".to_owned(),
                    Err(error) => error.to_string(),
                })
            })
        });
        let mut session = InSession::newest(&server).await;
        session.send(call()).await;
        let asked = session.receive().await;
        let began = tokio::time::Instant::now();
        let cancelled = patiently(&mut session).await;
        assert_eq!(cancelled["params"]["requestId"], asked["id"], "{what}: {cancelled}");
        let reply = session.receive().await;
        assert!(reply.to_string().contains(wanted), "{what}: {reply}");
        let waited = began.elapsed().as_secs();
        assert!((took..=took + 2).contains(&waited), "{what}: {waited}");
    }
}

/// The next message, however long it takes on the paused clock.
pub(super) async fn patiently(session: &mut InSession) -> Value {
    let line = session.peer.lines.next_line().await.unwrap().unwrap();
    serde_json::from_str(&line).unwrap()
}

/// A handler may wait for people for longer than it may work.
#[tokio::test(start_paused = true)]
async fn people_may_take_longer_than_handlers() {
    let server = server(|ctx, _| {
        Box::pin(async move {
            let place: Place = ctx.elicit("Where?").await?;
            tokio::time::sleep(Duration::from_secs(200)).await;
            let keep: Keep = ctx.elicit("Keep it?").await?;
            tokio::time::sleep(Duration::from_secs(200)).await;
            Ok(format!("{} {}", place.region, keep.keep))
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    for answer in [json!({"region": "eu"}), json!({"keep": true})] {
        let asked = patiently(&mut session).await;
        tokio::time::sleep(Duration::from_secs(400)).await;
        session.answers(&asked, accept(answer)).await;
    }
    assert_eq!(text(&patiently(&mut session).await), "eu true");
}

/// A URL is asked for once, and the handler goes on when the person is done.
#[tokio::test(start_paused = true)]
async fn a_url_and_what_happens_behind_it() {
    let paid = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&paid);
    let server = server(move |ctx, _| {
        let paid = Arc::clone(&seen);
        Box::pin(async move {
            ctx.elicit_url("Pay.", |r| format!("https://pay.example/{r}"))
                .until(async || paid.load(Ordering::SeqCst))
                .await?;
            Ok("paid".to_owned())
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let asked = session.receive().await;
    let id = asked["params"]["elicitationId"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 32, "made up, and not to be guessed: {id}");
    session.answers(&asked, json!({"action": "accept"})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    paid.store(true, Ordering::SeqCst);
    assert_eq!(text(&patiently(&mut session).await), "paid");
    assert!(server.elicitation_complete(&id));
}

async fn place(ctx: &Ctx) -> Result<String> {
    let place: Place = ctx.elicit("Where?").await?;
    Ok(place.region)
}

async fn pay(ctx: &Ctx) -> Result<String> {
    ctx.elicit_url("Pay.", |r| format!("https://pay.example/{r}")).await?;
    Ok("paid".to_owned())
}

/// An ask beyond the client's capabilities is refused before it is sent; before the handler's first line, if the tool
/// declares its needs.
#[tokio::test]
async fn what_a_client_cannot_be_asked() {
    let lines = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lines);
    let server = built(move |builder| {
        let (late, early) = (Arc::clone(&counted), Arc::clone(&counted));
        builder
            .tool(tool("late", move |ctx, _| {
                late.fetch_add(1, Ordering::SeqCst);
                Box::pin(pay(ctx))
            }))
            .tool(
                tool("early", move |ctx, _| {
                    early.fetch_add(1, Ordering::SeqCst);
                    Box::pin(pay(ctx))
                })
                .needs(AskSupport::URL),
            )
            .tool(Tool::new("else", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
                let place: Place =
                    ctx.elicit("Where?").or_default(Place { region: "eu".to_owned(), count: 1 }).await?;
                let model = ctx.sample([SamplingMessage::user("?")], 1).or_refuse("no model").await;
                Ok(format!("{} {}", place.region, model.is_err()))
            }))
            .tool(Tool::new("several", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
                let days: Days = ctx.elicit("When?").await?;
                Ok(format!("{} days", days.days.len()))
            }))
            .tool(Tool::new("several_or_none", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
                let days: Days = ctx.elicit("When?").or_default(Days { days: vec![] }).await?;
                Ok(format!("{} days", days.days.len()))
            }))
            .tool(Tool::new("several_by_hand", async |_: &Ctx, _: NoArguments| {
                let days = FormField::many("days", ["Mo", "Tu"]);
                Reply::<String>::from(InputRequired::ask(Ask::form(
                    "days",
                    "When?",
                    FormSchema::new(vec![days]),
                )))
            }))
    });
    let url = "URL elicitation not supported";
    let form = json!({"elicitation": {}});
    for (version, can, tool, ran, wanted) in [
        ("2025-11-25", form.clone(), "late", 1, url),
        ("2025-11-25", form.clone(), "early", 0, url),
        ("2025-11-25", json!({}), "else", 0, "eu true"),
        // It was declared, but that version has no such thing.
        ("2025-06-18", everything(), "early", 0, url),
        ("2025-03-26", everything(), "early", 0, url),
        // > limited to flat objects with primitive properties only
        ("2025-06-18", form.clone(), "several", 0, "Elicitation not supported"),
        ("2025-06-18", form.clone(), "several_by_hand", 0, "Elicitation not supported"),
        ("2025-06-18", form.clone(), "several_or_none", 0, "0 days"),
    ] {
        lines.store(0, Ordering::SeqCst);
        let mut session = InSession::open(&server, version, can).await;
        let reply = session.asks(1, "tools/call", json!({"name": tool})).await;
        match reply.get("error") {
            Some(error) => assert_eq!((&error["code"], &error["message"]), (&json!(-32600), &json!(wanted))),
            None => assert_eq!(text(&reply), wanted),
        }
        assert_eq!(lines.load(Ordering::SeqCst), ran, "{version} {tool}");
    }
}

/// A call that is cancelled takes its asks back, and is not answered.
#[tokio::test]
async fn a_cancelled_call() {
    let mut session = InSession::newest(&place_or_not()).await;
    session.send(call()).await;
    let asked = session.receive().await;
    session
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    let cancelled = session.receive().await;
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &asked["id"])
    );
    session.answers(&asked, accept(json!({"region": "eu"}))).await;
    // The id is free again.
    let pong = session.asks(1, "ping", json!({})).await;
    assert_eq!(pong["result"], json!({}));
}

/// Prompts and resources ask as tools do.
#[tokio::test]
async fn prompts_and_resources() {
    let server = built(|builder| {
        builder.prompt(Prompt::new("p", async |ctx: &Ctx, _: NoArguments| place(ctx).await)).resource(
            Resource::new("ask://r", "r", async |ctx: &Ctx| -> Result<_> {
                Ok(antiphon::wire::content::ResourceContents::text("ask://r", place(ctx).await?))
            }),
        )
    });
    for (method, params, at) in [
        ("prompts/get", json!({"name": "p"}), "/result/messages/0/content/text"),
        ("resources/read", json!({"uri": "ask://r"}), "/result/contents/0/text"),
    ] {
        let mut session = InSession::newest(&server).await;
        session.send(plain(1, method, params.clone())).await;
        let asked = session.receive().await;
        session.answers(&asked, accept(json!({"region": "eu"}))).await;
        let reply = session.receive().await;
        assert_eq!(reply.pointer(at), Some(&json!("eu")), "{reply}");
        assert_eq!(reply["result"].as_object().unwrap().len(), 1, "{reply}");
        // Refused, it is an error.
        session.send(plain(2, method, params)).await;
        let asked = session.receive().await;
        session.answers(&asked, json!({"action": "decline"})).await;
        assert!(session.receive().await["error"]["message"].as_str().unwrap().contains("declined"));
    }
}

/// A checkpoint is passed: there is no other instance.
#[tokio::test]
async fn checkpoints_are_passed() {
    let server = server(|ctx, _| {
        Box::pin(async move {
            ctx.checkpoint().now().await;
            let place: Place = ctx.elicit("Where?").await?;
            ctx.checkpoint().key("second").now().await;
            Ok(place.region)
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let asked = session.receive().await;
    server.drain();
    session.answers(&asked, accept(json!({"region": "eu"}))).await;
    assert_eq!(text(&session.receive().await), "eu");
    // A server that drains opens no session.
    let refused = InSession::newest(&server).await;
    assert_eq!(refused.opened["error"]["data"]["reason"], "busy");
}

/// A full record ends a call in a session: no leg ends there before its handler does.
#[tokio::test]
async fn a_record_that_is_full() {
    let limits = Limits::default().state(3000).step_result(1000);
    let full = tool("t", |ctx, _| {
        Box::pin(async move {
            for n in 0..4 {
                ctx.step(("row", n), async |_| Ok("x".repeat(900))).await?;
            }
            Ok::<_, antiphon::Error>("done".to_owned())
        })
    });
    let server = built(|builder| builder.tool(full).limits(limits));
    let mut session = InSession::newest(&server).await;
    let reply = session.asks(1, "tools/call", json!({"name": "t"})).await;
    let data = json!({"reason": "limit", "limit": "state", "done": ["row#0", "row#1"]});
    assert_eq!(reply["error"]["data"], data, "{reply}");
}

/// A person who agrees again and again, and never finishes, is not asked for ever.
#[tokio::test(start_paused = true)]
async fn a_url_that_is_never_finished() {
    let server = server(|ctx, _| {
        Box::pin(async move {
            ctx.elicit_url("Pay.", |r| format!("https://pay.example/{r}")).until(async || false).await?;
            Ok("paid".to_owned())
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let mut asked = 0;
    let reply = loop {
        let message = patiently(&mut session).await;
        if message["method"] != "elicitation/create" {
            break message;
        }
        asked += 1;
        session.answers(&message, json!({"action": "accept"})).await;
    };
    assert_eq!(
        (asked, &reply["error"]["data"]),
        (16, &json!({"reason": "limit", "limit": "legs"})),
        "{reply}"
    );
}

/// Handlers that wait for people take no place of those that do not.
#[tokio::test]
async fn handlers_of_sessions_have_places_of_their_own() {
    let limits = Limits::default().session_handlers(1).handlers(1);
    let asks = tool("t", |ctx, _| Box::pin(place(ctx)));
    let echo = Tool::new("echo", async |_: &Ctx, _: NoArguments| "here");
    let server = built(|builder| builder.limits(limits).tool(asks).tool(echo));
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let asked = session.receive().await;
    let refused = session.asks(2, "tools/call", json!({"name": "echo"})).await;
    assert_eq!(refused["error"]["data"]["reason"], "busy", "{refused}");
    session.send(request(3, "tools/call", json!({"name": "echo", "arguments": {}}))).await;
    assert_eq!(session.receive().await["result"]["content"][0]["text"], "here");
    session.answers(&asked, accept(json!({"region": "eu"}))).await;
    assert_eq!(text(&session.receive().await), "eu");
    let served = session.asks(4, "tools/call", json!({"name": "echo"})).await;
    assert_eq!(served["result"]["content"][0]["text"], "here", "{served}");
}
