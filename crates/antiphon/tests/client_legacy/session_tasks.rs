//! Tasks of a session of 2025-11-25: the client decides, `tasks/result` waits, and the server asks meanwhile.

use crate::scripted_server::{Peer, asks, builder, error, hello, notification, result};
use antiphon::client::{
    Call, CallProgress, Client, ClientBuilder, ClientError, FormAsk,
    tasks::{TaskForm, TaskHandle},
};
use antiphon::wire::{CallToolResult, TaskStatus};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

const ID: &str = "786512e2";

/// One act of the scripted server.
#[derive(Clone)]
enum Step {
    /// Receives a request of this method, whose params have these members.
    Gets(&'static str, Value),
    /// Answers the latest request of this method.
    Answers(&'static str, Value),
    /// Answers the latest request of this method with an error.
    Refuses(&'static str, i64),
    /// Sends a request with this id.
    Asks(&'static str, Value),
    /// Receives the response to the request with this id.
    GetsAnswer(&'static str, Value),
    /// Sends a notification of the task's status.
    Reports(&'static str),
    /// Waits, and receives nothing meanwhile.
    Pauses(u64),
    /// The requests so far were sent within this time, in milliseconds.
    Within(u64),
}
use Step::{Answers, Asks, Gets, GetsAnswer, Pauses, Refuses, Reports, Within};

fn task(status: &str) -> Value {
    json!({
        "taskId": ID, "status": status, "statusMessage": status, "createdAt": "2025-11-25T10:30:00Z",
        "lastUpdatedAt": "2025-11-25T10:30:00Z", "ttl": 60000, "pollInterval": 5000
    })
}

fn related() -> Value {
    json!({"io.modelcontextprotocol/related-task": {"taskId": ID}})
}

fn report(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error, "_meta": related()})
}

fn tools(support: Option<&str>) -> Value {
    let mut tool = json!({"name": "research", "inputSchema": {"type": "object"}});
    if let Some(support) = support {
        tool["execution"] = json!({"taskSupport": support});
    }
    json!({"tools": [tool]})
}

/// The steps of a call that is sent as a task, up to its creation.
fn created() -> [Step; 2] {
    [
        Gets("tools/call", json!({"name": "research", "task": {}})),
        Answers("tools/call", json!({"task": task("working")})),
    ]
}

/// A poll with this status.
fn polled(status: &str) -> [Step; 2] {
    [Gets("tasks/get", json!({"taskId": ID})), Answers("tasks/get", task(status))]
}

/// The request of the result, and the result.
fn finished(text: &str) -> [Step; 2] {
    [Gets("tasks/result", json!({"taskId": ID})), Answers("tasks/result", report(text, false))]
}

fn listed(support: &'static str) -> [Step; 2] {
    [Gets("tools/list", json!({})), Answers("tools/list", tools(Some(support)))]
}

fn steps(parts: impl IntoIterator<Item = impl IntoIterator<Item = Step>>) -> Vec<Step> {
    parts.into_iter().flatten().collect()
}

/// A session with a server of tasks, after its handshake. The server does these steps, and then receives nothing more.
fn session(builder: ClientBuilder, steps: Vec<Step>) -> (Client, tokio::task::JoinHandle<()>) {
    let (client, mut peer) = Peer::of(builder);
    let server = tokio::spawn(async move {
        let probe = peer.receive_of("server/discover").await;
        peer.send(error(&probe["id"], -32601, Value::Null)).await;
        let initialize = peer.receive_of("initialize").await;
        // The client hosts no tasks.
        assert!(initialize["params"]["capabilities"].get("tasks").is_none(), "{initialize}");
        let mut hello = hello("2025-11-25");
        hello["capabilities"]["tasks"] =
            json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        peer.send(result(&initialize["id"], hello)).await;
        peer.receive_of("notifications/initialized").await;
        let (started, mut ids) = (Instant::now(), HashMap::new());
        for step in steps {
            match step {
                Gets(method, members) => {
                    let request = peer.receive_of(method).await;
                    for (name, value) in members.as_object().unwrap() {
                        assert_eq!(request["params"][name], *value, "{request}");
                    }
                    ids.insert(method, request["id"].clone());
                }
                Answers(method, value) => peer.send(result(&ids[method], value)).await,
                Refuses(method, code) => peer.send(error(&ids[method], code, Value::Null)).await,
                Asks(id, params) => peer.send(asks(id, "elicitation/create", params)).await,
                GetsAnswer(id, value) => {
                    let answer = peer.receive().await.unwrap();
                    assert_eq!((&answer["id"], &answer["result"]), (&json!(id), &value), "{answer}");
                }
                Reports(status) => peer.send(notification("tasks/status", task(status))).await,
                Pauses(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds)).await,
                Within(milliseconds) => {
                    let took = started.elapsed();
                    assert!(took <= Duration::from_millis(milliseconds), "{took:?}");
                }
            }
        }
        assert_eq!(peer.receive().await, None);
    });
    (client, server)
}

fn person() -> ClientBuilder {
    builder().on_elicit_form(async |ask: FormAsk| {
        let of = &ask.context;
        // The question belongs to the call.
        assert_eq!((&*of.method, of.target.as_str()), ("tools/call", "research"));
        assert_eq!(of.arguments.as_deref().map(|text| text.get()), Some(r#"{"topic":"ants"}"#));
        Ok(ask.accept(json!({"meaning": "insects"}))?)
    })
}

async fn ends(client: Client, server: tokio::task::JoinHandle<()>) {
    client.close().await;
    drop(client);
    server.await.unwrap();
}

/// Calls the tool, and returns the text of its result, or its error.
async fn call(lists: bool, steps: Vec<Step>) -> Result<CallToolResult, ClientError> {
    let (client, server) = session(person(), steps);
    if lists {
        client.list_tools().await.unwrap();
    }
    let came = client.call_tool("research", json!({"topic": "ants"})).await;
    ends(client, server).await;
    came
}

async fn check(lists: bool, steps: Vec<Step>) {
    assert_eq!(call(lists, steps).await.unwrap().first_text(), Some("done"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_requires_a_task_is_called_as_one() {
    let task = || [created(), polled("working"), polled("completed"), finished("done")];
    // The latest list says it.
    check(true, steps([listed("required")].into_iter().chain(task()))).await;
    // Without a list, the refusal does: as an error, or as some servers have it, as the error of a tool.
    let refusal = "MCP error -32601: Tool research requires task augmentation";
    for refused in [Refuses("tools/call", -32601), Answers("tools/call", report(refusal, true))] {
        let first = [Gets("tools/call", json!({"name": "research", "task": null})), refused];
        check(false, steps([first, listed("required")].into_iter().chain(task()))).await;
    }
}

/// Some servers send the members of the later extension beside the task: a session knows none of them.
#[tokio::test(start_paused = true)]
async fn a_task_with_the_members_of_the_extension_is_one_of_the_session() {
    let mut both = task("working");
    both["resultType"] = json!("task");
    both["task"] = task("working");
    let created = [Gets("tools/call", json!({"name": "research", "task": {}})), Answers("tools/call", both)];
    let task = [created, polled("working"), polled("completed"), finished("done")];
    check(true, steps([listed("required")].into_iter().chain(task))).await;
}

/// A call that the client does not send as a task has the result that came.
#[tokio::test(start_paused = true)]
async fn other_tools_are_called_without_a_task() {
    let plain = || Gets("tools/call", json!({"name": "research", "task": null}));
    for support in ["optional", "forbidden"] {
        check(true, steps([listed(support), [plain(), Answers("tools/call", report("done", false))]])).await;
        let failed = [plain(), Answers("tools/call", report("it broke", true))];
        let came = call(false, steps([failed, listed(support)])).await.unwrap();
        assert!(came.failed(), "{support}");
        let refused = [plain(), Refuses("tools/call", -32601)];
        let error = call(false, steps([refused, listed(support)])).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
    }
    // A task that nobody asked for.
    let unexpected = steps([[plain(), Answers("tools/call", json!({"task": task("working")}))]]);
    let error = call(false, unexpected).await.unwrap_err();
    assert!(error.is_task() && error.task().is_none(), "{error}");
    // A server may answer at once.
    let at_once = [Gets("tools/call", json!({"task": {}})), Answers("tools/call", report("done", false))];
    check(true, steps([listed("required"), at_once])).await;
}

#[tokio::test(start_paused = true)]
async fn questions_come_while_the_result_is_waited_for() {
    let form = json!({
        "message": "Which ants?", "_meta": related(),
        "requestedSchema": {"type": "object", "properties": {"meaning": {"type": "string"}}, "required": ["meaning"]}
    });
    let answer = json!({"action": "accept", "content": {"meaning": "insects"}});
    let asked =
        vec![Gets("tasks/result", json!({"taskId": ID})), Asks("q-1", form), GetsAnswer("q-1", answer)];
    // The request waits on, beside the polls, for much longer than one request may take.
    let mut waits: Vec<Step> = (0..30).flat_map(|_| polled("working")).collect();
    waits.extend(polled("completed"));
    waits.push(Answers("tasks/result", report("done", false)));
    let all = steps([
        listed("required").to_vec(),
        created().to_vec(),
        polled("input_required").to_vec(),
        asked.clone(),
        polled("input_required").to_vec(),
        waits,
    ]);
    check(true, all).await;
    // The result comes before the next poll.
    let at_once = vec![Answers("tasks/result", report("done", false)), Within(6000)];
    let all = steps([
        listed("required").to_vec(),
        created().to_vec(),
        polled("input_required").to_vec(),
        asked,
        at_once,
    ]);
    check(true, all).await;
}

#[tokio::test(start_paused = true)]
async fn a_notification_speeds_polls_up() {
    let all = steps([
        listed("required").to_vec(),
        created().to_vec(),
        vec![Pauses(1000), Reports("working")],
        polled("working").to_vec(),
        vec![Pauses(1000), Reports("completed")],
        polled("completed").to_vec(),
        finished("done").to_vec(),
        vec![Within(2500)],
    ]);
    check(true, all).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_task_of_a_session() {
    let begun =
        |status: &'static str| [listed("required").to_vec(), created().to_vec(), polled(status).to_vec()];
    let ended = |status, last: Vec<Step>| steps(begun(status).into_iter().chain([last]));
    let fetched = |reply| vec![Gets("tasks/result", json!({"taskId": ID})), reply];
    let broke = fetched(Answers("tasks/result", report("it broke", true)));
    assert!(call(true, ended("failed", broke)).await.unwrap().failed());
    for code in [-32000, -32602] {
        let error = call(true, ended("failed", fetched(Refuses("tasks/result", code)))).await.unwrap_err();
        assert_eq!(error.server_error().map(|error| error.code.0), Some(code));
        assert!(error.task().is_none());
    }
    let error = call(true, ended("cancelled", vec![])).await.unwrap_err();
    assert!(error.is_cancelled() && error.task().is_none(), "{error}");
    // The task ends while its result is waited for: the error is that of the task.
    let late = vec![Gets("tasks/result", json!({"taskId": ID})), Refuses("tasks/result", -32000)];
    let late = steps([late, polled("failed").to_vec()]);
    let error = call(true, ended("input_required", late)).await.unwrap_err();
    assert_eq!(error.server_error().map(|error| error.code.0), Some(-32000));
}

/// `begin` asks for a task where the tool allows one; the handle is data.
#[tokio::test(start_paused = true)]
async fn a_task_of_a_session_by_hand() {
    let texts: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&texts);
    let client = person().on_progress(move |event| seen.lock().unwrap().push(event.message.unwrap()));
    let with_ttl = [
        Gets("tools/call", json!({"task": {"ttl": 9000}})),
        Answers("tools/call", json!({"task": task("working")})),
    ];
    let (client, server) = session(
        client,
        steps([
            listed("optional"),
            with_ttl,
            polled("input_required"),
            [Gets("tasks/list", json!({})), Answers("tasks/list", json!({"tasks": [task("working")]}))],
            [Gets("tasks/cancel", json!({"taskId": ID})), Refuses("tasks/cancel", -32602)],
            polled("completed"),
            polled("completed"),
            finished("done"),
            polled("completed"),
            finished("done"),
        ]),
    );
    client.list_tools().await.unwrap();
    let call = Call::tool("research", json!({"topic": "ants"})).unwrap().task_ttl(Duration::from_secs(9));
    let CallProgress::Task(handle) = client.begin(call).await.unwrap() else { panic!("no task") };
    assert_eq!((handle.form(), handle.task_id()), (TaskForm::Session, ID));
    let text = serde_json::to_string(&handle).unwrap();
    assert!(text.contains(r#""version":2"#) && text.contains(r#""form":"session""#), "{text}");
    let mut task = client.task(serde_json::from_str::<TaskHandle>(&text).unwrap());
    let state = task.get().await.unwrap();
    assert_eq!((state.task.status, task.questions().count()), (TaskStatus::InputRequired, 0));
    assert_eq!(client.list_tasks().await.unwrap().len(), 1);
    // The server refuses to cancel a task that is over.
    task.cancel().await.unwrap();
    assert!(matches!(task.get().await.unwrap().detail, antiphon::wire::tasks::TaskDetail::Result(_)));
    assert_eq!(task.wait().await.unwrap().first_text(), Some("done"));
    assert_eq!(*texts.lock().unwrap(), ["completed"]);
    ends(client, server).await;
}

/// An id alone, of a task that another program made in this session's server.
#[tokio::test(start_paused = true)]
async fn a_task_of_a_session_by_its_id() {
    let (client, server) = session(person(), steps([polled("completed"), finished("done")]));
    let result = client.attach(ID).wait().await.unwrap();
    assert_eq!(result.first_text(), Some("done"));
    ends(client, server).await;
}

/// No call is a task without the setting.
#[tokio::test(start_paused = true)]
async fn a_client_without_tasks_asks_for_none() {
    let plain = [Gets("tools/call", json!({"task": null})), Refuses("tools/call", -32601)];
    let (client, server) = session(person().tasks(false), steps([listed("required"), plain]));
    client.list_tools().await.unwrap();
    let error = client.call_tool("research", ()).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    ends(client, server).await;
}
