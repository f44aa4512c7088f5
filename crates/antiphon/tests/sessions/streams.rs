//! The streams of sessions: what is kept, where they are taken up again, what ends what runs in them, and what is
//! bounded.

use crate::common::{by_header, fixture, gate::gate, start};
use crate::legacy_http_support::{
    HttpReply, NEWEST, Session, bare, call, initialize, message, post, send, steps, text_of, with_header,
};
use antiphon::{
    seal::Principal,
    serve::http::{
        HttpOptions, HttpService,
        auth::{ResourceServer, StaticTokens},
    },
    server::{Bearer, Ctx, Limits, NoArguments, Server, Tool},
};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;

/// A service with the tool `steps`, of these options.
fn stepping(options: HttpOptions) -> (HttpService, watch::Sender<u32>) {
    let (tool, reached) = steps();
    (HttpService::new(fixture(|builder| builder.tool(tool)).server, options), reached)
}

fn limited(change: impl FnOnce(Limits) -> Limits) -> Limits {
    change(Limits::default())
}

/// The numbers of progress in a stream, and whether it ends with the result.
fn progress_and_end(events: &[(String, Value)]) -> (Vec<u64>, bool) {
    let progress = events.iter().filter_map(|(_, data)| data["params"]["progress"].as_f64());
    let ends = events.last().is_some_and(|(_, data)| data.get("result").is_some());
    (progress.map(|value| value as u64).collect(), ends)
}

#[tokio::test]
async fn a_stream_is_taken_up_behind_each_of_its_events() {
    let (service, reached) = stepping(HttpOptions::default());
    for version in [NEWEST, "2025-06-18", "2025-03-26"] {
        let session = Session::open(&service, version).await;
        reached.send_replace(9);
        // Of another stream nothing is told here.
        session.post(&call(1, "steps", json!({"count": 3}))).await.rest().await;
        let whole = session.post(&call(2, "steps", json!({"count": 3}))).await.rest().await;
        let events: Vec<_> = whole.iter().filter(|(_, data)| !data.is_null()).cloned().collect();
        assert_eq!(progress_and_end(&events), (vec![1, 2, 3], true));
        // > the last event ID it received
        for known in 0..events.len() {
            let rest = session.get(Some(&format!("2-{known}"))).await.rest().await;
            assert_eq!(rest, events[known..], "{version}, behind {known}");
        }
        // There is nothing to come back for.
        session.get(Some("2-4")).await.check("the last", (204, 0)).await;
    }
}

#[tokio::test]
async fn what_is_no_event_of_the_session_is_refused() {
    let (service, reached) = stepping(HttpOptions::default().session_events(3, 1 << 20));
    let (session, other) = (Session::open(&service, NEWEST).await, Session::open(&service, NEWEST).await);
    reached.send_replace(9);
    session.post(&call(1, "steps", json!({"count": 4}))).await.rest().await;
    for id in 0..3 {
        other.post(&call(id, "steps", json!({"count": 1}))).await.rest().await;
    }
    for (last, status) in [
        // Progress can be missed.
        ("1-0", 200),
        ("1-4", 200),
        ("1-5", 204),
        ("1-6", 400),
        ("0-0", 200),
        ("0-1", 400),
        // A stream of the other session.
        ("3-1", 400),
        ("2-0", 400),
        ("", 400),
        ("1", 400),
        ("-1", 400),
        ("1-1-1", 400),
        ("event-1", 400),
        ("99999999999999999999-1", 400),
    ] {
        assert_eq!(session.get(Some(last)).await.status, status, "{last:?}");
    }
    let twice = session.own(with_header(bare(Method::GET), "last-event-id", "1-0"));
    send(&service, with_header(twice, "last-event-id", "1-0")).await.check("twice", (400, 0)).await;
    // The responses of these three are kept: of the first, nothing is any more.
    for id in 2..5 {
        session.post(&call(id, "steps", json!({"count": 1}))).await.rest().await;
    }
    for last in ["1-0", "1-4"] {
        let came = session.get(Some(last)).await;
        assert_eq!(came.status, 410, "{last}");
        assert!(came.text().await.contains("were discarded"));
    }
    assert!(progress_and_end(&session.get(Some("4-0")).await.rest().await).1);
}

/// > Disconnection **SHOULD NOT** be interpreted as the client cancelling its request.
#[tokio::test]
async fn a_call_goes_on_when_its_connection_breaks() {
    let (service, reached) = stepping(HttpOptions::default());
    let session = Session::open(&service, NEWEST).await;
    reached.send_replace(1);
    let mut came = session.post(&call(1, "steps", json!({"count": 3}))).await;
    assert_eq!(came.event().await.unwrap().data.as_deref(), Some(""));
    let seen = came.event().await.unwrap();
    assert_eq!(seen.progress(), 1);
    drop(came);
    // It is taken up while it goes on, twice: the second time takes it from the first.
    let mut first = session.get(seen.id.as_deref()).await;
    reached.send_replace(2);
    assert_eq!(first.event().await.unwrap().progress(), 2);
    let mut second = session.get(seen.id.as_deref()).await;
    assert_eq!(first.event().await, None);
    assert_eq!(second.event().await.unwrap().progress(), 2);
    drop(second);
    reached.send_replace(4);
    let rest = session.get(Some("1-2")).await.rest().await;
    assert_eq!(progress_and_end(&rest), (vec![3], true));
    assert_eq!(text_of(&rest[1].1), "done");
}

/// A stream that is taken up is another than the one of a GET, and both are open.
#[tokio::test]
async fn taking_up_a_stream_leaves_that_of_the_get_alone() {
    let (service, reached) = stepping(HttpOptions::default());
    let session = Session::open(&service, NEWEST).await;
    let mut standalone = session.get(None).await;
    assert_eq!(standalone.event().await.unwrap().id.as_deref(), Some("0-0"));
    reached.send_replace(1);
    let mut came = session.post(&call(1, "steps", json!({"count": 1}))).await;
    assert!(came.event().await.is_some());
    drop(came);
    let taken_up = session.get(Some("1-0")).await;
    assert_eq!(taken_up.status, 200);
    session.get(None).await.check("a second", (409, 0)).await;
    reached.send_replace(9);
    assert_eq!(progress_and_end(&taken_up.rest().await), (vec![1], true));
    session.delete().await.check("DELETE", (204, 0)).await;
    assert_eq!(standalone.event().await, None);
}

/// A handler ends its own stream early: the client comes back for the rest.
#[tokio::test]
async fn a_handler_may_close_its_stream() {
    let close = watch::Sender::new(false);
    let opened = close.subscribe();
    let tool = Tool::new("closes", move |ctx: &Ctx, _: NoArguments| {
        ctx.close_stream();
        let mut opened = opened.clone();
        async move {
            opened.wait_for(|open| *open).await.unwrap();
            "after all".to_owned()
        }
    });
    let service = HttpService::new(fixture(|builder| builder.tool(tool)).server, HttpOptions::default());
    let session = Session::open(&service, NEWEST).await;
    let events = session.post(&call(1, "closes", json!({}))).await.rest().await;
    assert_eq!(events, [("1-0".to_owned(), Value::Null)]);
    let came = session.get(Some("1-0")).await;
    close.send_replace(true);
    assert_eq!(text_of(&came.rest().await[0].1), "after all");
    // Before 2025-11-25 no client would come back.
    let session = Session::open(&service, "2025-06-18").await;
    assert_eq!(text_of(&session.post(&call(1, "closes", json!({}))).await.json().await), "after all");
}

/// Ends of a request: its result, a cancellation, the end of its session. A closed connection does not end it.
#[tokio::test(start_paused = true)]
async fn a_request_ends_with_its_session_or_when_it_is_cancelled() {
    let (tool, mut gate) = gate();
    let service = HttpService::new(fixture(|builder| builder.tool(tool)).server, HttpOptions::default());
    let hold = |session: &Session, id, name: &str, how: &'static str| {
        let (session, name) = (session.clone(), name.to_owned());
        tokio::spawn(async move { session.post(&call(id, "hold", json!({"name": name, "how": how}))).await })
    };
    for how in ["waits", "reports"] {
        let session = Session::open(&service, NEWEST).await;
        let mut come = Vec::new();
        for (id, what) in [(1, "ends"), (2, "is cancelled"), (3, "breaks"), (4, "is deleted")] {
            let name = format!("{what}, {how}");
            come.push(hold(&session, id, &name, how));
            gate.started(&name).await;
        }
        gate.open(&format!("ends, {how}"));
        gate.ended(&format!("ends, {how}")).await;
        session.cancel(2).await;
        gate.dropped(&format!("is cancelled, {how}")).await;
        come.remove(2).abort();
        let one = come.remove(0).await.unwrap().text().await;
        assert!(one.contains(&format!("ends, {how}")), "{one}");
        // The connection breaks, the request does not.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(gate.is_quiet());
        session.delete().await.check("DELETE", (204, 0)).await;
        let ended = [gate.event().await, gate.event().await].map(|event| format!("{event:?}"));
        assert!(ended.iter().all(|event| event.starts_with("Dropped")), "{ended:?}");
        let mut come = futures_util::future::join_all(come).await.into_iter().map(Result::unwrap);
        let (cancelled, deleted) = (come.next().unwrap(), come.next().unwrap());
        // > Not send a response for the cancelled request
        for unanswered in [cancelled, deleted] {
            assert!(unanswered.is_stream(), "{how}");
            assert!(!unanswered.text().await.contains("result"));
        }
    }
    // With the last clone of the service.
    let session = Session::open(&service, NEWEST).await;
    let task = hold(&session, 1, "is left", "waits");
    gate.started("is left").await;
    task.abort();
    drop((service, session));
    gate.dropped("is left").await;
}

/// Notifications to a client that does not read are bounded, and the client still gets its answer.
#[tokio::test]
async fn a_slow_reader_costs_no_more_than_the_bounds() {
    let tool = Tool::new("floods", |ctx: &Ctx, _: NoArguments| {
        for number in 1..=10_000 {
            ctx.report_progress(f64::from(number), None, None);
        }
        async { "done".to_owned() }
    });
    let service = HttpService::new(fixture(|builder| builder.tool(tool)).server, HttpOptions::default());
    let session = Session::open(&service, "2025-06-18").await;
    // It reads only when all has been told.
    let came = session.post(&call(1, "floods", json!({}))).await;
    session.post(&message(2, "ping", json!({}))).await.check("meanwhile", (200, 0)).await;
    let (progress, ends) = progress_and_end(&came.rest().await);
    assert!(ends && progress.len() <= 1024 && progress.last() == Some(&10_000), "{}", progress.len());
    // It is gone, and comes back: what is kept are the last events.
    let came = session.post(&call(3, "floods", json!({}))).await;
    drop(came);
    session.post(&message(4, "ping", json!({}))).await.check("meanwhile", (200, 0)).await;
    let rest = session.get(Some("3-0")).await.rest().await;
    let (progress, ends) = progress_and_end(&rest);
    assert!(ends && progress.len() <= 256 && progress.last() == Some(&10_000), "{}", progress.len());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_uses_ends() {
    let minute = Duration::from_secs(60);
    let (service, reached) = stepping(HttpOptions::default().session_idle_timeout(10 * minute));
    let alive = async |session: &Session, expected| {
        session.post(&message(9, "ping", json!({}))).await.check("ping", (expected, 0)).await;
    };
    let session = Session::open(&service, NEWEST).await;
    for _ in 0..5 {
        tokio::time::advance(9 * minute).await;
        alive(&session, 200).await;
    }
    let stream = session.get(None).await;
    tokio::time::advance(60 * minute).await;
    alive(&session, 200).await;
    tokio::time::advance(60 * minute).await;
    drop(stream);
    tokio::time::advance(9 * minute).await;
    // A request under way, whose connection is gone.
    reached.send_replace(1);
    let begun = session.post(&call(1, "steps", json!({"count": 1}))).await.event().await.unwrap().id;
    tokio::time::advance(3 * minute).await;
    let came = session.get(begun.as_deref()).await;
    reached.send_replace(2);
    assert_eq!(progress_and_end(&came.rest().await), (vec![1], true));
    tokio::time::advance(9 * minute).await;
    alive(&session, 200).await;
    tokio::time::advance(10 * minute).await;
    alive(&session, 404).await;
    session.get(begun.as_deref()).await.check("GET", (404, 0)).await;
    // Anybody can begin one: those that nobody goes on with do not stay.
    for (seconds, expected) in [(59, 200), (60, 404)] {
        let begun = Session::begin(&service, NEWEST, None).await;
        tokio::time::advance(Duration::from_secs(seconds)).await;
        alive(&begun, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_are_bounded() {
    let change = |limits: Limits| limits.sessions(4).sessions_per_principal(2);
    let server = fixture(|builder| builder.bind_principal(by_header).limits(limited(change))).server;
    let service = HttpService::new(server, HttpOptions::default());
    let open = async |user| Session::open_as(&service, NEWEST, user).await;
    let refused = async |user: Option<&'static str>| {
        let request = post(initialize(NEWEST));
        let request = user.into_iter().fold(request, |request, user| with_header(request, "x-user", user));
        let came = send(&service, request).await;
        assert!(!came.headers.contains_key("mcp-session-id"));
        let reply = came.json().await;
        assert_eq!(reply["error"]["data"]["reason"], "busy", "{reply}");
    };
    let (one, two) = (open(Some("anna@app")).await, open(Some("anna@app")).await);
    refused(Some("anna@app")).await;
    let (three, _four) = (open(Some("bert@app")).await, open(None).await);
    refused(None).await;
    three.delete().await.check("DELETE", (204, 0)).await;
    refused(Some("anna@app")).await;
    one.delete().await.check("DELETE", (204, 0)).await;
    open(Some("anna@app")).await;
    // Those that nobody uses make room.
    tokio::time::advance(Duration::from_secs(30 * 60)).await;
    for user in [Some("anna@app"), Some("anna@app"), Some("bert@app"), None] {
        open(user).await;
    }
    refused(None).await;
    two.post(&message(1, "ping", json!({}))).await.check("over", (404, 0)).await;
}

#[tokio::test]
async fn requests_of_a_session_are_bounded() {
    let (tool, mut gate) = gate();
    let limits = limited(|limits| limits.session_requests(1));
    let server = fixture(|builder| builder.tool(tool).limits(limits)).server;
    let service = HttpService::new(server, HttpOptions::default());
    let (session, other) = (Session::open(&service, NEWEST).await, Session::open(&service, NEWEST).await);
    let hold = |session: &Session, name: &'static str| {
        let session = session.clone();
        tokio::spawn(async move { session.post(&call(1, "hold", json!({"name": name}))).await.text().await })
    };
    let calls = [hold(&session, "one")];
    gate.started("one").await;
    let reply = session.post(&call(2, "echo", json!({"name": "x"}))).await.json().await;
    assert_eq!(reply["error"]["data"]["reason"], "busy", "{reply}");
    let more = hold(&other, "two");
    gate.started("two").await;
    gate.open("one");
    gate.open("two");
    for call in calls.into_iter().chain([more]) {
        call.await.unwrap();
    }
    session.post(&call(3, "echo", json!({"name": "x"}))).await.check("again", (200, 0)).await;
}

/// The running requests of one principal's sessions take no place from other principals.
#[tokio::test]
async fn handlers_of_one_principal_are_bounded() {
    let (tool, mut gate) = gate();
    let change = |limits: Limits| limits.session_handlers(4).session_handlers_per_principal(2);
    let server =
        fixture(|builder| builder.tool(tool).bind_principal(by_header).limits(limited(change))).server;
    let service = HttpService::new(server, HttpOptions::default());
    let (anna, bert) = (Some("anna@app"), Some("bert@app"));
    let open = async |user| Session::open_as(&service, NEWEST, user).await;
    let mine = [open(anna).await, open(anna).await];
    let (his, nobodys) = (open(bert).await, open(None).await);
    let hold = |session: &Session, name: &'static str| {
        let session = session.clone();
        tokio::spawn(async move { session.post(&call(1, "hold", json!({"name": name}))).await.text().await })
    };
    let busy = async |session: &Session| {
        let reply = session.post(&call(2, "echo", json!({"name": "x"}))).await.json().await;
        assert_eq!(reply["error"]["data"]["reason"], "busy", "{reply}");
    };
    let served = async |session: &Session| {
        session.post(&call(3, "echo", json!({"name": "x"}))).await.check("echo", (200, 0)).await;
    };
    let first = hold(&mine[0], "one");
    gate.started("one").await;
    let second = hold(&mine[1], "two");
    gate.started("two").await;
    for session in &mine {
        busy(session).await;
    }
    // Nor does a request without a session get round it.
    let sessionless = with_header(post(call(2, "echo", json!({"name": "x"}))), "x-user", "anna@app");
    send(&service, sessionless).await.check("without a session", (200, -32603)).await;
    for session in [&his, &nobodys] {
        served(session).await;
    }
    gate.open("one");
    gate.ended("one").await;
    first.await.unwrap();
    served(&mine[1]).await;
    // Who has no name shares what all have.
    let other = open(None).await;
    let mut held = Vec::new();
    for (session, name) in [(&nobodys, "three"), (&other, "four"), (&his, "five")] {
        held.push(hold(session, name));
        gate.started(name).await;
    }
    busy(&his).await;
    for name in ["two", "three", "four", "five"] {
        gate.open(name);
    }
    for call in held.into_iter().chain([second]) {
        call.await.unwrap();
    }
}

/// A listening stream ends with its token, and can be opened again with another token. A missing scope is reported as
/// on any revision.
#[tokio::test(start_paused = true)]
async fn streams_end_with_their_tokens() {
    let (tool, reached) = steps();
    let write = Tool::new("write", async |_: &Ctx, _: NoArguments| "").scopes(["write"]);
    let server = fixture(|builder| builder.tool(tool).tool(write)).server;
    let anna = || Bearer::new(Principal::user("anna").with_issuer("https://issuer.example"));
    let short = anna().expiring_at(start() + Duration::from_secs(120));
    let tokens = StaticTokens::new().token("short", short).token("long", anna());
    let auth = ResourceServer::builder("http://localhost/mcp").verifier(tokens).build().unwrap();
    let service = HttpService::new(server, HttpOptions::default().authorize(auth));
    let bearing = |request, token| with_header(request, "authorization", &format!("Bearer {token}"));
    let opened = send(&service, bearing(post(initialize(NEWEST)), "short")).await;
    let id = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let own = |request, token| with_header(bearing(request, token), "mcp-session-id", &id);
    let resuming = |token| with_header(own(bare(Method::GET), token), "last-event-id", "1-0");
    let began = tokio::time::Instant::now();
    reached.send_replace(1);
    drop(send(&service, own(post(call(1, "steps", json!({"count": 2}))), "short")).await);
    for mut stream in
        [send(&service, own(bare(Method::GET), "short")).await, send(&service, resuming("short")).await]
    {
        while let Some(event) = stream.event().await {
            assert!(!event.data.is_some_and(|data| data.contains("result")));
        }
    }
    // A minute more, for clocks that differ.
    assert_eq!(began.elapsed().as_secs(), 180);
    send(&service, own(bare(Method::GET), "none")).await.check("no token", (401, 0)).await;
    let resumed = send(&service, resuming("long")).await;
    reached.send_replace(9);
    assert_eq!(progress_and_end(&resumed.rest().await), (vec![1, 2], true));
    let refused = send(&service, own(post(message(2, "tools/call", json!({"name": "write"}))), "long")).await;
    assert!(refused.headers["www-authenticate"].to_str().unwrap().contains("scope=\"write\""));
    refused.check("a scope", (403, -32600)).await;
}

fn changing() -> (Server, HttpService) {
    let server = fixture(|builder| builder.list_changed(true)).server;
    let service = HttpService::new(server.clone(), HttpOptions::default());
    (server, service)
}

fn add(server: &Server, name: &str) {
    let name = name.to_owned();
    server.add_tool(Tool::new(name, async |_: &Ctx, _: NoArguments| "x")).unwrap();
}

async fn change_of(came: &mut HttpReply) -> (String, Value) {
    let event = came.event().await.unwrap();
    (event.id.clone().unwrap(), event.json()["method"].clone())
}

#[tokio::test]
async fn changes_are_sent_on_the_stream_of_a_get() {
    let (server, service) = changing();
    let session = Session::open(&service, "2025-06-18").await;
    let changed = |number| (format!("0-{number}"), json!("notifications/tools/list_changed"));
    // It waits for the first stream.
    add(&server, "one");
    add(&server, "two");
    let mut came = session.get(None).await;
    assert_eq!(change_of(&mut came).await, changed(1));
    add(&server, "three");
    assert_eq!(change_of(&mut came).await, changed(2));
    drop(came);
    // And for the next.
    add(&server, "four");
    let mut came = session.get(None).await;
    assert_eq!(change_of(&mut came).await, changed(3));
    drop(came);
    // Taken up, it tells again what came after.
    let mut came = session.get(Some("0-1")).await;
    assert_eq!(change_of(&mut came).await, changed(2));
    assert_eq!(change_of(&mut came).await, changed(3));
    // It is not told to a request.
    add(&server, "five");
    session.post(&call(1, "echo", json!({"name": "x"}))).await.check("JSON", (200, 0)).await;
    assert_eq!(change_of(&mut came).await, changed(4));
    // Taken over, it goes on in one place.
    let mut second = session.get(Some("0-4")).await;
    add(&server, "six");
    assert_eq!(change_of(&mut second).await, changed(5));
    assert_eq!(came.event().await, None);
    server.drain();
    assert_eq!(second.event().await, None);
    assert_eq!(session.get(None).await.rest().await, []);
}
