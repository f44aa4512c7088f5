//! Error -32042: URLs that must be finished before a request is sent again.

use crate::scripted_server::{Peer, builder, error, notification, result};
use antiphon::client::{
    Call, CallProgress, ClientBuilder, ClientErrorKind, Mode, RoundDecision, asks::AskFault,
    calls::RequestFault,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

fn required(call: &Value, id: &str) -> Value {
    let url =
        json!({"mode": "url", "message": "Sign in.", "url": "https://a.example/x", "elicitationId": id});
    error(&call["id"], -32042, json!({"elicitations": [url]}))
}

fn done(call: &Value) -> Value {
    result(&call["id"], json!({"content": [{"type": "text", "text": "done"}]}))
}

type SeenUrls = Arc<Mutex<Vec<String>>>;

fn person(seen: &SeenUrls, agrees: bool) -> ClientBuilder {
    let (of_url, of_end, of_round) = (Arc::clone(seen), Arc::clone(seen), Arc::clone(seen));
    builder()
        .mode(Mode::Legacy)
        .on_elicit_url(move |ask| {
            of_url.lock().unwrap().push(format!("{} {}", ask.context.key, ask.url));
            async move { Ok(if agrees { ask.consent() } else { ask.decline() }) }
        })
        .on_elicit_complete(move |done| {
            of_end.lock().unwrap().push(format!("finished {}", done.elicitation_id))
        })
        .on_round(move |round| {
            of_round.lock().unwrap().push(format!("{} {}", round.method, round.number));
            async { RoundDecision::go() }
        })
}

fn seen(seen: &SeenUrls) -> Vec<String> {
    std::mem::take(&mut seen.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_once_the_url_is_finished() {
    let noted = SeenUrls::default();
    let (client, mut peer) = Peer::of(person(&noted, true));
    let began = Instant::now();
    let (called, ()) = tokio::join!(client.call_tool("t", json!({"a": 1})), async {
        peer.initializes("2025-11-25").await;
        let first = peer.receive_of("tools/call").await;
        peer.send(required(&first, "e1")).await;
        // Of no interest: it was never asked.
        peer.send(notification("elicitation/complete", json!({"elicitationId": "other"}))).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        peer.send(notification("elicitation/complete", json!({"elicitationId": "e1"}))).await;
        peer.send(notification("elicitation/complete", json!({"elicitationId": "e1"}))).await;
        let again = peer.receive_of("tools/call").await;
        assert_eq!(again["params"], first["params"]);
        assert_ne!(again["id"], first["id"]);
        peer.send(done(&again)).await;
    });
    assert_eq!(called.unwrap().first_text(), Some("done"));
    assert_eq!(began.elapsed().as_secs(), 20);
    assert_eq!(seen(&noted), ["tools/call 1", "e1 https://a.example/x", "finished e1"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_says_so_is_asked_again_and_the_person_is_not() {
    let noted = SeenUrls::default();
    let (client, mut peer) =
        Peer::of(person(&noted, true).url_retry_interval(Duration::from_secs(30)).max_rounds(3));
    let began = Instant::now();
    let (called, ()) = tokio::join!(client.call_tool("t", ()), async {
        peer.initializes("2025-11-25").await;
        for _ in 0..4 {
            let call = peer.receive_of("tools/call").await;
            peer.send(required(&call, "e1")).await;
        }
    });
    assert!(matches!(called.unwrap_err().kind(), ClientErrorKind::Ask(AskFault::RoundLimit { rounds: 3 })));
    assert_eq!(began.elapsed().as_secs(), 90);
    assert_eq!(seen(&noted), ["tools/call 1", "e1 https://a.example/x", "tools/call 2", "tools/call 3"]);
}

#[tokio::test(start_paused = true)]
async fn without_consent_nothing_is_sent_again() {
    for (builder, shown) in
        [(person(&SeenUrls::default(), false), true), (builder().mode(Mode::Legacy), false)]
    {
        let (client, mut peer) = Peer::of(builder);
        let (called, ()) = tokio::join!(client.get_prompt("p", ()), async {
            peer.initializes("2025-11-25").await;
            let call = peer.receive_of("prompts/get").await;
            peer.send(required(&call, "e1")).await;
        });
        let error = called.unwrap_err();
        let ClientErrorKind::Request(RequestFault::Server(told)) = error.kind() else { panic!("{error:?}") };
        assert_eq!(told.code.0, -32042);
        assert_eq!(error.pending().is_some(), shown);
    }
}

/// The one kind of question that can wait: the pending call is plain data here too.
#[tokio::test(start_paused = true)]
async fn by_hand() {
    let (client, mut peer) = Peer::of(person(&SeenUrls::default(), true).url_retry_interval(Duration::ZERO));
    let (step, ()) = tokio::join!(client.begin(Call::resource("a:b")), async {
        peer.initializes("2025-11-25").await;
        let call = peer.receive_of("resources/read").await;
        peer.send(required(&call, "e1")).await;
    });
    let mut pending = step.unwrap().pending().unwrap();
    assert_eq!(pending.missing(), ["e1"]);
    pending.accept("e1", &()).unwrap();
    let (step, ()) = tokio::join!(client.resume(pending), async {
        let again = peer.receive_of("resources/read").await;
        assert_eq!(again["params"], json!({"uri": "a:b"}));
        peer.send(result(&again["id"], json!({"contents": []}))).await;
    });
    assert!(matches!(step.unwrap(), CallProgress::Done(_)));
}
