//! Tasks whose changes the server reports: one subscription for all, few polls, and polls where there are no reports.

use crate::{client_support::*, task_server::*};
use antiphon::client::{ClientBuilder, FormAsk, events::ProgressEvent};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;

type Report = (Duration, &'static str, Value);

fn acknowledged(ids: &[&str]) -> Report {
    let params = json!({"notifications": {"taskIds": ids}});
    (Duration::ZERO, "notifications/subscriptions/acknowledged", params)
}

/// A report after this many milliseconds.
fn state(after: u64, status: &str, members: Value) -> Report {
    (Duration::from_millis(after), "notifications/tasks", with(task(status), members))
}

fn done_after(after: u64) -> Report {
    state(after, "completed", json!({"result": {"content": [{"type": "text", "text": "done"}]}}))
}

fn listen(reports: impl IntoIterator<Item = Report>, end: Reply) -> Reply {
    Reply::Telling(reports.into_iter().collect(), Box::new(end))
}

/// A server with these polls and subscriptions: the requests, with their times, until the result.
async fn check(polls: Vec<Reply>, listens: Vec<Reply>, requests: &[&str]) -> TaskServer {
    let server = TaskServer::new(Script { listens, ..Script::new(polls) });
    let result = server.client(builder().task_notifications(true)).call_tool("slow", ()).await.unwrap();
    assert_eq!(result.first_text(), Some("done"));
    assert_eq!(server.timed(), requests);
    server
}

#[tokio::test(start_paused = true)]
async fn a_report_takes_the_place_of_polls() {
    // The state at the beginning comes with the acknowledgement: nothing is polled at all.
    let reports = [acknowledged(&[ID]), state(0, "working", json!({})), done_after(5000)];
    let requests = ["0 tools/call", "0 subscriptions/listen"];
    check(vec![], vec![listen(reports, Reply::Hang)], &requests).await;
    // A server that reports changes only is polled once after its acknowledgement.
    let reports = [acknowledged(&[ID]), done_after(5000)];
    let requests = ["0 tools/call", "0 subscriptions/listen", "1000 tasks/get"];
    check(vec![working()], vec![listen(reports, Reply::Hang)], &requests).await;
    // Reports that are lost: the task is still polled, rarely.
    let reports = [acknowledged(&[ID]), state(0, "working", json!({}))];
    let requests = ["0 tools/call", "0 subscriptions/listen", "60000 tasks/get", "120000 tasks/get"];
    check(vec![working(), completed("done")], vec![listen(reports, Reply::Hang)], &requests).await;
}

#[tokio::test(start_paused = true)]
async fn without_reports_the_task_is_polled() {
    let polls = || vec![working(), working(), completed("done")];
    let requests =
        ["0 tools/call", "0 subscriptions/listen", "1000 tasks/get", "2000 tasks/get", "3000 tasks/get"];
    for refused in [
        Reply::Error(-32601, Value::Null),
        Reply::Error(-32021, json!({"requiredCapabilities": {}})),
        listen([acknowledged(&[])], Reply::Hang),
        listen([acknowledged(&["another"])], Reply::Hang),
        // It never acknowledges, and what it reports before does not count.
        listen([done_after(0)], Reply::Hang),
    ] {
        check(polls(), vec![refused], &requests).await;
    }
    // The setting is off unless it is set.
    let server = TaskServer::new(Script::new(polls()));
    server.client(builder()).call_tool("slow", ()).await.unwrap();
    assert!(!server.methods().contains(&"subscriptions/listen".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_counts_for_later_tasks() {
    let server = TaskServer::new(Script {
        listens: vec![Reply::Error(-32601, Value::Null)],
        ..Script::new([working(), completed("done")])
    });
    let client = server.client(builder().task_notifications(true));
    for _ in 0..2 {
        client.call_tool("slow", ()).await.unwrap();
    }
    let listens = server.methods().iter().filter(|method| *method == "subscriptions/listen").count();
    assert_eq!(listens, 1, "{:?}", server.timed());
}

/// A break: polls in the meantime, another subscription, and reports again.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_breaks_is_opened_again() {
    let closed = || Reply::Result(json!({"resultType": "complete"}));
    for end in [Reply::Broken, closed(), listen([], Reply::Error(-32603, Value::Null))] {
        let first = [acknowledged(&[ID]), state(0, "working", json!({})), state(3000, "working", json!({}))];
        let second = [acknowledged(&[ID]), state(0, "working", json!({})), done_after(90_000)];
        let listens = vec![listen(first, end), Reply::Broken, listen(second, Reply::Hang)];
        let server = TaskServer::new(Script { listens, ..Script::new([working()]) });
        server.client(builder().task_notifications(true)).call_tool("slow", ()).await.unwrap();
        let methods = server.methods();
        let expected = ["tools/call", "subscriptions/listen", "subscriptions/listen"];
        assert_eq!(methods[..3], expected, "{:?}", server.timed());
        // While it is broken, the task is polled at its interval; later it is not.
        let polls = methods.iter().filter(|method| *method == "tasks/get").count();
        assert!((1..=3).contains(&polls), "{:?}", server.timed());
        assert_eq!(methods.iter().filter(|method| *method == "subscriptions/listen").count(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_asked_once_over_reports_and_polls() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let builder = builder().task_notifications(true).on_elicit_form(move |ask: FormAsk| {
        seen.lock().unwrap().push(ask.context.key.clone());
        async move {
            sleep(Duration::from_secs(70)).await;
            Ok(ask.accept(json!({"region": "eu"}))?)
        }
    });
    let open = json!({"inputRequests": {"a": form()}});
    let reports = [
        acknowledged(&[ID]),
        state(0, "input_required", open.clone()),
        state(1000, "input_required", open.clone()),
        // Behind the answer, which the server has not seen when it reports.
        state(74_000, "input_required", open),
        done_after(5000),
    ];
    let server = TaskServer::new(Script {
        listens: vec![listen(reports, Reply::Hang)],
        ..Script::new([forms_of(&["a"])])
    });
    server.client(builder).call_tool("slow", ()).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), ["a"]);
    assert_eq!(
        server.timed(),
        ["0 tools/call", "0 subscriptions/listen", "61000 tasks/get", "70000 tasks/update a"]
    );
}

/// A report that waited on its connection while a poll brought a later state.
#[tokio::test(start_paused = true)]
async fn an_outdated_report_changes_nothing() {
    let at = |second: u32, text: &str| json!({"lastUpdatedAt": format!("2026-08-20T10:30:0{second}Z"), "statusMessage": text});
    let texts: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&texts);
    let client = builder().task_notifications(true).on_progress(move |event: ProgressEvent| {
        seen.lock().unwrap().push(event.message.unwrap_or_default());
    });
    let reports = [
        acknowledged(&[ID]),
        state(2000, "working", at(1, "old")),
        state(0, "working", at(3, "new")),
        done_after(1000),
    ];
    let server = TaskServer::new(Script {
        listens: vec![listen(reports, Reply::Hang)],
        ..Script::new([got("working", at(2, "polled"))])
    });
    server.client(client).call_tool("slow", ()).await.unwrap();
    assert_eq!(*texts.lock().unwrap(), ["polled", "new"]);
}

/// A server with a task for each call, named by its argument: `TIME METHOD IDS`.
fn shared_server(log: &Arc<Mutex<Vec<String>>>) -> Arc<Fake> {
    let (log, started) = (Arc::clone(log), tokio::time::Instant::now());
    Fake::new(move |request| {
        let method = request["method"].as_str().unwrap();
        let ids: Vec<String> = match method {
            "tools/call" => vec![request["params"]["arguments"]["id"].as_str().unwrap().to_owned()],
            "tasks/get" => vec![request["params"]["taskId"].as_str().unwrap().to_owned()],
            _ => serde_json::from_value(request["params"]["notifications"]["taskIds"].clone()).unwrap(),
        };
        log.lock().unwrap().push(format!("{} {method} {}", started.elapsed().as_secs(), ids.join(",")));
        let named = |id: &str, members: Value| with(with(task("working"), json!({"taskId": id})), members);
        match method {
            "tools/call" => Reply::Result(named(&ids[0], json!({"resultType": "task"}))),
            "tasks/get" => Reply::Result(named(&ids[0], json!({"resultType": "complete"}))),
            _ => {
                let names: Vec<&str> = ids.iter().map(String::as_str).collect();
                let first = names.iter().map(|id| state(0, "working", json!({"taskId": id})));
                let mut reports: Vec<Report> = std::iter::once(acknowledged(&names)).chain(first).collect();
                // Each task ends ten seconds after the latest subscription began.
                for (at, id) in names.iter().enumerate() {
                    let after = if at == 0 { 10_000 } else { 0 };
                    let end = json!({"taskId": id, "status": "completed", "result": {"content": []}});
                    reports.push(state(after, "completed", end));
                }
                listen(reports, Reply::Hang)
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn all_tasks_of_a_client_share_one_subscription() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let fake = shared_server(&log);
    let client = fake.client(builder().task_notifications(true));
    let call = async |id: &str, after: u64| {
        sleep(Duration::from_secs(after)).await;
        client.call_tool("slow", json!({"id": id})).await.unwrap();
    };
    tokio::join!(call("a", 0), call("b", 5), call("c", 8));
    let expected = [
        "0 tools/call a",
        "0 subscriptions/listen a",
        "5 tools/call b",
        "5 subscriptions/listen a,b",
        "8 tools/call c",
        "8 subscriptions/listen a,b,c",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
    // No subscription is left when no task waits. The earlier ones ended while they still had something to report.
    tokio::task::yield_now().await;
    assert_eq!(fake.cancelled(), 1);
}

/// The setting is one of the client: a wait by a handle has it too.
#[tokio::test(start_paused = true)]
async fn a_wait_by_a_handle_listens() {
    let reports = [acknowledged(&[ID]), state(0, "working", json!({})), done_after(5000)];
    let server =
        TaskServer::new(Script { listens: vec![listen(reports, Reply::Hang)], ..Script::new([working()]) });
    let client: ClientBuilder = builder().task_notifications(true);
    let result = server.client(client).attach(ID).wait().await.unwrap();
    assert_eq!(result.first_text(), Some("done"));
    // The first poll and the subscription begin together: the report that came first drops the poll's reply.
    assert_eq!(server.methods().iter().filter(|method| *method == "subscriptions/listen").count(), 1);
}
