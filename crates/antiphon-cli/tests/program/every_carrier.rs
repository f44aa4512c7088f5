//! Each demo tool over every carrier: sealed state over a memory pair, stdio and HTTP; pushed questions in sessions over
//! stdio and HTTP; tasks of the extension in memory and in a SQLite file, tasks of the draft before it, and tasks of a session of
//! 2025-11-25. The questions, the results and the effects on the backend are the same.
//!
//! A further carrier is a variant of [`Carrier`], its place in `ALL`, its server in `connect`, and its settings in `client`; the
//! era in `is_session`, and the form of its tasks in `task_shape`.
use crate::support::Scratch;
use antiphon::{
    client::{
        Client, ClientError, Era, Mode, TaskShape,
        transport::{ChildCommand, ChildTransport, HttpTransport, Transport, memory},
    },
    serve::{
        http::{HttpOptions, serve_http},
        stdio::serve_streams,
    },
    server::{Server, ServerBuilder, TaskMode, TaskOptions, test_hooks::with_task_mode},
    store::{SqliteOptions, SqliteStore},
    wire::{
        CallToolResult, CreateMessageResult, ElicitResult, ListRootsResult, ProtocolVersion,
        ResourceContents, Root,
    },
};
use antiphon_demo::{
    Backend, Build,
    backend::{ADDRESS_VARIABLE, ComputeHook, EffectCounts, Operation, serve},
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    net::TcpListener,
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
    fn task_shape(self) -> Option<TaskShape> {
        match self {
            Self::TaskMemory | Self::TaskSqlite => Some(TaskShape::Extension),
            Self::TaskDraft => Some(TaskShape::Draft),
            Self::TaskSession => Some(TaskShape::Session),
            _ => None,
        }
    }
}

const ALL: [Carrier; 9] = [
    Carrier::SealedMemory,
    Carrier::SealedPipes,
    Carrier::SealedHttp,
    Carrier::PushedPipes,
    Carrier::PushedHttp,
    Carrier::TaskMemory,
    Carrier::TaskSqlite,
    Carrier::TaskDraft,
    Carrier::TaskSession,
];

/// The reaction of the scripted user to a question.
#[derive(Clone)]
enum Reaction {
    FillIn(Value),
    Agree,
    Decline,
    Cancel,
}

/// The reactions of the scripted user, by a part of the message.
type ScriptedUser = Vec<(&'static str, Reaction)>;

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
    fn check(&self, shape: TaskShape, of: &str) {
        assert_eq!(self.server.task_metrics().created, 1, "{of} was no task");
        let received = self.received.lock().unwrap();
        let has = |method: &str| received.iter().any(|message| message["method"] == method);
        let asks_for_task = received
            .iter()
            .any(|message| message["method"] == "tools/call" && message["params"]["task"].is_object());
        let is_extension = has("tasks/get") && !has("tasks/result") && !asks_for_task;
        let is_earlier = has("tasks/result") && !has("tasks/update") && asks_for_task;
        // In a session, the client answers with responses, and by the draft with requests.
        let is_form = match shape {
            TaskShape::Extension => is_extension && !has("initialize"),
            TaskShape::Draft => is_earlier && !has("initialize"),
            TaskShape::Session => is_earlier && has("initialize") && !has("tasks/input_response"),
            _ => false,
        };
        assert!(is_form, "{of} was no task as in {shape:?}: {received:?}");
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

/// Returns the client's transport to a server with this backend, and the server if its calls become tasks. `scratch` has the files of
/// the server.
async fn connect(
    carrier: Carrier,
    address: SocketAddr,
    scratch: &Scratch,
) -> (Arc<dyn Transport>, Option<TaskPeer>) {
    let builder = || antiphon_demo::builder(Backend::at(address), Build::New);
    let server = || -> Server { builder().build().unwrap() };
    let as_tasks = || {
        let options = TaskOptions::default().poll_interval(Duration::from_millis(5));
        with_task_mode(builder().task_options(options), TaskMode::Required)
    };
    let with_tasks = |builder: ServerBuilder| {
        let (transport, peer) = TaskPeer::start(builder.build().unwrap());
        (transport, Some(peer))
    };
    let transport: Arc<dyn Transport> = match carrier {
        Carrier::TaskMemory | Carrier::TaskSession => return with_tasks(as_tasks()),
        Carrier::TaskDraft => return with_tasks(as_tasks().draft_tasks(true)),
        Carrier::TaskSqlite => {
            let file = scratch.path().join("calls.db");
            let store = SqliteStore::open(file, SqliteOptions::default()).await.unwrap();
            return with_tasks(as_tasks().store(store));
        }
        Carrier::SealedMemory => {
            let (transport, input, output) = memory::duplex();
            tokio::spawn(serve_streams(input, output, server()));
            Arc::new(transport)
        }
        Carrier::SealedPipes | Carrier::PushedPipes => {
            let child = ChildCommand::new(env!("CARGO_BIN_EXE_antiphon"))
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
    (transport, None)
}

fn client(
    carrier: Carrier,
    transport: Arc<dyn Transport>,
    user: ScriptedUser,
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

/// The target of a call.
#[derive(Clone, Copy)]
enum Target {
    Tool(&'static str),
    Prompt(&'static str),
    Resource(&'static str),
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
async fn check(
    target: Target,
    arguments: Value,
    user: ScriptedUser,
    expected: &str,
    asked: usize,
    done: [&[u32]; 4],
) {
    let mut first: Option<CallOutcome> = None;
    for carrier in ALL {
        let (address, backend) = backend().await;
        let fill = Operation::Fill {
            path: "work/full".to_owned(),
            files: vec!["a.txt".to_owned(), "b.txt".to_owned()],
        };
        let () = backend.send(fill).await.unwrap();
        let messages = Arc::default();
        let scratch = Scratch::new();
        let (transport, peer) = connect(carrier, address, &scratch).await;
        let client = client(carrier, transport, user.clone(), Arc::clone(&messages));
        let result = call(&client, target, &arguments).await.map_err(|error| error.to_string());
        let era = if carrier.is_session() { Era::Legacy } else { Era::Modern };
        assert_eq!(client.era(), Some(era), "{carrier:?}");
        let mut messages = std::mem::take(&mut *messages.lock().unwrap());
        messages.sort();
        let counts: EffectCounts = backend.send(Operation::Count).await.unwrap();
        let outcome = CallOutcome { result, asked: messages, done: counts_only(counts) };
        assert!(format!("{:?}", outcome.result).contains(expected), "{carrier:?}: {outcome:?}");
        assert_eq!(
            (outcome.asked.len(), outcome.done.each_ref().map(Vec::as_slice)),
            (asked, done),
            "{carrier:?}: {outcome:?}"
        );
        if let (Some(peer), Some(shape), Target::Tool(name)) = (peer, carrier.task_shape(), target) {
            peer.check(shape, name);
        }
        match &first {
            None => first = Some(outcome),
            Some(first) => assert_eq!(*first, outcome, "{carrier:?}"),
        }
        client.close().await;
    }
}

const NOTHING: [&[u32]; 4] = [&[], &[], &[], &[]];

#[tokio::test(flavor = "multi_thread")]
async fn every_example_over_every_carrier() {
    use Reaction::{Agree, Cancel, Decline, FillIn};
    use Target::{Prompt, Resource, Tool};
    check(Tool("echo"), json!({"text": "hello"}), vec![], "hello", 0, NOTHING).await;
    let region = ("region", FillIn(json!({"region": "eu-west-1"})));
    let orders = json!({"name": "orders"});
    check(Tool("provision"), orders.clone(), vec![region], "Provisioned", 1, NOTHING).await;
    check(Tool("provision"), orders, vec![("region", Decline)], "declined", 1, NOTHING).await;
    let item = json!({"workItemId": 4522, "fields": {"System.State": "Resolved"}});
    let duplicate =
        vec![("", FillIn(json!({"resolution": "Duplicate"}))), ("", FillIn(json!({"duplicateOfId": 4301})))];
    check(Tool("update_work_item"), item, duplicate, "Duplicate of Bug #4301", 2, NOTHING).await;
    let table = |party: u32| json!({"date": "2025-12-25", "party_size": party});
    let date = |date: &str| FillIn(json!({"accept_alternative": true, "date": date}));
    check(Tool("book_table"), table(2), vec![("another date", date("2025-12-27"))], "2025-12-27", 1, NOTHING)
        .await;
    let twice = vec![("2025-12-25", date("2025-12-31")), ("2025-12-31", date("2025-12-27"))];
    check(Tool("book_table"), table(4), twice, "for 4 on 2025-12-27", 2, NOTHING).await;
    let by_default = vec![("", FillIn(json!({"accept_alternative": true})))];
    check(Tool("book_table"), table(2), by_default, "2025-12-26", 1, NOTHING).await;
    let folder = json!({"path": "work/full"});
    let confirmed = vec![("Delete it all?", FillIn(json!({"ok": true})))];
    check(Tool("delete_folder"), folder.clone(), confirmed, "Deleted work/full.", 1, [&[], &[], &[], &[1]])
        .await;
    check(Tool("delete_folder"), folder, vec![("", Cancel)], "Kept work/full", 1, NOTHING).await;
    let folder = json!({"path": "work/full"});
    let picked = ("Which file", FillIn(json!({"file": "b.txt"})));
    let confirm = |value: bool| ("Delete b.txt from work/full?", FillIn(json!({ "value": value })));
    let file = vec![picked.clone(), confirm(true)];
    check(Tool("pick_file"), folder.clone(), file, "Deleted b.txt from work/full.", 2, [&[], &[], &[], &[1]])
        .await;
    let kept = vec![picked.clone(), confirm(false)];
    check(Tool("pick_file"), folder.clone(), kept, "Kept b.txt.", 2, NOTHING).await;
    let left = vec![picked, ("Delete", Cancel)];
    check(Tool("pick_file"), folder.clone(), left, "dismissed `confirm`", 2, NOTHING).await;
    check(Tool("pick_file"), folder, vec![("", Decline)], "declined to answer `form`", 1, NOTHING).await;
    let booking = json!({"booking_id": 8});
    check(Tool("pay_deposit"), booking.clone(), vec![("deposit", Agree)], "Complete the payment", 1, NOTHING)
        .await;
    check(Tool("pay_deposit"), booking, vec![("deposit", Decline)], "No deposit", 1, NOTHING).await;
    let charge = vec![
        ("Charge 20 EUR", FillIn(json!({"ok": true}))),
        ("receipt", FillIn(json!({"email": "ada@example.com"}))),
    ];
    let amount = json!({"amount": 20});
    check(Tool("charge_once"), amount.clone(), charge, "Charged 20 EUR", 2, [&[1], &[], &[], &[]]).await;
    check(Tool("charge_once"), amount, vec![("Charge", Decline)], "declined to answer", 1, NOTHING).await;
    let logins =
        vec![("GitHub", FillIn(json!({"name": "octocat"}))), ("Microsoft", FillIn(json!({"name": "grace"})))];
    check(Tool("rolling_upgrade"), json!({}), logins, "octocat (GitHub) and grace (Microsoft)", 2, NOTHING)
        .await;
    let portions = json!({"portions": 3});
    check(Tool("load_shedding"), portions, vec![], "primes below 3000", 0, [&[], &[1, 1, 1], &[], &[]]).await;
    let reader = vec![("terms", Agree), ("read the answer", FillIn(json!({"reader": "Ada"})))];
    let question = json!({"question": "What is a replica?"});
    check(
        Tool("ask_the_model"),
        question,
        reader,
        "For Ada, who works in file:///work: Another process.",
        2,
        NOTHING,
    )
    .await;
    // Questions by hand.
    let login = vec![("GitHub", FillIn(json!({"name": "octocat"})))];
    check(Tool("get_weather"), json!({"location": "Oslo"}), login, "Conditions: Partly cloudy", 1, NOTHING)
        .await;
    let audience = || FillIn(json!({"audience": "the board"}));
    let topic = json!({"topic": "replicas"});
    check(Prompt("briefing"), topic, vec![("briefing", audience())], "on replicas for the board", 1, NOTHING)
        .await;
    check(
        Resource("report://7"),
        json!({}),
        vec![("report 7", audience())],
        "for the board: all is well",
        1,
        NOTHING,
    )
    .await;
}
