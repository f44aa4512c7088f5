//! The client of Streamable HTTP with good and bad responses.
#![cfg(feature = "http")]

use crate::transport_support::{Outcome, failed, request, server::*};
use antiphon::client::transport::TransportErrorKind::{Closed, HttpStatus, Malformed, TooLarge};
use tokio::io::AsyncWriteExt;

/// One request of id 1; the server says `pieces`, then closes.
async fn check(name: &str, pieces: &[&[u8]], expected: &Outcome, notifications: &[&str]) {
    let server = Server::new().await;
    let call = asking(&server.client(), request(1, "tools/call"));
    let mut connection = server.accepts().await;
    receive(&mut connection).await;
    for piece in pieces {
        // The client may have heard enough.
        if connection.write_all(piece).await.is_err() {
            break;
        }
    }
    let _ = connection.shutdown().await;
    let (outcome, methods) = call.await.unwrap();
    assert!(outcome.fits(expected), "{name}: {outcome:?} instead of {expected:?}");
    assert_eq!(methods, notifications, "{name}");
}

#[tokio::test]
async fn a_json_answer_becomes_this_outcome() {
    let rows = [
        ("the response", json_response("200 OK", OK), ok()),
        ("with a charset", response("200 OK", "Application/JSON; charset=utf-8", OK), ok()),
        ("an error with its status", json_response("404 Not Found", ERROR), Outcome::Error(-32601)),
        ("an error without id", json_response("400 Bad Request", NO_ID), Outcome::Error(-32020)),
        ("an error of the server", json_response("500 Internal Server Error", ERROR), Outcome::Error(-32601)),
        ("a result whatever the status", json_response("418 Teapot", OK), ok()),
        ("another id", json_response("200 OK", OTHER), failed(Malformed, "answered request 2 instead of 1")),
        (
            "another id, refused",
            json_response("400 Bad Request", OTHER),
            failed(HttpStatus(400), "400 Bad Request"),
        ),
        ("a notification", json_response("200 OK", UNKNOWN), failed(Malformed, "instead of a response")),
        ("a request", json_response("200 OK", REQUEST), failed(Malformed, "instead of a response")),
        ("no JSON", json_response("200 OK", "<html>"), failed(Malformed, "not JSON")),
        ("empty", json_response("200 OK", ""), failed(Malformed, "not JSON")),
        ("a batch", json_response("200 OK", &format!("[{OK}]")), failed(Malformed, "batches")),
        ("a page", response("200 OK", "text/html", OK), failed(Malformed, "`text/html`: check that the URL")),
        (
            "no type",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into(),
            failed(Malformed, "no content type"),
        ),
        ("accepted", "HTTP/1.1 202 Accepted\r\n\r\n".into(), failed(Malformed, "202 Accepted")),
        ("no content", "HTTP/1.1 204 No Content\r\n\r\n".into(), failed(Malformed, "204 No Content")),
        ("401", response("401 Unauthorized", "text/plain", "no"), failed(HttpStatus(401), "bearer token")),
        ("403", response("403 Forbidden", "text/plain", "no"), failed(HttpStatus(403), "host and origin")),
        ("404", response("404 Not Found", "text/html", "<p>"), failed(HttpStatus(404), "path of the URL")),
        ("405", response("405 Method Not Allowed", "text/html", ""), failed(HttpStatus(405), "accepts POST")),
        ("421", response("421 Misdirected Request", "text/plain", ""), failed(HttpStatus(421), "host name")),
        ("501", response("501 Not Implemented", "text/html", ""), failed(HttpStatus(501), "accepts POST")),
        ("502", response("502 Bad Gateway", "text/html", ""), failed(HttpStatus(502), "502 Bad Gateway")),
        (
            "a stream that refuses",
            response("503 Service Unavailable", "text/event-stream", ""),
            failed(HttpStatus(503), "503"),
        ),
    ];
    for (name, answer, expected) in rows {
        check(name, &[answer.as_bytes()], &expected, &[]).await;
    }
}

#[tokio::test]
async fn a_broken_answer_becomes_this_outcome() {
    let whole = json_response("200 OK", OK);
    let giant = "x".repeat(17 * 1024 * 1024);
    let giant = format!("{:x}\r\n{giant}\r\n", giant.len());
    let too_large = || failed(TooLarge, "longer than 16777216 bytes");
    let rows = [
        ("nothing", String::new(), failed(Closed, "before the answer")),
        ("half a head", whole[..30].into(), failed(Closed, "before the answer")),
        ("half a body", whole[..whole.len() - 5].into(), failed(Closed, "before the answer")),
        ("a length too short", whole.replace("Length: 45", "Length: 40"), failed(Malformed, "not JSON")),
        ("a length too long", whole.replace("Length: 45", "Length: 50"), failed(Closed, "before the answer")),
        (
            "a length that is none",
            whole.replace("Length: 45", "Length: x"),
            failed(Malformed, "rules of HTTP"),
        ),
        ("a giant length", whole.replace("Length: 45", "Length: 20971520"), too_large()),
        ("giant chunks", chunked("application/json", &giant), too_large()),
        ("a giant event", chunked("text/event-stream", &giant), too_large()),
        ("chunked garbage", chunked("application/json", "garbage\r\n"), failed(Malformed, "rules of HTTP")),
        (
            "chunks without end",
            chunked("application/json", "2\r\n{}\r\n"),
            failed(Closed, "before the answer"),
        ),
        ("half a chunk", chunked("text/event-stream", "100\r\ndata: "), failed(Closed, "before the answer")),
        ("no HTTP", "SSH-2.0-OpenSSH_9.6\r\n".into(), failed(Malformed, "rules of HTTP")),
    ];
    for (name, answer, expected) in rows {
        check(name, &[answer.as_bytes()], &expected, &[]).await;
    }
}

#[tokio::test]
async fn a_stream_of_events_becomes_this_outcome() {
    let split = "id: 1\ndata:\n\n: keep-alive\n\nretry: 5\nevent: endpoint\ndata: /old\n\ndata: {\"jsonrpc\":\"2.0\",\n\
                 data: \"id\":1,\"result\":{\"ok\":true}}\n\n";
    let split = chunked("text/event-stream; charset=utf-8", &format!("{:x}\r\n{split}\r\n", split.len()));
    let both: &[&str] = &["notifications/progress", "notifications/what"];
    let rows = [
        ("only the response", events(&[OK]), ok(), &[][..]),
        ("what comes before it", events(&[PROGRESS, UNKNOWN, OK]), ok(), both),
        ("what comes after it", events(&[OK, PROGRESS, "garbage"]), ok(), &[]),
        ("twice", events(&[OK, OK]), ok(), &[]),
        ("an error", events(&[ERROR]), Outcome::Error(-32601), &[]),
        ("an error without id", events(&[NO_ID]), Outcome::Error(-32020), &[]),
        ("another id before ours", events(&[OTHER, OK]), ok(), &[]),
        ("a request", events(&[REQUEST, OK]), ok(), &[]),
        ("an old server's extras", split, ok(), &[]),
        ("garbage", events(&["garbage", OK]), failed(Malformed, "no message"), &[]),
        (
            "an end too early",
            events(&[UNKNOWN]) + "0\r\n\r\n",
            failed(Closed, "before the response"),
            &["notifications/what"],
        ),
        (
            "a break too early",
            events(&[UNKNOWN]),
            failed(Closed, "before the answer"),
            &["notifications/what"],
        ),
    ];
    for (name, answer, expected, notifications) in rows {
        check(name, &[answer.as_bytes()], &expected, notifications).await;
    }
    let stream = events(&[PROGRESS, UNKNOWN, OK]);
    for at in 0..stream.len() {
        check(&format!("split at {at}"), &[&stream.as_bytes()[..at], &stream.as_bytes()[at..]], &ok(), both)
            .await;
    }
    let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
    check("byte by byte", &bytes, &ok(), both).await;
}

#[tokio::test]
async fn a_redirect_is_an_error_and_not_followed() {
    for (location, part) in [
        ("https://elsewhere.example:444/secret?key=hunter2", "https://elsewhere.example;"),
        ("/secret", "another path of the same host;"),
        ("/mcp/", "the same URL with a slash behind its path;"),
        ("http://elsewhere.example/mcp/", "http://elsewhere.example;"),
        ("http://[", "an unreadable place;"),
    ] {
        let answer =
            format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        check(location, &[answer.as_bytes()], &failed(HttpStatus(307), &format!("pointed to {part}")), &[])
            .await;
    }
}
