//! Requests of a server on a session: the same callbacks and checks as in rounds; errors are those of the session's
//! version.

use crate::scripted_server::{Peer, asks, builder, hello, notification, result, soon};
use antiphon::{
    client::{
        Call, CallbackError, Client, ClientBuilder, ClientErrorKind, Mode, RoundDecision, calls::RequestFault,
    },
    wire::{
        ElicitResult, LogLevel, ProtocolVersion,
        sampling::{CreateMessageResult, ListRootsResult, Root},
    },
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::{oneshot, watch};

fn form() -> Value {
    json!({"message": "Where?", "requestedSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "maxLength": 8}, "size": {"type": "integer", "default": 1}},
        "required": ["region"]
    }})
}

fn url() -> Value {
    json!({"mode": "url", "message": "Pay", "url": "https://pay.example/1", "elicitationId": "e1"})
}

fn sampling() -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Capital?"}}], "maxTokens": 9})
}

/// Answers everything, and notes what it saw.
fn person(seen: &Arc<Mutex<Vec<String>>>) -> ClientBuilder {
    let (of_round, of_form) = (Arc::clone(seen), Arc::clone(seen));
    builder()
        .on_elicit_form(move |ask| {
            of_form.lock().unwrap().push(format!("form {} of {}", ask.context.key, ask.context.server));
            async move { Ok(ask.accept(json!({"region": "eu"}))?) }
        })
        .on_elicit_url(async |ask| Ok(if ask.url.contains("pay") { ask.consent() } else { ask.decline() }))
        .on_sample(async |_| Ok(CreateMessageResult::text("m", "Paris")))
        .on_roots(async |_| Ok(ListRootsResult::new(vec![Root::new("file:///work")])))
        .on_round(move |round| {
            of_round.lock().unwrap().push(format!("{} {} {}", round.method, round.number, round.asks.len()));
            async { RoundDecision::go() }
        })
}

/// Lets the client call a tool over a session, up to its request.
async fn calling(
    builder: ClientBuilder,
) -> (Client, Peer, Value, tokio::task::JoinHandle<Result<String, String>>) {
    let (client, mut peer) = Peer::of(builder.mode(Mode::Legacy));
    let caller = client.clone();
    let called = tokio::spawn(async move {
        let called = caller.call_tool("provision", json!({"name": "orders"})).await;
        called
            .map(|result| result.first_text().unwrap_or_default().to_owned())
            .map_err(|error| error.to_string())
    });
    peer.initializes("2025-11-25").await;
    let call = peer.receive_of("tools/call").await;
    (client, peer, call, called)
}

fn done(call: &Value) -> Value {
    result(&call["id"], json!({"content": [{"type": "text", "text": "done"}]}))
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_is_answered_by_the_callbacks() {
    let rows = [
        (
            "elicitation/create",
            form(),
            json!({"result": {"action": "accept", "content": {"region": "eu", "size": 1}}}),
        ),
        ("elicitation/create", url(), json!({"result": {"action": "accept"}})),
        (
            "elicitation/create",
            json!({"mode": "url", "message": "x", "url": "https://x.example", "elicitationId": "e2"}),
            json!({"result": {"action": "decline"}}),
        ),
        (
            "sampling/createMessage",
            sampling(),
            json!({"result": {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn"}}),
        ),
        ("roots/list", json!({}), json!({"result": {"roots": [{"uri": "file:///work"}]}})),
        ("ping", json!({}), json!({"result": {}})),
        ("tasks/list", json!({}), json!({"error": -32601})),
        ("elicitation/create", json!({"message": "no schema"}), json!({"error": -32602})),
        (
            "sampling/createMessage",
            json!({"messages": [], "maxTokens": 9, "tools": []}),
            json!({"error": -32602}),
        ),
    ];
    let seen = Arc::default();
    let (_client, mut peer, call, called) = calling(person(&seen)).await;
    for (at, (method, params, expected)) in rows.into_iter().enumerate() {
        peer.send(asks(format!("s{at}"), method, params)).await;
        let mut answer = peer.receive().await.unwrap();
        assert_eq!(answer["id"], format!("s{at}"), "{answer}");
        if let Some(code) = answer["error"]["code"].as_i64() {
            answer["error"] = code.into();
        }
        let (name, wanted) = expected.as_object().unwrap().iter().next().unwrap();
        assert_eq!(answer[name], *wanted, "{method}: {answer}");
    }
    peer.send(done(&call)).await;
    assert_eq!(called.await.unwrap(), Ok("done".into()));
    // Over streams nothing says for which request something is asked: it belongs to the session.
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "initialize 1 1",
            "form s0 of old (memory)",
            "initialize 2 1",
            "initialize 3 1",
            "initialize 4 1",
            "initialize 5 1"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn exactly_what_is_attached_is_declared_and_the_rest_is_not_supported() {
    let no = ["elicitation/create", "sampling/createMessage", "roots/list"];
    // What is attached, what that declares, and what is asked all the same, with code and text of the refusal.
    type Refused = Vec<(&'static str, Value, i64, &'static str)>;
    let rows: Vec<(ClientBuilder, Value, Refused)> = vec![
        (
            builder(),
            json!({}),
            vec![
                (no[0], form(), -32601, "Elicitation not supported"),
                (no[0], url(), -32601, "Elicitation not supported"),
                (no[1], sampling(), -32601, "Sampling not supported"),
                (no[2], json!({}), -32601, "List roots not supported"),
            ],
        ),
        (
            builder().on_elicit_form(async |ask| Ok(ask.decline())),
            json!({"elicitation": {"form": {}}}),
            vec![(no[0], url(), -32602, "Elicitation of URLs not supported")],
        ),
        (
            builder()
                .on_elicit_url(async |ask| Ok(ask.decline()))
                .on_sample(async |_| Ok(CreateMessageResult::text("m", "x")))
                .on_roots(async |_| Ok(ListRootsResult::new(vec![]))),
            json!({"elicitation": {"url": {}}, "sampling": {}, "roots": {"listChanged": true}}),
            vec![(no[0], form(), -32602, "Elicitation of forms not supported")],
        ),
    ];
    for (builder, declared, asked) in rows {
        let (client, mut peer) = Peer::of(builder.declare(antiphon::wire::AskSupport::ALL));
        let caller = client.clone();
        let called = tokio::spawn(async move { caller.call_tool("t", ()).await.map(|_| ()).is_ok() });
        let said = peer.handshake("2025-11-25").await;
        assert_eq!(said["capabilities"], declared);
        assert_eq!(said["clientInfo"], json!({"name": "my-host", "version": "1.0"}));
        assert_eq!(said["protocolVersion"], "2025-11-25");
        let call = peer.receive_of("tools/call").await;
        // Nothing of the modern era is said on a session.
        assert_eq!(call["params"], json!({"name": "t"}));
        for (method, params, code, text) in asked {
            peer.send(asks(7, method, params)).await;
            let answer = peer.receive().await.unwrap();
            assert_eq!(answer["error"], json!({"code": code, "message": text}), "{method}");
        }
        peer.send(done(&call)).await;
        assert!(called.await.unwrap());
    }
}

/// The server hears that a callback failed, and not why: that is the host's.
#[tokio::test(start_paused = true)]
async fn callbacks_that_fail() {
    fn why() -> CallbackError {
        CallbackError::new("no terminal at /dev/tty3")
    }
    let failing = builder()
        .on_elicit_form(async |_| Err(why()))
        .on_elicit_url(async |_| Err(why()))
        .on_sample(async |_| Err(why()))
        .on_roots(async |_| Err(why()));
    let (_client, mut peer, call, called) = calling(failing).await;
    for (method, params, code, text) in [
        ("elicitation/create", form(), -32603, "The question could not be answered"),
        ("elicitation/create", url(), -32603, "The question could not be answered"),
        ("sampling/createMessage", sampling(), -1, "User rejected sampling request"),
        ("roots/list", json!({}), -32603, "The roots could not be listed"),
    ] {
        peer.send(asks(7, method, params)).await;
        let answer = peer.receive().await.unwrap();
        assert_eq!(answer["error"], json!({"code": code, "message": text}), "{method}");
    }
    peer.send(done(&call)).await;
    assert_eq!(called.await.unwrap(), Ok("done".into()));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_the_server() {
    let (client, mut peer) = Peer::of(builder());
    assert_eq!(client.era(), None);
    let (discovered, _) = tokio::join!(client.discover(), peer.handshake("2025-06-18"));
    let discovered = discovered.unwrap();
    assert_eq!(discovered.supported_versions, [ProtocolVersion::V2025_06_18]);
    assert_eq!(discovered.instructions.as_deref(), Some("Ask."));
    assert_eq!(client.server_info().unwrap().name, "old");
    assert_eq!(client.protocol_version(), ProtocolVersion::V2025_06_18);
    assert!(client.capabilities().unwrap().has("tools"));
}

#[tokio::test(start_paused = true)]
async fn a_person_may_take_longer_than_a_request() {
    let (answer, answered) = oneshot::channel::<()>();
    let answered = Mutex::new(Some(answered));
    let slow = builder().leg_timeout(Duration::from_secs(5)).on_elicit_form(move |ask| {
        let answered = answered.lock().unwrap().take().unwrap();
        async move {
            answered.await?;
            Ok(ask.decline())
        }
    });
    let (_client, mut peer, call, called) = calling(slow).await;
    tokio::time::advance(Duration::from_secs(4)).await;
    peer.send(asks(1, "elicitation/create", form())).await;
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!called.is_finished());
    answer.send(()).unwrap();
    assert_eq!(peer.receive().await.unwrap()["result"]["action"], "decline");
    // From here on it is the server's time again: the second that was left.
    let cancelled = peer.receive_of("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    assert!(called.await.unwrap().unwrap_err().contains("no response within 5s"));
}

#[tokio::test(start_paused = true)]
async fn the_server_takes_its_question_back() {
    let (gone, is_gone) = oneshot::channel::<()>();
    let gone = Mutex::new(Some(gone));
    let waits = builder().on_elicit_form(move |ask| {
        let gone = gone.lock().unwrap().take();
        async move {
            std::future::pending::<()>().await;
            drop(gone);
            Ok(ask.decline())
        }
    });
    let (_client, mut peer, call, called) = calling(waits).await;
    peer.send(asks("q", "elicitation/create", form())).await;
    peer.send(asks("p", "ping", json!({}))).await;
    assert_eq!(peer.receive().await.unwrap()["id"], "p");
    peer.send(notification("cancelled", json!({"requestId": "q"}))).await;
    assert!(soon(is_gone).await.is_err());
    peer.send(done(&call)).await;
    assert!(called.await.unwrap().is_ok());
    // No answer was sent to what nobody wants to know any more.
    peer.send(asks("p2", "ping", json!({}))).await;
    assert_eq!(peer.receive().await.unwrap()["id"], "p2");
}

/// A question that is cancelled before its turn is never shown, also if it waits for another one.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back_before_its_turn() {
    for one_at_a_time in [false, true] {
        let shown: Arc<Mutex<Vec<String>>> = Arc::default();
        let showing = Arc::clone(&shown);
        let (answer, may_answer) = watch::channel(false);
        let person = builder().on_elicit_form(move |ask| {
            let mut may_answer = may_answer.clone();
            showing.lock().unwrap().push(ask.context.key.clone());
            async move {
                may_answer.wait_for(|may| *may).await?;
                Ok(ask.decline())
            }
        });
        let person = if one_at_a_time { person.one_at_a_time(true) } else { person };
        let (_client, mut peer, call, called) = calling(person).await;
        peer.send(asks("first", "elicitation/create", form())).await;
        if one_at_a_time {
            peer.send(asks("waits", "elicitation/create", form())).await;
            peer.send(asks("p", "ping", json!({}))).await;
            assert_eq!(peer.receive().await.unwrap()["id"], "p");
            peer.send(notification("cancelled", json!({"requestId": "waits"}))).await;
        }
        let taken_back = notification("cancelled", json!({"requestId": "at once"}));
        peer.send(json!([asks("at once", "elicitation/create", form()), taken_back])).await;
        peer.send(asks("p", "ping", json!({}))).await;
        assert_eq!(peer.receive().await.unwrap()["id"], "p");
        answer.send_replace(true);
        assert_eq!(peer.receive().await.unwrap()["id"], "first");
        peer.send(asks("last", "elicitation/create", form())).await;
        assert_eq!(peer.receive().await.unwrap()["id"], "last");
        assert_eq!(*shown.lock().unwrap(), ["first", "last"], "{one_at_a_time}");
        peer.send(done(&call)).await;
        assert!(called.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time() {
    let open = Arc::new(Mutex::new((0, 0)));
    let count = Arc::clone(&open);
    let careful = builder().one_at_a_time(true).on_elicit_form(move |ask| {
        let count = Arc::clone(&count);
        async move {
            {
                let mut open = count.lock().unwrap();
                open.0 += 1;
                open.1 = open.1.max(open.0);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            count.lock().unwrap().0 -= 1;
            Ok(ask.decline())
        }
    });
    let (_client, mut peer, call, called) = calling(careful).await;
    for id in 0..3 {
        peer.send(asks(id, "elicitation/create", form())).await;
    }
    // A ping does not wait for a person.
    peer.send(asks(9, "ping", json!({}))).await;
    for id in [9, 0, 1, 2] {
        assert_eq!(peer.receive().await.unwrap()["id"], id);
    }
    assert_eq!(open.lock().unwrap().1, 1);
    peer.send(done(&call)).await;
    assert!(called.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn progress_and_logs() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (of_progress, of_logs) = (Arc::clone(&heard), Arc::clone(&heard));
    let listening = builder()
        .on_progress(move |event| {
            of_progress.lock().unwrap().push(format!("{} {}", event.context.method, event.progress))
        })
        .log_level(LogLevel::Notice)
        .on_log(move |event| {
            of_logs.lock().unwrap().push(format!("{} {}", event.context.method, event.data))
        });
    let (client, mut peer) = Peer::of(listening.mode(Mode::Legacy));
    let caller = client.clone();
    let called = tokio::spawn(async move { caller.call_tool("t", ()).await });
    peer.initializes("2025-11-25").await;
    let level = peer.receive_of("logging/setLevel").await;
    assert_eq!(level["params"], json!({"level": "notice"}));
    peer.send(notification("message", json!({"level": "notice", "data": "of the session"}))).await;
    peer.send(result(&level["id"], json!({}))).await;
    let call = peer.receive_of("tools/call").await;
    assert_eq!(call["params"]["_meta"], json!({"progressToken": call["id"]}));
    peer.send(notification("progress", json!({"progressToken": call["id"], "progress": 1}))).await;
    peer.send(notification("message", json!({"level": "info", "data": "too low"}))).await;
    peer.send(notification("message", json!({"level": "error", "data": "of the call"}))).await;
    peer.send(done(&call)).await;
    called.await.unwrap().unwrap();
    let mut heard = heard.lock().unwrap().clone();
    // What comes while one request of the client's own is under way belongs to that.
    heard.retain(|line| !line.contains("of the session"));
    assert_eq!(heard, ["tools/call 1", "tools/call \"of the call\""]);
    // One call wants to hear more.
    let caller = client.clone();
    let called =
        tokio::spawn(
            async move { caller.call(Call::tool("t", ()).unwrap().log_level(LogLevel::Debug)).await },
        );
    let level = peer.receive_of("logging/setLevel").await;
    assert_eq!(level["params"], json!({"level": "debug"}));
    peer.send(result(&level["id"], json!({}))).await;
    let call = peer.receive_of("tools/call").await;
    peer.send(done(&call)).await;
    called.await.unwrap().unwrap();
}

/// A dropped call is cancelled; `initialize` never is.
#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_is_cancelled() {
    let (_client, mut peer, call, called) = calling(builder()).await;
    called.abort();
    let cancelled = peer.receive_of("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], call["id"]);

    let (client, mut peer) = Peer::of(builder().mode(Mode::Legacy));
    let called = tokio::spawn(async move { client.call_tool("t", ()).await });
    peer.receive_of("initialize").await;
    called.abort();
    drop(called);
    assert_eq!(peer.receive().await, None);
}

/// Batches are of 2025-03-26, and are heard on any session.
#[tokio::test(start_paused = true)]
async fn messages_in_a_batch() {
    let (_client, mut peer, call, called) = calling(builder()).await;
    let batch = json!([asks("p", "ping", json!({})), notification("x", json!({})), done(&call)]);
    peer.send(batch).await;
    assert_eq!(peer.receive().await.unwrap()["id"], "p");
    assert!(called.await.unwrap().is_ok());
}

/// A call that waits for answers to a modern server cannot go on in a session: nothing is sent.
#[tokio::test(start_paused = true)]
async fn pending_calls_do_not_go_on_in_a_session() {
    let (modern, mut peer) = Peer::of(builder().on_elicit(async |_| Ok(ElicitResult::decline())));
    let (step, ()) = tokio::join!(modern.begin(Call::tool("t", ()).unwrap()), async {
        let probe = peer.receive_of("server/discover").await;
        let found =
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
        peer.send(result(&probe["id"], found)).await;
        let call = peer.receive_of("tools/call").await;
        let mut ask = form();
        ask["mode"] = "form".into();
        let asks = json!({"q": {"method": "elicitation/create", "params": ask}});
        let asked = json!({"resultType": "input_required", "inputRequests": asks, "requestState": "s"});
        peer.send(result(&call["id"], asked)).await;
    });
    let mut pending = step.unwrap().pending().unwrap();
    pending.decline("q").unwrap();
    let (legacy, mut peer) = Peer::of(builder().declare(antiphon::wire::AskSupport::ELICITATION));
    let (resumed, _) = tokio::join!(legacy.resume(pending), peer.handshake("2025-11-25"));
    let error = resumed.unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Request(RequestFault::PendingOnSession))
            && error.pending().is_some(),
        "{error}"
    );
}

/// More at once than is allowed is not answered, and does not grow.
#[tokio::test(start_paused = true)]
async fn a_flood_of_questions() {
    let patient = builder().max_asks(4).on_elicit_form(async |ask| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(ask.decline())
    });
    let (_client, mut peer, call, called) = calling(patient).await;
    for id in 0..50 {
        peer.send(asks(id, "elicitation/create", form())).await;
    }
    peer.send(done(&call)).await;
    assert!(called.await.unwrap().is_ok());
    let mut answered = 0;
    while let Ok(Some(message)) = tokio::time::timeout(Duration::from_secs(30), peer.receive()).await {
        assert_eq!(message["result"]["action"], "decline");
        answered += 1;
    }
    assert!((4..50).contains(&answered), "{answered}");
}

/// > The receiver **MUST** respond promptly with an empty response
///
/// Before the handshake is over, too: it is all that a server may ask then.
#[tokio::test(start_paused = true)]
async fn a_ping_before_the_handshake_is_over() {
    let (client, mut peer) = Peer::of(builder().mode(Mode::Legacy));
    let called = tokio::spawn(async move { client.call_tool("t", ()).await.map(|_| ()).is_ok() });
    let initialize = peer.receive_of("initialize").await;
    peer.send(asks("p", "ping", json!({}))).await;
    assert_eq!(peer.receive().await.unwrap(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    peer.send(result(&initialize["id"], hello("2025-06-18"))).await;
    peer.receive_of("notifications/initialized").await;
    let call = peer.receive_of("tools/call").await;
    peer.send(done(&call)).await;
    assert!(called.await.unwrap());
}

/// > Both parties **MUST**: Only use capabilities that were successfully negotiated
#[tokio::test(start_paused = true)]
async fn a_client_without_roots_sends_no_changes_of_roots() {
    for (builder, tells) in
        [(builder(), false), (builder().on_roots(async |_| Ok(ListRootsResult::new(vec![]))), true)]
    {
        let (client, mut peer) = Peer::of(builder);
        let (told, said) = tokio::join!(client.discover(), peer.handshake("2025-06-18"));
        assert!(told.is_ok());
        assert_eq!(said["capabilities"].get("roots").is_some(), tells);
        client.roots_changed().await;
        if tells {
            peer.receive_of("notifications/roots/list_changed").await;
        }
        client.close().await;
        assert_eq!(peer.receive().await, None);
    }
}
