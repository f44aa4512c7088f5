//! Tasks by hand: get, answer, cancel, and what a program may get wrong.

use crate::{client_support::*, task_server::*};
use antiphon::{
    client::{
        CallOptions, ClientError,
        tasks::{ClientTask, TaskHandle},
    },
    wire::{AskSupport, ElicitResult, InputResponses, SubscriptionFilter, TaskStatus},
};
use serde_json::{Value, json};
use std::time::Duration;

fn attached(server: &TaskServer) -> ClientTask {
    server.client(builder().declare(AskSupport::ALL)).attach(ID)
}

fn is_gone(error: &ClientError) -> bool {
    error.is_not_found() && error.task().is_none()
}

#[tokio::test]
async fn a_task_is_read_and_answered_by_hand() {
    let server =
        TaskServer::new(Script::new([forms_of(&["a", "b", "c"]), forms_of(&["b", "c"]), completed("done")]));
    let mut task = attached(&server);
    assert_eq!(task.get().await.unwrap().task.status, TaskStatus::InputRequired);
    assert_eq!(task.questions().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "b", "c"]);
    task.answer("a", &ElicitResult::decline()).await.unwrap();
    assert_eq!(task.questions().map(|(key, _)| key).collect::<Vec<_>>(), ["b", "c"]);
    let mut both = InputResponses::new();
    for key in ["b", "c"] {
        both.insert(key, &json!({"action": "accept", "content": {"region": "eu"}})).unwrap();
    }
    task.answer_all(&both).await.unwrap();
    assert_eq!(task.handle().answered().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(task.handle().unsent().len(), 0);
    assert_eq!(server.methods(), ["tasks/get", "tasks/update a", "tasks/update b,c"]);
    let sent = &server.fake.requests()[2]["params"]["inputResponses"];
    // The default of the form is filled in.
    assert_eq!(sent["b"], json!({"action": "accept", "content": {"region": "eu", "size": 1}}));
    task.cancel().await.unwrap();
    assert_eq!(server.methods().last().unwrap(), "tasks/cancel");
}

#[tokio::test]
async fn a_question_that_is_not_known_is_looked_up() {
    let server = TaskServer::new(Script::new([forms_of(&["a"])]));
    let mut task = attached(&server);
    task.answer("a", &ElicitResult::decline()).await.unwrap();
    assert_eq!(server.methods(), ["tasks/get", "tasks/update a"]);
    let error = task.answer("z", &ElicitResult::decline()).await.unwrap_err();
    assert!(error.to_string().contains("`z` is not asked"), "{error}");
    for (answer, text) in
        [(json!(7), "must be"), (json!({"action": "accept", "content": {}}), "does not fit its form")]
    {
        let server = TaskServer::new(Script::new([forms_of(&["a"])]));
        let mut task = attached(&server);
        let error = task.answer("a", &answer).await.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(server.methods(), ["tasks/get"], "nothing is sent");
        assert_eq!(task.handle().unsent().len(), 0);
    }
    let server = TaskServer::new(Script::new([input(json!({"u": url("ftp://x/y")}))]));
    let error = attached(&server).answer("u", &ElicitResult::consent()).await.unwrap_err();
    assert!(error.to_string().contains("not a valid http or https URL"), "{error}");
}

#[tokio::test]
async fn an_answer_that_was_not_acknowledged_stays_in_the_handle() {
    let mut script = Script::new([forms_of(&["a"]), forms_of(&["a"]), completed("done")]);
    script.updates = vec![Reply::Broken, Reply::Result(json!({}))];
    let server = TaskServer::new(script);
    let mut task = attached(&server);
    let error = task.answer("a", &ElicitResult::decline()).await.unwrap_err();
    assert_eq!(error.task().unwrap(), task.handle());
    assert_eq!(task.handle().unsent().len(), 1);
    task.wait().await.unwrap();
    assert_eq!(server.methods(), ["tasks/get", "tasks/update a", "tasks/get", "tasks/update a", "tasks/get"]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_task_is_not_found() {
    let gone = || Reply::Refused(-32602, "Task not found", Value::Null);
    let server = TaskServer::new(Script { updates: vec![gone()], ..Script::new([gone()]) });
    assert!(is_gone(&attached(&server).get().await.unwrap_err()));
    assert!(is_gone(&attached(&server).wait().await.unwrap_err()));
    let server = Fake::script([gone()]);
    let error = server.client(builder()).attach(ID).cancel().await.unwrap_err();
    assert!(is_gone(&error), "{error}");
    assert_eq!(error.method(), "tasks/cancel");
}

#[tokio::test(start_paused = true)]
async fn a_wait_has_the_options_of_a_call() {
    let server = TaskServer::new(Script::new([working()]));
    let options = CallOptions::default().call_timeout(Duration::from_millis(1500)).cancel_on_error(true);
    let error = attached(&server).with_options(options).wait().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "tasks/get at fake:server: the call did not end within 1.5s; its task continues at the server"
    );
    assert_eq!(server.timed(), ["0 tasks/get", "1000 tasks/get", "1500 tasks/cancel"]);
    assert_eq!(error.task().unwrap().task_id(), ID);
}

#[tokio::test]
async fn a_task_of_another_server_is_not_sent() {
    let server = TaskServer::new(Script::new([completed("done")]));
    let mut handle: TaskHandle =
        serde_json::from_value(json!({"server": {"target": "other"}, "task_id": ID})).unwrap();
    let client = server.client(builder());
    let mut task = client.task(handle.clone());
    for error in
        [task.get().await.unwrap_err(), task.cancel().await.unwrap_err(), task.wait().await.unwrap_err()]
    {
        assert!(
            error
                .to_string()
                .contains("nothing was sent: the pending call or task belongs to another server, other"),
            "{error}"
        );
    }
    assert_eq!(server.methods().len(), 0);
    handle.retarget("fake:server");
    client.task(handle).wait().await.unwrap();
}

/// An old handle, whose TTL is over, of a server that is down: a minute is all it gets.
#[tokio::test(start_paused = true)]
async fn the_age_of_a_stored_handle_counts() {
    let server = TaskServer::new(Script::new([Reply::Broken]));
    let stored =
        json!({"server": {"target": "fake:server"}, "task_id": ID, "ttl_ms": 3_600_000, "received_at_ms": 0});
    let started = tokio::time::Instant::now();
    let error =
        server.client(builder()).task(serde_json::from_value(stored).unwrap()).wait().await.unwrap_err();
    assert!(error.is_timeout() && error.task().is_some(), "{error}");
    assert_eq!(started.elapsed(), Duration::from_secs(60));
}

#[tokio::test]
async fn the_filter_of_a_subscription_names_tasks() {
    let filter = SubscriptionFilter::new().task("t-1").task("t-2");
    assert_eq!(serde_json::to_value(&filter).unwrap(), json!({"taskIds": ["t-1", "t-2"]}));
    let fake = Fake::new(|request| {
        assert_eq!(request["params"]["notifications"], json!({"taskIds": ["t-1", "t-2"]}));
        let meta = json!({"io.modelcontextprotocol/subscriptionId": request["id"]});
        let told = |method: &'static str, mut params: Value| {
            params["_meta"] = meta.clone();
            (Duration::ZERO, method, params)
        };
        let told = vec![
            told("notifications/subscriptions/acknowledged", json!({"notifications": {"taskIds": ["t-2"]}})),
            told(
                "notifications/tasks",
                with(task("completed"), json!({"taskId": "t-2", "result": {"content": []}})),
            ),
        ];
        Reply::Telling(told, Box::new(Reply::Hang))
    });
    let client = fake.client(builder());
    let mut changes = client.listen(filter);
    let Some(Ok(antiphon::client::events::SubscriptionEvent::Acknowledged(agreed))) = changes.next().await
    else {
        panic!("no ack")
    };
    assert_eq!(agreed.task_ids, Some(vec!["t-2".to_owned()]));
    let Some(Ok(event @ antiphon::client::events::SubscriptionEvent::Task(_))) = changes.next().await else {
        panic!("no task")
    };
    assert_eq!(event, event.clone());
    let antiphon::client::events::SubscriptionEvent::Task(state) = event else { unreachable!() };
    assert_eq!((state.task.task_id.as_str(), state.task.status), ("t-2", TaskStatus::Completed));
}
