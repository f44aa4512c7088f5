//! Sessions over real sockets: questions, streams whose connections break, and how serving ends.

use crate::common::{
    gate::soon,
    socket::{Client, Running, post, serve},
};
use crate::legacy_http_support::{NEWEST, call, initialize, message};
use antiphon::serve::http::HttpOptions;
use serde_json::{Value, json};
use std::time::Duration;

/// A session, and the server it is on.
struct Session<'a> {
    server: &'a Running,
    id: String,
}

impl<'a> Session<'a> {
    async fn open(server: &'a Running, version: &str) -> Self {
        let mut client = Client::new(server).await;
        client.send(post(&initialize(version), "")).await;
        let head = client.receive().await;
        // What is read in lower case cannot be used: the body of a second answer says what the first one's head does.
        assert!(head.head.contains("mcp-session-id: "), "{}", head.head);
        client.send(post(&initialize(version), "")).await;
        Self { server, id: session_id(&mut client).await }
    }

    fn own(&self) -> String {
        format!("Mcp-Session-Id: {}\r\n", self.id)
    }

    /// Sends a message on a connection of its own.
    async fn posts(&self, body: &Value) -> Client {
        let mut client = Client::new(self.server).await;
        client.send(post(body, &self.own())).await;
        client
    }

    async fn gets(&self, last_event_id: &str) -> Client {
        let last = if last_event_id.is_empty() {
            String::new()
        } else {
            format!("Last-Event-ID: {last_event_id}\r\n")
        };
        let mut client = Client::new(self.server).await;
        let own = self.own();
        client
            .send(format!(
                "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{own}{last}\r\n"
            ))
            .await;
        client
    }
}

/// Reads a whole response whose head names a session, with the id as it is written.
async fn session_id(client: &mut Client) -> String {
    use tokio::io::AsyncReadExt as _;
    while !client.ahead.windows(4).any(|four| four == b"\r\n\r\n") {
        assert_ne!(soon(client.stream.read_buf(&mut client.ahead)).await.unwrap(), 0);
    }
    let text = String::from_utf8(client.ahead.clone()).unwrap();
    let id = text.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
    client.receive().await;
    id
}

/// The id and the data of the next event.
async fn event(client: &mut Client) -> Option<(String, Value)> {
    let chunk = client.receive_chunk().await?;
    let id = chunk.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let data = chunk.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    Some((id, serde_json::from_str(data).unwrap_or(Value::Null)))
}

fn answer(ask: &Value) -> Value {
    let content = json!({"region": "eu"});
    json!({"jsonrpc": "2.0", "id": ask["id"], "result": {"action": "accept", "content": content}})
}

#[tokio::test]
async fn a_question_leaves_on_the_stream_of_its_call_and_its_answer_comes_in_a_post() {
    let server = serve(HttpOptions::default()).await;
    for version in [NEWEST, "2025-06-18"] {
        let session = Session::open(&server, version).await;
        let mut call = session.posts(&call(1, "ask", json!({"name": "orders"}))).await;
        assert!(call.receive_head().await.contains("content-type: text/event-stream"));
        let mut asked = event(&mut call).await.unwrap();
        if version == NEWEST {
            assert_eq!(asked, ("1-0".to_owned(), Value::Null));
            asked = event(&mut call).await.unwrap();
        }
        assert_eq!((asked.0.as_str(), &asked.1["method"]), ("1-1", &json!("elicitation/create")));
        // An answer on another session is none.
        let other = Session::open(&server, version).await;
        assert_eq!(other.posts(&answer(&asked.1)).await.receive().await.status, 202);
        let mut second = session.posts(&answer(&asked.1)).await;
        let heard = second.receive().await;
        assert_eq!((heard.status, heard.body.as_str()), (202, ""));
        let (id, result) = event(&mut call).await.unwrap();
        assert_eq!((id.as_str(), &result["result"]["content"][0]["text"]), ("1-2", &json!("in eu")));
        assert_eq!(event(&mut call).await, None);
        // Both connections take another request.
        for client in [&mut call, &mut second] {
            client.send(post(&message(2, "ping", json!({})), &session.own())).await;
            assert_eq!(client.receive().await.status, 200);
        }
    }
}

#[tokio::test]
async fn a_question_survives_the_connection_on_which_it_was_asked() {
    let server = serve(HttpOptions::default()).await;
    let session = Session::open(&server, NEWEST).await;
    let mut call = session.posts(&call(1, "ask", json!({"name": "orders"}))).await;
    call.receive_head().await;
    let (primed, _) = event(&mut call).await.unwrap();
    drop(call);
    let mut resumed = session.gets(&primed).await;
    assert!(resumed.receive_head().await.starts_with("http/1.1 200"));
    let (asked, ask) = event(&mut resumed).await.unwrap();
    drop(resumed);
    session.posts(&answer(&ask)).await.receive().await;
    let mut resumed = session.gets(&asked).await;
    resumed.receive_head().await;
    assert_eq!(event(&mut resumed).await.unwrap().1["result"]["content"][0]["text"], "in eu");
    assert_eq!(event(&mut resumed).await, None);
}

/// The head of a stream leaves before there is anything to tell.
#[tokio::test]
async fn a_get_is_answered_at_once_and_ends_with_the_session() {
    let server = serve(HttpOptions::default()).await;
    for version in [NEWEST, "2025-06-18"] {
        let session = Session::open(&server, version).await;
        let mut get = session.gets("").await;
        assert!(get.receive_head().await.contains("content-type: text/event-stream"));
        if version == NEWEST {
            assert_eq!(event(&mut get).await.unwrap().0, "0-0");
        }
        let mut client = Client::new(&server).await;
        let own = session.own();
        client.send(format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{own}\r\n")).await;
        assert!(client.receive_head().await.starts_with("http/1.1 204"));
        assert_eq!(event(&mut get).await, None);
        client.send(post(&message(1, "ping", json!({})), &session.own())).await;
        assert_eq!(client.receive().await.status, 404);
    }
}

#[tokio::test]
async fn serving_ends_streams_at_once_and_then_what_nobody_waits_for() {
    let mut server = serve(HttpOptions::default().drain_timeout(Duration::from_secs(20))).await;
    let session = Session::open(&server, NEWEST).await;
    let mut get = session.gets("").await;
    get.receive_head().await;
    event(&mut get).await.unwrap();
    let mut waiting = session.posts(&call(1, "hold", json!({"name": "waits", "how": "reports"}))).await;
    waiting.receive_head().await;
    assert_eq!(event(&mut waiting).await.unwrap().1, Value::Null);
    let mut gone = session.posts(&call(2, "hold", json!({"name": "gone", "how": "reports"}))).await;
    gone.receive_head().await;
    drop(gone);
    let Running { gate, shutdown, ended, .. } = &mut server;
    gate.started("waits").await;
    gate.started("gone").await;
    let (stop, _) = tokio::sync::oneshot::channel();
    std::mem::replace(shutdown, stop).send(()).unwrap();
    // The stream of the GET ends, the call is waited for.
    assert_eq!(event(&mut get).await, None);
    gate.open("waits");
    gate.ended("waits").await;
    event(&mut waiting).await.unwrap();
    assert_eq!(event(&mut waiting).await.unwrap().1["result"]["content"][0]["text"], "waits");
    // Nobody can come back for the other one.
    gate.dropped("gone").await;
    soon(ended).await.unwrap().unwrap();
}
