//! An instance of the fleet: a process of its own, in which this test program serves a server on a socket.

use crate::postgres_server::Server;
use antiphon::{
    Error, Form,
    seal::{KeyRing, SecretKey},
    server::{ClaimOptions, Ctx, Limits, State, TaskOptions},
    store::{PostgresOptions, PostgresStore},
    tool,
};
use antiphon_dbos::{DbosOptions, DbosTasks};
use serde_json::{Value, json};
use std::{path::PathBuf, process::Stdio, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream, unix::OwnedReadHalf, unix::OwnedWriteHalf},
    process::{Child, Command},
};

/// The variables of a process that is an instance: its folder, and its name.
const FOLDER: &str = "ANTIPHON_DBOS_FOLDER";
const NAME: &str = "ANTIPHON_DBOS_NAME";

/// The socket to which instances write their effects.
pub(crate) const EFFECTS: &str = "effects.sock";

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// The connection to the world outside: it records effects, and says when each of them is over.
struct EffectSocket {
    folder: PathBuf,
    name: String,
}

impl EffectSocket {
    /// Writes a line, and waits for the reply.
    async fn effect(&self, what: &str, key: &str) {
        let mut world = UnixStream::connect(self.folder.join(EFFECTS)).await.unwrap();
        world.write_all(format!("{} {what} {key}\n", self.name).as_bytes()).await.unwrap();
        assert_eq!(world.read_u8().await.unwrap(), b'.');
    }
}

/// Runs three steps, asks, and runs a fourth one.
#[tool(task = "required", rerun_after_crash)]
async fn work(ctx: &Ctx, world: State<EffectSocket>) -> Result<String, Error> {
    for what in ["one", "two", "three"] {
        ctx.step(what, async |step| {
            world.effect(what, step.key()).await;
            Ok(())
        })
        .await?;
    }
    let Name { name } = ctx.elicit("Whose?").await?;
    ctx.step("four", async |step| {
        world.effect("four", step.key()).await;
        Ok(())
    })
    .await?;
    Ok(name)
}

/// Serves, if this process is an instance, and does not return.
pub(crate) async fn serve_if_instance() {
    let (Some(folder), Ok(name)) = (std::env::var_os(FOLDER), std::env::var(NAME)) else { return };
    let folder = PathBuf::from(folder);
    let settings = format!("host={} user=postgres dbname=postgres", folder.display());
    let url = format!("postgres://postgres@{}/postgres", folder.display().to_string().replace('/', "%2F"));
    let lease = Duration::from_secs(1);
    let server = antiphon::server::Server::builder("fleet", "1")
        .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
        .limits(Limits::default().step_grace(lease / 4))
        .store(PostgresStore::connect(&settings, PostgresOptions::default()).await.unwrap())
        .claim_options(ClaimOptions::default().lease(lease))
        .task_engine(Arc::new(DbosTasks::connect(&url, DbosOptions::default().lease(lease)).await.unwrap()))
        .task_options(TaskOptions::default())
        .state(EffectSocket { folder: folder.clone(), name: name.clone() })
        .tool(work)
        .build()
        .unwrap();
    let listener = UnixListener::bind(folder.join(&name)).unwrap();
    // The test waits for this line.
    UnixStream::connect(folder.join(EFFECTS))
        .await
        .unwrap()
        .write_all(format!("{name} serves\n").as_bytes())
        .await
        .unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let (input, output) = stream.into_split();
    antiphon::serve::stdio::serve_streams(input, output, server).await.unwrap();
    std::process::exit(0);
}

/// A process of the fleet, and a client of its server.
pub(crate) struct Instance {
    pub(crate) process: Child,
    input: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    output: OwnedWriteHalf,
    ids: u64,
}

/// Starts a process that runs the test of this name, which serves there.
pub(crate) fn spawn(server: &Server, test: &str, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(FOLDER, server.folder.path(""))
        .env(NAME, name)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

impl Instance {
    /// Connects to a process that serves.
    pub(crate) async fn connect(server: &Server, name: &str, process: Child) -> Self {
        let stream = UnixStream::connect(server.folder.path(name)).await.unwrap();
        let (input, output) = stream.into_split();
        Self { process, input: BufReader::new(input).lines(), output, ids: 0 }
    }

    /// Sends a request. Returns its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        self.ids += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params});
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        self.ids
    }

    /// Receives the next message.
    pub(crate) async fn receive(&mut self) -> Value {
        let line = self.input.next_line().await.unwrap().expect("the instance is there");
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a request, and returns its result.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                assert!(message["result"].is_object(), "{message}");
                return message["result"].clone();
            }
        }
    }

    /// Listens to a task until it has this status.
    pub(crate) async fn until(&mut self, task: &str, status: &str) -> Value {
        self.send("subscriptions/listen", json!({"notifications": {"taskIds": [task]}})).await;
        loop {
            let message = self.receive().await;
            if message["method"] == "notifications/tasks" && message["params"]["status"] == status {
                return message["params"].clone();
            }
        }
    }

    /// Sends a signal to the process.
    pub(crate) async fn signal(&self, name: &str) {
        let process = self.process.id().unwrap().to_string();
        assert!(Command::new("kill").args([name, &process]).status().await.unwrap().success());
    }

    /// Kills the process, which has no time to do anything.
    pub(crate) async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }
}
