//! The time limit that a tool sets for itself.

use crate::common::{
    one_tool::{built, limited},
    ring,
    tool_call::{ToolCall, accept, result_text},
};
use antiphon::{
    Result,
    client::{Client, Mode},
    memory,
    server::{Ctx, Limits, NoArguments, Server, ServerBuilder, Tool},
    tool,
};
use serde_json::{Value, json};
use std::{future::pending, time::Duration};
use tokio::time::{Instant, sleep};

const LIMIT: Duration = Duration::from_secs(30);

/// A handler that does not end.
#[tool(timeout = "30s", name = "t")]
async fn never() -> String {
    pending().await
}

/// Charges, and never ends.
async fn charging(ctx: &Ctx, _: NoArguments) -> Result<String> {
    ctx.step("charge", async |_| Ok(())).await?;
    pending().await
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_tool_replaces_that_of_the_server() {
    const STOPPED: &str = "The call took longer than 30s, and was stopped";
    let after = format!(
        "{STOPPED}. Completed before that: `charge`. Do not send this again: look at what these steps did first; a new \
         call repeats them."
    );
    let done = json!(["charge"]);
    type Offer = fn(ServerBuilder) -> ServerBuilder;
    let charges: Offer = |builder| builder.tool(Tool::new("t", charging).timeout(LIMIT));
    let marked: Offer = |builder| builder.tool(never);
    for (offer, state_only, expected, done) in
        [(marked, 3, STOPPED, Value::Null), (charges, 3, &*after, done.clone()), (charges, 0, &after, done)]
    {
        let limits = Limits::default().state_only_legs(state_only);
        let server = offer(Server::builder("t", "1").keys(ring(7)).limits(limits)).build().unwrap();
        let mut call = ToolCall::new(json!({}));
        let mut reply;
        loop {
            let begin = Instant::now();
            reply = call.leg(&server, Value::Null).await;
            assert!(
                (LIMIT..LIMIT + Duration::from_secs(1)).contains(&begin.elapsed()),
                "{:?}",
                begin.elapsed()
            );
            if !reply["error"].is_null() {
                break;
            }
        }
        let error = &reply["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!(expected)), "{reply}");
        assert_eq!((&error["data"]["reason"], &error["data"]["done"]), (&json!("timeout"), &done), "{reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_longer_time_than_the_servers_is_given() {
    let slow = async |_: &Ctx, _: NoArguments| {
        sleep(Duration::from_secs(40)).await;
        "done"
    };
    for (timeout, expected) in [(None, "-32603"), (Some(LIMIT), "timeout"), (Some(LIMIT * 2), "done")] {
        let tool = Tool::new("t", slow);
        let tool = match timeout {
            Some(time) => tool.timeout(time),
            None => tool,
        };
        let server = limited(tool, |limits| limits.handler_timeout(Duration::from_secs(20)));
        let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
        assert!(result_text(&reply).contains(expected), "{timeout:?}: {reply}");
    }
}

/// A tool that works for 20 seconds, asks, and works for 20 more.
fn working() -> Tool {
    Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        ctx.step("before", async |_| {
            sleep(Duration::from_secs(20)).await;
            Ok(())
        })
        .await?;
        let sure = ctx.confirm("Really?").key("sure").await?;
        sleep(Duration::from_secs(20)).await;
        Ok(sure.to_string())
    })
    .timeout(LIMIT)
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_person_does_not_count() {
    let server = built(working(), |builder| builder);
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    sleep(Duration::from_secs(300)).await;
    let reply = call.leg(&server, json!({"sure": accept(json!({"value": true}))})).await;
    assert_eq!(result_text(&reply), "true");

    let client = Client::builder("test", "1").mode(Mode::Legacy).on_elicit_form(async |ask| {
        sleep(Duration::from_secs(300)).await;
        Ok(ask.accept(json!({"value": true}))?)
    });
    let client = memory::connect(server, client);
    let result = client.call_tool("t", json!({})).await.unwrap();
    assert_eq!(result.first_text(), Some("true"));
}
