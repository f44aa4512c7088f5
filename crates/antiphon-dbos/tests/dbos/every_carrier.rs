//! Each demo tool over every carrier: sealed state over a memory pair, stdio and HTTP; pushed questions in sessions over
//! stdio and HTTP; tasks of the extension in memory, in a SQLite file and on DBOS, tasks of the draft before it, and tasks of a
//! session of 2025-11-25. The questions, the results and the effects on the backend are the same.
//!
//! A further carrier is a variant of [`Carrier`], its place in `ALL`, its server in `Peer::start`, and its settings in `client`;
//! the era in `is_session`, and the form of its tasks in `task_form`.

mod examples;

use self::examples::{Example, Reaction, Target, User, examples};
use crate::{LIMIT, antiphon_program::antiphon, connect, folder::Folder, postgres_server};
use antiphon::{
    client::{
        Client, ClientError, Era, Mode,
        tasks::TaskForm,
        transport::{ChildCommand, ChildTransport, HttpTransport, Transport, memory},
    },
    serve::{
        http::{HttpOptions, serve_http},
        stdio::serve_streams,
    },
    server::{Server, ServerBuilder, TaskMode, TaskOptions, test_hooks::with_task_mode},
    store::{PostgresOptions, SqliteOptions, SqliteStore},
    wire::{
        CallToolResult, ElicitResult, ProtocolVersion,
        content::ResourceContents,
        sampling::{CreateMessageResult, ListRootsResult, Root},
    },
};
use antiphon_dbos::{DbosOptions, DbosTasks};
use antiphon_demo::{
    Backend, Build,
    backend::{ADDRESS_VARIABLE, ComputeHook, EffectCounts, Operation, serve},
};
use antiphon_store::TaskEngine as _;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    net::TcpListener,
    time::timeout,
};

/// The transport of the requests, and the carrier of the questions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Carrier {
    SealedMemory,
    SealedPipes,
    SealedHttp,
    PushedPipes,
    PushedHttp,
    /// Every call of a tool is a task from its beginning. Prompts and resources have no tasks.
    TaskMemory,
    TaskSqlite,
    TaskDbos,
    /// The same by the draft before the extension.
    TaskDraft,
    /// The same in a session of 2025-11-25.
    TaskSession,
}

impl Carrier {
    fn is_session(self) -> bool {
        matches!(self, Self::PushedPipes | Self::PushedHttp | Self::TaskSession)
    }

    /// The form of the tasks; `None` without tasks.
    fn task_form(self) -> Option<TaskForm> {
        match self {
            Self::TaskMemory | Self::TaskSqlite | Self::TaskDbos => Some(TaskForm::Extension),
            Self::TaskDraft => Some(TaskForm::Draft),
            Self::TaskSession => Some(TaskForm::Session),
            _ => None,
        }
    }
}

const ALL: [Carrier; 10] = [
    Carrier::SealedMemory,
    Carrier::SealedPipes,
    Carrier::SealedHttp,
    Carrier::PushedPipes,
    Carrier::PushedHttp,
    Carrier::TaskMemory,
    Carrier::TaskSqlite,
    Carrier::TaskDbos,
    Carrier::TaskDraft,
    Carrier::TaskSession,
];

/// The outcome of a call.
#[derive(Debug, PartialEq)]
struct CallOutcome {
    result: Result<Value, String>,
    /// The messages, sorted, because questions of one round come in any order.
    asked: Vec<String>,
    /// The counts of effects without their idempotency keys, which differ from call to call.
    done: [Vec<u32>; 4],
}

fn counts_only(counts: EffectCounts) -> [Vec<u32>; 4] {
    let numbers = |counts: std::collections::BTreeMap<String, u32>| counts.into_values().collect();
    [numbers(counts.charges), numbers(counts.portions), numbers(counts.deposits), numbers(counts.deleted)]
}

/// Starts a backend for one call.
async fn backend() -> (SocketAddr, Backend) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, ComputeHook::none(), Arc::default()));
    (address, Backend::at(address))
}

/// A server whose calls become tasks, and the messages that its client has sent to it.
struct TaskPeer {
    server: Server,
    received: Arc<Mutex<Vec<Value>>>,
}

impl TaskPeer {
    /// Starts a server over memory.
    fn start(server: Server) -> (Arc<dyn Transport>, Self) {
        let (transport, input, output) = memory::duplex();
        let received = Arc::default();
        let input = recorded(input, Arc::clone(&received));
        tokio::spawn(serve_streams(input, output, server.clone()));
        (Arc::new(transport), Self { server, received })
    }

    /// Panics unless the one call was one task in this form.
    fn check(&self, form: TaskForm, of: &str) {
        assert_eq!(self.server.task_metrics().created, 1, "{of} was no task");
        let received = self.received.lock().unwrap();
        let has = |method: &str| received.iter().any(|message| message["method"] == method);
        let asks_for_task = received
            .iter()
            .any(|message| message["method"] == "tools/call" && message["params"]["task"].is_object());
        let is_extension = has("tasks/get") && !has("tasks/result") && !asks_for_task;
        let is_earlier = has("tasks/result") && !has("tasks/update") && asks_for_task;
        // In a session, the client answers with responses, and by the draft with requests.
        let is_form = match form {
            TaskForm::Extension => is_extension && !has("initialize"),
            TaskForm::Draft => is_earlier && !has("initialize"),
            TaskForm::Session => is_earlier && has("initialize") && !has("tasks/input_response"),
            _ => false,
        };
        assert!(is_form, "{of} was no task as in {form:?}: {received:?}");
    }
}

/// Returns a stream with the lines of `input`, and appends each line's message to `received`.
fn recorded(input: DuplexStream, received: Arc<Mutex<Vec<Value>>>) -> DuplexStream {
    let (mut forward, output) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let mut lines = BufReader::new(input).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            received.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            forward.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
    });
    output
}

/// The files, the database and the program of the carriers.
struct Places {
    folder: Folder,
    database: postgres_server::Server,
    antiphon: PathBuf,
}

/// The server of one call.
struct Peer {
    transport: Arc<dyn Transport>,
    /// The server, if its calls become tasks.
    tasks: Option<TaskPeer>,
    /// Its engine, if that is DBOS.
    engine: Option<Arc<DbosTasks>>,
}

impl Peer {
    /// Starts the server of one call, with this backend.
    async fn start(carrier: Carrier, address: SocketAddr, places: &Places) -> Self {
        let builder = || antiphon_demo::builder(Backend::at(address), Build::New);
        let server = || -> Server { builder().build().unwrap() };
        let as_tasks = || {
            let options = TaskOptions::default().poll_interval(Duration::from_millis(5));
            with_task_mode(builder().task_options(options), TaskMode::Required)
        };
        let transport: Arc<dyn Transport> = match carrier {
            Carrier::TaskMemory | Carrier::TaskSession => return Self::with_tasks(as_tasks(), None),
            Carrier::TaskDraft => return Self::with_tasks(as_tasks().draft_tasks(true), None),
            Carrier::TaskSqlite => {
                let file = places.folder.path(format!("calls-{}.db", address.port()));
                let store = SqliteStore::open(file, SqliteOptions::default()).await.unwrap();
                return Self::with_tasks(as_tasks().store(store), None);
            }
            Carrier::TaskDbos => {
                let engine = connect(&places.database, DbosOptions::default()).await;
                let calls = places.database.store(PostgresOptions::default()).await.unwrap();
                let builder = as_tasks().store(calls).task_engine(Arc::<DbosTasks>::clone(&engine));
                return Self::with_tasks(builder, Some(engine));
            }
            Carrier::SealedMemory => {
                let (transport, input, output) = memory::duplex();
                tokio::spawn(serve_streams(input, output, server()));
                Arc::new(transport)
            }
            Carrier::SealedPipes | Carrier::PushedPipes => {
                let child = ChildCommand::new(&places.antiphon)
                    .args(["serve-demo", "--stdio"])
                    .env(ADDRESS_VARIABLE, address.to_string());
                Arc::new(ChildTransport::spawn(child).unwrap())
            }
            Carrier::SealedHttp | Carrier::PushedHttp => {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let url = format!("http://{}/mcp", listener.local_addr().unwrap());
                tokio::spawn(serve_http(listener, server(), HttpOptions::default()).into_future());
                Arc::new(HttpTransport::new(url).unwrap())
            }
        };
        Self { transport, tasks: None, engine: None }
    }

    fn with_tasks(builder: ServerBuilder, engine: Option<Arc<DbosTasks>>) -> Self {
        let (transport, tasks) = TaskPeer::start(builder.build().unwrap());
        Self { transport, tasks: Some(tasks), engine }
    }

    /// Ends an engine before the next call: it would run tasks of that call too, with the backend of this one.
    async fn end(self) {
        if let Some(engine) = self.engine {
            engine.drain();
            engine.idle().await;
        }
    }
}

fn client(
    carrier: Carrier,
    transport: Arc<dyn Transport>,
    user: User,
    asked: Arc<Mutex<Vec<String>>>,
) -> Client {
    let mode = if carrier.is_session() { Mode::Legacy } else { Mode::Pinned(ProtocolVersion::V2026_07_28) };
    let user = Arc::new(Mutex::new(user));
    let react = move |message: &str| {
        asked.lock().unwrap().push(message.to_owned());
        let mut user = user.lock().unwrap();
        let at = user.iter().position(|(words, _)| message.contains(words));
        user.remove(at.unwrap_or_else(|| panic!("unexpected question {message:?}"))).1
    };
    let react_to_url = react.clone();
    Client::builder("every-carrier", "1")
        .mode(mode)
        // The server has both forms, and would use the extension.
        .tasks(carrier != Carrier::TaskDraft)
        .draft_tasks(carrier == Carrier::TaskDraft)
        .on_elicit_form(move |ask| {
            let answer = match react(&ask.message) {
                Reaction::FillIn(content) => ask.accept(content).map_err(Into::into),
                Reaction::Decline => Ok(ElicitResult::decline()),
                _ => Ok(ElicitResult::cancel()),
            };
            async { answer }
        })
        .on_elicit_url(move |ask| {
            let answer = match react_to_url(&ask.message) {
                Reaction::Agree => ask.consent(),
                Reaction::Decline => ElicitResult::decline(),
                _ => ElicitResult::cancel(),
            };
            async { Ok(answer) }
        })
        .on_sample(async |_| Ok(CreateMessageResult::text("model", "Another process.")))
        .on_roots(async |_| Ok(ListRootsResult::new(vec![Root::new("file:///work")])))
        .connect(transport)
}

fn text_of(result: CallToolResult) -> Value {
    json!([result.is_error.unwrap_or_default(), result.content, result.structured_content])
}

async fn call(client: &Client, target: Target, arguments: &Value) -> Result<Value, ClientError> {
    Ok(match target {
        Target::Tool(name) => text_of(client.call_tool(name, arguments).await?),
        Target::Prompt(name) => json!(client.get_prompt(name, arguments).await?.messages),
        Target::Resource(uri) => {
            let contents: Vec<ResourceContents> = client.read_resource(uri).await?.contents;
            json!(contents)
        }
    })
}

/// Makes one call over every carrier, and compares the outcomes.
async fn check(example: &Example, places: &Places) {
    let mut first: Option<CallOutcome> = None;
    for carrier in ALL {
        let (address, backend) = backend().await;
        let fill = Operation::Fill {
            path: "work/full".to_owned(),
            files: vec!["a.txt".to_owned(), "b.txt".to_owned()],
        };
        let () = backend.send(fill).await.unwrap();
        let messages = Arc::default();
        let peer = Peer::start(carrier, address, places).await;
        let client =
            client(carrier, Arc::clone(&peer.transport), example.user.clone(), Arc::clone(&messages));
        let result = call(&client, example.target, &example.arguments).await;
        let result = result.map_err(|error| error.to_string());
        let era = if carrier.is_session() { Era::Legacy } else { Era::Modern };
        assert_eq!(client.era(), Some(era), "{carrier:?}");
        let mut messages = std::mem::take(&mut *messages.lock().unwrap());
        messages.sort();
        let counts: EffectCounts = backend.send(Operation::Count).await.unwrap();
        let outcome = CallOutcome { result, asked: messages, done: counts_only(counts) };
        assert!(format!("{:?}", outcome.result).contains(example.expected), "{carrier:?}: {outcome:?}");
        assert_eq!(
            (outcome.asked.len(), outcome.done.each_ref().map(Vec::as_slice)),
            (example.user.len(), example.done),
            "{carrier:?}: {outcome:?}"
        );
        if let (Some(tasks), Some(form), Target::Tool(name)) =
            (&peer.tasks, carrier.task_form(), example.target)
        {
            tasks.check(form, name);
        }
        match &first {
            None => first = Some(outcome),
            Some(first) => assert_eq!(*first, outcome, "{carrier:?}"),
        }
        client.close().await;
        peer.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_over_every_carrier() {
    let places = Places {
        folder: Folder::new("carriers"),
        database: postgres_server::Server::start("dbos-carriers"),
        antiphon: antiphon(),
    };
    for example in examples() {
        timeout(LIMIT, check(&example, &places)).await.unwrap();
    }
}
