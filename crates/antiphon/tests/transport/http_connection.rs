//! The connections of the client of Streamable HTTP: what is sent, how they end, and when there is none.
#![cfg(feature = "http")]

use crate::transport_support::{ask, failed, request, server::*, soon};
use antiphon::client::transport::{
    HttpTransport, Transport,
    TransportErrorKind::{Closed, Setting, TooLarge, Unreachable},
};
use std::{sync::Arc, time::Duration};
use tokio::{io::AsyncWriteExt, sync::mpsc};

#[tokio::test]
async fn a_request_is_one_post_with_its_headers() {
    let server = Server::new().await;
    let client =
        HttpTransport::builder(&server.url).bearer("hunter2").header("X-Team", "red").build().unwrap();
    assert_eq!(client.target(), server.url.strip_suffix("?key=hunter2").unwrap());
    assert!(!format!("{client:?}").contains("hunter2"));
    let client = Arc::new(client);
    let mut first = request(1, "tools/call");
    first.name = Some("Wetter für Köln".into());
    let body = first.body.clone();
    let call = asking(&client, first);
    let mut connection = server.accepts().await;
    let (head, heard) = receive(&mut connection).await;
    assert_eq!(heard, body);
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("post /mcp?key=hunter2 http/1.1"));
    let mut headers: Vec<_> = lines.filter(|line| !line.starts_with("host: 127.0.0.1:")).collect();
    headers.sort_unstable();
    assert_eq!(
        headers,
        [
            "accept: application/json, text/event-stream",
            "authorization: bearer hunter2",
            &format!("content-length: {}", body.len()),
            "content-type: application/json",
            "mcp-method: tools/call",
            "mcp-name: =?base64?v2v0dgvyigbdvhigs8o2bg4=?=",
            "mcp-protocol-version: 2026-07-28",
            concat!("user-agent: antiphon/", env!("CARGO_PKG_VERSION")),
            "x-team: red",
        ]
    );
    connection.write_all(json_response("200 OK", OK).as_bytes()).await.unwrap();
    assert_eq!(call.await.unwrap().0, ok());
    // The connection is used again, after JSON and after events; a request without a name says none.
    for answer in [events(&[OK]) + "0\r\n\r\n", json_response("200 OK", OK)] {
        let next = asking(&client, request(1, "tools/list"));
        let (head, _) = receive(&mut connection).await;
        assert!(!head.contains("mcp-name"), "{head}");
        connection.write_all(answer.as_bytes()).await.unwrap();
        assert_eq!(next.await.unwrap().0, ok());
    }
    soon(client.close()).await;
    expect_close(&mut connection).await;
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    let half = json_response("200 OK", OK)[..90].to_owned();
    for said in ["", "HTTP/1.1 200", &half, &chunked("text/event-stream", ""), &events(&[PROGRESS])] {
        let server = Server::new().await;
        let client = server.client();
        let (to_test, mut notified) = mpsc::unbounded_channel();
        let call = tokio::spawn({
            let client = Arc::clone(&client);
            async move {
                let mut on_notification = move |_| to_test.send(()).unwrap();
                let _ = client.exchange(request(1, "tools/call"), &mut on_notification).await;
            }
        });
        let mut connection = server.accepts().await;
        receive(&mut connection).await;
        connection.write_all(said.as_bytes()).await.unwrap();
        if said.contains("progress") {
            soon(notified.recv()).await;
        }
        call.abort();
        expect_close(&mut connection).await;
        // The next request has a connection of its own.
        let next = asking(&client, request(1, "tools/call"));
        let mut connection = server.accepts().await;
        receive(&mut connection).await;
        connection.write_all(json_response("200 OK", OK).as_bytes()).await.unwrap();
        assert_eq!(next.await.unwrap().0, ok());
    }
}

#[tokio::test]
async fn closing_fails_what_is_under_way() {
    let server = Server::new().await;
    let client = server.client();
    let call = asking(&client, request(1, "tools/call"));
    let mut connection = server.accepts().await;
    receive(&mut connection).await;
    soon(client.close()).await;
    assert!(call.await.unwrap().0.fits(&failed(Closed, "this client closed")));
    expect_close(&mut connection).await;
    assert!(ask(&*client, request(2, "tools/call")).await.0.fits(&failed(Closed, "this client closed")));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let server = Server::new().await;
    let client = server.client();
    drop(server);
    let (outcome, _) = ask(&*client, request(1, "tools/call")).await;
    assert!(outcome.fits(&failed(Unreachable, "/mcp cannot be reached: ")), "{outcome:?}");
    assert!(!format!("{outcome:?}").contains("hunter2"), "{outcome:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_unreachable_by_https() {
    let server = Server::new().await;
    let client = Arc::new(HttpTransport::new(server.url.replace("http:", "https:")).unwrap());
    let call = asking(&client, request(1, "tools/call"));
    let mut connection = server.accepts().await;
    connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    let (outcome, _) = call.await.unwrap();
    assert!(outcome.fits(&failed(Unreachable, "cannot be reached: ")), "{outcome:?}");
    // Other users of rustls in this process keep their own choice.
    assert!(tokio_rustls::rustls::crypto::CryptoProvider::get_default().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_comes_about_is_given_up() {
    let server = Server::new().await;
    let url = server.url.replace("http:", "https:");
    let client = HttpTransport::builder(url).connect_timeout(Duration::from_secs(3)).build().unwrap();
    let (outcome, _) = ask(&client, request(1, "tools/call")).await;
    assert!(outcome.fits(&failed(Unreachable, "not connected within 3s")), "{outcome:?}");
}

#[tokio::test]
async fn a_smaller_limit_is_kept() {
    let server = Server::new().await;
    let client = Arc::new(HttpTransport::builder(&server.url).max_response(44).build().unwrap());
    let call = asking(&client, request(1, "tools/call"));
    let mut connection = server.accepts().await;
    receive(&mut connection).await;
    connection.write_all(json_response("200 OK", OK).as_bytes()).await.unwrap();
    let (outcome, _) = call.await.unwrap();
    assert!(outcome.fits(&failed(TooLarge, "longer than 44 bytes")), "{outcome:?}");
}

#[test]
fn a_message_that_cannot_be_sent_is_an_error_at_once() {
    for (url, part) in [
        ("", "cannot be read"),
        ("mcp", "must begin with http://"),
        ("ftp://host/", "must begin with http://"),
        ("http://", "cannot be read"),
        ("http://user:hunter2@host/", "user name"),
        ("http://bücher.example/", "cannot be read"),
    ] {
        let error = HttpTransport::new(url).unwrap_err();
        assert_eq!(error.kind(), Setting, "{url}");
        assert!(error.to_string().contains(part) && !error.to_string().contains("hunter2"), "{url}: {error}");
    }
    let error = HttpTransport::builder("http://host/").bearer("line\nbreak").build().unwrap_err();
    assert_eq!(error.to_string(), "the header `authorization` cannot be sent");
}
