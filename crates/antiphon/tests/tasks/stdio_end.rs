//! Tasks whose process ends with its standard input, or by a signal: the next process continues them at once. The clock of the
//! store stands still, so no lease ends by itself.

use crate::{
    client::{TaskClient, accept, text_of},
    common::session::{everything, initialize, plain},
};
use antiphon::{
    Error, Form,
    seal::{KeyRing, SecretKey},
    serve::stdio::serve_streams,
    server::{Ctx, Server, State},
    store::{ManualStoreClock, MemoryStore, StoreClock, calls::Micros},
    tool,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    time::{Instant, sleep},
};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Place {
    /// Region
    region: String,
}

/// The steps that have run.
type Effects = Arc<Mutex<Vec<&'static str>>>;

async fn step(ctx: &Ctx, effects: &Effects, name: &'static str) -> Result<(), Error> {
    ctx.step(name, async |_| {
        effects.lock().unwrap().push(name);
        sleep(Duration::from_secs(2)).await;
        Ok(())
    })
    .await?;
    Ok(())
}

/// Works, asks, and works again.
#[tool(task = "required")]
async fn film(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    step(ctx, &effects, "cut").await?;
    let Place { region } = ctx.elicit("Where?").key("where").await?;
    step(ctx, &effects, "send").await?;
    Ok(region)
}

/// The processes of one store.
struct Processes {
    store: Arc<MemoryStore>,
    _clock: ManualStoreClock,
    effects: Effects,
}

/// The end of a process.
#[derive(Clone, Copy, Debug)]
enum End {
    Eof,
    Signal,
}

impl Processes {
    fn new() -> Self {
        let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
        Self { store: Arc::new(MemoryStore::new().clock(clock)), _clock: hand, effects: Effects::default() }
    }

    fn server(&self) -> Server {
        Server::builder("films", "1")
            .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
            .store(self.store.clone())
            .single_instance(true)
            .state(self.effects.clone())
            .tool(film)
            .build()
            .unwrap()
    }

    /// Serves these messages, and ends so much later. Returns the replies.
    async fn serve(&self, messages: &[Value], end: End, after: Duration) -> Vec<Value> {
        let ((mut writer, input), (output, mut reader)) = (duplex(1 << 20), duplex(1 << 20));
        let text: String = messages.iter().map(|message| format!("{message}\n")).collect();
        writer.write_all(text.as_bytes()).await.unwrap();
        let serving = serve_streams(input, output, self.server()).drain_at_end(true);
        match end {
            End::Eof => {
                let closing = async {
                    sleep(after).await;
                    drop(writer);
                };
                let (served, ()) = tokio::join!(serving, closing);
                served.unwrap();
            }
            End::Signal => serving.with_graceful_shutdown(sleep(after)).await.unwrap(),
        }
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn request(id: u32, method: &str, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    plain(id, method, params)
}

#[tokio::test(start_paused = true)]
async fn the_next_process_continues_at_once() {
    for end in [End::Eof, End::Signal] {
        // Before the first step, in it, and after the question.
        for ms in [10, 1000, 9000] {
            let processes = Processes::new();
            let created = [request(1, "tools/call", json!({"name": "film"}))];
            let replies = processes.serve(&created, end, Duration::from_millis(ms)).await;
            let id = replies[0]["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{replies:?}"));
            let began = Instant::now();
            let second = TaskClient::of(processes.server());
            second.asked(id, &["where"]).await;
            let at_most = Duration::from_secs(if ms == 10 { 4 } else { 2 });
            assert!(began.elapsed() < at_most, "{end:?} {ms}: {:?}", began.elapsed());
            drop(second);
            // The answer is the last message of its process.
            let answers = json!({"where": accept(json!({"region": "eu"}))});
            let update = [request(1, "tasks/update", json!({"taskId": id, "inputResponses": answers}))];
            let replies = processes.serve(&update, end, Duration::from_millis(10)).await;
            assert_eq!(replies[0]["result"]["resultType"], "complete", "{replies:?}");
            let began = Instant::now();
            let third = TaskClient::of(processes.server());
            assert_eq!(text_of(&third.status(id, "completed").await), "eu");
            assert!(began.elapsed() < Duration::from_secs(4), "{end:?} {ms}: {:?}", began.elapsed());
            assert_eq!(*processes.effects.lock().unwrap(), ["cut", "send"]);
        }
    }
}

/// A task in the form of a session is released like any other.
#[tokio::test(start_paused = true)]
async fn so_does_a_task_of_a_session() {
    for end in [End::Eof, End::Signal] {
        let processes = Processes::new();
        let messages = [
            plain(0, "initialize", initialize("2025-11-25", everything())),
            plain(1, "tools/call", json!({"name": "film", "task": {}})),
        ];
        let replies = processes.serve(&messages, end, Duration::from_secs(1)).await;
        let id = replies[1]["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{replies:?}"));
        let began = Instant::now();
        TaskClient::of(processes.server()).asked(id, &["where"]).await;
        assert!(began.elapsed() < Duration::from_secs(2), "{end:?}: {:?}", began.elapsed());
        assert_eq!(*processes.effects.lock().unwrap(), ["cut"]);
    }
}

/// Other clients of the server keep their tasks.
#[tokio::test(start_paused = true)]
async fn a_server_on_several_streams_goes_on() {
    let processes = Processes::new();
    let server = processes.server();
    let ((mut writer, input), (output, _reader)) = (duplex(1 << 20), duplex(1 << 20));
    let call = format!("{}\n", request(1, "tools/call", json!({"name": "film"})));
    writer.write_all(call.as_bytes()).await.unwrap();
    drop(writer);
    serve_streams(input, output, server.clone()).await.unwrap();
    let client = TaskClient::of(server);
    let id = client.task("film", json!({})).await;
    client.asked(&id, &["where"]).await;
}
