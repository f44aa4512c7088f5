//! Calls and lists: what they tell on the way, what may be kept, what is checked.

use crate::{
    A_MOMENT, AnyError, Case, SOON,
    peer::{Peer, builder, text},
    same,
};
use antiphon::{
    client::{Call, Client, ClientErrorKind, RequestFault},
    wire::{CompletionContext, CompletionReference, LogLevel},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::time::{sleep, timeout};

pub(crate) const CASES: &[Case] = &[
    ("progress: every report, in order", |peer| Box::pin(progress(peer))),
    ("log: the messages of a call, at the level that was asked for", |peer| Box::pin(log(peer))),
    ("log: nothing unless asked for", |peer| Box::pin(no_log(peer))),
    ("complete: an argument of a prompt", |peer| Box::pin(complete_prompt(peer))),
    ("complete: a variable of a template, with what is known of the others", |peer| {
        Box::pin(complete_template(peer))
    }),
    ("pages: the whole list", |peer| Box::pin(pages(peer))),
    ("structured: a result that fits its schema", |peer| Box::pin(structured(peer))),
    ("structured: a result that does not fit is refused", |peer| Box::pin(wrong(peer))),
    ("headers: arguments are repeated in them", |peer| Box::pin(mirrored(peer))),
    ("headers: numbers, yes and no, nothing, and what is nested", |peer| Box::pin(typed(peer))),
    ("headers: a tool that was not listed yet", |peer| Box::pin(unlisted(peer))),
    ("headers: one that was renamed since the list", |peer| Box::pin(renamed(peer))),
    ("headers: a tool whose annotation breaks the rules is left out", |peer| Box::pin(bad_header(peer))),
    ("cache: a list that may be kept is not asked for again", |peer| Box::pin(kept(peer))),
    ("cache: nothing is kept without a hint", |peer| Box::pin(not_kept(peer))),
    ("given up: a call that the client ends is ended there", |peer| Box::pin(given_up(peer))),
];

/// What callbacks heard, in order.
#[derive(Clone)]
struct Heard<T>(Arc<Mutex<Vec<T>>>);

impl<T> Heard<T> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    fn add(&self, one: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(one);
    }

    fn all(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn progress(peer: &Peer) -> Result<(), AnyError> {
    let heard = Heard::new();
    let hear = heard.clone();
    let call = Call::tool("progress", json!({"to": 3}))?
        .on_progress(move |event| hear.add((event.progress, event.total, event.message)));
    peer.client().call(call).await?;
    let at = |n: f64| (n, Some(3.0), Some(format!("at {n}")));
    same(heard.all(), vec![at(1.0), at(2.0), at(3.0)])
}

type Logged = (LogLevel, Option<String>, Value);

fn logging(peer: &Peer, level: Option<LogLevel>) -> (Client, Heard<Logged>) {
    let heard = Heard::new();
    let hear = heard.clone();
    let builder = builder().on_log(move |event| hear.add((event.level, event.logger, event.data)));
    let builder = match level {
        Some(level) => builder.log_level(level),
        None => builder,
    };
    (peer.client_of(builder), heard)
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
        let (client, heard) = logging(peer, Some(level));
        text(&client, "log", json!({})).await?;
        same(heard.all(), wanted)?;
    }
    Ok(())
}

async fn no_log(peer: &Peer) -> Result<(), AnyError> {
    let heard = Heard::new();
    let hear = heard.clone();
    // With a callback the client asks for messages by itself; a callback for progress asks for none.
    let client = peer.client_of(builder().on_progress(move |event| hear.add(event.progress)));
    text(&client, "log", json!({})).await?;
    same(heard.all(), vec![])
}

async fn complete_prompt(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    for (typed, wanted) in [("an", vec!["anna", "anton"]), ("b", vec!["berta"]), ("x", vec![])] {
        let found = client.complete(CompletionReference::prompt("greet"), "who", typed, None).await?;
        same(found.values, wanted.into_iter().map(str::to_owned).collect())?;
    }
    Ok(())
}

async fn complete_template(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let music = BTreeMap::from([("dir".to_owned(), "music".to_owned())]);
    for (known, wanted) in [
        (None, vec!["song", "sonata", "sketch"]),
        (Some(CompletionContext::new(music)), vec!["song", "sonata"]),
    ] {
        let files = CompletionReference::resource("files://{dir}/{name}");
        let found = client.complete(files, "name", "s", known).await?;
        same(found.values, wanted.into_iter().map(str::to_owned).collect())?;
    }
    Ok(())
}

/// How often the server was asked for it, by whomever.
pub(crate) async fn asked(client: &Client, method: &str) -> Result<u32, AnyError> {
    Ok(text(client, "asked", json!({"method": method})).await?.parse()?)
}

async fn pages(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let before = asked(&client, "prompts/list").await?;
    let prompts = client.list_prompts().await?;
    let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    same(names, vec!["greet", "thank", "scold", "praise", "leave"])?;
    same(asked(&client, "prompts/list").await? - before, 3)
}

async fn structured(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let tools = client.list_tools().await?;
    let listed = tools.iter().find(|tool| tool.name == "sum").ok_or("the tool is not listed")?;
    same(listed.output_schema.is_some(), true)?;
    let result = client.call_tool("sum", json!({"a": 40, "b": 2})).await?;
    same(result.structured_content, Some(json!({"total": 42})))
}

async fn wrong(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    client.list_tools().await?;
    match client.call_tool("wrong", json!({})).await {
        Err(error) => match error.kind() {
            ClientErrorKind::Request(RequestFault::OutputSchema { tool, faults, .. }) => {
                same(tool.as_str(), "wrong")?;
                if faults.contains("total") { Ok(()) } else { Err(format!("the fault is {faults:?}").into()) }
            }
            _ => Err(error.into()),
        },
        Ok(result) => Err(format!("not refused: {:?}", result.structured_content).into()),
    }
}

/// Values, and what stands for them in a header.
const REGIONS: [(&str, &str); 4] = [
    ("us-west1", "us-west1"),
    ("Zürich", "=?base64?WsO8cmljaA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
];

/// What the server saw: over stdio there are no headers.
async fn route(peer: &Peer, client: &Client, region: &str, header: &str) -> Result<(), AnyError> {
    let header = if peer.is_http() { header } else { "no header" };
    same(text(client, "route", json!({"region": region})).await?, format!("{region} by {header}"))
}

async fn mirrored(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    client.list_tools().await?;
    for (region, header) in REGIONS {
        route(peer, &client, region, header).await?;
    }
    Ok(())
}

async fn typed(peer: &Peer) -> Result<(), AnyError> {
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
        same(text(&client, "typed", arguments).await?.as_str(), wanted)?;
    }
    Ok(())
}

async fn unlisted(peer: &Peer) -> Result<(), AnyError> {
    route(peer, &peer.client(), "eu", "eu").await
}

async fn renamed(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    client.list_tools().await?;
    route(peer, &client, "eu", "eu").await?;
    text(&client, "rename_header", json!({})).await?;
    let before = asked(&client, "tools/list").await?;
    for _ in 0..2 {
        route(peer, &client, "us", "us").await?;
    }
    // Refused once, listed once, and right from then on.
    same(asked(&client, "tools/list").await? - before, u32::from(peer.is_http()))
}

async fn bad_header(peer: &Peer) -> Result<(), AnyError> {
    let tools = peer.client().list_tools().await?;
    // > Clients using other transports (e.g., stdio) **MAY** ignore `x-mcp-header` annotations
    same(tools.iter().any(|tool| tool.name == "bad_header"), !peer.is_http())
}

async fn kept(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let before = asked(&client, "tools/list").await?;
    for _ in 0..3 {
        client.list_tools().await?;
    }
    same(asked(&client, "tools/list").await? - before, 1)?;
    client.clear_cache();
    client.list_tools().await?;
    same(asked(&client, "tools/list").await? - before, 2)
}

async fn not_kept(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let before = asked(&client, "prompts/list").await?;
    for _ in 0..2 {
        client.list_prompts().await?;
    }
    same(asked(&client, "prompts/list").await? - before, 6)
}

async fn given_up(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("wait", json!({})).await.map(drop) }
    });
    until_waiting(&client, 1).await?;
    waiting.abort();
    until_waiting(&client, 0).await
}

async fn until_waiting(client: &Client, wanted: u32) -> Result<(), AnyError> {
    let waited = timeout(SOON, async {
        while asked(client, "wait").await? != wanted {
            sleep(A_MOMENT).await;
        }
        Ok::<_, AnyError>(())
    });
    waited.await.map_err(|_| format!("{wanted} calls do not wait"))?
}
