//! Progress that callbacks report while they answer a question of a session.

use crate::scripted_server::{
    Peer, ScriptedHttpServer, ScriptedReply, asks, builder, event, hello, notification, result, soon,
};
use antiphon::{
    Form, Result,
    client::{Client, ClientBuilder, FormAsk, Mode, asks::ElicitAsk, transport::memory},
    serve::stdio::serve_streams,
    server::{Ctx, NoArguments, Server, Tool},
    wire::{
        ElicitResult,
        sampling::{CreateMessageResult, ListRootsResult},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep},
};

fn form(token: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string"}}});
    json!({"mode": "form", "message": "Where?", "requestedSchema": schema, "_meta": {"progressToken": token}})
}

/// A client that has called a tool in a session, up to its request.
async fn calling(builder: ClientBuilder) -> (Peer, Value, JoinHandle<bool>) {
    let (client, mut peer) = Peer::of(builder.mode(Mode::Legacy));
    let called = tokio::spawn(async move { client.call_tool("t", ()).await.is_ok() });
    peer.initializes("2025-11-25").await;
    let call = peer.receive_of("tools/call").await;
    (peer, call, called)
}

fn done(call: &Value) -> Value {
    result(&call["id"], json!({"content": []}))
}

/// Every kind of ask can report, under the token that it came with.
#[tokio::test(start_paused = true)]
async fn each_kind_of_ask_reports_under_its_token() {
    const TICK: Duration = Duration::from_secs(1);
    let reporting = |asks_both: bool| {
        let builder = builder()
            .on_sample(async |ask| {
                ask.report_progress(0.5, None, None);
                sleep(TICK).await;
                Ok(CreateMessageResult::text("m", "Paris"))
            })
            .on_roots(async |ask| {
                ask.report_progress(0.5, None, None);
                sleep(TICK).await;
                Ok(ListRootsResult::new(vec![]))
            });
        if asks_both {
            return builder.on_elicit(async |ask: ElicitAsk| {
                ask.report_progress(0.5, None, None);
                sleep(TICK).await;
                Ok(ElicitResult::decline())
            });
        }
        let builder = builder.on_elicit_form(async |ask| {
            ask.report_progress(0.5, None, None);
            sleep(TICK).await;
            Ok(ask.decline())
        });
        builder.on_elicit_url(async |ask| {
            ask.report_progress(0.5, None, None);
            sleep(TICK).await;
            Ok(ask.decline())
        })
    };
    let url = json!({"mode": "url", "message": "Pay", "url": "https://pay.example/1", "elicitationId": "e1"});
    let message = json!({"role": "user", "content": {"type": "text", "text": "Capital?"}});
    let kinds = [
        ("elicitation/create", form(Value::Null)),
        ("elicitation/create", url),
        ("sampling/createMessage", json!({"messages": [message], "maxTokens": 9})),
        ("roots/list", json!({})),
    ];
    let tokens = [
        (json!({"progressToken": "a token"}), true),
        (json!({"progressToken": 7}), true),
        (json!({"progressToken": -1}), true),
        (json!({"progressToken": 1.5}), false),
        (json!({"progressToken": ["a"]}), false),
        (json!({"progressToken": null}), false),
        (json!({}), false),
    ];
    for asks_both in [false, true] {
        let (mut peer, call, called) = calling(reporting(asks_both)).await;
        for (method, params) in &kinds {
            for (meta, is_wanted) in &tokens {
                let mut params = params.clone();
                params["_meta"] = meta.clone();
                peer.send(asks("q", method, params)).await;
                if *is_wanted {
                    let told = peer.receive_of("notifications/progress").await;
                    let wanted = json!({"progressToken": meta["progressToken"], "progress": 0.5});
                    assert_eq!(told["params"], wanted, "{method}");
                    assert!(told.get("id").is_none());
                }
                let answer = peer.receive().await.unwrap();
                assert!(answer["id"] == "q" && answer["result"].is_object(), "{method} {meta}: {answer}");
            }
        }
        peer.send(done(&call)).await;
        assert!(called.await.unwrap());
    }
}

/// Reports in order: milliseconds after the one before, progress, total, message.
type Reports = Vec<(u64, f64, Option<f64>, Option<&'static str>)>;

/// A form that reports this, and answers two seconds later.
fn reporting(reports: Reports) -> ClientBuilder {
    builder().on_elicit_form(move |ask| {
        let reports = reports.clone();
        async move {
            for (after, progress, total, message) in reports {
                if after > 0 {
                    sleep(Duration::from_millis(after)).await;
                }
                ask.report_progress(progress, total, message);
            }
            sleep(Duration::from_secs(2)).await;
            Ok(ask.decline())
        }
    })
}

/// Returns the messages that the server receives before the answer.
async fn reports_received(reports: Reports) -> Vec<Value> {
    let (mut peer, call, called) = calling(reporting(reports)).await;
    peer.send(asks("q", "elicitation/create", form("t".into()))).await;
    let mut heard = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == "q" {
            break;
        }
        assert_eq!(
            (&message["method"], &message["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("t"))
        );
        let mut params = message["params"].clone();
        params.as_object_mut().unwrap().remove("progressToken");
        heard.push(params);
    }
    peer.send(done(&call)).await;
    assert!(called.await.unwrap());
    heard
}

#[tokio::test(start_paused = true)]
async fn progress_increases_and_is_sent_in_order() {
    for (what, reports, wanted) in [
        ("nothing", vec![], json!([])),
        (
            "all of it",
            vec![(0, 1.0, Some(3.5), Some("half \u{1f355}\n"))],
            json!([{"progress": 1.0, "total": 3.5, "message": "half \u{1f355}\n"}]),
        ),
        (
            "one after the other",
            vec![(0, -1.0, None, None), (500, 0.0, None, None), (500, 1e9, None, None)],
            json!([{"progress": -1.0}, {"progress": 0.0}, {"progress": 1e9}]),
        ),
        (
            "what does not increase",
            vec![
                (0, 2.0, None, None),
                (500, 2.0, None, None),
                (500, 1.0, None, None),
                (500, 3.0, None, None),
            ],
            json!([{"progress": 2.0}, {"progress": 3.0}]),
        ),
        (
            "what is no number",
            vec![
                (0, f64::NAN, None, None),
                (500, f64::INFINITY, None, None),
                (500, f64::NEG_INFINITY, None, None),
                (500, 1.0, Some(f64::NAN), None),
            ],
            json!([{"progress": 1.0}]),
        ),
        (
            "what is overtaken at once",
            vec![(0, 1.0, Some(2.0), Some("a")), (0, 2.0, None, Some("b")), (0, 1.5, None, Some("c"))],
            json!([{"progress": 2.0, "message": "b"}]),
        ),
        (
            "what is overtaken within a tenth of a second",
            vec![(0, 1.0, None, None), (50, 2.0, None, None), (20, 3.0, None, None)],
            json!([{"progress": 1.0}, {"progress": 3.0}]),
        ),
    ] {
        assert_eq!(Value::from(reports_received(reports).await), wanted, "{what}");
    }
    // A flood is thinned out, and its end is told.
    let flood: Reports = (1..=10_000).map(|number| (1, f64::from(number), None, None)).collect();
    let heard = reports_received(flood).await;
    assert!((50..=101).contains(&heard.len()), "{}", heard.len());
    assert_eq!(heard.last().unwrap()["progress"], 10_000.0);
}

/// Once an ask is answered, or taken back, nothing more is told of it.
#[tokio::test(start_paused = true)]
async fn no_progress_is_sent_after_the_end() {
    let kept: Arc<Mutex<Vec<FormAsk>>> = Arc::default();
    let keeping = Arc::clone(&kept);
    let answers = builder().on_elicit_form(move |ask| {
        keeping.lock().unwrap().push(ask.clone());
        async move {
            if ask.context.key == "taken back" {
                std::future::pending::<()>().await;
            }
            // Too late: it is answered in the same breath.
            ask.report_progress(0.5, None, None);
            Ok(ask.decline())
        }
    });
    let (mut peer, call, called) = calling(answers).await;
    peer.send(asks("answered", "elicitation/create", form("t".into()))).await;
    assert_eq!(peer.receive().await.unwrap()["id"], "answered");
    peer.send(asks("taken back", "elicitation/create", form("u".into()))).await;
    for told in [None, Some(notification("cancelled", json!({"requestId": "taken back"})))] {
        for message in told.into_iter().chain([asks("p", "ping", json!({}))]) {
            peer.send(message).await;
        }
        assert_eq!(peer.receive().await.unwrap()["id"], "p");
    }
    let kept = std::mem::take(&mut *kept.lock().unwrap());
    assert_eq!(kept.len(), 2);
    kept.iter().for_each(|ask| ask.report_progress(1.0, None, None));
    sleep(Duration::from_secs(1)).await;
    peer.send(asks("p", "ping", json!({}))).await;
    assert_eq!(peer.receive().await.unwrap()["id"], "p");
    peer.send(done(&call)).await;
    assert!(called.await.unwrap());
}

/// Nothing can be sent on 2026-07-28 while something is asked, whatever the ask contains.
#[tokio::test(start_paused = true)]
async fn no_progress_is_sent_to_a_modern_server() {
    let (client, mut peer) = Peer::of(reporting(vec![(0, 1.0, None, None), (500, 2.0, None, None)]));
    let called = tokio::spawn(async move { client.call_tool("t", ()).await.is_ok() });
    let probe = peer.receive_of("server/discover").await;
    let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
    peer.send(result(&probe["id"], found)).await;
    let call = peer.receive_of("tools/call").await;
    let asked = json!({"q": {"method": "elicitation/create", "params": form("t".into())}});
    let asked = json!({"resultType": "input_required", "inputRequests": asked, "requestState": "s"});
    peer.send(result(&call["id"], asked)).await;
    let again = peer.receive_of("tools/call").await;
    assert_eq!(again["params"]["inputResponses"]["q"]["action"], "decline");
    peer.send(result(&again["id"], json!({"resultType": "complete", "content": []}))).await;
    assert!(called.await.unwrap());
}

/// Each message over HTTP is a POST of its own; a server that rejects it gets its answer all the same.
#[tokio::test]
async fn over_http() {
    for accepts in [true, false] {
        let open: Arc<Mutex<Option<mpsc::UnboundedSender<String>>>> = Arc::default();
        let stream = Arc::clone(&open);
        let played = ScriptedHttpServer::new(move |heard| match (heard.verb.as_str(), heard.method()) {
            ("POST", "initialize") => {
                ScriptedReply::json(200, result(&heard.body["id"], hello("2025-11-25")))
                    .with("mcp-session-id", "s-1")
            }
            ("POST", "tools/call") => {
                let ask = asks("q", "elicitation/create", form(7.into()));
                let (more, said) = ScriptedReply::open(event(&ask));
                *stream.lock().unwrap() = Some(more);
                said
            }
            ("POST", "notifications/progress") if !accepts => ScriptedReply::Silence,
            ("POST", _) => ScriptedReply::empty(202),
            _ => ScriptedReply::empty(405),
        })
        .await;
        let (answer, may_answer) = watch::channel(false);
        let client = played.client(builder().mode(Mode::Legacy).on_elicit_form(move |ask| {
            let mut may_answer = may_answer.clone();
            async move {
                ask.report_progress(1.0, Some(2.0), Some("at it"));
                may_answer.wait_for(|may| *may).await?;
                Ok(ask.decline())
            }
        }));
        let called = tokio::spawn(async move { client.call_tool("t", ()).await.is_ok() });
        let told = played.receive(|heard| heard.method() == "notifications/progress").await;
        let wanted = json!({"progressToken": 7, "progress": 1.0, "total": 2.0, "message": "at it"});
        assert_eq!(told.body["params"], wanted);
        assert_eq!(told.header("mcp-session-id"), Some("s-1"));
        assert_eq!(told.header("mcp-protocol-version"), Some("2025-11-25"));
        answer.send_replace(true);
        let answered = played.receive(|heard| heard.body["id"] == "q").await;
        assert_eq!(answered.body["result"]["action"], "decline");
        let call = played.receive(|heard| heard.method() == "tools/call").await;
        let more = open.lock().unwrap().take().unwrap();
        more.send(event(&done(&call.body))).unwrap();
        drop(more);
        assert!(soon(called).await.unwrap());
        let told = played.short().iter().filter(|what| what.ends_with("progress")).count();
        assert_eq!(told, 1);
    }
}

#[derive(Deserialize, Form)]
struct Place {
    region: String,
}

/// Our own server at the other end: whoever is at work on a question has more than ten minutes for it, and an hour at
/// most.
#[tokio::test(start_paused = true)]
async fn progress_keeps_a_question_of_our_own_server_alive() {
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let tool = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        Ok(ctx.elicit::<Place>("Where?").await?.region)
    });
    let server = Server::builder("ours", "1.0").tool(tool).build().unwrap();
    // Reports every so often, answers after so long; what comes of it, and when.
    for (what, every, answers, wanted, lasts) in [
        ("no word", None, 11, Err("`place` was not answered within 600 seconds"), 10),
        ("an answer in time", None, 9, Ok("eu"), 9),
        ("at work", Some(9), 50, Ok("eu"), 50),
        ("now and then", Some(11), 50, Err("`place` was not answered within 600 seconds"), 10),
        ("at work for too long", Some(9), 61, Err("`place` was not answered within 3600 seconds"), 60),
    ] {
        let (transport, input, output) = memory::duplex();
        let serving = tokio::spawn(serve_streams(input, output, server.clone()));
        let person =
            builder().mode(Mode::Legacy).leg_timeout(minutes(1)).on_elicit_form(move |ask| async move {
                let answer = sleep(minutes(answers));
                tokio::pin!(answer);
                let mut told = 0.0;
                while let Some(every) = every {
                    tokio::select! {
                        () = &mut answer => break,
                        () = sleep(minutes(every)) => {
                            told += 1.0;
                            ask.report_progress(told, None, Some("still looking"));
                        }
                    }
                }
                if every.is_none() {
                    answer.await;
                }
                Ok(ask.accept(json!({"region": "eu"}))?)
            });
        let client: Client = person.connect(transport);
        let began = Instant::now();
        let came = client.call_tool("t", ()).await;
        let came =
            came.map(|result| result.first_text().unwrap().to_owned()).map_err(|error| error.to_string());
        match (&came, wanted) {
            (Ok(text), Ok(wanted)) => assert_eq!(text, wanted, "{what}"),
            (Err(error), Err(wanted)) => assert!(error.contains(wanted), "{what}: {error}"),
            _ => panic!("{what}: {came:?}"),
        }
        let lasted = began.elapsed();
        assert!(
            (minutes(lasts)..minutes(lasts) + Duration::from_secs(3)).contains(&lasted),
            "{what}: {lasted:?}"
        );
        client.close().await;
        serving.abort();
    }
}
