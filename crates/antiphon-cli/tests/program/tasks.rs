//! `call --detach`, `task`, and calls that become tasks, with a scripted server over HTTP.

use crate::support::{Run, Scratch, run};
use antiphon::store::{
    CallStore as _, SqliteOptions, SqliteStore, StoreClock, TaskLimits,
    calls::{Micros, Owner, RunnerId},
    tasks::{NewTask, TaskClaim, TaskKey, TaskNext, TaskUpdate},
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const ID: &str = "task-1";

/// A server that makes a task of each call. Its states come in turn; the last one repeats.
struct TaskServer {
    url: String,
    received: Arc<Mutex<Vec<String>>>,
}

impl TaskServer {
    fn start(states: &[Value]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<String>>>::default();
        let (states, log) = (Arc::new(Mutex::new(VecDeque::from(states.to_vec()))), Arc::clone(&received));
        // The thread ends with the test program.
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (states, log) = (Arc::clone(&states), Arc::clone(&log));
                std::thread::spawn(move || serve(connection.unwrap(), &states, &log));
            }
        });
        Self { url, received }
    }

    /// The requests: the method, and the answers.
    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    fn run(&self, arguments: &[&str]) -> Run {
        run(arguments.iter().chain(&[self.url.as_str()]))
    }
}

fn serve(connection: TcpStream, states: &Mutex<VecDeque<Value>>, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut writer = connection;
    while let Some(request) = read(&mut reader) {
        let (method, params) = (request["method"].as_str().unwrap(), &request["params"]);
        log.lock().unwrap().push(match params.get("inputResponses") {
            Some(answers) => format!("{method} {answers}"),
            None => method.to_owned(),
        });
        let result = match method {
            "tools/call" if params.get("task").is_some() => json!({"task": draft("Working")}),
            "tools/call" => with(state("working"), json!({"resultType": "task"})),
            "tasks/get" | "tasks/result" => {
                let mut states = states.lock().unwrap();
                let next = states.front().unwrap().clone();
                if states.len() > 1 {
                    states.pop_front();
                }
                if method == "tasks/get" { with(next, json!({"resultType": "complete"})) } else { next }
            }
            "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
            _ => json!({"resultType": "complete"}),
        };
        let member = if params["taskId"] == "gone" {
            json!({"error": {"code": -32602, "message": "Task not found"}})
        } else {
            json!({"result": result})
        };
        let body = with(json!({"jsonrpc": "2.0", "id": request["id"]}), member).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        writer.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().to_lowercase() {
            end if end.is_empty() => break,
            header => length = header.strip_prefix("content-length: ").map_or(length, |n| n.parse().unwrap()),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn with(mut value: Value, members: Value) -> Value {
    for (name, member) in members.as_object().unwrap() {
        value[name] = member.clone();
    }
    value
}

fn state(status: &str) -> Value {
    json!({
        "taskId": ID, "status": status, "createdAt": "2026-08-20T10:30:00Z", "lastUpdatedAt": "2026-08-20T10:30:00Z",
        "ttlMs": null, "pollIntervalMs": 50
    })
}

/// A state as the draft before the extension writes it.
fn draft(status: &str) -> Value {
    json!({"taskId": ID, "status": status, "createdAt": "2026-01-27T03:32:48Z", "ttl": 60000, "pollInterval": 50})
}

fn working(message: &str) -> Value {
    with(state("working"), json!({"statusMessage": message}))
}

fn done() -> Value {
    with(state("completed"), json!({"result": {"content": [{"type": "text", "text": "rendered"}]}}))
}

fn asks(keys: &[&str]) -> Value {
    let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Where?", "requestedSchema": {
        "type": "object", "properties": {"region": {"type": "string"}}, "required": ["region"]
    }}});
    let asks: Value = keys.iter().map(|key| ((*key).to_owned(), form.clone())).collect();
    with(state("input_required"), json!({"inputRequests": asks}))
}

const EU: &str = r#"{"action":"accept","content":{"region":"eu"}}"#;

#[test]
fn a_call_follows_its_task_and_answers_its_questions() {
    let server =
        TaskServer::start(&[working("frame 1\u{1b}[2J"), asks(&["where"]), working("frame 2"), done()]);
    let ran = server.run(&["call", "render", "--answer", "where.region=eu"]);
    ran.ends(0, "rendered");
    assert!(ran.stderr.contains("task: frame 1") && ran.stderr.contains("task: frame 2"), "{ran:?}");
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
    let update = format!(r#"tasks/update {{"where":{EU}}}"#);
    assert!(server.received().contains(&update), "{:?}", server.received());
}

#[test]
fn a_detached_call_prints_its_task() {
    let server = TaskServer::start(&[asks(&["where"]), done()]);
    server.run(&["call", "render", "--detach"]).ends(0, ID);
    assert_eq!(server.received(), ["server/discover", "tools/call"]);
    let printed = server.run(&["call", "render", "--detach", "--json"]);
    let object = printed.json();
    assert_eq!((printed.code, &object["status"]), (0, &json!("task")), "{printed:?}");
    assert_eq!((&object["task"]["task_id"], &object["task"]["tool"]), (&json!(ID), &json!("render")));

    // The file has the server.
    let scratch = Scratch::new();
    let file = format!("@{}", scratch.file("task", &printed.stdout).display());
    run(["task", "watch", &file, "--answer", "where.region=eu"]).ends(0, "rendered");
    let file = format!("@{}", scratch.file("other", "{}").display());
    run(["task", "get", &file]).fails(2, "contains no task");
}

/// A handle of the draft is followed in its form, without a flag.
#[test]
fn a_task_of_the_draft_is_detached_and_followed() {
    let form = asks(&["where"])["inputRequests"].clone();
    let result = json!({"content": [{"type": "text", "text": "rendered"}]});
    let questions = json!({"inputRequests": form});
    let server = TaskServer::start(&[draft("input_required"), questions, draft("Completed"), result]);
    let printed = server.run(&["call", "render", "--draft-tasks", "--detach", "--json"]);
    assert_eq!(printed.json()["task"]["form"], "draft", "{printed:?}");
    let scratch = Scratch::new();
    let file = format!("@{}", scratch.file("task", &printed.stdout).display());
    run(["task", "watch", &file, "--answer", "where.region=eu"]).ends(0, "rendered");
    let methods: Vec<String> =
        server.received().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(
        methods[methods.len() - 5..],
        ["tasks/get", "tasks/result", "tasks/input_response", "tasks/get", "tasks/result"]
    );
    // By an id alone, the flag names the form.
    let server =
        TaskServer::start(&[draft("completed"), json!({"content": [{"type": "text", "text": "rendered"}]})]);
    let got = server.run(&["task", "get", ID, "--draft-tasks"]);
    assert_eq!((got.code, got.stdout.as_str()), (0, "completed\nrendered\n"), "{got:?}");
}

#[test]
fn a_question_without_an_answer_stops_and_leaves_the_task() {
    let server = TaskServer::start(&[asks(&["where"])]);
    let ran = server.run(&["call", "render"]);
    ran.ends(3, ID);
    assert!(ran.stderr.contains("no answer for where.region and no terminal to ask"), "{ran:?}");
    let object = server.run(&["call", "render", "--json"]).json();
    assert_eq!((&object["status"], &object["task"]["task_id"]), (&json!("task"), &json!(ID)));
}

/// The keys of the questions of a task may be random.
#[test]
fn questions_of_a_task_have_numbers() {
    const A: &str = "27ed770836dec846";
    const B: &str = "90bc7f3a11aa22bb";
    for answer in ["1.region=eu", "region=eu"] {
        let server = TaskServer::start(&[asks(&[A]), done()]);
        for words in [&["call", "render"][..], &["task", "watch", ID]] {
            let ran = server.run(&[words, &["--answer", answer]].concat());
            assert_eq!(ran.code, 0, "{words:?} {answer}: {ran:?}");
        }
        assert!(
            server.received().contains(&format!(r#"tasks/update {{"{A}":{EU}}}"#)),
            "{:?}",
            server.received()
        );
    }
    let server = TaskServer::start(&[asks(&[A, B])]);
    for words in [&["call", "render"][..], &["task", "watch", ID]] {
        let ran = server.run(words);
        assert!(ran.code == 3 && ran.stderr.contains("pass --answer 1.region=.."), "{words:?}: {ran:?}");
    }
    server.run(&["task", "answer", ID]).fails(3, "pass --answer 1.region=.. --answer 2.region=..");
    let answered = server.run(&["task", "answer", ID, "--answer", "2.region=eu"]);
    answered.ends(0, &format!("answered {B}"));
    // Two open questions have the field.
    server.run(&["task", "answer", ID, "--answer", "region=eu"]).fails(3, "1.region, 2.region");
    let both = server.run(&["task", "watch", ID, "--answer", "region=eu"]);
    assert_eq!(both.code, 3, "{both:?}");
}

#[test]
fn a_task_is_read_answered_and_cancelled() {
    let server = TaskServer::start(&[asks(&["a", "b"])]);
    let got = server.run(&["task", "get", ID]);
    assert_eq!(
        (got.code, got.stdout.as_str()),
        (0, "input_required\nasks a: Where?\nasks b: Where?\n"),
        "{got:?}"
    );
    assert_eq!(server.run(&["task", "get", ID, "--json"]).json()["result"]["status"], "input_required");

    // Questions without an answer stay open.
    let answered = server.run(&["task", "answer", ID, "--answer", "a.region=eu"]);
    answered.ends(0, "answered a");
    assert!(answered.stderr.contains("no answer for b.region"), "{answered:?}");
    assert_eq!(server.received().last().unwrap(), &format!(r#"tasks/update {{"a":{EU}}}"#));
    server.run(&["task", "answer", ID]).fails(3, "no answer for a.region, b.region and no terminal to ask");
    let both = server.run(&["task", "answer", ID, "--json", "--answer", "a=decline", "--answer", "b=cancel"]);
    assert_eq!(both.json()["result"], json!({"answered": ["a", "b"]}));

    let cancelled = server.run(&["task", "cancel", ID]);
    assert_eq!(
        (cancelled.code, server.received().last().unwrap().as_str()),
        (0, "tasks/cancel"),
        "{cancelled:?}"
    );
}

#[test]
fn the_state_of_a_task_is_printed() {
    for (state, lines) in [
        (working("1 of\n2"), "working: 1 of 2"),
        (done(), "completed\nrendered"),
        (
            with(state("failed"), json!({"error": {"code": -32603, "message": "no disk"}})),
            "failed\nno disk (-32603)",
        ),
        (state("cancelled"), "cancelled"),
    ] {
        let got = TaskServer::start(&[state]).run(&["task", "get", ID]);
        assert_eq!((got.code, got.stdout.trim_end()), (0, lines), "{got:?}");
    }
}

/// `call`, `task watch` and `task get` read the result of a task in the same way.
#[test]
fn a_task_whose_result_is_none_of_a_tool_fails() {
    for (result, fault) in [
        (json!({}), "neither `content` nor `structuredContent`"),
        (json!({"isError": false}), "neither `content` nor `structuredContent`"),
        (json!({"requestState": "s"}), "the form of an older draft"),
        (json!({"resultType": "input_required", "requestState": "s"}), ""),
        (json!({"content": 3}), "the result is malformed"),
    ] {
        let server = TaskServer::start(&[with(state("completed"), json!({"result": result}))]);
        for words in [&["call", "render"][..], &["task", "watch", ID]] {
            server.run(words).fails(4, fault);
        }
        // What the server has sent is printed.
        let got = server.run(&["task", "get", ID]);
        got.ends(4, &result.to_string());
        assert!(got.stderr.contains(fault), "{got:?}");
        // A script reads what the server said.
        let got = server.run(&["task", "get", ID, "--json"]);
        assert_eq!((got.code, &got.json()["result"]["result"]), (0, &result), "{got:?}");
    }
    let empty = with(state("completed"), json!({"result": {"content": []}}));
    TaskServer::start(&[empty]).run(&["task", "get", ID]).ends(0, "completed");
}

/// The rows of a store, as a server leaves them: the clock of its writes is two hours behind.
async fn store(file: &std::path::Path) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - Duration::from_secs(7260);
    let (clock, hand) = StoreClock::manual(Micros::new(i64::try_from(now.as_micros()).unwrap()));
    let store = SqliteStore::open(file, SqliteOptions::default().clock(clock)).await.unwrap();
    let tasks = store.tasks().unwrap();
    let (limits, runner) = (TaskLimits::default(), RunnerId::from_bytes([1; 16]));
    let day = Duration::from_secs(86_400);
    let claim = async |task| match tasks.claim(task, runner, day).await.unwrap() {
        TaskClaim::Fresh(fence, _) => fence,
        other => panic!("{other:?}"),
    };
    for (number, name) in ["due", "waits", "final", "held", "crashes"].into_iter().enumerate() {
        let task = TaskKey::from_bytes([u8::try_from(number).unwrap(); 16]);
        let snapshot = name.as_bytes().to_vec();
        let new = NewTask::new(task, Owner::from_bytes([1; 16]), snapshot.clone()).with_ttl(day * 3);
        tasks.create(&new, &limits).await.unwrap();
        hand.advance(Duration::from_micros(1));
        let next = match name {
            "waits" => TaskNext::Waits(None),
            "final" => TaskNext::Final(day * 10),
            "crashes" => {
                tasks.send(task, b"message", &limits).await.unwrap();
                let pause = Duration::from_millis(1);
                for run in 0..12 {
                    let fence = claim(task).await;
                    let next = TaskNext::Pauses(if run < 11 { pause } else { day });
                    tasks.update(&fence, &TaskUpdate::new(snapshot.clone(), next)).await.unwrap();
                    hand.advance(pause);
                }
                continue;
            }
            "held" => {
                claim(task).await;
                continue;
            }
            _ => continue,
        };
        tasks.update(&claim(task).await, &TaskUpdate::new(snapshot, next)).await.unwrap();
    }
}

#[test]
fn an_operator_lists_the_tasks_of_a_store() {
    let scratch = Scratch::new();
    let file = scratch.path().join("calls.db");
    let path = file.display().to_string();
    run(["tasks", "ls", "--store", &path]).fails(2, "the store is not reachable");
    assert!(!file.exists());
    tokio::runtime::Runtime::new().unwrap().block_on(store(&file));

    let listed = run(["tasks", "ls", "--store", &path]);
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = listed.stdout.lines().map(line).collect();
    let id = |number: &str| number.repeat(16);
    let expected = [
        "TASK STATE AGE UNCHANGED REST MESSAGES BYTES CLAIMS".to_owned(),
        format!("{} due 2h 2h 2d 0 3 0", id("00")),
        format!("{} waits 2h 2h 2d 0 5 1", id("01")),
        format!("{} final 2h 2h 9d 0 5 1", id("02")),
        format!("{} held 2h 2h 2d 0 4 1", id("03")),
        format!("{} waits 2h 2h 2d 1 7 12", id("04")),
    ];
    assert_eq!(lines, expected, "{listed:?}");

    let stuck = |more: &[&str]| -> Vec<String> {
        let listed = run(["tasks", "ls", "--json", "--store", &path].iter().chain(more)).json();
        listed["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["task"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(stuck(&[]).len(), 5);
    assert_eq!(stuck(&["--limit", "2"]), [id("00"), id("01")]);
    assert_eq!(stuck(&["--stuck"]), [id("00"), id("04")]);
    assert_eq!(stuck(&["--stuck", "8000"]), [id("04")]);

    let shown = run(["tasks", "show", "04", "--store", &path, "--json"]).json();
    assert_eq!(
        (&shown["state"], &shown["received"], &shown["claims"]),
        (&json!("waits"), &json!(1), &json!(12))
    );
    let shown = run(["tasks", "show", "02", "--store", &path]);
    shown.ends(0, "claims: 1");
    assert!(shown.stdout.contains("state: final\n"), "{shown:?}");
    run(["tasks", "show", "0", "--store", &path]).fails(2, "5 tasks begin with 0");
    run(["tasks", "show", "9", "--store", &path]).fails(2, "has no task 9");
}

#[test]
fn the_end_of_a_task_is_the_exit_code() {
    let failed = with(state("failed"), json!({"error": {"code": -32603, "message": "no disk"}}));
    let unfit = with(state("completed"), json!({"result": {"content": [], "isError": true}}));
    for (state, code, kind) in [
        (failed, 4, "server"),
        (with(state("cancelled"), json!({"statusMessage": "why"})), 4, "task_cancelled"),
        (unfit, 1, "tool"),
    ] {
        let server = TaskServer::start(&[state]);
        for arguments in [&["task", "watch", ID, "--json"][..], &["call", "render", "--json"]] {
            let ran = server.run(arguments);
            assert_eq!((ran.code, &ran.json()["error"]["kind"]), (code, &json!(kind)), "{ran:?}");
        }
    }
    let after_steps = json!({"error": {"code": -32603, "message": "no", "data": {"done": ["charge"]}}});
    let ran = TaskServer::start(&[with(state("failed"), after_steps)]).run(&["task", "watch", ID]);
    ran.fails(4, "look at what the call did before you call again");
    let server = TaskServer::start(&[done()]);
    for command in ["get", "watch", "cancel"] {
        let ran = server.run(&["task", command, "gone", "--json"]);
        assert_eq!((ran.code, &ran.json()["error"]["kind"]), (4, &json!("unknown_task")), "{ran:?}");
    }
}
