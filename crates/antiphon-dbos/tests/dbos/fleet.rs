//! Real processes with the same keys: killed in a step or while a question waits, or stopped for longer than the lease.

use crate::{
    LIMIT,
    instance::{EFFECTS, Instance, serve_if_instance, spawn},
    postgres_server::Server,
};
use serde_json::json;
use std::collections::BTreeMap;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    time::timeout,
};

/// The effects of all processes.
struct EffectLog {
    listener: UnixListener,
    /// The number of effects by name, and the keys of their steps.
    done: BTreeMap<String, (usize, Vec<String>)>,
}

impl EffectLog {
    /// Waits for the next line of an instance.
    async fn next(&mut self) -> (String, String, UnixStream) {
        let (stream, _) = self.listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let mut words = line.split_whitespace().map(ToOwned::to_owned);
        let (name, what) = (words.next().unwrap(), words.next().unwrap());
        if let Some(key) = words.next() {
            let (count, keys) = self.done.entry(what.clone()).or_default();
            *count += 1;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        (name, what, stream.into_inner())
    }

    /// Waits for this effect of this instance. Effects before it are over at once.
    async fn until(&mut self, name: &str, what: &str) -> UnixStream {
        loop {
            let (of, is, mut stream) = self.next().await;
            if (&*of, &*is) == (name, what) {
                return stream;
            }
            stream.write_all(b".").await.unwrap();
        }
    }

    fn new(server: &Server) -> Self {
        let listener = UnixListener::bind(server.folder.path(EFFECTS)).unwrap();
        Self { listener, done: BTreeMap::new() }
    }

    /// Returns each effect with its number, and the number of its keys.
    fn counts(&self) -> Vec<(&str, usize, usize)> {
        self.done.iter().map(|(what, (count, keys))| (&**what, *count, keys.len())).collect()
    }

    async fn start(&mut self, server: &Server, name: &str) -> Instance {
        let process = spawn(server, "fleet::the_fleet_finishes_what_killed_processes_began", name);
        self.until(name, "serves").await;
        Instance::connect(server, name, process).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_finishes_what_killed_processes_began() {
    serve_if_instance().await;
    timeout(LIMIT, kill_two()).await.unwrap();
}

async fn kill_two() {
    let server = Server::start("dbos-fleet");
    let mut world = EffectLog::new(&server);
    let mut first = world.start(&server, "first").await;
    let created = first.request("tools/call", json!({"name": "work", "arguments": {}})).await;
    let task = created["taskId"].as_str().unwrap().to_owned();
    assert_eq!(created["resultType"], "task", "{created}");

    // The effect of the second step has happened, and its result is recorded nowhere.
    let interrupted = world.until("first", "two").await;
    let mut second = world.start(&server, "second").await;
    first.kill().await;
    drop(interrupted);
    world.until("second", "two").await.write_all(b".").await.unwrap();
    world.until("second", "three").await.write_all(b".").await.unwrap();
    let asks = second.until(&task, "input_required").await;
    assert_eq!(asks["inputRequests"].as_object().unwrap().len(), 1, "{asks}");

    // The answer comes while no process runs the task.
    second.kill().await;
    let mut third = world.start(&server, "third").await;
    let answer = json!({"name": {"action": "accept", "content": {"name": "Anna"}}});
    third.request("tasks/update", json!({"taskId": task, "inputResponses": answer})).await;
    world.until("third", "four").await.write_all(b".").await.unwrap();
    let done = third.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Anna", "{done}");

    assert_eq!(
        world.counts(),
        [("four", 1, 1), ("one", 1, 1), ("three", 1, 1), ("two", 2, 1)],
        "effects, and their keys"
    );
}

/// A process that was stopped counts as dead, and another one takes its task over. When it goes on, it finds that out.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_stopped_does_no_harm() {
    timeout(LIMIT, stop_one()).await.unwrap();
}

async fn stop_one() {
    let server = Server::start("dbos-stopped");
    let mut world = EffectLog::new(&server);
    let mut first = world.start(&server, "first").await;
    let created = first.request("tools/call", json!({"name": "work", "arguments": {}})).await;
    let task = created["taskId"].as_str().unwrap().to_owned();
    let mut interrupted = world.until("first", "two").await;
    first.signal("-STOP").await;

    let mut second = world.start(&server, "second").await;
    world.until("second", "two").await.write_all(b".").await.unwrap();
    let mut third = world.until("second", "three").await;

    // The first process goes on in the middle of the other one's leg: it ends its step, and begins no other.
    first.signal("-CONT").await;
    interrupted.write_all(b".").await.unwrap();
    let working = first.request("tasks/get", json!({"taskId": task})).await;
    assert_eq!(working["status"], "working", "{working}");
    third.write_all(b".").await.unwrap();
    let asks = second.until(&task, "input_required").await;
    assert_eq!(asks["inputRequests"].as_object().unwrap().len(), 1, "{asks}");

    // Either of them may continue the task from here.
    let answer = json!({"name": {"action": "accept", "content": {"name": "Anna"}}});
    first.request("tasks/update", json!({"taskId": task, "inputResponses": answer})).await;
    let (_, what, mut fourth) = world.next().await;
    assert_eq!(what, "four");
    fourth.write_all(b".").await.unwrap();
    for instance in [&mut first, &mut second] {
        let done = instance.until(&task, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], "Anna", "{done}");
    }
    assert_eq!(
        world.counts(),
        [("four", 1, 1), ("one", 1, 1), ("three", 1, 1), ("two", 2, 1)],
        "effects, and their keys"
    );
}
