//! Notifications during a request: progress, log messages, and their effect on its time.

use crate::client_support::*;
use antiphon::{
    client::{Call, Client, ClientBuilder, ClientErrorKind, calls::RequestFault},
    wire::LogLevel,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const PROGRESS: &str = "notifications/progress";
const MESSAGE: &str = "notifications/message";

type Log = Arc<Mutex<Vec<String>>>;

fn now(method: &'static str, params: Value) -> (Duration, &'static str, Value) {
    (Duration::ZERO, method, params)
}

fn progress(progress: Value) -> (Duration, &'static str, Value) {
    now(PROGRESS, json!({"progressToken": "?", "progress": progress}))
}

fn message(level: &str, data: Value) -> (Duration, &'static str, Value) {
    now(MESSAGE, json!({"level": level, "data": data}))
}

/// A client that notes what it hears.
fn receive(log: &Log) -> ClientBuilder {
    let (of_progress, of_log) = (Arc::clone(log), Arc::clone(log));
    builder()
        .on_progress(move |event| {
            let of = &event.context;
            let name = of.name.as_deref().unwrap_or("-");
            of_progress.lock().unwrap().push(format!(
                "{} {name} {}.{}: {} of {:?} {:?}",
                of.method, of.round, of.leg, event.progress, event.total, event.message
            ));
        })
        .on_log(move |event| {
            of_log.lock().unwrap().push(format!(
                "{} {}.{}: {:?} {:?} {}",
                event.context.method,
                event.context.round,
                event.context.leg,
                event.level,
                event.logger,
                event.data
            ));
        })
}

/// Calls a tool that sends these notifications: what is heard of them.
async fn check(told: Vec<(Duration, &'static str, Value)>, heard: &[&str]) {
    let log = Log::default();
    let fake = Fake::script([Reply::Telling(told.clone(), Box::new(done("ok")))]);
    fake.client(receive(&log)).call_tool("t", ()).await.unwrap();
    assert_eq!(*log.lock().unwrap(), heard, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn notifications_that_are_received_or_dropped() {
    check(
        vec![
            progress(json!(0)),
            progress(json!(0.5)),
            now(PROGRESS, json!({"progressToken": "?", "progress": 2, "total": 4.5, "message": "half"})),
        ],
        &[
            "tools/call t 0.1: 0 of None None",
            "tools/call t 0.1: 0.5 of None None",
            r#"tools/call t 0.1: 2 of Some(4.5) Some("half")"#,
        ],
    )
    .await;
    // It must increase; another's token is another's.
    check(
        vec![
            progress(json!(2)),
            progress(json!(2)),
            progress(json!(1.5)),
            now(PROGRESS, json!({"progressToken": "1", "progress": 3})),
            now(PROGRESS, json!({"progressToken": 2, "progress": 3})),
            now(PROGRESS, json!({"progress": 3})),
            now(PROGRESS, json!({"progressToken": "?", "progress": "3"})),
            now(PROGRESS, Value::Null),
            now("notifications/other", json!({})),
            progress(json!(4)),
        ],
        &["tools/call t 0.1: 2 of None None", "tools/call t 0.1: 4 of None None"],
    )
    .await;
    // Without a level, from `info` on.
    check(
        vec![
            message("debug", json!("no")),
            message("info", json!({"a": [1]})),
            now(MESSAGE, json!({"level": "emergency", "logger": "db", "data": "gone"})),
            now(MESSAGE, json!({"level": "loud", "data": "no"})),
            now(MESSAGE, json!({"level": "error"})),
        ],
        &[r#"tools/call 0.1: Info None {"a":[1]}"#, r#"tools/call 0.1: Emergency Some("db") "gone""#],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_leg_has_its_own_notifications() {
    let log = Log::default();
    let tell = |reply| Reply::Telling(vec![progress(json!(1)), message("info", json!("m"))], Box::new(reply));
    let fake =
        Fake::script([tell(asking(json!({"a": form()}), Some("s"))), tell(not_yet("s2")), tell(done("ok"))]);
    let client =
        fake.client(receive(&log).on_elicit_form(async |ask| Ok(ask.accept(json!({"region": "eu"}))?)));
    client.call_tool("t", ()).await.unwrap();
    let each = |at: &str| {
        [format!("tools/call t {at}: 1 of None None"), format!(r#"tools/call {at}: Info None "m""#)]
    };
    let expected: Vec<String> = ["0.1", "1.2", "1.3"].iter().flat_map(|at| each(at)).collect();
    assert_eq!(*log.lock().unwrap(), expected);
}

/// The token and the level that `client` sends with a call and with a list.
async fn asks_for(client: ClientBuilder, call: Call, expected: [Value; 2]) {
    let fake = Fake::new(|request| match request["method"].as_str() {
        Some("tools/call") => done("ok"),
        _ => Reply::Result(json!({"prompts": []})),
    });
    let client = fake.client(client);
    client.call(call).await.unwrap();
    client.list_prompts().await.unwrap();
    let asked = |request: &Value| {
        let meta = &request["params"]["_meta"];
        let token = meta.get("progressToken").map(|token| *token == request["id"]);
        json!([token, meta.get("io.modelcontextprotocol/logLevel")])
    };
    assert_eq!(fake.requests().iter().map(asked).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn only_what_somebody_listens_for_is_asked_for() {
    let call = || Call::tool("t", ()).unwrap();
    let nothing = json!([null, null]);
    asks_for(builder(), call(), [nothing.clone(), nothing.clone()]).await;
    asks_for(builder().on_progress(|_| {}), call(), [json!([true, null]), json!([true, null])]).await;
    asks_for(builder(), call().on_progress(|_| {}), [json!([true, null]), nothing.clone()]).await;
    asks_for(builder().on_log(|_| {}), call(), [json!([null, "info"]), json!([null, "info"])]).await;
    asks_for(
        builder().on_log(|_| {}).log_level(LogLevel::Critical),
        call().log_level(LogLevel::Debug),
        [json!([null, "debug"]), json!([null, "critical"])],
    )
    .await;
    let stretches = builder().max_leg_timeout(Duration::from_secs(600));
    asks_for(stretches, call(), [json!([true, null]), json!([true, null])]).await;
}

#[tokio::test]
async fn a_call_may_have_listeners_of_its_own() {
    let log = Log::default();
    let fake = Fake::new(|_| {
        Reply::Telling(vec![progress(json!(1)), message("warning", json!("w"))], Box::new(done("ok")))
    });
    let client = fake.client(receive(&log));
    let own = Arc::clone(&log);
    let call = Call::tool("t", ()).unwrap().log_level(LogLevel::Error);
    let call = call.on_progress(move |event| own.lock().unwrap().push(format!("own {}", event.progress)));
    client.call(call).await.unwrap();
    assert_eq!(*log.lock().unwrap(), ["own 1"]);
    // Nobody asked, so nobody hears.
    fake.client(builder()).call_tool("t", ()).await.unwrap();
    assert_eq!(log.lock().unwrap().len(), 1);
}

/// Calls a tool that makes progress at these seconds, and then no more: the limit that ends it, and after how long.
async fn ends(client: ClientBuilder, pauses: &[u64], token: &str, limit: u64, after: u64) {
    let told = pauses.iter().enumerate().map(|(n, pause)| {
        (Duration::from_secs(*pause), PROGRESS, json!({"progressToken": token, "progress": n}))
    });
    let fake = Fake::script([Reply::Telling(told.collect(), Box::new(Reply::Hang))]);
    let client: Client = fake.client(client.leg_timeout(Duration::from_secs(10)));
    let began = tokio::time::Instant::now();
    let error = client.call_tool("t", ()).await.unwrap_err();
    match error.kind() {
        ClientErrorKind::Request(RequestFault::Timeout(by)) => {
            assert_eq!((by.as_secs(), began.elapsed().as_secs()), (limit, after), "{pauses:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn progress_stretches_the_time_of_a_request_up_to_a_maximum() {
    let stretched = |max| builder().max_leg_timeout(Duration::from_secs(max));
    ends(builder().on_progress(|_| {}), &[6, 6, 6], "?", 10, 10).await;
    ends(stretched(100), &[], "?", 10, 10).await;
    ends(stretched(100), &[6, 6], "?", 10, 22).await;
    ends(stretched(25), &[6, 6, 6], "?", 25, 25).await;
    ends(stretched(25), &[6, 6, 11], "?", 10, 22).await;
    // Less than one request may take is not less.
    ends(stretched(5), &[6, 6], "?", 10, 10).await;
    // Progress of something else is no progress.
    ends(stretched(100), &[6, 6], "other", 10, 10).await;
    // An endless limit is one.
    let fake = Fake::script([Reply::Telling(
        vec![(Duration::from_secs(9), PROGRESS, json!({}))],
        Box::new(done("ok")),
    )]);
    let endless = stretched(1).leg_timeout(Duration::MAX);
    fake.client(endless).call_tool("t", ()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_makes_progress_comes_to_its_end() {
    let told =
        (1..5).map(|n| (Duration::from_secs(9), PROGRESS, json!({"progressToken": "?", "progress": n})));
    let fake = Fake::script([Reply::Telling(told.collect(), Box::new(done("ok")))]);
    let client = builder().leg_timeout(Duration::from_secs(10)).max_leg_timeout(Duration::from_secs(60));
    assert_eq!(fake.client(client).call_tool("t", ()).await.unwrap().first_text(), Some("ok"));
}
