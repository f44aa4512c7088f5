//! Two replicas that share a key and nothing else, behind a balancer: with stickiness by `Mcp-Session-Id`, learned or
//! read off, and without.

use crate::common::{answers, fixture, http_request, request, state_of, with};
use crate::legacy_http_support::{HttpReply, NEWEST, call, initialize, post, send, text_of, with_header};
use antiphon::serve::http::{HttpOptions, HttpService};
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use std::collections::HashMap;

/// A balancer's method to find the replica of a session.
enum Sticky {
    No,
    /// The balancer remembers which replica answered with which session.
    Learns(HashMap<String, usize>),
    /// The id begins with the name of the replica.
    Reads,
}

/// Gives each request to the next replica; if it is sticky, those of a session to the one that opened it.
struct Balancer {
    replicas: [HttpService; 2],
    next: usize,
    sticky: Sticky,
}

const NAMES: [&str; 2] = ["a-", "b-"];

impl Balancer {
    fn new(sticky: Sticky) -> Self {
        let replica = |name| {
            let options = HttpOptions::default().session_prefix(name);
            HttpService::new(fixture(|builder| builder).server, options)
        };
        Self { replicas: NAMES.map(replica), next: 0, sticky }
    }

    fn stuck(&self, session: &str) -> Option<usize> {
        match &self.sticky {
            Sticky::No => None,
            Sticky::Learns(known) => known.get(session).copied(),
            Sticky::Reads => NAMES.iter().position(|name| session.starts_with(name)),
        }
    }

    async fn forward(&mut self, request: Request<Bytes>) -> HttpReply {
        let session = request.headers().get("mcp-session-id").map(|id| id.to_str().unwrap());
        let replica = session.and_then(|session| self.stuck(session)).unwrap_or(self.next);
        self.next = (replica + 1) % 2;
        let came = send(&self.replicas[replica], request).await;
        if let (Sticky::Learns(known), Some(id)) = (&mut self.sticky, came.headers.get("mcp-session-id")) {
            known.insert(id.to_str().unwrap().to_owned(), replica);
        }
        came
    }

    async fn initialize(&mut self) -> String {
        let came = self.forward(post(initialize(NEWEST))).await;
        came.headers["mcp-session-id"].to_str().unwrap().to_owned()
    }

    /// One modern call that asks: its second leg lands elsewhere.
    async fn modern(&mut self) {
        let first = json!({"name": "ask", "arguments": {"name": "orders"}});
        let asked = self.forward(modern(&first)).await.json().await;
        let answer = json!({"inputResponses": answers(), "requestState": state_of(&asked)});
        let done = self.forward(modern(&with(&first, answer))).await.json().await;
        assert_eq!(text_of(&done), "in eu");
    }
}

fn modern(params: &Value) -> Request<Bytes> {
    let message = request(1, "tools/call", params.clone());
    let (parts, _) = http_request(&message, None).into_parts();
    Request::from_parts(parts, message.to_string().into())
}

fn of(session: &str, message: &Value) -> Request<Bytes> {
    with_header(post(message), "mcp-session-id", session)
}

#[tokio::test]
async fn a_sticky_balancer_carries_a_session() {
    for sticky in [Sticky::Learns(HashMap::new()), Sticky::Reads] {
        let mut balancer = Balancer::new(sticky);
        // One on each replica.
        for name in NAMES {
            let session = balancer.initialize().await;
            assert!(session.starts_with(name), "{session}");
            balancer.modern().await;
            let mut came = balancer.forward(of(&session, &call(1, "ask", json!({"name": "orders"})))).await;
            assert_eq!(came.event().await.unwrap().data.as_deref(), Some(""));
            let ask = came.event().await.unwrap().json();
            balancer.modern().await;
            let result = json!({"action": "accept", "content": {"region": "eu"}});
            let answer = json!({"jsonrpc": "2.0", "id": ask["id"], "result": result});
            balancer.forward(of(&session, &answer)).await.check("the answer", (202, 0)).await;
            assert_eq!(came.event().await.unwrap().result(), "in eu");
        }
    }
}

#[tokio::test]
async fn a_plain_balancer_ends_in_a_clear_error_and_a_new_session() {
    let mut balancer = Balancer::new(Sticky::No);
    let session = balancer.initialize().await;
    let echo = |id| call(id, "echo", json!({"name": "x"}));
    let lost = balancer.forward(of(&session, &echo(1))).await;
    assert_eq!(lost.status, 404);
    assert!(lost.text().await.contains("it lives on another instance. Begin another with `initialize`"));
    // > it **MUST** start a new session by sending a new `InitializeRequest` without a session ID attached
    let again = balancer.initialize().await;
    assert_ne!(again, session);
    // Modern calls do not care.
    balancer.modern().await;
    balancer.modern().await;
    // Luck: the next one is the turn of the replica that has it.
    balancer.next = 0;
    let came = balancer.forward(of(&again, &echo(2))).await;
    assert_eq!(text_of(&came.json().await), "x");
}
