//! A wrong answer leaves the status `input_required` for every poller, until its question is asked again.

use crate::{
    client::{TaskClient, accept, client, keys_of, text_of},
    session_client::SessionClient,
    view_tools::Size,
};
use antiphon::{Error, Form, server::Ctx, tool};
use serde_json::{Value, json};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct EchoInput {
    input: String,
}

/// Echoes what the person types.
#[tool(task = "required")]
async fn echo(ctx: &Ctx) -> Result<String, Error> {
    let EchoInput { input } = ctx.elicit("What?").await?;
    Ok(format!("Echo: {input}"))
}

/// Asks two questions at once.
#[tool(task = "required")]
async fn two(ctx: &Ctx) -> Result<String, Error> {
    let (echo, size) = tokio::join!(ctx.elicit::<EchoInput>("What?"), ctx.elicit::<Size>("Which size?"));
    Ok(format!("{} {}", echo?.input, size?.size))
}

/// Asks the client for its roots.
#[tool(task = "required")]
async fn roots(ctx: &Ctx) -> Result<String, Error> {
    Ok(ctx.roots().await?.len().to_string())
}

fn server() -> TaskClient {
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "roots": {}});
    client(|server| server.draft_tasks(true).tool(echo).tool(two).tool(roots)).capable(capabilities)
}

/// The statuses that both views of a task show from now on, until `is_it` is true for the extension's.
async fn statuses(client: &TaskClient, id: &str, is_it: impl Fn(&Value) -> bool) -> Vec<String> {
    let draft = client.without_extension();
    let mut seen = Vec::new();
    for _ in 0..10_000 {
        let task = client.get(id).await;
        let in_draft = draft.send("tasks/get", json!({"taskId": id})).await["result"]["status"].clone();
        for status in [&task["status"], &in_draft] {
            let status = status.as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
            if seen.last() != Some(&status) {
                seen.push(status);
            }
        }
        if is_it(&task) {
            return seen;
        }
        tokio::task::yield_now().await;
    }
    panic!("{}", client.get(id).await);
}

/// Sends wrong answers to the open questions of a tool, and then a right one for each question that is asked again.
async fn check(tool: &str, asked: &[&str], wrong: Value, again: &[&str], right: Value, result: &str) {
    for in_draft in [false, true] {
        let client = server();
        let id = client.task(tool, json!({})).await;
        client.asked(&id, asked).await;
        let answer = async |answers: &Value| {
            let params = json!({"taskId": id, "inputResponses": answers});
            match in_draft {
                false => client.send("tasks/update", params).await,
                true => client.without_extension().send("tasks/input_response", params).await,
            }
        };
        let acknowledged = answer(&wrong).await;
        assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
        let seen = statuses(&client, &id, |task| keys_of(task) == again).await;
        assert_eq!(seen, ["input_required"], "{tool} {wrong}");
        answer(&right).await;
        // A right answer ends it: the task works, and no poller sees the question again.
        let seen = statuses(&client, &id, |task| task["status"] == "completed").await;
        assert!(!seen.contains(&"input_required".to_owned()), "{tool} {wrong}: {seen:?}");
        assert_eq!(text_of(&client.get(&id).await), result, "{tool} {wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_leaves_the_status() {
    let right = json!({"echo_input~2": accept(json!({"input": "a"}))});
    for wrong in [
        // That of the draft's text.
        accept(json!({"not_requested_parameter": "x"})),
        accept(json!({"input": 3})),
        accept(json!({"input": "a".repeat(65 << 10)})),
        json!({"action": "accept"}),
        json!({"action": "agree", "content": {"input": "a"}}),
        json!({"content": {"input": "a"}}),
        json!({}),
        json!([]),
        json!("accept"),
        Value::Null,
    ] {
        let wrong = json!({"echo_input": wrong});
        check("echo", &["echo_input"], wrong, &["echo_input~2"], right.clone(), "Echo: a").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_beside_a_right_one_leaves_the_status() {
    let (text, size) = (accept(json!({"input": "a"})), accept(json!({"size": 4})));
    let wrong = accept(json!({"size": "large"}));
    for (answers, again, right) in [
        (json!({"echo_input": text, "size": wrong}), &["size~2"][..], json!({"size~2": size})),
        (json!({"size": wrong}), &["echo_input", "size~2"], json!({"echo_input": text, "size~2": size})),
    ] {
        check("two", &["echo_input", "size"], answers, again, right, "a 4").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_of_the_client_itself_leaves_the_status() {
    let right = json!({"roots~2": {"roots": [{"uri": "file:///a"}]}});
    check("roots", &["roots"], json!({"roots": {"roots": 3}}), &["roots~2"], right, "1").await;
}

/// `tasks/result` asks again, as in the draft's text, and not the question that has an answer.
#[tokio::test(start_paused = true)]
async fn a_result_waits_for_the_question_that_is_asked_again() {
    let client = server();
    let id = client.task("echo", json!({})).await;
    client.asked(&id, &["echo_input"]).await;
    client.update(&id, json!({"echo_input": accept(json!({}))})).await;
    let again = client.without_extension().send("tasks/result", json!({"taskId": id})).await;
    let asked = again["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{again}"));
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["echo_input~2"]);
    let message = asked["echo_input~2"]["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("What?\n\n"), "{message}");
}

/// The question has an answer already, so a second one does not count, and a third wrong one ends the task as ever.
#[tokio::test(start_paused = true)]
async fn answers_after_a_wrong_one() {
    let client = server();
    let wrong = |key: &str| json!({key: accept(json!({}))});
    let id = client.task("echo", json!({})).await;
    client.asked(&id, &["echo_input"]).await;
    client.update(&id, wrong("echo_input")).await;
    client.update(&id, json!({"echo_input": accept(json!({"input": "late"}))})).await;
    client.asked(&id, &["echo_input~2"]).await;
    client.update(&id, wrong("echo_input~2")).await;
    client.asked(&id, &["echo_input~3"]).await;
    client.update(&id, wrong("echo_input~3")).await;
    let failed = client.status(&id, "failed").await;
    assert_eq!(failed["error"]["data"]["limit"], "times_asked", "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_after_a_wrong_answer() {
    for pause in [0, 1, 2, 5, 50] {
        let client = server();
        let id = client.task("echo", json!({})).await;
        client.asked(&id, &["echo_input"]).await;
        client.update(&id, json!({"echo_input": accept(json!({}))})).await;
        for _ in 0..pause {
            tokio::task::yield_now().await;
        }
        client.cancel(&id).await;
        client.status(&id, "cancelled").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_in_a_session_leaves_the_status() {
    let client = server();
    let (mut session, mut poller) =
        (SessionClient::open(&client.server).await, SessionClient::open(&client.server).await);
    let id = session.task("echo", json!({})).await;
    session.status(&id, "input_required").await;
    let result = session.begin("tasks/result", json!({"taskId": id})).await;
    let asked = session.asked().await;
    session.answer(&asked, accept(json!({"input": 3}))).await;
    let mut seen = Vec::new();
    for _ in 0..200 {
        seen.push(poller.get(&id).await["status"].as_str().unwrap().to_owned());
        tokio::task::yield_now().await;
    }
    seen.dedup();
    assert_eq!(seen, ["input_required"]);
    let again = session.asked().await;
    session.answer(&again, accept(json!({"input": "a"}))).await;
    assert_eq!(session.reply(result).await["result"]["content"][0]["text"], "Echo: a");
}
