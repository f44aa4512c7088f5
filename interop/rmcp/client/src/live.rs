//! What is sent beside results: progress, log messages, changes; suggestions and pages.
#![allow(deprecated, reason = "logging is deprecated, and still part of the revision")]

use crate::{
    Check, Verdict,
    by_hand::accept,
    checks,
    fleet::{Call, Fleet, Retry},
    same,
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
    "a call that is given up is dropped by the server" => given_up,
    "completion of an argument of a prompt" => complete_prompt,
    "completion of a variable of a template, cut to a hundred" => complete_template,
    "tools/list in pages" => pages,
    "subscriptions/listen: tools changed, a resource updated, cancelled" => listen,
    "subscriptions/listen: nothing is told that was not asked for" => listen_less,
};

fn told(at: u32, to: u32) -> Value {
    json!({"progressToken": 0, "progress": f64::from(at), "total": f64::from(to), "message": format!("at {at}")})
}

async fn progress(fleet: &Fleet) -> Verdict {
    fleet.script.set(&Map::new());
    let result = call(fleet, "count", json!({"to": 3})).await?;
    same(&result["content"][0]["text"], &json!("counted to 3"))?;
    same(&fleet.script.heard(3).await, &vec![told(1, 3), told(2, 3), told(3, 3)])
}

async fn progress_and_question(fleet: &Fleet) -> Verdict {
    let answers: Map<String, Value> =
        [("again".to_owned(), accept(&json!({"word": "yes"})))].into_iter().collect();
    fleet.script.set(&answers);
    let result = call(fleet, "count_then_ask", json!({"to": 2})).await?;
    same(&result["content"][0]["text"], &json!("counted twice to 2, said yes"))?;
    same(&fleet.script.heard(4).await, &vec![told(1, 2), told(1, 2), told(2, 2), told(2, 2)])
}

async fn log(fleet: &Fleet) -> Verdict {
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
    same(&fleet.script.heard(2).await, &wanted)
}

async fn given_up(fleet: &Fleet) -> Verdict {
    let alone = fleet.alone().await?;
    alone.script.set(&Map::new());
    tokio::select! {
        came = call(&alone, "hang", json!({})) => return Err(format!("came to {came:?}")),
        // It runs. Now it is dropped here.
        _ = alone.script.heard(1) => {}
    }
    let result = call(&alone, "dropped", json!({})).await?;
    alone.close().await;
    same(&result["content"][0]["text"], &json!("dropped"))
}

async fn complete_prompt(fleet: &Fleet) -> Verdict {
    let found = fleet.client.complete_prompt_argument("drafted", "text", "ru", None).await;
    let found = found.map_err(|error| error.to_string())?;
    same(&found.values, &vec!["rust".to_owned(), "ruby".to_owned()])?;
    same(&(found.total, found.has_more), &(Some(2), Some(false)))
}

async fn complete_template(fleet: &Fleet) -> Verdict {
    let found = fleet.client.complete_resource_argument("page://{name}", "name", "p", None).await;
    let found = found.map_err(|error| error.to_string())?;
    same(&(found.values.len(), found.values[99].as_str()), &(100, "p99"))?;
    same(&(found.total, found.has_more), &(Some(250), Some(true)))
}

async fn pages(fleet: &Fleet) -> Verdict {
    let first = fleet.client.list_tools(None).await.map_err(|error| error.to_string())?;
    same(&(first.tools.len(), first.next_cursor.is_some()), &(4, true))?;
    let all = fleet.client.list_all_tools().await.map_err(|error| error.to_string())?;
    let names: Vec<&str> = all.iter().map(|tool| tool.name.as_ref()).collect();
    let wanted = "pay summarize list_my_roots add fail survey gather ladder shed insist count count_then_ask chat turn hang dropped";
    same(&names.join(" ").as_str(), &wanted)
}

async fn listen(fleet: &Fleet) -> Verdict {
    let alone = fleet.alone().await?;
    let filter =
        SubscriptionFilter::builder().tools_list_changed().resource_subscription("tree://mine").build();
    let mut subscription = alone.client.listen(filter.clone()).await.map_err(|error| error.to_string())?;
    same(subscription.acknowledged(), &filter)?;
    for (turned, listed) in [("added", true), ("removed", false)] {
        let result = call(&alone, "turn", json!({})).await?;
        same(&result["content"][0]["text"], &json!(turned))?;
        let mut told = vec![next(&mut subscription).await?, next(&mut subscription).await?];
        told.sort();
        same(&told, &vec!["resource tree://mine".to_owned(), "tools".to_owned()])?;
        let all = alone.client.list_all_tools().await.map_err(|error| error.to_string())?;
        same(&all.iter().any(|tool| tool.name == "extra"), &listed)?;
    }
    subscription.cancel().await.map_err(|error| error.to_string())?;
    alone.close().await;
    Ok(())
}

async fn listen_less(fleet: &Fleet) -> Verdict {
    let alone = fleet.alone().await?;
    let filter = SubscriptionFilter::builder().resource_subscription("tree://mine").build();
    let mut subscription = alone.client.listen(filter).await.map_err(|error| error.to_string())?;
    // The changes of the tools in between are not told. Each update is read before the next: a server may tell of two
    // that nobody has read yet as of one.
    for _ in 0..2 {
        call(&alone, "turn", json!({})).await?;
        same(&next(&mut subscription).await?.as_str(), &"resource tree://mine")?;
    }
    subscription.cancel().await.map_err(|error| error.to_string())?;
    alone.close().await;
    Ok(())
}

async fn next(subscription: &mut Subscription) -> Result<String, String> {
    match subscription.next().await {
        Ok(Some(ServerNotification::ToolListChangedNotification(_))) => Ok("tools".to_owned()),
        Ok(Some(ServerNotification::ResourceUpdatedNotification(told))) => {
            Ok(format!("resource {}", told.params.uri))
        }
        told => Err(format!("told {told:?}, the subscription is at {:?}", subscription.end())),
    }
}

async fn call(fleet: &Fleet, name: &str, arguments: Value) -> Result<Value, String> {
    let call = Call::tool(name, arguments);
    fleet.call(&call, &Retry::default()).await.map_err(|error| error.to_string())
}
