//! Tasks of the draft before the extension, with a scripted server: the messages, and the slips of the draft's examples.

use crate::client_support::*;
use antiphon::client::{
    Call, CallProgress, ClientBuilder, ClientError, ClientErrorKind, FormAsk,
    tasks::{TaskForm, TaskHandle},
};
use antiphon::wire::{ElicitResult, TaskStatus};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const ID: &str = "echo_dc792e24";

fn task(status: &str) -> Value {
    json!({
        "taskId": ID, "status": status, "statusMessage": "see tasks/result", "createdAt": "2026-01-27T03:32:48.3148180Z",
        "ttl": 60000, "pollInterval": 100
    })
}

fn created() -> Reply {
    Reply::Result(json!({"task": task("Working")}))
}

fn got(status: &str) -> Reply {
    Reply::Result(task(status))
}

fn related() -> Value {
    json!({"io.modelcontextprotocol/related-task": {"taskId": ID}})
}

/// Questions, as the draft's examples write them: without `resultType`.
fn asks(keys: &[&str], state: Option<&str>) -> Reply {
    let asks: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), form())).collect();
    let mut result = json!({"inputRequests": asks, "_meta": related()});
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    Reply::Result(result)
}

fn finished(text: &str, is_error: bool) -> Reply {
    Reply::Result(
        json!({"isError": is_error, "content": [{"type": "text", "text": text}], "_meta": related()}),
    )
}

fn acknowledged() -> Reply {
    Reply::Result(json!({"_meta": related()}))
}

fn draft() -> ClientBuilder {
    builder().draft_tasks(true).on_elicit_form(async |ask: FormAsk| Ok(ask.accept(json!({"region": "eu"}))?))
}

/// Calls the tool: the methods, and the text of the result or the end of the error's text.
async fn check(
    replies: Vec<Reply>,
    methods: &[&str],
    expected: Result<&str, &str>,
) -> (Arc<Fake>, Option<ClientError>) {
    let fake = Fake::script(replies);
    let came = fake.client(draft()).call_tool("echo", ()).await;
    assert_eq!(fake.methods(), methods);
    for request in fake.requests() {
        let declared = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        let extensions = match request["method"].as_str() {
            // A call asks in both forms.
            Some("tools/call") => Some(json!({"io.modelcontextprotocol/tasks": {}})),
            // The requests about a task speak in its form.
            Some("tasks/result" | "tasks/input_response") => None,
            _ => continue,
        };
        assert_eq!(declared.get("extensions"), extensions.as_ref(), "{request}");
    }
    let error = match (came, expected) {
        (Ok(result), Ok(text)) => {
            assert_eq!(result.first_text(), Some(text));
            None
        }
        (Err(error), Err(text)) => {
            assert!(chain(&error).contains(text), "{}", chain(&error));
            Some(error)
        }
        (came, expected) => panic!("{came:?} instead of {expected:?}"),
    };
    (fake, error)
}

#[tokio::test(start_paused = true)]
async fn the_flow_of_the_draft_message_by_message() {
    for (keys, state) in [(&["echo_input"][..], None), (&["a", "b"][..], Some("s3cret"))] {
        let replies = vec![
            created(),
            got("input_required"),
            asks(keys, state),
            acknowledged(),
            got("Working"),
            got("Completed"),
            finished("Echo: Hello World!", false),
        ];
        let methods = [
            "tools/call",
            "tasks/get",
            "tasks/result",
            "tasks/input_response",
            "tasks/get",
            "tasks/get",
            "tasks/result",
        ];
        let (fake, _) = check(replies, &methods, Ok("Echo: Hello World!")).await;
        let requests = fake.requests();
        assert_eq!(requests[0]["params"]["task"], json!({}));
        let answer = json!({"action": "accept", "content": {"region": "eu", "size": 1}});
        let answers: serde_json::Map<String, Value> =
            keys.iter().map(|key| ((*key).to_owned(), answer.clone())).collect();
        // All answers of a round leave together, with its state; the id is in both places of the draft.
        let sent = &requests[3]["params"];
        assert_eq!(sent["inputResponses"], Value::Object(answers));
        assert_eq!(sent.get("requestState"), state.map(Value::from).as_ref());
        assert_eq!(
            (&sent["taskId"], &sent["_meta"]["io.modelcontextprotocol/related-task"]["taskId"]),
            (&json!(ID), &json!(ID))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_requested_once_for_each_change() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let client = builder().draft_tasks(true).on_elicit_form(move |ask: FormAsk| {
        seen.lock().unwrap().push(format!("{} {}", ask.context.key, ask.context.round));
        async move {
            tokio::time::sleep(Duration::from_millis(350)).await;
            Ok(ask.accept(json!({"region": "eu"}))?)
        }
    });
    let mut changed = task("input_required");
    changed["lastUpdatedAt"] = "2026-01-27T03:33:00Z".into();
    let fake = Fake::script([
        created(),
        got("input_required"),
        asks(&["a"], None),
        // Nothing changed: the question is not requested again.
        got("input_required"),
        Reply::Result(changed),
        // A second branch asks; the first question is still there.
        asks(&["a", "b"], None),
        got("working"),
        got("completed"),
        finished("done", false),
    ]);
    fake.client(client).call_tool("echo", ()).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), ["a 1", "b 2"]);
    let results = fake.methods().iter().filter(|method| *method == "tasks/result").count();
    assert_eq!(results, 3, "{:?}", fake.methods());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_draft_task() {
    let ended = |status: &str, result: Option<Reply>| {
        let mut replies = vec![created(), got(status)];
        let mut methods = vec!["tools/call", "tasks/get"];
        if let Some(result) = result {
            replies.push(result);
            methods.push("tasks/result");
        }
        (replies, methods)
    };
    // A tool's error is a failed task in the draft.
    let (replies, methods) = ended("failed", Some(finished("it broke", true)));
    check(replies, &methods, Ok("it broke")).await;
    for code in [-32000, -32602] {
        let (replies, methods) = ended("failed", Some(Reply::Refused(code, "rate", Value::Null)));
        let (_, error) = check(replies, &methods, Err("the server answered with an error: rate")).await;
        assert!(error.unwrap().task().is_none());
    }
    let (replies, methods) = ended("Cancelled", None);
    let (_, error) = check(replies, &methods, Err("the task was cancelled at the server")).await;
    assert!(error.unwrap().is_cancelled());
    // The result of a task that is over does not come: it is requested again.
    let (mut replies, mut methods) = ended("completed", Some(Reply::Broken));
    replies.extend([got("completed"), finished("done", false)]);
    methods.extend(["tasks/get", "tasks/result"]);
    check(replies, &methods, Ok("done")).await;
    // A task that is not over, and whose result is refused.
    let refused = Reply::Refused(-32601, "no such method", Value::Null);
    let replies = vec![created(), got("input_required"), refused, got("input_required")];
    let methods = ["tools/call", "tasks/get", "tasks/result", "tasks/get"];
    let (_, error) = check(replies, &methods, Err("no such method")).await;
    assert!(error.unwrap().task().is_some());
}

/// Servers that do not speak the draft, and tools without tasks.
#[tokio::test(start_paused = true)]
async fn other_servers_ignore_the_draft() {
    check(vec![done("inline")], &["tools/call"], Ok("inline")).await;
    let extension = json!({
        "resultType": "task", "taskId": ID, "status": "working", "createdAt": "2026-01-27T03:32:48Z",
        "lastUpdatedAt": "2026-01-27T03:32:48Z", "ttlMs": null
    });
    let mut over = extension.clone();
    over["resultType"] = "complete".into();
    (over["status"], over["result"]) =
        ("completed".into(), json!({"content": [{"type": "text", "text": "done"}]}));
    let replies = vec![Reply::Result(extension), Reply::Result(over)];
    check(replies, &["tools/call", "tasks/get"], Ok("done")).await;
    // A round before the task: the next leg asks for a task again.
    let replies = vec![
        asking(json!({"where": form()}), Some("s")),
        created(),
        got("completed"),
        finished("done", false),
    ];
    let (fake, _) =
        check(replies, &["tools/call", "tools/call", "tasks/get", "tasks/result"], Ok("done")).await;
    assert_eq!(fake.requests()[1]["params"]["task"], json!({}));
    // Without the extension, the draft only.
    let fake = Fake::script([created(), got("completed"), finished("done", false)]);
    fake.client(draft().tasks(false)).call_tool("echo", ()).await.unwrap();
    for request in fake.requests() {
        let declared = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(*declared, json!({"elicitation": {"form": {}}}), "{request}");
    }
    // Without the setting, a nested task is an error, and nothing asks for one.
    let fake = Fake::script([created()]);
    let error = fake.client(builder()).call_tool("echo", ()).await.unwrap_err();
    assert!(error.is_task() && error.task().is_none(), "{error}");
    assert!(fake.requests()[0]["params"].get("task").is_none());
    // The list says that the tool has no tasks.
    let tool =
        json!({"name": "echo", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "forbidden"}});
    let fake =
        Fake::script([Reply::Result(json!({"resultType": "complete", "tools": [tool]})), done("inline")]);
    let client = fake.client(draft());
    client.list_tools().await.unwrap();
    client.call_tool("echo", ()).await.unwrap();
    assert!(fake.requests()[1]["params"].get("task").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_draft_task_by_hand() {
    let fake = Fake::script([
        created(),
        got("input_required"),
        asks(&["a", "b"], Some("s1")),
        acknowledged(),
        got("completed"),
        finished("done", false),
        Reply::Refused(-32602, "already over", Value::Null),
        got("completed"),
        Reply::Result(json!({"tasks": [task("completed")]})),
    ]);
    let client = fake.client(builder().draft_tasks(true).declare(antiphon::wire::AskSupport::ALL));
    let call = Call::tool("echo", ()).unwrap().task_ttl(Duration::from_secs(60));
    let CallProgress::Task(handle) = client.begin(call).await.unwrap() else { panic!("no task") };
    assert_eq!((handle.form(), handle.task_id()), (TaskForm::Draft, ID));
    assert_eq!(
        (handle.ttl(), handle.poll_interval()),
        (Some(Duration::from_secs(60)), Some(Duration::from_millis(100)))
    );
    assert_eq!(fake.requests()[0]["params"]["task"], json!({"ttl": 60000}));
    // In another process.
    let text = serde_json::to_string(&handle).unwrap();
    assert!(text.contains(r#""form":"draft""#), "{text}");
    let handle: TaskHandle = serde_json::from_str(&text).unwrap();
    let mut task = client.task(handle);
    assert_eq!(task.get().await.unwrap().task.status, TaskStatus::InputRequired);
    assert_eq!(task.questions().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "b"]);
    task.answer("a", &ElicitResult::decline()).await.unwrap();
    assert_eq!(fake.requests()[3]["params"]["requestState"], "s1");
    let state = task.get().await.unwrap();
    assert!(matches!(state.detail, antiphon::wire::tasks::TaskDetail::Result(_)), "{state:?}");
    // The server refuses to cancel a task that is over: it is over.
    task.cancel().await.unwrap();
    let listed = client.list_tasks().await.unwrap();
    assert_eq!((listed.len(), listed[0].status), (1, TaskStatus::Completed));
    assert_eq!(
        fake.methods(),
        [
            "tools/call",
            "tasks/get",
            "tasks/result",
            "tasks/input_response",
            "tasks/get",
            "tasks/result",
            "tasks/cancel",
            "tasks/get",
            "tasks/list"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_fails_leaves_a_draft_task() {
    let fake = Fake::script([created(), got("input_required"), asks(&["a"], Some("s3cret"))]);
    let client = builder()
        .draft_tasks(true)
        .on_elicit_form(async |_| Err(antiphon::client::CallbackError::new("the person left")));
    let error = fake.client(client).call_tool("echo", ()).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Ask(_)), "{error}");
    let handle = error.task().unwrap();
    assert!(!format!("{error:?} {handle:?}").contains("s3cret"));
    // Another process asks again, and answers with the state of the latest questions.
    let handle = serde_json::from_str(&serde_json::to_string(handle).unwrap()).unwrap();
    let fake = Fake::script([
        got("input_required"),
        asks(&["a"], Some("s2")),
        acknowledged(),
        got("completed"),
        finished("done", false),
    ]);
    fake.client(draft()).task(handle).wait().await.unwrap();
    assert_eq!(fake.requests()[2]["params"]["requestState"], "s2");
}

/// A server of the draft may refuse the wish for a task: the call is sent again without it.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_because_of_its_wish_is_sent_without_it() {
    let refused = |code| Reply::Refused(code, "no call of this tool is a task", Value::Null);
    let call = "tools/call";
    let round = || asking(json!({"where": form()}), Some("s"));
    for (replies, methods, wishes, expected) in [
        (vec![refused(-32601), done("inline")], &[call, call][..], &[true, false][..], Ok("inline")),
        // In a later leg: answers and state are sent again.
        (
            vec![round(), refused(-32601), done("inline")],
            &[call, call, call],
            &[true, true, false],
            Ok("inline"),
        ),
        // Each leg asks again: the tool may become a task there.
        (
            vec![refused(-32601), round(), refused(-32601), done("inline")],
            &[call, call, call, call],
            &[true, false, true, false],
            Ok("inline"),
        ),
        // Refused for another reason.
        (vec![refused(-32601), refused(-32601)], &[call, call], &[true, false], Err("no call of this tool")),
        (vec![refused(-32602)], &[call], &[true], Err("no call of this tool")),
        (vec![refused(-32603)], &[call], &[true], Err("no call of this tool")),
    ] {
        let (fake, _) = check(replies, methods, expected).await;
        let requests = fake.requests();
        let wished: Vec<bool> = requests.iter().map(|sent| sent["params"].get("task").is_some()).collect();
        assert_eq!(wished, wishes);
        for pair in requests.windows(2) {
            if pair[0]["params"].get("task").is_some() && pair[1]["params"].get("task").is_none() {
                for name in ["requestState", "inputResponses", "name"] {
                    assert_eq!(pair[0]["params"][name], pair[1]["params"][name]);
                }
            }
        }
    }
    // In a client without the setting nothing is repeated.
    let fake = Fake::script([refused(-32601)]);
    fake.client(builder()).call_tool("echo", ()).await.unwrap_err();
    assert_eq!(fake.methods(), [call]);
}

/// An id alone does not say the form of its task: a server without the draft has it in the form of the extension.
#[tokio::test(start_paused = true)]
async fn a_task_of_the_extension_is_attached_with_the_draft_on() {
    let needs = || {
        let required = json!({"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
        Reply::Refused(-32021, "declare the extension", required)
    };
    let mut over = task("completed");
    over["resultType"] = "complete".into();
    over["ttlMs"] = 60000.into();
    over["result"] = json!({"content": [{"type": "text", "text": "done"}]});
    let over = || Reply::Result(over.clone());
    let fake = Fake::script([needs(), over()]);
    let mut attached = fake.client(draft()).attach(ID);
    attached.get().await.unwrap();
    assert_eq!(attached.handle().form(), TaskForm::Extension);
    let fake = Fake::script([needs(), over()]);
    assert_eq!(fake.client(draft()).attach(ID).wait().await.unwrap().first_text(), Some("done"));
    let fake = Fake::script([needs(), Reply::Result(json!({"resultType": "complete"}))]);
    fake.client(draft()).attach(ID).cancel().await.unwrap();
    assert_eq!(fake.methods(), ["tasks/cancel", "tasks/cancel"]);
    // A client of the draft only has nothing to fall back to.
    let fake = Fake::script([needs()]);
    fake.client(draft().tasks(false)).attach(ID).get().await.unwrap_err();
}
