//! Checks of notifications (progress, log messages, changes), completion and pages.
#![allow(deprecated, reason = "logging is deprecated, and still part of the revision")]

use crate::{
    by_hand::accept,
    check::{Check, CheckResult, checks, expect_equal},
    fleet::{Call, Fleet, Retry},
};
use rmcp::{
    model::{CallToolRequestParams, LoggingLevel, RequestMetaObject, ServerNotification, SubscriptionFilter},
    service::Subscription,
};
use serde_json::{Map, Value, json};

pub(crate) const CHECKS: &[(&str, Check)] = checks! {
    "progress before a result" => progress,
    "progress before a question and before the result" => progress_and_question,
    "log messages from a level on; none without one" => log,
    "a call abandoned by the client is dropped by the server" => cancelled_call,
    "completion of an argument of a prompt" => complete_prompt,
    "completion of a variable of a template, cut to a hundred" => complete_template,
    "tools/list in pages" => pages,
    "subscriptions/listen: tools changed, a resource updated, cancelled" => listen,
    "subscriptions/listen: only the requested changes arrive" => listen_filtered,
};

fn progress_at(at: u32, to: u32) -> Value {
    json!({"progressToken": 0, "progress": f64::from(at), "total": f64::from(to), "message": format!("at {at}")})
}

async fn progress(fleet: &Fleet) -> CheckResult {
    fleet.script.set(&Map::new());
    let result = call(fleet, "count", json!({"to": 3})).await?;
    expect_equal(&result["content"][0]["text"], &json!("counted to 3"))?;
    expect_equal(
        &fleet.script.notifications(3).await,
        &vec![progress_at(1, 3), progress_at(2, 3), progress_at(3, 3)],
    )
}

async fn progress_and_question(fleet: &Fleet) -> CheckResult {
    let answers: Map<String, Value> =
        [("again".to_owned(), accept(&json!({"word": "yes"})))].into_iter().collect();
    fleet.script.set(&answers);
    let result = call(fleet, "count_then_ask", json!({"to": 2})).await?;
    expect_equal(&result["content"][0]["text"], &json!("counted twice to 2, said yes"))?;
    expect_equal(
        &fleet.script.notifications(4).await,
        &vec![progress_at(1, 2), progress_at(1, 2), progress_at(2, 2), progress_at(2, 2)],
    )
}

async fn log(fleet: &Fleet) -> CheckResult {
    fleet.script.set(&Map::new());
    call(fleet, "chat", json!({})).await?;
    let mut meta = RequestMetaObject::new();
    meta.set_log_level(LoggingLevel::Warning);
    let mut params = CallToolRequestParams::new("chat").with_arguments(Map::new());
    params.meta = Some(meta);
    fleet.client.call_tool(params).await.map_err(|error| error.to_string())?;
    let wanted = vec![
        json!({"level": "warning", "logger": "chat", "data": "mind the gap"}),
        json!({"level": "error", "data": {"gone": true}}),
    ];
    expect_equal(&fleet.script.notifications(2).await, &wanted)
}

async fn cancelled_call(fleet: &Fleet) -> CheckResult {
    let fleet = fleet.first_replica().await?;
    fleet.script.set(&Map::new());
    tokio::select! {
        outcome = call(&fleet, "hang", json!({})) => return Err(format!("outcome {outcome:?}")),
        // The handler runs. The client now cancels the call.
        _ = fleet.script.notifications(1) => {}
    }
    let result = call(&fleet, "dropped", json!({})).await?;
    fleet.close().await;
    expect_equal(&result["content"][0]["text"], &json!("dropped"))
}

async fn complete_prompt(fleet: &Fleet) -> CheckResult {
    let found = fleet.client.complete_prompt_argument("drafted", "text", "ru", None).await;
    let found = found.map_err(|error| error.to_string())?;
    expect_equal(&found.values, &vec!["rust".to_owned(), "ruby".to_owned()])?;
    expect_equal(&(found.total, found.has_more), &(Some(2), Some(false)))
}

async fn complete_template(fleet: &Fleet) -> CheckResult {
    let found = fleet.client.complete_resource_argument("page://{name}", "name", "p", None).await;
    let found = found.map_err(|error| error.to_string())?;
    expect_equal(&(found.values.len(), found.values[99].as_str()), &(100, "p99"))?;
    expect_equal(&(found.total, found.has_more), &(Some(250), Some(true)))
}

async fn pages(fleet: &Fleet) -> CheckResult {
    let first = fleet.client.list_tools(None).await.map_err(|error| error.to_string())?;
    expect_equal(&(first.tools.len(), first.next_cursor.is_some()), &(4, true))?;
    let all = fleet.client.list_all_tools().await.map_err(|error| error.to_string())?;
    let names: Vec<&str> = all.iter().map(|tool| tool.name.as_ref()).collect();
    let wanted = "pay summarize list_my_roots add fail survey gather ladder shed insist count count_then_ask chat turn hang dropped";
    expect_equal(&names.join(" ").as_str(), &wanted)
}

async fn listen(fleet: &Fleet) -> CheckResult {
    let fleet = fleet.first_replica().await?;
    let filter =
        SubscriptionFilter::builder().tools_list_changed().resource_subscription("tree://mine").build();
    let mut subscription = fleet.client.listen(filter.clone()).await.map_err(|error| error.to_string())?;
    expect_equal(subscription.acknowledged(), &filter)?;
    for (change, listed) in [("added", true), ("removed", false)] {
        let result = call(&fleet, "turn", json!({})).await?;
        expect_equal(&result["content"][0]["text"], &json!(change))?;
        let mut events = vec![next(&mut subscription).await?, next(&mut subscription).await?];
        events.sort();
        expect_equal(&events, &vec!["resource tree://mine".to_owned(), "tools".to_owned()])?;
        let all = fleet.client.list_all_tools().await.map_err(|error| error.to_string())?;
        expect_equal(&all.iter().any(|tool| tool.name == "extra"), &listed)?;
    }
    subscription.cancel().await.map_err(|error| error.to_string())?;
    fleet.close().await;
    Ok(())
}

async fn listen_filtered(fleet: &Fleet) -> CheckResult {
    let fleet = fleet.first_replica().await?;
    let filter = SubscriptionFilter::builder().resource_subscription("tree://mine").build();
    let mut subscription = fleet.client.listen(filter).await.map_err(|error| error.to_string())?;
    // The filter excludes changes of the tools. Each update is read before the next, because a server may merge two
    // unread updates into one.
    for _ in 0..2 {
        call(&fleet, "turn", json!({})).await?;
        expect_equal(&next(&mut subscription).await?.as_str(), &"resource tree://mine")?;
    }
    subscription.cancel().await.map_err(|error| error.to_string())?;
    fleet.close().await;
    Ok(())
}

async fn next(subscription: &mut Subscription) -> Result<String, String> {
    match subscription.next().await {
        Ok(Some(ServerNotification::ToolListChangedNotification(_))) => Ok("tools".to_owned()),
        Ok(Some(ServerNotification::ResourceUpdatedNotification(notification))) => {
            Ok(format!("resource {}", notification.params.uri))
        }
        event => Err(format!("event {event:?}, the subscription ended with {:?}", subscription.end())),
    }
}

async fn call(fleet: &Fleet, name: &str, arguments: Value) -> Result<Value, String> {
    let call = Call::tool(name, arguments);
    fleet.call(&call, &Retry::default()).await.map_err(|error| error.to_string())
}
