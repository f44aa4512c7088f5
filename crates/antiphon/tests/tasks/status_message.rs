//! The status message belongs to the present status: a text of progress does not stay behind it.

use crate::{
    client::{TaskClient, accept, client},
    session_client::SessionClient,
    view_tools::{Gate, Size, fail, gate},
};
use antiphon::{
    Error,
    server::{Ctx, State},
    tool,
};
use serde_json::{Value, json};

/// Reports progress, works, asks, reports more, works and ends.
#[tool(task = "required")]
async fn stages(ctx: &Ctx, gate: State<Gate>) -> Result<String, Error> {
    let pass = async |_| {
        gate.0.0.acquire().await.unwrap().forget();
        Ok(())
    };
    ctx.report_progress(1.0, Some(3.0), Some("first"));
    ctx.step("one", pass).await?;
    let Size { size } = ctx.elicit("Which size?").await?;
    ctx.step("two", pass).await?;
    ctx.report_progress(2.0, Some(3.0), Some("second"));
    ctx.step("three", pass).await?;
    ctx.report_progress(3.0, Some(3.0), Some("last words"));
    Ok(size.to_string())
}

/// Fails after progress.
#[tool(task = "required")]
async fn fails_late(ctx: &Ctx) -> Result<String, Error> {
    ctx.report_progress(1.0, None, Some("nearly"));
    panic!("on purpose")
}

/// Reports progress beside an open question.
#[tool(task = "required")]
async fn beside(ctx: &Ctx, gate: State<Gate>) -> Result<String, Error> {
    let step = ctx.step("work", async |_| {
        gate.0.0.acquire().await.unwrap().forget();
        Ok(())
    });
    let size = ctx.elicit::<Size>("Which size?");
    let reports = async {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        ctx.report_progress(1.0, None, Some("still at work"));
    };
    let (done, size, ()) = tokio::join!(step, size, reports);
    done?;
    Ok(size?.size.to_string())
}

fn server(gate: &Gate) -> TaskClient {
    client(|server| {
        server.draft_tasks(true).state(gate.clone()).tool(stages).tool(fails_late).tool(beside).tool(fail)
    })
}

/// The status and its message in the forms of the extension, the draft and a session.
async fn shown(client: &TaskClient, session: &mut SessionClient, id: &str) -> [(Value, Value); 3] {
    let of = |task: &Value| (task["status"].clone(), task["statusMessage"].clone());
    let draft = client.without_extension().send("tasks/get", json!({"taskId": id})).await;
    [of(&client.get(id).await), of(&draft["result"]), of(&session.get(id).await)]
}

/// Asserts the message of a status in the three forms.
async fn check(client: &TaskClient, session: &mut SessionClient, id: &str, status: &str, texts: [Value; 3]) {
    let statuses = [status, status, status].map(|status| json!(status));
    let expected: Vec<_> = statuses.into_iter().zip(texts).collect();
    assert_eq!(shown(client, session, id).await.to_vec(), expected);
}

const ASKS: &str = "Input Required to Proceed call tasks/result";
const DONE: &str = "Task has been completed successfully, call tasks/result";

#[tokio::test(start_paused = true)]
async fn the_message_belongs_to_the_status() {
    let gate = gate();
    let client = server(&gate);
    let mut session = SessionClient::open(&client.server).await;
    let id = client.task("stages", json!({})).await;
    let same = |text: &str| [json!(text), json!(text), json!(text)];
    let none = || [Value::Null, Value::Null, Value::Null];
    let until = async |text: Value| client.until(&id, |task| task["statusMessage"] == text).await;
    until(json!("first")).await;
    check(&client, &mut session, &id, "working", same("first")).await;
    gate.0.add_permits(1);
    client.status(&id, "input_required").await;
    check(&client, &mut session, &id, "input_required", [Value::Null, json!(ASKS), Value::Null]).await;
    client.update(&id, json!({"size": accept(json!({"size": 4}))})).await;
    // Before the leg has begun, and after that.
    check(&client, &mut session, &id, "working", none()).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    check(&client, &mut session, &id, "working", none()).await;
    gate.0.add_permits(1);
    until(json!("second")).await;
    gate.0.add_permits(1);
    client.status(&id, "completed").await;
    check(&client, &mut session, &id, "completed", [Value::Null, json!(DONE), Value::Null]).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_and_a_cancellation_have_their_own_message() {
    let gate = gate();
    let client = server(&gate);
    let mut session = SessionClient::open(&client.server).await;
    let id = client.task("fails_late", json!({})).await;
    let failed = client.status(&id, "failed").await;
    let text = failed["error"]["message"].clone();
    check(&client, &mut session, &id, "failed", [text.clone(), text.clone(), text]).await;
    let id = client.task("stages", json!({})).await;
    client.until(&id, |task| task["statusMessage"] == "first").await;
    client.cancel(&id).await;
    gate.0.add_permits(1);
    let cancelled = client.status(&id, "cancelled").await;
    assert_eq!(cancelled["statusMessage"], Value::Null, "{cancelled}");
    let in_session = session.get(&id).await;
    assert_eq!(in_session["statusMessage"], "The task was cancelled");
}

#[tokio::test(start_paused = true)]
async fn progress_beside_a_question_belongs_to_that_status() {
    let gate = gate();
    let client = server(&gate);
    let mut session = SessionClient::open(&client.server).await;
    let id = client.task("beside", json!({})).await;
    client.until(&id, |task| task["statusMessage"] == "still at work").await;
    let text = json!("still at work");
    check(&client, &mut session, &id, "input_required", [text.clone(), text.clone(), text]).await;
    client.update(&id, json!({"size": accept(json!({"size": 4}))})).await;
    check(&client, &mut session, &id, "working", [Value::Null, Value::Null, Value::Null]).await;
}

/// The texts of the draft's example, and its time to live.
#[tokio::test(start_paused = true)]
async fn the_texts_and_the_time_of_the_drafts_example() {
    let gate = gate();
    gate.0.add_permits(3);
    let client = server(&gate).without_extension();
    for (tool, cancels, status, text) in [
        ("stages", false, "completed", DONE),
        ("stages", true, "cancelled", "The task was cancelled"),
        ("fail", false, "failed", "no luck"),
        ("fails_late", false, "failed", "Internal error"),
    ] {
        let call = json!({"name": tool, "arguments": {}, "task": {"ttl": 60000}});
        let task = client.send("tools/call", call).await["result"]["task"].clone();
        let created = format!("Task has been created for {tool} tool invocation.");
        assert_eq!((&task["ttl"], &task["statusMessage"]), (&json!(60000), &json!(created)), "{task}");
        let id = task["taskId"].as_str().unwrap().to_owned();
        let get = async || client.send("tasks/get", json!({"taskId": id})).await["result"].clone();
        if cancels {
            client.send("tasks/cancel", json!({"taskId": id})).await;
        }
        for _ in 0..1000 {
            let answers = json!({"size": accept(json!({"size": 4}))});
            client.send("tasks/input_response", json!({"taskId": id, "inputResponses": answers})).await;
            if get().await["status"] == status {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let over = get().await;
        assert_eq!((&over["status"], &over["statusMessage"]), (&json!(status), &json!(text)), "{tool}");
        // The time that was granted, although the task is kept for an hour.
        assert_eq!(over["ttl"], 60000, "{tool}");
        gate.0.add_permits(3);
    }
}
