//! A scripted server whose tool calls become tasks, with a record of the requests and their times.

use crate::client_support::*;
use antiphon::client::{Client, ClientBuilder};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

pub(crate) const ID: &str = "task-1";

/// A task without the content of its status.
pub(crate) fn task(status: &str) -> Value {
    json!({
        "taskId": ID, "status": status, "createdAt": "2026-08-20T10:30:00Z", "lastUpdatedAt": "2026-08-20T10:30:00Z",
        "ttlMs": null
    })
}

/// The same task with these members.
pub(crate) fn with(mut task: Value, members: Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        task[name] = value.clone();
    }
    task
}

/// The reply that makes a task of the call.
pub(crate) fn created(members: Value) -> Reply {
    Reply::Result(with(with(task("working"), json!({"resultType": "task"})), members))
}

/// A reply to `tasks/get`.
pub(crate) fn got(status: &str, members: Value) -> Reply {
    Reply::Result(with(with(task(status), json!({"resultType": "complete"})), members))
}

pub(crate) fn working() -> Reply {
    got("working", json!({}))
}

pub(crate) fn completed(text: &str) -> Reply {
    got("completed", json!({"result": {"content": [{"type": "text", "text": text}]}}))
}

/// The task waits for the answers to these questions.
pub(crate) fn input(asks: Value) -> Reply {
    got("input_required", json!({"inputRequests": asks}))
}

/// Forms with these keys.
pub(crate) fn forms_of(keys: &[&str]) -> Reply {
    input(Value::Object(keys.iter().map(|key| ((*key).to_owned(), form())).collect()))
}

/// The replies of the server, in turn; the last of each kind repeats.
pub(crate) struct Script {
    pub(crate) created: Reply,
    pub(crate) polls: Vec<Reply>,
    pub(crate) updates: Vec<Reply>,
    /// The replies to `subscriptions/listen`, in turn. There are no more than these.
    pub(crate) listens: Vec<Reply>,
}

impl Script {
    pub(crate) fn new(polls: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            created: created(json!({})),
            polls: polls.into_iter().collect(),
            updates: vec![Reply::Result(json!({"resultType": "complete"}))],
            listens: Vec::new(),
        }
    }
}

/// The server, and what it received: `MILLISECONDS METHOD [KEYS]`.
pub(crate) struct TaskServer {
    pub(crate) fake: Arc<Fake>,
    log: Arc<Mutex<Vec<(u128, String)>>>,
}

impl TaskServer {
    pub(crate) fn new(script: Script) -> Self {
        let log: Arc<Mutex<Vec<(u128, String)>>> = Arc::default();
        let (received, started) = (Arc::clone(&log), Instant::now());
        let (mut polls, mut updates) = (script.polls.into_iter(), script.updates.into_iter());
        let (mut poll, mut update) = (polls.next(), updates.next());
        let (next_polls, created) = (
            Mutex::new(move |take: &str| {
                let (reply, rest) =
                    if take == "get" { (&mut poll, &mut polls) } else { (&mut update, &mut updates) };
                let now = reply.clone().unwrap();
                *reply = rest.next().or(reply.take());
                now
            }),
            script.created,
        );
        let listens = Mutex::new(script.listens.into_iter());
        let fake = Fake::new(move |request| {
            let method = request["method"].as_str().unwrap();
            let mut line = method.to_owned();
            if let Some(answers) = request["params"]["inputResponses"].as_object() {
                line += &format!(" {}", answers.keys().cloned().collect::<Vec<_>>().join(","));
            }
            received.lock().unwrap().push((started.elapsed().as_millis(), line));
            if method == "subscriptions/listen" {
                assert_eq!(request["params"]["notifications"], json!({"taskIds": [ID]}));
                return listens.lock().unwrap().next().expect("one listen too many");
            }
            if method != "tools/call" {
                assert_eq!(request["params"]["taskId"], ID);
                let meta = &request["params"]["_meta"];
                assert!(meta.get("progressToken").is_none(), "{request}");
                let declared = &meta["io.modelcontextprotocol/clientCapabilities"]["extensions"];
                assert_eq!(*declared, json!({"io.modelcontextprotocol/tasks": {}}), "{request}");
            }
            match method {
                "tools/call" => created.clone(),
                "tasks/get" => (next_polls.lock().unwrap())("get"),
                "tasks/update" => (next_polls.lock().unwrap())("update"),
                "tasks/cancel" => Reply::Result(json!({"resultType": "complete"})),
                other => panic!("unexpected {other}"),
            }
        });
        Self { fake, log }
    }

    pub(crate) fn client(&self, builder: ClientBuilder) -> Client {
        self.fake.client(builder)
    }

    /// The requests with their times.
    pub(crate) fn timed(&self) -> Vec<String> {
        self.log.lock().unwrap().iter().map(|(at, line)| format!("{at} {line}")).collect()
    }

    /// The requests without their times.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.log.lock().unwrap().iter().map(|(_, line)| line.clone()).collect()
    }
}
