//! Sessions, their handlers and their bytes, shared by many anonymous callers and some with a name: the callers with a name
//! find room, and the session that nobody used for longest goes first.

use crate::common::{
    by_header, fixture,
    gate::{LONGEST, gate, soon},
};
use crate::legacy_http_support::{
    HttpReply, NEWEST, Session, call, initialize, message, post, send, with_header,
};
use antiphon::{
    Form, Result,
    serve::http::{HttpOptions, HttpService, PeerAddress},
    server::{Ctx, Limits, Server, Tool},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

#[derive(Deserialize, Form)]
struct Text {
    text: String,
}

/// A tool that asks a person, whatever its arguments are.
async fn ask(ctx: &Ctx, _arguments: Map<String, Value>) -> Result<String> {
    Ok(ctx.elicit::<Text>("Text?").await?.text)
}

fn served(change: impl FnOnce(Limits) -> Limits) -> (Server, HttpService) {
    let limits = change(Limits::default());
    let ask = Tool::new("wait", ask);
    let server = fixture(|builder| builder.bind_principal(by_header).limits(limits).tool(ask)).server;
    (server.clone(), HttpService::new(server, HttpOptions::default()))
}

fn number(server: &Server, name: &str) -> usize {
    let text = format!("{server:?}");
    let (_, rest) = text.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("{name} in {text}"));
    rest.split(|next: char| !next.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// Waits until nothing is reserved and no handler runs in a session.
async fn is_free(server: &Server) {
    let began = Instant::now();
    while (number(server, "request_bytes"), number(server, "running_in_sessions")) != (0, 0) {
        assert!(began.elapsed() < LONGEST, "left over: {server:?}");
        tokio::task::yield_now().await;
    }
}

/// Sends an `initialize`, and returns the session's id unless the server is busy.
async fn open(service: &HttpService, user: Option<&str>, peer: Option<&str>) -> Option<String> {
    let mut request = post(initialize(NEWEST));
    if let Some(peer) = peer {
        request.extensions_mut().insert(PeerAddress::new(peer.parse().unwrap()));
    }
    if let Some(user) = user {
        request = with_header(request, "x-user", user);
    }
    let came = send(service, request).await;
    match came.headers.get("mcp-session-id") {
        Some(id) => Some(id.to_str().unwrap().to_owned()),
        None => {
            let reply = came.json().await;
            assert_eq!(reply["error"]["data"], json!({"reason": "busy", "retryAfterMs": 1000}));
            None
        }
    }
}

fn session(service: &HttpService, id: &str, user: Option<&'static str>) -> Session {
    Session { service: service.clone(), id: id.to_owned(), version: NEWEST.to_owned(), user }
}

async fn ping(service: &HttpService, id: &str, user: Option<&'static str>) -> u16 {
    session(service, id, user).post(&message(9, "ping", json!({}))).await.status
}

const ANNA: Option<&'static str> = Some("anna@app");

#[tokio::test(start_paused = true)]
async fn anonymous_sessions_leave_room_for_named_callers() {
    let (server, service) = served(|limits| limits);
    let mut ids = Vec::new();
    for _ in 0..1000 {
        ids.extend(open(&service, None, None).await);
    }
    assert_eq!((ids.len(), number(&server, "sessions")), (750, 750));
    for _ in 0..100 {
        open(&service, ANNA, None).await.expect("room for her");
    }
    assert_eq!(open(&service, ANNA, None).await, None, "a principal has 100 sessions");
    assert!(open(&service, Some("bert@app"), None).await.is_some());
    // All of them live: nobody's session was ended.
    assert_eq!((ping(&service, &ids[0], None).await, ping(&service, &ids[749], None).await), (200, 200));
    assert_eq!(number(&server, "sessions"), 851);
    // After ten seconds without use the oldest makes room, and those that were used do not.
    tokio::time::advance(Duration::from_secs(9)).await;
    assert_eq!(open(&service, None, None).await, None);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!((ping(&service, &ids[0], None).await, ping(&service, &ids[749], None).await), (200, 200));
    assert!(open(&service, None, None).await.is_some());
    assert_eq!((ping(&service, &ids[0], None).await, ping(&service, &ids[749], None).await), (200, 200));
    assert_eq!(number(&server, "sessions"), 851);
}

/// A caller with a name takes the place of the session that was idle for longest; of one in use only at last.
#[tokio::test(start_paused = true)]
async fn the_longest_idle_anonymous_session_goes_first() {
    let (server, service) = served(|limits| limits.sessions(8).sessions_per_principal(7));
    let mut ids = Vec::new();
    for user in [None, None, None, None, ANNA, None, None] {
        ids.push(open(&service, user, None).await.expect("room"));
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(open(&service, None, None).await, None, "two are kept for named callers");
    ids.push(open(&service, ANNA, None).await.expect("room"));
    // The first has a stream, the second a call that asks; the third was used just now.
    let mut stream = session(&service, &ids[0], None).get(None).await;
    assert!(stream.event().await.is_some());
    tokio::time::advance(Duration::from_secs(1)).await;
    let mut asking = session(&service, &ids[1], None).post(&call(1, "wait", json!({}))).await;
    assert!(asking.event().await.is_some());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(ping(&service, &ids[2], None).await, 200);
    for ended in [3, 5, 6, 2, 0] {
        ids.push(open(&service, ANNA, None).await.unwrap_or_else(|| panic!("room in the place of {ended}")));
        assert_eq!(session(&service, &ids[ended], None).get(Some("0-0")).await.status, 404, "{ended}");
        assert_eq!(number(&server, "sessions"), 8, "{ended}");
    }
    assert_eq!(open(&service, ANNA, None).await, None, "seven are hers");
    // The call that still asks is cancelled last.
    assert!(open(&service, Some("bert@app"), None).await.is_some());
    assert!(stream.rest().await.is_empty());
    assert!(asking.rest().await.iter().all(|(_, event)| event.get("result").is_none()));
    is_free(&server).await;
    assert_eq!(open(&service, Some("bert@app"), None).await, None, "no anonymous session is left");
    for at in [4, 7, 8, 12] {
        assert_eq!(ping(&service, &ids[at], ANNA).await, 200, "{at}");
    }
}

/// The anonymous callers at one address have a part of the sessions and of their handlers.
#[tokio::test(start_paused = true)]
async fn anonymous_callers_of_one_address_are_bounded() {
    let limits = |limits: Limits| limits.sessions_per_address(2).session_handlers_per_address(1);
    let (server, service) = served(limits);
    let (one, other) = (Some("2001:db8:1:2::1"), Some("2001:db8:1:3::1"));
    let oldest = open(&service, None, other).await.unwrap();
    let first = open(&service, None, one).await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    let second = open(&service, None, Some("2001:db8:1:2:ffff::2")).await.unwrap();
    assert_eq!(open(&service, None, one).await, None, "one network is one caller");
    for peer in [other, None, Some("::1"), None] {
        assert!(open(&service, None, peer).await.is_some(), "{peer:?}");
    }
    assert!(open(&service, ANNA, one).await.is_some(), "a name counts, not an address");
    tokio::time::advance(Duration::from_secs(10)).await;
    let third = open(&service, None, one).await.expect("the first makes room");
    assert_eq!(ping(&service, &first, None).await, 404);
    for id in [&oldest, &second] {
        assert_eq!(ping(&service, id, None).await, 200, "of another address, or younger");
    }
    // Handlers.
    let at_one = |id: &str, number: u32| {
        let mut request = session(&service, id, None).own(post(call(number, "wait", json!({}))));
        request.extensions_mut().insert(PeerAddress::new(one.unwrap().parse().unwrap()));
        request
    };
    let asking = send(&service, at_one(&second, 1)).await;
    assert!(asking.is_stream());
    let refused = send(&service, at_one(&third, 1)).await.json().await;
    assert_eq!(refused["error"]["data"]["reason"], "busy", "{refused}");
    assert!(session(&service, &oldest, None).post(&call(1, "wait", json!({}))).await.is_stream());
    for id in [&second, &oldest] {
        session(&service, id, None).delete().await.check("ends", (204, 0)).await;
    }
    is_free(&server).await;
}

/// Calls that wait for people leave a quarter of their places.
#[tokio::test]
async fn calls_that_wait_for_people_leave_places_for_named_callers() {
    let (tool, mut gate) = gate();
    let server = fixture(|builder| builder.tool(tool).bind_principal(by_header)).server;
    let service = HttpService::new(server.clone(), HttpOptions::default());
    let named = Session::open_as(&service, NEWEST, ANNA).await;
    let mut nobodys = Vec::new();
    for _ in 0..16 {
        nobodys.push(Session::open(&service, NEWEST).await);
    }
    let hold = |session: &Session, id: u32, name: String| {
        let (session, hold) = (session.clone(), call(id, "hold", json!({"name": name})));
        tokio::spawn(async move { session.post(&hold).await })
    };
    let mut held = Vec::new();
    for number in 0..1024_u32 {
        let session = &nobodys[number as usize / 64];
        let waits = hold(session, number, number.to_string());
        if number < 768 {
            gate.started(&number.to_string()).await;
            held.push(waits);
        } else {
            let reply = soon(waits).await.unwrap().json().await;
            assert_eq!(reply["error"]["data"]["reason"], "busy", "{number}: {reply}");
        }
    }
    assert_eq!(number(&server, "running_in_sessions"), 768);
    named.post(&call(1, "echo", json!({"name": "x"}))).await.check("hers", (200, 0)).await;
    for session in &nobodys {
        session.delete().await.check("ends", (204, 0)).await;
    }
    drop(held);
    is_free(&server).await;
}

/// Long calls that wait for people share the budget, and those of one session have a part of it.
#[tokio::test]
async fn the_bytes_of_waiting_calls_are_bounded() {
    // An eighth of the defaults, since the calls have an eighth of the largest body.
    let limits = |limits: Limits| limits.request_bytes(8 << 20).session_request_bytes(1 << 20);
    let (server, service) = served(limits);
    let named = Session::open_as(&service, NEWEST, ANNA).await;
    let mut sessions = Vec::new();
    for _ in 0..90 {
        sessions.push(Session::open(&service, NEWEST).await);
    }
    let padding = "x".repeat(500_000);
    let bodies = [1, 2, 3].map(|id| post(call(id, "wait", json!({ "padding": padding }))).into_body());
    let long = async |session: &Session, at: usize| {
        let request = session.own(post("")).map(|_| bodies[at].clone());
        let length = request.body().len().to_string();
        send(&service, with_header(request, "content-length", &length)).await
    };
    let mut waiting: Vec<HttpReply> = Vec::new();
    let mut refused = 0;
    for (at, session) in sessions.iter().enumerate() {
        for call in 0..2 {
            let came = long(session, call).await;
            if came.is_stream() {
                waiting.push(came);
                continue;
            }
            assert_eq!((came.status, &came.headers["retry-after"]), (503, &"1".parse().unwrap()));
            refused += 1;
        }
        if at == 0 {
            let reply = long(session, 2).await.json().await;
            assert_eq!(reply["error"]["data"]["reason"], "busy", "1 MiB in one session: {reply}");
        }
    }
    // 6 MiB are there for anonymous callers.
    assert_eq!((waiting.len(), refused), (12, 168));
    let reserved = number(&server, "request_bytes");
    assert!((6_000_000..6 << 20).contains(&reserved), "{reserved}");
    let hers = long(&named, 0).await;
    assert!(hers.is_stream());
    sessions[89].post(&call(3, "echo", json!({"name": "x"}))).await.check("a short one", (200, 0)).await;
    // Nobody listens any more: the calls go on, and end with their sessions.
    drop((waiting, hers));
    assert!(number(&server, "request_bytes") > reserved);
    for session in sessions.iter().chain([&named]) {
        session.delete().await.check("ends", (204, 0)).await;
    }
    is_free(&server).await;
}
