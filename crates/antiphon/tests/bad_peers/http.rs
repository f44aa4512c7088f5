//! Bad servers over HTTP: a socket that sends anything.

use super::{CallEnd, GOOD, alive, alone, call, limit_of, settles};
use antiphon::client::transport::{HttpTransport, TransportErrorKind as Kind};
use std::sync::Arc;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Behaviour of the server after its response.
#[derive(Debug)]
enum NextAction {
    Silence,
    Close,
    /// Says this until nobody listens.
    Again(String),
}

async fn receive_request(connection: &mut TcpStream) {
    let mut heard = Vec::new();
    while !heard.ends_with(b"}") {
        assert_ne!(connection.read_buf(&mut heard).await.unwrap(), 0, "a whole request");
    }
}

async fn serve_reply(listener: TcpListener, reply: String, then: NextAction) {
    let (mut connection, _) = listener.accept().await.unwrap();
    receive_request(&mut connection).await;
    let mut open = connection.write_all(reply.as_bytes()).await.is_ok();
    match then {
        NextAction::Close => return,
        NextAction::Silence => {}
        NextAction::Again(reply) => {
            let burst = reply.repeat(8192 / reply.len() + 1);
            while open {
                open = connection.write_all(burst.as_bytes()).await.is_ok();
            }
        }
    }
    // Until the client has closed.
    let mut rest = Vec::new();
    let _ = connection.read_to_end(&mut rest).await;
}

async fn check(name: &str, reply: String, then: NextAction, expected: CallEnd) {
    let before = alive();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let transport = HttpTransport::new(format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let server = tokio::spawn(serve_reply(listener, reply, then));
    let came = call(Arc::new(transport), limit_of(expected)).await;
    assert_eq!(came, expected, "{name}");
    server.await.unwrap();
    settles(name, before).await;
}

fn head(media_type: &str, more: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n{more}\r\n")
}

fn json(length: usize, body: &str) -> String {
    head("application/json", &format!("Content-Length: {length}\r\n")) + body
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn chunks(media_type: &str, chunks: &[&str]) -> String {
    let chunks: String = chunks.iter().map(|text| chunk(text)).collect();
    head(media_type, "Transfer-Encoding: chunked\r\n") + &chunks
}

fn stream(events: &[&str]) -> String {
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    chunks("text/event-stream", &[&events])
}

fn status(line: &str, more: &str) -> String {
    format!("HTTP/1.1 {line}\r\n{more}\r\n")
}

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#;
const UNKNOWN: &str = r#"{"jsonrpc":"2.0","method":"notifications/what"}"#;
const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;

#[test]
fn answers_that_do_not_come() {
    let whole = json(GOOD.len(), GOOD);
    let event = stream(&[GOOD]);
    let closed = CallEnd::Failed(Kind::Closed);
    let rows = [
        ("no reply", String::new(), NextAction::Silence, CallEnd::Timeout),
        ("no reply, closed", String::new(), NextAction::Close, closed),
        ("half a head", whole[..40].to_owned(), NextAction::Silence, CallEnd::Timeout),
        ("half a head, closed", whole[..40].to_owned(), NextAction::Close, closed),
        ("half a body", whole[..whole.len() - 9].to_owned(), NextAction::Silence, CallEnd::Timeout),
        ("half a body, closed", whole[..whole.len() - 9].to_owned(), NextAction::Close, closed),
        ("half an event", event[..event.len() - 9].to_owned(), NextAction::Silence, CallEnd::Timeout),
        ("half an event, closed", event[..event.len() - 9].to_owned(), NextAction::Close, closed),
        ("only another's", stream(&[&GOOD.replace(":1,", ":2,")]), NextAction::Silence, CallEnd::Timeout),
        ("only notifications", stream(&[PROGRESS, UNKNOWN]), NextAction::Close, closed),
        ("a length too long", json(GOOD.len() + 9, GOOD), NextAction::Silence, CallEnd::Timeout),
        ("a length too long, closed", json(GOOD.len() + 9, GOOD), NextAction::Close, closed),
        (
            "a refusal without its body",
            status("500 Oops", "Content-Length: 9\r\n"),
            NextAction::Silence,
            CallEnd::Timeout,
        ),
        ("continue", status("100 Continue", ""), NextAction::Silence, CallEnd::Timeout),
    ];
    alone(false, async {
        for (name, reply, then, expected) in rows {
            check(name, reply, then, expected).await;
        }
    });
}

#[test]
fn answers_without_end() {
    let (malformed, too_large) = (CallEnd::Failed(Kind::Malformed), CallEnd::Failed(Kind::TooLarge));
    let sse = || chunks("text/event-stream", &[]);
    let chunked = || head("application/json", "Transfer-Encoding: chunked\r\n");
    let refused =
        |code: u16, media_type| status(&format!("{code} X"), &format!("Content-Type: {media_type}\r\n"));
    let much = "x".repeat(64 * 1024);
    let rows = [
        ("headers", "HTTP/1.1 200 OK\r\n".to_owned(), "X-More: and more\r\n".to_owned(), malformed),
        ("one header", "HTTP/1.1 200 OK\r\nX-More: ".to_owned(), "and more ".to_owned(), malformed),
        ("a status", "HTTP/1.1 200 ".to_owned(), "and more ".to_owned(), malformed),
        ("provisional answers", String::new(), status("103 Early Hints", ""), CallEnd::Timeout),
        ("comments", sse(), chunk(": still\n"), CallEnd::Timeout),
        ("keep-alives", sse(), chunk("\n"), CallEnd::Timeout),
        ("fields", sse(), chunk("id: 1\n"), CallEnd::Timeout),
        ("other events", sse(), chunk("event: x\ndata: y\n\n"), CallEnd::Timeout),
        ("notifications", sse(), chunk(&format!("data: {UNKNOWN}\n\n")), CallEnd::Timeout),
        (
            "others' answers",
            sse(),
            chunk(&format!("data: {}\n\n", GOOD.replace(":1,", ":2,"))),
            CallEnd::Timeout,
        ),
        ("one comment", sse() + &chunk(":"), chunk(&much), too_large),
        ("one event", sse(), chunk(&format!("data: {much}\n")), too_large),
        ("one body", chunked(), chunk(&much), too_large),
        ("a body of no length", head("application/json", ""), much.clone(), too_large),
        ("a chunk size", chunked(), "0".to_owned(), CallEnd::Timeout),
        ("a chunk extension", chunked() + "1;", "x=y;".to_owned(), malformed),
        ("trailers", chunked() + &chunk(GOOD) + "0\r\n", "X-More: and more\r\n".to_owned(), malformed),
        ("a refusal", refused(500, "application/json"), much, CallEnd::Failed(Kind::HttpStatus(500))),
        (
            "a refusal of events",
            refused(503, "text/event-stream"),
            chunk(": x\n"),
            CallEnd::Failed(Kind::HttpStatus(503)),
        ),
    ];
    alone(false, async {
        for (name, reply, again, expected) in rows {
            check(name, reply, NextAction::Again(again), expected).await;
        }
    });
}

#[test]
fn answers_that_break_the_rules() {
    let malformed = CallEnd::Failed(Kind::Malformed);
    let giant = "x".repeat(20 * 1024 * 1024);
    let chunked = |chunks: &str| head("application/json", "Transfer-Encoding: chunked\r\n") + chunks;
    let twice = head("application/json", &format!("Content-Length: {}\r\nContent-Length: 9\r\n", GOOD.len()));
    let deep = "[".repeat(1_000_000);
    let mut rows = vec![
        ("another's", json(GOOD.len(), &GOOD.replace(":1,", ":2,")), malformed),
        ("another's, then ours", stream(&[&GOOD.replace(":1,", ":2,"), GOOD]), CallEnd::Good),
        ("twice", stream(&[GOOD, GOOD]), CallEnd::Good),
        ("more after it", json(GOOD.len(), GOOD) + "HTTP/1.1 200 OK\r\n\r\n", CallEnd::Good),
        ("unknown notification", stream(&[UNKNOWN, GOOD]), CallEnd::Good),
        ("a request", json(REQUEST.len(), REQUEST), malformed),
        ("a request, then the answer", stream(&[REQUEST, GOOD]), CallEnd::Good),
        ("a notification", json(UNKNOWN.len(), UNKNOWN), malformed),
        ("no JSON", json(6, "<html>"), malformed),
        ("no JSON event", stream(&["<html>"]), malformed),
        ("nested beyond reason", json(deep.len(), &deep), malformed),
        (
            "no result of this method",
            json(37, r#"{"jsonrpc":"2.0","id":1,"result":[]} "#),
            CallEnd::BadResult,
        ),
        ("two lengths", twice + GOOD, malformed),
        ("a length that is none", json(0, "").replace(": 0", ": -1") + GOOD, malformed),
        ("a length too short", json(20, GOOD), malformed),
        ("garbage for chunks", chunked("garbage\r\n"), malformed),
        ("a chunk of everything", chunked("fffffffffffffffff\r\n"), malformed),
        ("no end of a chunk", chunked("1\r\n{}}}\r\n"), malformed),
        (
            "a zipped answer",
            head("application/json", "Content-Encoding: gzip\r\nContent-Length: 2\r\n") + "\x1f\u{8b}",
            malformed,
        ),
        ("a giant body", json(giant.len(), &giant), CallEnd::Failed(Kind::TooLarge)),
        ("a giant event", stream(&[&giant]), CallEnd::Failed(Kind::TooLarge)),
        ("a giant header", status("200 OK", &format!("X: {giant}\r\n")), malformed),
        ("another protocol", "SSH-2.0-OpenSSH_9.6\r\n".into(), malformed),
        ("another version", "HTTP/2 200 OK\r\n\r\n".into(), malformed),
        (
            "hints, then the answer",
            status("103 Early Hints", "X: y\r\n") + &json(GOOD.len(), GOOD),
            CallEnd::Good,
        ),
        (
            "another protocol from here",
            status("101 Switching Protocols", "Upgrade: x\r\n"),
            CallEnd::Failed(Kind::HttpStatus(101)),
        ),
    ];
    for (line, code) in
        [("301 X", 301), ("302 X", 302), ("303 X", 303), ("307 X", 307), ("308 X", 308), ("399 X", 399)]
    {
        let to = "Location: http://127.0.0.1:1/\r\nContent-Length: 0\r\n";
        rows.push((line, status(line, to), CallEnd::Failed(Kind::HttpStatus(code))));
    }
    alone(false, async {
        for (name, reply, expected) in rows {
            check(name, reply, NextAction::Close, expected).await;
        }
    });
}

#[test]
fn a_stream_cut_anywhere() {
    let whole = stream(&[UNKNOWN, GOOD]);
    alone(false, async {
        let before = alive();
        let complete = whole.len() - "\r\n".len();
        for at in 0..whole.len() {
            let expected = if at < complete { CallEnd::Failed(Kind::Closed) } else { CallEnd::Good };
            check(&format!("cut at {at}"), whole[..at].to_owned(), NextAction::Close, expected).await;
        }
        settles("all", before).await;
    });
}
