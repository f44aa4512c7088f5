//! Calls that become tasks: polls, their pace, the end of the task, and the errors on the way.

use crate::{client_support::*, task_server::*};
use antiphon::client::{
    Call, CallProgress, CancelToken, ClientBuilder, ClientError, ClientErrorKind, tasks::TaskHandle,
};
use antiphon::wire::completion::CompletionReference;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// Calls the tool: the requests with their times, and the text of the result or of the error.
async fn check(script: Script, requests: &[&str], expected: Result<&str, &str>) -> Option<ClientError> {
    let server = TaskServer::new(script);
    let came = server.client(builder()).call_tool("slow", ()).await;
    assert_eq!(server.timed(), requests);
    assert_eq!(server.fake.cancelled(), 0);
    match (came, expected) {
        (Ok(result), Ok(text)) => {
            assert_eq!(result.first_text(), Some(text));
            None
        }
        (Err(error), Err(text)) => {
            assert_eq!(chain(&error), format!("tools/call `slow` at fake:server: {text}"));
            assert!(!format!("{error:?}").contains(ID), "{error:?}");
            Some(error)
        }
        (came, expected) => panic!("{came:?} instead of {expected:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_until_its_end() {
    // The suggested interval may change.
    let polls = [working(), got("working", json!({"pollIntervalMs": 5000})), working(), completed("done")];
    let requests = ["0 tools/call", "1000 tasks/get", "2000 tasks/get", "7000 tasks/get", "8000 tasks/get"];
    check(Script::new(polls), &requests, Ok("done")).await;
    for (suggested, first) in [(json!(0), 50), (json!(300), 300), (json!(86_400_000), 60_000)] {
        let script = Script {
            created: created(json!({"pollIntervalMs": suggested})),
            ..Script::new([completed("done")])
        };
        check(script, &["0 tools/call", &format!("{first} tasks/get")], Ok("done")).await;
    }
    // A task that is born in another status is read at once.
    for status in ["completed", "input_required"] {
        let script =
            Script { created: created(json!({"status": status})), ..Script::new([completed("done")]) };
        check(script, &["0 tools/call", "0 tasks/get"], Ok("done")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_task_is_the_end_of_the_call() {
    let requests = ["0 tools/call", "1000 tasks/get"];
    let one = |poll| check(Script::new([poll]), &requests, Ok("it broke"));
    one(got(
        "completed",
        json!({"result": {"content": [{"type": "text", "text": "it broke"}], "isError": true}}),
    ))
    .await;
    one(got(
        "completed",
        json!({"result": {"resultType": "complete", "content": [{"type": "text", "text": "it broke"}]}}),
    ))
    .await;

    let failed =
        got("failed", json!({"error": {"code": -32000, "message": "rate", "data": 7}, "statusMessage": "s"}));
    let error =
        check(Script::new([failed]), &requests, Err("the server answered with an error: rate (-32000)"))
            .await
            .unwrap();
    assert_eq!(error.server_error().unwrap().data, Some(json!(7)));
    assert!(error.task().is_none() && !error.is_task() && !error.is_unknown_outcome());

    let cancelled = got("cancelled", json!({"statusMessage": "by the operator"}));
    let error = check(
        Script::new([cancelled]),
        &requests,
        Err("the task was cancelled at the server: by the operator"),
    )
    .await
    .unwrap();
    assert!(error.is_cancelled() && error.task().is_none());

    let gone = Reply::Refused(-32602, "Task not found", Value::Null);
    let error = check(
        Script::new([gone]),
        &requests,
        Err("the server does not know the task, or no longer: Task not found (-32602)"),
    )
    .await
    .unwrap();
    assert!(error.is_not_found() && error.task().is_none());

    for (result, text) in [
        (json!({"resultType": "input_required", "requestState": "s"}), "input_required"),
        (with(task("working"), json!({"resultType": "task"})), "task"),
    ] {
        let text =
            format!("the server's answer is invalid: the result has the unknown resultType \"{text}\"");
        check(Script::new([got("completed", json!({"result": result}))]), &requests, Err(&text)).await;
    }
}

/// Polls fail in these ways before they succeed.
#[tokio::test(start_paused = true)]
async fn transient_failures_of_polls_are_retried() {
    let busy = || Reply::Error(-32603, json!({"reason": "busy", "retryAfterMs": 9000}));
    for (failures, least) in [
        (vec![Reply::Broken, Reply::Broken, Reply::Broken], 1000 + 250 + 500 + 1000),
        (vec![busy(), busy()], 1000 + 9000 + 9000),
        (vec![Reply::Error(-32603, Value::Null)], 1250),
        (vec![Reply::Hang], 1000 + 60_000 + 250),
    ] {
        let count = failures.len();
        let server = TaskServer::new(Script::new(failures.into_iter().chain([completed("done")])));
        server.client(builder()).call_tool("slow", ()).await.unwrap();
        let timed = server.timed();
        assert_eq!(timed.len(), count + 2, "{timed:?}");
        let last: u64 = timed.last().unwrap().split_once(' ').unwrap().0.parse().unwrap();
        assert!((least..least * 2 + 1000).contains(&last), "{timed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_failures_of_polls_end_the_call_and_return_the_handle() {
    for poll in [
        Reply::Error(-32601, Value::Null),
        Reply::Error(-32021, json!({"requiredCapabilities": {"extensions": {}}})),
        got("input_required", json!({})),
        Reply::Result(json!({"resultType": "complete"})),
    ] {
        let server = TaskServer::new(Script::new([poll.clone()]));
        let error = server.client(builder()).call_tool("slow", ()).await.unwrap_err();
        let handle = error.task().unwrap_or_else(|| panic!("{poll:?}: {error}"));
        assert_eq!((handle.task_id(), handle.tool()), (ID, Some("slow")));
        assert!(error.is_task() && error.is_unknown_outcome() && error.pending().is_none(), "{error}");
        assert_eq!(server.methods(), ["tools/call", "tasks/get"]);
    }
    // An internal error that does not go away.
    let server = TaskServer::new(Script::new([Reply::Error(-32603, Value::Null)]));
    let error = server.client(builder()).call_tool("slow", ()).await.unwrap_err();
    assert!(error.task().is_some() && server.methods().len() == 12, "{error}");
}

/// The TTL counts if the server does not answer, and no longer than a minute after it.
#[tokio::test(start_paused = true)]
async fn the_ttl_is_a_backstop_for_a_silent_server() {
    for (polls, least) in [
        (vec![Reply::Broken], 70),
        // An answer says otherwise: the minute counts from there, and its TTL.
        (vec![got("working", json!({"ttlMs": 100_000})), Reply::Broken], 160),
        (vec![got("working", json!({"ttlMs": 1000})), Reply::Broken], 61),
    ] {
        let script = Script { created: created(json!({"ttlMs": 10_000})), ..Script::new(polls) };
        let server = TaskServer::new(script);
        let (started, real) = (tokio::time::Instant::now(), std::time::Instant::now());
        let error = server.client(builder()).call_tool("slow", ()).await.unwrap_err();
        assert!(matches!(error.kind(), ClientErrorKind::TaskExpired), "{error}");
        assert!(error.is_timeout() && error.task().is_some());
        // The age of a handle is real time, in whole milliseconds.
        let (elapsed, age) = (started.elapsed(), real.elapsed() + Duration::from_millis(1));
        let least = Duration::from_secs(least);
        assert!(elapsed < least + Duration::from_secs(1) && elapsed + age >= least, "{:?}", server.timed());
    }
    // A server that still has the task says so.
    let script = Script {
        created: created(json!({"ttlMs": 1})),
        ..Script::new([
            got("working", json!({"ttlMs": 1, "pollIntervalMs": 50_000})),
            working(),
            completed("done"),
        ])
    };
    check(script, &["0 tools/call", "1000 tasks/get", "51000 tasks/get", "52000 tasks/get"], Ok("done"))
        .await;
}

fn call() -> Call {
    Call::tool("slow", ()).unwrap()
}

/// A call whose task never ends: its last request, and its error.
async fn check_abandoned(call: Call, last: &str, text: &str) {
    let server = TaskServer::new(Script::new([working()]));
    let error = server.client(builder()).call(call).await.unwrap_err();
    assert_eq!(chain(&error), format!("tools/call `slow` at fake:server: {text}"));
    assert_eq!(server.timed().last().unwrap(), last);
    assert_eq!(error.task().unwrap().task_id(), ID);
    assert!(error.is_unknown_outcome() && error.is_task());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_or_a_cancellation_leaves_the_task_alone() {
    let limit = Duration::from_millis(2500);
    let continues = "the call did not end within 2.5s; its task continues at the server";
    check_abandoned(call().call_timeout(limit), "2000 tasks/get", continues).await;
    check_abandoned(call().call_timeout(limit).cancel_on_error(true), "2500 tasks/cancel", continues).await;
    for (cancels, last) in [(false, "2000 tasks/get"), (true, "2500 tasks/cancel")] {
        let token = CancelToken::new();
        let cancelled = token.clone();
        let later = async move {
            tokio::time::sleep(limit).await;
            cancelled.cancel();
        };
        let call = call().cancelled_by(&token).cancel_on_error(cancels);
        tokio::join!(later, check_abandoned(call, last, "the call was cancelled"));
    }
}

#[tokio::test(start_paused = true)]
async fn status_messages_are_progress() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let receive = |log: &Arc<Mutex<Vec<String>>>| {
        let log = Arc::clone(log);
        move |event: antiphon::client::events::ProgressEvent| {
            let of = &event.context;
            log.lock().unwrap().push(format!(
                "{} {} {} of {:?}: {}",
                of.method,
                of.name.as_deref().unwrap_or("-"),
                event.progress,
                event.total,
                event.message.unwrap()
            ));
        }
    };
    let says = |text: &str| got("working", json!({"statusMessage": text}));
    let script = || Script {
        created: created(json!({"statusMessage": "queued"})),
        ..Script::new([says("queued"), says("one"), working(), says("one"), says("two"), completed("done")])
    };
    let expected = ["queued", "one", "two"]
        .iter()
        .zip(1..)
        .map(|(text, n)| format!("tasks/get slow {n} of None: {text}"));
    let expected: Vec<String> = expected.collect();
    TaskServer::new(script())
        .client(builder().on_progress(receive(&log)))
        .call_tool("slow", ())
        .await
        .unwrap();
    assert_eq!(*log.lock().unwrap(), expected);
    // The callback of the call goes before that of the client.
    let of_call = Arc::default();
    let client = TaskServer::new(script()).client(builder().on_progress(|_| unreachable!("not its own")));
    client.call(call().on_progress(receive(&of_call))).await.unwrap();
    assert_eq!(*of_call.lock().unwrap(), expected);
}

/// The clients that declare tasks, and what they do with one.
#[tokio::test(start_paused = true)]
async fn a_task_that_was_not_declared_is_an_error() {
    let declared = |requests: &[Value]| {
        requests[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
    };
    let check = async |builder: ClientBuilder, expected: Value| {
        let fake = Fake::script([created(json!({}))]);
        let came = fake.client(builder).begin(call()).await;
        assert_eq!(declared(&fake.requests()), expected);
        came
    };
    let began = check(builder(), json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})).await;
    assert!(matches!(began, Ok(CallProgress::Task(_))), "{began:?}");
    let error = check(builder().tasks(false), json!({})).await.unwrap_err();
    let text =
        "the server made a task of the request (\"task-1\"), which this client did not declare to support";
    assert!(error.to_string().contains(text), "{error}");
    assert!(error.is_task() && error.task().is_none() && error.is_unknown_outcome());
    // Only a tool call may become a task.
    for call in [Call::prompt("p", ()).unwrap(), Call::resource("file:///a")] {
        for task in [created(json!({})), Reply::Result(json!({"task": {"taskId": "t"}}))] {
            let fake = Fake::script([task]);
            let error = fake.client(builder()).call(call.clone()).await.unwrap_err();
            assert!(
                error.to_string().contains("the server's answer is invalid: the result is a task"),
                "{error}"
            );
            assert!(!error.is_task());
        }
    }
    // The other requests are answered as if they had their own results too.
    let members = json!({
        "tools": [], "prompts": [], "resources": [], "resourceTemplates": [], "completion": {"values": []},
        "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"
    });
    for request in ["discover", "tools", "prompts", "resources", "templates", "complete"] {
        let fake = Fake::script([created(members.clone())]);
        let client = fake.client(builder());
        let error = match request {
            "discover" => client.discover().await.map(drop),
            "tools" => client.list_tools().await.map(drop),
            "prompts" => client.list_prompts().await.map(drop),
            "resources" => client.list_resources().await.map(drop),
            "templates" => client.list_resource_templates().await.map(drop),
            _ => client.complete(CompletionReference::prompt("p"), "a", "v", None).await.map(drop),
        };
        let error = error.expect_err(request);
        assert!(error.to_string().contains("the server's answer is invalid"), "{request}: {error}");
        assert!(!error.is_task() && fake.requests().len() == 1, "{request}");
    }
}

/// Rounds may come before the task. Their state ends with it.
#[tokio::test(start_paused = true)]
async fn a_round_may_come_before_the_task() {
    let replies = [
        asking(json!({"where": form()}), Some("state")),
        created(json!({})),
        forms_of(&["more"]),
        Reply::Result(json!({})),
        completed("done"),
    ];
    let fake = Fake::script(replies);
    let rounds: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&rounds);
    let client = builder().on_elicit_form(move |ask| {
        let of = &ask.context;
        let line = format!(
            "{} {} {} {} {:?}",
            of.method,
            of.target,
            of.round,
            of.key,
            of.arguments.as_deref().map(|text| text.get().to_owned())
        );
        seen.lock().unwrap().push(line);
        async move { Ok(ask.accept(json!({"region": "eu"}))?) }
    });
    fake.client(client).call_tool("slow", json!({"a": 1})).await.unwrap();
    assert_eq!(fake.methods(), ["tools/call", "tools/call", "tasks/get", "tasks/update", "tasks/get"]);
    let line = |round, key| format!("tools/call slow {round} {key} Some({:?})", r#"{"a":1}"#);
    assert_eq!(*rounds.lock().unwrap(), [line(1, "where"), line(2, "more")]);
    assert!(fake.requests()[2..].iter().all(|request| request["params"].get("requestState").is_none()));
    let ids: std::collections::HashSet<String> =
        fake.requests().iter().map(|request| request["id"].to_string()).collect();
    assert_eq!(ids.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn begin_returns_the_handle_and_polls_nothing() {
    let server = TaskServer::new(Script {
        created: created(json!({"ttlMs": 60_000, "pollIntervalMs": 700})),
        ..Script::new([completed("done")])
    });
    let client = server.client(builder());
    let handle = client.begin(call()).await.unwrap().task().unwrap();
    assert_eq!(server.methods(), ["tools/call"]);
    assert_eq!(handle.ttl(), Some(Duration::from_secs(60)));
    assert_eq!(handle.poll_interval(), Some(Duration::from_millis(700)));
    assert_eq!(handle.created_at(), Some("2026-08-20T10:30:00Z"));
    // In another process.
    let text = serde_json::to_string(&handle).unwrap();
    let read: TaskHandle = serde_json::from_str(&text).unwrap();
    assert_eq!(read, handle);
    let result = server.client(builder()).task(read).wait().await.unwrap();
    assert_eq!(result.first_text(), Some("done"));
    assert_eq!(server.methods(), ["tools/call", "tasks/get"]);
}
