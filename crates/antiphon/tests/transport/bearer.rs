//! Bearer tokens that are asked for: when, with what, and what a refusal becomes.
#![cfg(feature = "http")]

use crate::transport_support;
use crate::transport_support::{Outcome, ask, failed, request, server::*};
use antiphon::client::transport::{
    HttpTransport, Token, TokenRequest, Transport,
    TransportErrorKind::{HttpStatus, Unreachable},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};
use tokio::io::AsyncWriteExt;

/// The result of the provider: a token, none, or an error.
type TokenResult = Result<Option<&'static str>, &'static str>;

fn refusal(status: &str, challenges: &[&str], body: &str) -> String {
    let lines: String = challenges.iter().map(|one| format!("WWW-Authenticate: {one}\r\n")).collect();
    json_response(status, body).replacen("\r\n", &format!("\r\n{lines}"), 1)
}

struct Row<'a> {
    name: &'a str,
    given: &'a [TokenResult],
    /// The responses of the server, request after request.
    answers: &'a [&'a str],
    expected: Outcome,
    /// `authorization` of each request, in lower case.
    sent: &'a [Option<&'a str>],
    /// The challenges that the provider received.
    challenges: &'a [Option<&'a str>],
}

async fn check(row: Row<'_>) {
    let name = row.name;
    let server = Server::new().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (told, given) = (Arc::clone(&asked), Arc::new(Mutex::new(VecDeque::from(row.given.to_vec()))));
    let client = HttpTransport::builder(&server.url)
        .bearer_provider(move |request: TokenRequest| {
            told.lock().unwrap().push(request.challenge);
            let next = given.lock().unwrap().pop_front().expect("asked no more often than this");
            async move { next.map(|token| token.map(Token::from)) }
        })
        .build()
        .unwrap();
    assert!(!format!("{client:?}").contains("t0k3n"));
    let client = Arc::new(client);
    let call = asking(&client, request(1, "tools/call"));
    let mut sent = Vec::new();
    for answer in row.answers {
        let mut connection = server.accepts().await;
        let (head, body) = receive(&mut connection).await;
        assert_eq!(body, request(1, "tools/call").body, "{name}");
        sent.push(head.lines().find_map(|line| line.strip_prefix("authorization: ")).map(str::to_owned));
        connection.write_all(answer.as_bytes()).await.unwrap();
    }
    let (outcome, _) = call.await.unwrap();
    assert!(outcome.fits(&row.expected), "{name}: {outcome:?} instead of {:?}", row.expected);
    assert!(!format!("{outcome:?}").contains("t0k3n"), "{name}: {outcome:?}");
    assert_eq!(sent.iter().map(Option::as_deref).collect::<Vec<_>>(), row.sent, "{name}");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.iter().map(Option::as_deref).collect::<Vec<_>>(), row.challenges, "{name}");
}

#[tokio::test]
async fn a_token_is_asked_for_and_asked_for_again_when_it_is_refused() {
    let good = json_response("200 OK", OK);
    let unauthorized = refusal("401 Unauthorized", &["Bearer realm=\"x\", scope=\"files:read\""], "");
    let silent = refusal("401 Unauthorized", &[], "");
    let scope =
        refusal("403 Forbidden", &["Basic", "Bearer error = \"insufficient_scope\", scope=\"w\""], ERROR);
    let forbidden = refusal("403 Forbidden", &["Bearer error=\"invalid_token\""], ERROR);
    let (old, new) = (Some("bearer t0k3n-old"), Some("bearer t0k3n-new"));
    let (give_old, give_new) = (Ok(Some("t0k3n-old")), Ok(Some("t0k3n-new")));
    let realm = Some("Bearer realm=\"x\", scope=\"files:read\"");
    let step_up = Some("Basic, Bearer error = \"insufficient_scope\", scope=\"w\"");
    let row = |name| Row { name, given: &[], answers: &[], expected: ok(), sent: &[], challenges: &[] };
    check(Row { given: &[give_old], answers: &[&good], sent: &[old], challenges: &[None], ..row("good") })
        .await;
    check(Row { given: &[Ok(None)], answers: &[&good], sent: &[None], challenges: &[None], ..row("none") })
        .await;
    check(Row {
        given: &[give_old, give_new],
        answers: &[&unauthorized, &good],
        sent: &[old, new],
        challenges: &[None, realm],
        ..row("renewed")
    })
    .await;
    check(Row {
        given: &[Ok(None), give_new],
        answers: &[&silent, &good],
        sent: &[None, new],
        challenges: &[None, Some("")],
        ..row("no challenge")
    })
    .await;
    check(Row {
        given: &[give_old, give_new],
        answers: &[&unauthorized, &unauthorized],
        expected: failed(HttpStatus(401), "check the bearer token"),
        sent: &[old, new],
        challenges: &[None, realm],
        ..row("refused twice")
    })
    .await;
    check(Row {
        given: &[give_old, give_old, give_new],
        answers: &[&unauthorized, &scope, &good],
        sent: &[old, old, new],
        challenges: &[None, realm, step_up],
        ..row("renewed, then stepped up")
    })
    .await;
    check(Row {
        given: &[give_old, give_new],
        answers: &[&scope, &scope],
        expected: failed(HttpStatus(403), "the token needs the scope `w`"),
        sent: &[old, new],
        challenges: &[None, step_up],
        ..row("stepped up in vain")
    })
    .await;
    check(Row {
        given: &[give_old],
        answers: &[&forbidden],
        expected: failed(HttpStatus(403), "what the token may do"),
        sent: &[old],
        challenges: &[None],
        ..row("forbidden for another reason")
    })
    .await;
    for (given, text) in [(Ok(None), "there is no other token"), (Err("locked"), "could be had: locked")] {
        check(Row {
            given: &[give_old, given],
            answers: &[&unauthorized],
            expected: failed(HttpStatus(401), text),
            sent: &[old],
            challenges: &[None, realm],
            ..row("no other")
        })
        .await;
    }
    let unreachable = failed(Unreachable, "no token could be had for the request: locked");
    check(Row { given: &[Err("locked")], expected: unreachable, challenges: &[None], ..row("locked") }).await;
    let unfit = failed(Unreachable, "the token does not fit into a header");
    check(Row { given: &[Ok(Some("t0k3n\n"))], expected: unfit, challenges: &[None], ..row("unfit") }).await;
}

#[tokio::test]
async fn a_refusal_names_its_challenge_and_the_token_is_shown_nowhere() {
    assert_eq!(format!("{:?}", Token::new("t0k3n")), "Token(..)");
    let server = Server::new().await;
    // Without a provider the caller is told, even if the body says something of its own.
    let client = Arc::new(HttpTransport::builder(&server.url).bearer("t0k3n").build().unwrap());
    for (challenges, expected) in [(&["Bearer scope=\"a\""][..], Some("Bearer scope=\"a\"")), (&[], None)] {
        let call = tokio::spawn({
            let client = Arc::clone(&client);
            async move { client.exchange(request(1, "tools/call"), &mut |_| {}).await }
        });
        let mut connection = server.accepts().await;
        receive(&mut connection).await;
        let answer = refusal("401 Unauthorized", challenges, if challenges.is_empty() { "" } else { ERROR });
        connection.write_all(answer.as_bytes()).await.unwrap();
        drop(connection);
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.challenge()), (HttpStatus(401), expected));
        assert!(!format!("{error:?} {error}").contains("t0k3n"));
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_stops_asking() {
    let server = Server::new().await;
    let (dropped, mut gone) = tokio::sync::mpsc::channel::<()>(1);
    let client = HttpTransport::builder(&server.url)
        .bearer_provider(move |_| {
            let held = dropped.clone();
            async move {
                let _held = held;
                std::future::pending::<Result<Option<Token>, std::io::Error>>().await
            }
        })
        .build()
        .unwrap();
    let waited =
        tokio::time::timeout(std::time::Duration::from_millis(10), ask(&client, request(1, "tools/call")))
            .await;
    assert!(waited.is_err());
    drop(client);
    assert_eq!(transport_support::soon(gone.recv()).await, None);
}
