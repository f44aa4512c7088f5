//! Clients of sessions that mean harm, or do not know better: what they hold on to is bounded, what they say reaches
//! nobody else, and what they began ends.

use crate::common;

use crate::common::{
    by_header, fixture,
    gate::soon,
    ring,
    session::{InSession, everything, plain},
};
use crate::legacy_http_support::{NEWEST, Session, bare, call, initialize, message, post, send, with_header};
use antiphon::{
    Form, Result,
    serve::http::{HttpOptions, HttpService},
    server::{
        Ask, Ctx, Limits, NoArguments, Reply, Server, ServerBuilder, Tool, asks::InputRequired, flow::Winner,
    },
    wire::forms::{FormField, FormSchema},
};
use futures_util::future::{BoxFuture, join_all};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, mpsc as blocking};
use tokio::sync::{mpsc, watch};

#[derive(Deserialize, Form)]
struct Text {
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Named {
    name: String,
}

fn built(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    change(Server::builder("red", "1").keys(ring(7))).build().unwrap()
}

/// A server of these bounds, whose tool `t` runs this.
fn server<F>(limits: Limits, run: F) -> Server
where
    F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>> + Send + Sync + 'static,
{
    built(|builder| builder.limits(limits).tool(Tool::new("t", run)))
}

fn http(server: Server) -> HttpService {
    HttpService::new(server, HttpOptions::default())
}

fn tool(id: u32) -> Value {
    plain(id, "tools/call", json!({"name": "t"}))
}

fn accept(text: &str) -> Value {
    json!({"action": "accept", "content": {"text": text}})
}

fn is_ask(message: &Value) -> bool {
    message["method"] == "elicitation/create"
}

/// A handler owns its request id until the handler ends, also after a cancellation: otherwise the next request of
/// that id would be forgotten when the first one ends, and go on after the end of the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_id_is_free_once_what_ran_under_it_is_over() {
    let (tell, mut events) = mpsc::unbounded_channel();
    let (go_on, gate) = blocking::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let slow = Tool::new("slow", move |ctx: &Ctx, Named { name }: Named| {
        ctx.report_progress(1.0, None, None);
        let guard = Slow { name, tell: tell.clone(), gate: Arc::clone(&gate) };
        async move {
            let _guard = guard;
            std::future::pending::<String>().await
        }
    });
    let session = Session::open(&http(built(|builder| builder.tool(slow))), NEWEST).await;
    let first = session.post(&call(1, "slow", json!({"name": "blocks"}))).await;
    session.cancel(1).await;
    assert_eq!(soon(events.recv()).await.unwrap(), "blocks");
    session.post(&call(1, "slow", json!({"name": "second"}))).await.check("under way", (200, -32600)).await;
    go_on.send(()).unwrap();
    assert!(first.rest().await.iter().all(|(_, event)| event.get("result").is_none()));
    // Now it is over.
    let third = session.post(&call(1, "slow", json!({"name": "third"}))).await;
    assert!(third.is_stream());
    session.delete().await.check("ended", (204, 0)).await;
    assert_eq!(soon(events.recv()).await.unwrap(), "third");
}

/// Tells that it is dropped, and may take its time.
struct Slow {
    name: String,
    tell: mpsc::UnboundedSender<String>,
    gate: Arc<Mutex<blocking::Receiver<()>>>,
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.tell.send(self.name.clone());
        if self.name == "blocks" {
            let _ = self.gate.lock().unwrap().recv();
        }
    }
}

/// A client that never listens: what it would be told of is bounded as what it was asked is.
#[tokio::test]
async fn finished_urls_wait_in_bounded_number() {
    let server = built(|builder| {
        builder.tool(Tool::new("pay", async |_: &Ctx, Named { name }: Named| -> Reply<String> {
            let ask = Ask::url("pay", "Pay.", "https://pay.example/1").id(name);
            InputRequired::ask(ask).urls_first().into()
        }))
    });
    let service = http(server.clone());
    let mut opening = initialize(NEWEST);
    opening["params"]["capabilities"] = everything();
    let id = send(&service, post(opening)).await.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let session = Session { service, id, version: NEWEST.to_owned(), user: None };
    for number in 0..200_u32 {
        let asked = session.post(&call(number, "pay", json!({"name": number.to_string()}))).await;
        asked.check("URLs first", (200, -32042)).await;
        assert!(server.elicitation_complete(&number.to_string()));
    }
    let mut stream = session.get(None).await;
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "199") {
        let event = stream.event().await.unwrap();
        if event.data.as_deref() != Some("") {
            told.push(event.json()["params"]["elicitationId"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!((told.len(), told[0].as_str()), (64, "136"));
}

/// The client's name and version live as long as its session, and are cut to a bounded length.
#[tokio::test]
async fn a_client_that_is_called_a_megabyte_has_no_name() {
    for (length, is_known) in [(10, true), (1 << 20, false)] {
        let server = server(Limits::default(), |ctx, _| {
            Box::pin(async move { Ok(ctx.client_info().is_some().to_string()) })
        });
        let mut session = InSession::newest(&server).await;
        let mut other = common::lines::serve(server, 1 << 16);
        let params = json!({"protocolVersion": NEWEST, "capabilities": {},
            "clientInfo": {"name": "x".repeat(length), "version": "1"}});
        other.send(plain(0, "initialize", params).to_string()).await;
        assert!(other.receive().await.unwrap().get("result").is_some());
        std::mem::swap(&mut session.peer, &mut other);
        let reply = session.asks(1, "tools/call", json!({"name": "t"})).await;
        assert_eq!(reply["result"]["content"][0]["text"], is_known.to_string(), "{length}");
    }
}

/// One line may be long: as many messages are in it as in a batch over HTTP.
#[tokio::test]
async fn a_batch_on_streams_is_bounded() {
    let mut session = InSession::open(&fixture(|builder| builder).server, "2025-03-26", json!({})).await;
    let pings: Vec<Value> = (1..=64).map(|id| plain(id, "ping", json!({}))).collect();
    session.send(json!(pings)).await;
    for _ in 0..64 {
        assert!(session.receive().await.get("result").is_some());
    }
    session.send(json!(vec![1; 65])).await;
    let refused = session.receive().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)), "{refused}");
    assert_eq!(session.asks(99, "ping", json!({})).await["id"], 99);
}

/// A step that has run gives nobody more tries: in a session its record leaves with nothing.
#[tokio::test]
async fn a_question_behind_a_step_is_asked_as_often_as_any() {
    let server = server(Limits::default(), |ctx, _| {
        Box::pin(async move {
            let () = ctx.step("first", async |_| Ok(())).await?;
            let text: Text = ctx.elicit("Text?").await?;
            Ok(text.text)
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(tool(1)).await;
    let mut asked = 0;
    let reply = loop {
        let heard = session.receive().await;
        if !is_ask(&heard) || asked == 10 {
            break heard;
        }
        asked += 1;
        session.answers(&heard, json!({"action": "accept", "content": {}})).await;
    };
    assert_eq!(asked, 3, "{reply}");
    let data = json!({"reason": "limit", "limit": "times_asked", "done": ["first"]});
    assert_eq!(reply["error"]["data"], data, "{reply}");
}

/// Questions beyond those of one round are asked when earlier ones are answered.
#[tokio::test]
async fn so_many_questions_wait_at_once() {
    let server = server(Limits::default(), |ctx, _| {
        Box::pin(async move {
            let asks = (0..100_u64).map(|row| ctx.elicit::<Text>(format!("Row {row}?")).key("row").nth(row));
            let texts = join_all(asks).await;
            Ok(texts.into_iter().filter_map(Result::ok).map(|text| text.text).collect())
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(tool(1)).await;
    let mut asked = Vec::new();
    for _ in 0..64 {
        asked.push(session.receive().await);
    }
    assert!(asked.iter().all(is_ask));
    assert_eq!(session.asks(2, "ping", json!({})).await["id"], 2, "nothing more is asked yet");
    for at in 0..100 {
        session.answers(&asked[at].clone(), accept("x")).await;
        if asked.len() < 100 {
            asked.push(session.receive().await);
        }
    }
    let reply = session.receive().await;
    assert_eq!(reply["result"]["content"][0]["text"], "x".repeat(100), "{reply}");
}

/// A call that asks on and on has a record that is full at some time, as one whose rounds leave.
#[tokio::test]
async fn answers_fill_the_record_too() {
    let limits = Limits::default().state(3000);
    let server = server(limits, |ctx, _| {
        Box::pin(async move {
            for row in 0_u64.. {
                ctx.elicit::<Text>("More?").key("row").nth(row).await?;
            }
            Ok(String::new())
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(tool(1)).await;
    let mut asked = 0;
    let reply = loop {
        let heard = session.receive().await;
        if !is_ask(&heard) || asked == 20 {
            break heard;
        }
        asked += 1;
        session.answers(&heard, accept(&"x".repeat(900))).await;
    };
    assert_eq!(reply["error"]["data"], json!({"reason": "limit", "limit": "state"}), "{asked}: {reply}");
    assert_eq!(asked, 4);
}

/// The author's binder may panic: then one request fails.
#[tokio::test]
async fn a_binder_that_panics_costs_one_request() {
    let server = built(|builder| {
        builder.bind_principal(|caller| {
            let user = caller.headers.and_then(|headers| headers.get("x-user"));
            assert!(user.is_none_or(|user| user != "boom"), "the directory is gone");
            by_header(caller)
        })
    });
    let service = http(server);
    let boom = |request| with_header(request, "x-user", "boom");
    send(&service, boom(post(initialize(NEWEST)))).await.check("initialize", (200, -32603)).await;
    let session = Session::open(&service, NEWEST).await;
    let ping = message(1, "ping", json!({}));
    send(&service, boom(session.own(post(&ping)))).await.check("a session", (404, 0)).await;
    send(&service, boom(session.own(bare(Method::DELETE)))).await.check("its end", (404, 0)).await;
    session.post(&ping).await.check("it lives", (200, 0)).await;
}

/// A client that answers with an error says why in its own words, and may hear some of them again.
#[tokio::test]
async fn errors_of_a_client_are_cut() {
    let server = built(|builder| {
        builder
            .tool(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
                Ok(ctx.elicit::<Text>("Text?").await?.text)
            }))
            .tool(Tool::new("by_hand", async |_: &Ctx, _: NoArguments| -> Reply<String> {
                let form = FormSchema::new(vec![FormField::text("text")]);
                InputRequired::ask(Ask::form("text", "Text?", form)).into()
            }))
    });
    let mut session = InSession::newest(&server).await;
    for (id, name) in [(1, "t"), (2, "by_hand")] {
        let asked = session.asks(id, "tools/call", json!({"name": name})).await;
        assert!(is_ask(&asked), "{asked}");
        let error = json!({"code": -1, "message": format!("I will not. {}", "é".repeat(1 << 20))});
        session.send(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
        let reply = session.receive().await;
        let text = reply["error"]["message"].as_str().unwrap();
        assert!(
            text.starts_with("The client did not answer `text` (error -1): I will not. éé"),
            "{text:.100}"
        );
        assert!(text.ends_with("é...") && text.len() < 2000, "{}", text.len());
    }
}

/// The questions of a handler that panics are cancelled, and nothing of them stays.
#[tokio::test]
async fn a_panic_takes_back_what_was_asked() {
    let server = server(Limits::default(), |ctx, _| {
        Box::pin(async move {
            let (text, _): (Result<Text, _>, ()) = tokio::join!(ctx.elicit::<Text>("Text?"), async {
                let _ = ctx.elicit::<Text>("Now?").key("now").await;
                panic!("now");
            });
            Ok(text?.text)
        })
    });
    let mut session = InSession::newest(&server).await;
    for id in 1..4 {
        session.send(tool(id)).await;
        let (text, now) = (session.receive().await, session.receive().await);
        session.answers(&now, accept("x")).await;
        let cancelled = session.receive().await;
        assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
        assert_eq!(cancelled["params"]["requestId"], text["id"]);
        session.answers(&text, accept("late")).await;
        let reply = session.receive().await;
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(id), &json!(-32603)));
    }
}

/// Ids of requests are counted in each session: an answer is of the session that brings it.
#[tokio::test]
async fn answers_of_another_session_count_nothing() {
    let service = http(server(Limits::default(), |ctx, _| {
        Box::pin(async move { Ok(ctx.elicit::<Text>("Text?").await?.text) })
    }));
    let (one, other) = (Session::open(&service, NEWEST).await, Session::open(&service, NEWEST).await);
    let mut asking = Vec::new();
    for session in [&one, &other] {
        let mut came = session.post(&tool(1)).await;
        assert_eq!(came.event().await.unwrap().data.as_deref(), Some(""));
        let asked = came.event().await.unwrap().json();
        asking.push((came, asked["id"].clone()));
    }
    assert_eq!(asking[0].1, asking[1].1);
    let answer = |text| json!({"jsonrpc": "2.0", "id": asking[0].1, "result": accept(text)});
    assert_eq!(other.post(&answer("of the other")).await.status, 202);
    assert_eq!(one.post(&answer("of the one")).await.status, 202);
    let wanted = ["of the one", "of the other"];
    for ((came, _), wanted) in asking.into_iter().zip(wanted) {
        assert_eq!(came.rest().await[0].1["result"]["content"][0]["text"], wanted);
    }
}

/// A text and a number are two ids, and a call that is cancelled is the one that is named.
#[tokio::test]
async fn ids_of_two_kinds_are_two_ids() {
    let server = server(Limits::default(), |ctx, _| {
        Box::pin(async move { Ok(ctx.elicit::<Text>("Text?").await?.text) })
    });
    let mut session = InSession::newest(&server).await;
    let mut asked = Vec::new();
    for id in [json!(1), json!("1")] {
        let mut request = tool(0);
        request["id"] = id;
        session.send(request).await;
        asked.push(session.receive().await);
    }
    session
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "1"}}))
        .await;
    let cancelled = session.receive().await;
    assert_eq!(cancelled["params"]["requestId"], asked[1]["id"], "{cancelled}");
    session.answers(&asked[1], accept("late")).await;
    session.answers(&asked[0], accept("in time")).await;
    let reply = session.receive().await;
    assert_eq!((&reply["id"], &reply["result"]["content"][0]["text"]), (&json!(1), &json!("in time")));
}

/// A request and its cancellation may come in one write: it is cancelled though nothing of it has run yet.
#[tokio::test]
async fn a_call_is_cancelled_before_it_has_begun() {
    let server = server(Limits::default(), |ctx, _| {
        Box::pin(async move { Ok(ctx.elicit::<Text>("Text?").await?.text) })
    });
    let mut session = InSession::newest(&server).await;
    for id in 1..4 {
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        let ping = plain(9, "ping", json!({}));
        session.peer.send(format!("{}\n{cancelled}\n{ping}", tool(id))).await;
        let heard = session.receive().await;
        assert_eq!(heard["id"], 9, "{heard}");
    }
    // Its id is free again.
    assert!(is_ask(&session.asks(1, "tools/call", json!({"name": "t"})).await));
}

/// A resource that was named in the place of another has not changed with that one.
#[tokio::test]
async fn a_forgotten_url_is_not_reported_for_another_one() {
    let server = fixture(|builder| builder.resource_updates(true)).server;
    let session = Session::open(&http(server.clone()), NEWEST).await;
    let about = |id, method, uri| message(id, method, json!({"uri": uri}));
    for (id, method, uri) in [
        (1, "resources/subscribe", "file:///old"),
        (2, "resources/unsubscribe", "file:///old"),
        (3, "resources/subscribe", "file:///new"),
        (4, "resources/subscribe", "file:///other"),
    ] {
        if id == 2 {
            server.resource_updated("file:///old");
        }
        session.post(&about(id, method, uri)).await.check(method, (200, 0)).await;
    }
    server.resource_updated("file:///other");
    let mut stream = session.get(None).await;
    assert_eq!(stream.event().await.unwrap().data.as_deref(), Some(""));
    let told = stream.event().await.unwrap().json();
    assert_eq!(told["params"], json!({"uri": "file:///other"}), "{told}");
}

/// Answers to all branches of a race in one write: one wins, and what the other has brought is in nobody's way.
#[tokio::test]
async fn answers_to_all_of_a_race_at_once() {
    let server = server(Limits::default(), |ctx, _| {
        Box::pin(async move {
            let (a, b) = (ctx.elicit::<Text>("A?").key("a"), ctx.elicit::<Text>("B?").key("b"));
            let won = match ctx.select("race", (a, b)).await {
                Winner::A(a) => a?.text,
                Winner::B(b) => b?.text,
            };
            let charged: String = ctx.step("charge", async move |_| Ok(format!("{won} charged"))).await?;
            let sure: Text = ctx.elicit("Sure?").key("sure").await?;
            Ok(format!("{charged} {}", sure.text))
        })
    });
    let mut session = InSession::newest(&server).await;
    session.send(tool(1)).await;
    let (a, b) = (session.receive().await, session.receive().await);
    let answer = |asked: &Value, text| json!({"jsonrpc": "2.0", "id": asked["id"], "result": accept(text)});
    session.peer.send(format!("{}\n{}", answer(&b, "b"), answer(&a, "a"))).await;
    let sure = session.receive().await;
    assert_eq!(sure["params"]["message"], "Sure?", "{sure}");
    session.answers(&sure, accept("yes")).await;
    assert_eq!(session.receive().await["result"]["content"][0]["text"], "a charged yes");
}

/// A server whose tool `t` asks beside a step that waits to be let go, and tells of its end.
fn beside_a_step() -> (Server, watch::Sender<bool>, mpsc::UnboundedReceiver<&'static str>) {
    let (open, opened) = watch::channel(false);
    let (tell, events) = mpsc::unbounded_channel();
    let server = server(Limits::default(), move |ctx, _| {
        let (mut opened, tell) = (opened.clone(), tell.clone());
        Box::pin(async move {
            let charge = ctx.step("charge", async move |_| {
                let _ = tell.send("begun");
                let _ = opened.wait_for(|open| *open).await;
                let _ = tell.send("ended");
                Ok(())
            });
            let (text, charged) = tokio::join!(ctx.elicit::<Text>("Text?"), charge);
            charged?;
            Ok(text?.text)
        })
    });
    (server, open, events)
}

/// A question is taken back at once, though a step beside it still runs to its end.
#[tokio::test]
async fn a_call_that_is_cancelled_beside_its_step_asks_no_more() {
    let (server, open, mut events) = beside_a_step();
    let mut session = InSession::newest(&server).await;
    let asked = session.asks(1, "tools/call", json!({"name": "t"})).await;
    assert!(is_ask(&asked), "{asked}");
    assert_eq!(soon(events.recv()).await, Some("begun"));
    session
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    let cancelled = session.receive().await;
    assert_eq!(cancelled["params"]["requestId"], asked["id"], "{cancelled}");
    session.answers(&asked, accept("late")).await;
    open.send_replace(true);
    assert_eq!(soon(events.recv()).await, Some("ended"));
    assert_eq!(session.asks(1, "ping", json!({})).await["result"], json!({}));
}

/// So it does where the session ends.
#[tokio::test]
async fn a_step_survives_the_end_of_its_session() {
    let (server, open, mut events) = beside_a_step();
    let session = Session::open(&http(server.clone()), NEWEST).await;
    let came = session.post(&tool(1)).await;
    assert_eq!(soon(events.recv()).await, Some("begun"));
    session.delete().await.check("ended", (204, 0)).await;
    assert!(came.rest().await.iter().all(|(_, event)| event.get("result").is_none()));
    open.send_replace(true);
    assert_eq!(soon(events.recv()).await, Some("ended"));
    soon(server.steps_ended()).await;
}
