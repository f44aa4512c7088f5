//! Cases of calls and lists: notifications, completion, pages, structured results, headers and caching.

use crate::{
    case::{Case, EVENT_TIMEOUT, POLL_INTERVAL, expect_equal},
    error::AnyError,
    peer::{Peer, builder, call_text},
};
use antiphon::{
    client::{Call, Client, ClientErrorKind, calls::RequestFault},
    wire::{
        LogLevel,
        completion::{CompletionContext, CompletionReference},
    },
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::time::{sleep, timeout};

pub(crate) const CASES: &[Case] = &[
    ("progress: every report, in order", |peer| Box::pin(progress(peer))),
    ("log: messages of a call, at the requested level", |peer| Box::pin(log(peer))),
    ("log: no messages without a request for them", |peer| Box::pin(no_log(peer))),
    ("complete: an argument of a prompt", |peer| Box::pin(complete_prompt(peer))),
    ("complete: a variable of a template, with values of the others", |peer| {
        Box::pin(complete_template(peer))
    }),
    ("pages: the whole list", |peer| Box::pin(pages(peer))),
    ("structured: a result that matches its schema", |peer| Box::pin(structured(peer))),
    ("structured: a result that does not match its schema is rejected", |peer| {
        Box::pin(result_outside_schema(peer))
    }),
    ("headers: arguments are repeated in headers", |peer| Box::pin(header_arguments(peer))),
    ("headers: numbers, booleans, absent and nested arguments", |peer| Box::pin(header_types(peer))),
    ("headers: a tool that was not listed yet", |peer| Box::pin(header_of_unlisted_tool(peer))),
    ("headers: a header renamed after the list", |peer| Box::pin(renamed_header(peer))),
    ("headers: a tool with an invalid annotation is left out", |peer| Box::pin(invalid_header(peer))),
    ("cache: a cacheable list is requested once", |peer| Box::pin(cached_list(peer))),
    ("cache: a list without a hint is not cached", |peer| Box::pin(uncached_list(peer))),
    ("given up: a call cancelled by the client ends on the server", |peer| Box::pin(cancelled_call(peer))),
];

/// Records the values of callbacks, in order.
#[derive(Clone)]
struct Recorder<T>(Arc<Mutex<Vec<T>>>);

impl<T> Recorder<T> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    fn add(&self, event: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn progress(peer: &Peer) -> Result<(), AnyError> {
    let recorder = Recorder::new();
    let events = recorder.clone();
    let call = Call::tool("progress", json!({"to": 3}))?
        .on_progress(move |event| events.add((event.progress, event.total, event.message)));
    peer.client().call(call).await?;
    let at = |n: f64| (n, Some(3.0), Some(format!("at {n}")));
    expect_equal(recorder.take(), vec![at(1.0), at(2.0), at(3.0)])
}

type LogEvent = (LogLevel, Option<String>, Value);

fn logging(peer: &Peer, level: Option<LogLevel>) -> (Client, Recorder<LogEvent>) {
    let recorder = Recorder::new();
    let events = recorder.clone();
    let builder = builder().on_log(move |event| events.add((event.level, event.logger, event.data)));
    let builder = match level {
        Some(level) => builder.log_level(level),
        None => builder,
    };
    (peer.client_from(builder), recorder)
}

async fn log(peer: &Peer) -> Result<(), AnyError> {
    let quiet = (LogLevel::Debug, None, json!("quiet"));
    let info = (LogLevel::Info, None, json!({"n": 1}));
    let loud = (LogLevel::Warning, Some("wide".to_owned()), json!("loud"));
    for (level, wanted) in [
        (LogLevel::Debug, vec![quiet, info.clone(), loud.clone()]),
        (LogLevel::Info, vec![info, loud]),
        (LogLevel::Error, vec![]),
    ] {
        let (client, recorder) = logging(peer, Some(level));
        call_text(&client, "log", json!({})).await?;
        expect_equal(recorder.take(), wanted)?;
    }
    Ok(())
}

async fn no_log(peer: &Peer) -> Result<(), AnyError> {
    let recorder = Recorder::new();
    let events = recorder.clone();
    // A callback for log messages makes the client request them. A callback for progress does not.
    let client = peer.client_from(builder().on_progress(move |event| events.add(event.progress)));
    call_text(&client, "log", json!({})).await?;
    expect_equal(recorder.take(), vec![])
}

async fn complete_prompt(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    for (prefix, wanted) in [("an", vec!["anna", "anton"]), ("b", vec!["berta"]), ("x", vec![])] {
        let found = client.complete(CompletionReference::prompt("greet"), "who", prefix, None).await?;
        expect_equal(found.values, wanted.into_iter().map(str::to_owned).collect())?;
    }
    Ok(())
}

async fn complete_template(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let music = BTreeMap::from([("dir".to_owned(), "music".to_owned())]);
    for (context, wanted) in [
        (None, vec!["song", "sonata", "sketch"]),
        (Some(CompletionContext::new(music)), vec!["song", "sonata"]),
    ] {
        let files = CompletionReference::resource("files://{dir}/{name}");
        let found = client.complete(files, "name", "s", context).await?;
        expect_equal(found.values, wanted.into_iter().map(str::to_owned).collect())?;
    }
    Ok(())
}

/// Number of requests with this method that the server received, from any client.
pub(crate) async fn request_count(client: &Client, method: &str) -> Result<u32, AnyError> {
    Ok(call_text(client, "asked", json!({"method": method})).await?.parse()?)
}

async fn pages(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let before = request_count(&client, "prompts/list").await?;
    let prompts = client.list_prompts().await?;
    let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    expect_equal(names, vec!["greet", "thank", "scold", "praise", "leave"])?;
    expect_equal(request_count(&client, "prompts/list").await? - before, 3)
}

async fn structured(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let tools = client.list_tools().await?;
    let listed = tools.iter().find(|tool| tool.name == "sum").ok_or("the tool is not listed")?;
    expect_equal(listed.output_schema.is_some(), true)?;
    let result = client.call_tool("sum", json!({"a": 40, "b": 2})).await?;
    expect_equal(result.structured_content, Some(json!({"total": 42})))
}

async fn result_outside_schema(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    client.list_tools().await?;
    match client.call_tool("wrong", json!({})).await {
        Err(error) => match error.kind() {
            ClientErrorKind::Request(RequestFault::OutputSchema { tool, faults, .. }) => {
                expect_equal(tool.as_str(), "wrong")?;
                if faults.contains("total") { Ok(()) } else { Err(format!("the fault is {faults:?}").into()) }
            }
            _ => Err(error.into()),
        },
        Ok(result) => Err(format!("not rejected: {:?}", result.structured_content).into()),
    }
}

/// Values, and their encoding in a header.
const REGIONS: [(&str, &str); 4] = [
    ("us-west1", "us-west1"),
    ("Zürich", "=?base64?WsO8cmljaA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
];

/// Calls a tool that returns its argument and the header that repeats it. Over stdio there are no headers.
async fn route(peer: &Peer, client: &Client, region: &str, header: &str) -> Result<(), AnyError> {
    let header = if peer.is_http() { header } else { "no header" };
    expect_equal(
        call_text(client, "route", json!({"region": region})).await?,
        format!("{region} by {header}"),
    )
}

async fn header_arguments(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    client.list_tools().await?;
    for (region, header) in REGIONS {
        route(peer, &client, region, header).await?;
    }
    Ok(())
}

async fn header_types(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    client.list_tools().await?;
    for (arguments, headers) in [
        (json!({"count": 42, "sure": true, "place": {"zone": "eu"}}), "42 true eu"),
        (json!({"count": -7, "sure": false, "place": {}}), "-7 false none"),
        (json!({"count": 9_007_199_254_740_991_i64}), "9007199254740991 none none"),
        (json!({"count": 42.0, "place": {"zone": "Zürich"}}), "42 none =?base64?WsO8cmljaA==?="),
        (json!({}), "none none none"),
    ] {
        let wanted = if peer.is_http() { headers } else { "none none none" };
        expect_equal(call_text(&client, "typed", arguments).await?.as_str(), wanted)?;
    }
    Ok(())
}

async fn header_of_unlisted_tool(peer: &Peer) -> Result<(), AnyError> {
    route(peer, &peer.client(), "eu", "eu").await
}

async fn renamed_header(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    client.list_tools().await?;
    route(peer, &client, "eu", "eu").await?;
    call_text(&client, "rename_header", json!({})).await?;
    let before = request_count(&client, "tools/list").await?;
    for _ in 0..2 {
        route(peer, &client, "us", "us").await?;
    }
    // One request is refused, the client lists the tools once, and every later header is correct.
    expect_equal(request_count(&client, "tools/list").await? - before, u32::from(peer.is_http()))
}

async fn invalid_header(peer: &Peer) -> Result<(), AnyError> {
    let tools = peer.client().list_tools().await?;
    // > Clients using other transports (e.g., stdio) **MAY** ignore `x-mcp-header` annotations
    expect_equal(tools.iter().any(|tool| tool.name == "bad_header"), !peer.is_http())
}

async fn cached_list(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let before = request_count(&client, "tools/list").await?;
    for _ in 0..3 {
        client.list_tools().await?;
    }
    expect_equal(request_count(&client, "tools/list").await? - before, 1)?;
    client.clear_cache();
    client.list_tools().await?;
    expect_equal(request_count(&client, "tools/list").await? - before, 2)
}

async fn uncached_list(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let before = request_count(&client, "prompts/list").await?;
    for _ in 0..2 {
        client.list_prompts().await?;
    }
    expect_equal(request_count(&client, "prompts/list").await? - before, 6)
}

async fn cancelled_call(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("wait", json!({})).await.map(drop) }
    });
    wait_for_running_calls(&client, 1).await?;
    waiting.abort();
    wait_for_running_calls(&client, 0).await
}

async fn wait_for_running_calls(client: &Client, wanted: u32) -> Result<(), AnyError> {
    let result = timeout(EVENT_TIMEOUT, async {
        while request_count(client, "wait").await? != wanted {
            sleep(POLL_INTERVAL).await;
        }
        Ok::<_, AnyError>(())
    });
    result.await.map_err(|_| format!("the number of running calls does not become {wanted}"))?
}
