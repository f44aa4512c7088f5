//! Results that are used again, and those that are not.

use crate::client_support::*;
use antiphon::{
    client::{Call, Client, ClientBuilder},
    wire::ProtocolVersion,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::advance;

/// A result of this method that may be kept for `ttl`, with a number in it.
fn result_of(method: &str, ttl: Value, number: u64) -> Value {
    let name = number.to_string();
    let mut result = match method {
        "server/discover" => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "instructions": name})
        }
        "tools/list" => json!({"tools": [{"name": name, "inputSchema": {"type": "object"}}]}),
        "prompts/list" => json!({"prompts": [{"name": name}]}),
        "resources/list" => json!({"resources": [{"uri": "a:b", "name": name}]}),
        "resources/templates/list" => json!({"resourceTemplates": [{"uriTemplate": "a:{b}", "name": name}]}),
        "resources/read" => json!({"contents": [{"uri": "a:b", "text": name}]}),
        other => panic!("{other}"),
    };
    result["resultType"] = "complete".into();
    result["cacheScope"] = "private".into();
    if !ttl.is_null() {
        result["ttlMs"] = ttl;
    }
    result
}

/// A server that counts its answers, all of the same time to live.
fn counting(ttl: Value) -> Arc<Fake> {
    let count = AtomicU64::new(0);
    Fake::new(move |request| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        Reply::Result(result_of(request["method"].as_str().unwrap(), ttl.clone(), number))
    })
}

/// The number in the answer to a request of this method.
async fn ask(client: &Client, method: &str) -> u64 {
    let said = match method {
        "server/discover" => client.discover().await.unwrap().instructions.unwrap(),
        "tools/list" => client.list_tools().await.unwrap()[0].name.clone(),
        "prompts/list" => client.list_prompts().await.unwrap()[0].name.clone(),
        "resources/list" => client.list_resources().await.unwrap()[0].name.clone(),
        "resources/templates/list" => client.list_resource_templates().await.unwrap()[0].name.clone(),
        "resources/read" => text(&client.read_resource("a:b").await.unwrap()),
        other => panic!("{other}"),
    };
    said.parse().unwrap()
}

fn text(result: &antiphon::wire::ReadResourceResult) -> String {
    serde_json::to_value(result).unwrap()["contents"][0]["text"].as_str().unwrap().to_owned()
}

const METHODS: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// Asks three times, `pause` ms apart: which answers come.
async fn check(client: ClientBuilder, ttl: Value, pause: u64, expected: [u64; 3]) {
    for method in METHODS {
        let client = counting(ttl.clone()).client(client.clone());
        let mut answers = [0; 3];
        for answer in &mut answers {
            *answer = ask(&client, method).await;
            advance(Duration::from_millis(pause)).await;
        }
        assert_eq!(answers, expected, "{method} with {ttl}, {pause} ms apart");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_is_used_again_while_it_is_fresh() {
    check(builder(), json!(1000), 0, [1, 1, 1]).await;
    check(builder(), json!(1000), 499, [1, 1, 1]).await;
    // > now < t_received + ttlMs
    check(builder(), json!(1000), 500, [1, 1, 2]).await;
    check(builder(), json!(1000), 1000, [1, 2, 3]).await;
    check(builder(), json!(u64::MAX), 1_000_000_000, [1, 1, 1]).await;
    for never in [json!(null), json!(0), json!(-5)] {
        check(builder(), never, 0, [1, 2, 3]).await;
    }
    check(builder().cache(false), json!(1000), 0, [1, 2, 3]).await;
}

#[tokio::test(start_paused = true)]
async fn one_result_is_not_anothers() {
    let fake = counting(json!(60_000));
    let client = fake.client(builder());
    for (n, method) in METHODS.into_iter().enumerate() {
        assert_eq!(ask(&client, method).await, n as u64 + 1);
    }
    assert_eq!(text(&client.read_resource("a:c").await.unwrap()), "7");
    assert_eq!(ask(&client, "resources/read").await, 6);
    // Another client shares nothing.
    assert_eq!(ask(&fake.client(builder()), "resources/read").await, 8);
    client.clear_cache();
    for (n, method) in METHODS.into_iter().enumerate() {
        assert_eq!(ask(&client, method).await, n as u64 + 9);
    }
}

#[tokio::test(start_paused = true)]
async fn fresh_asks_and_keeps_the_new_result() {
    let client = counting(json!(60_000)).client(builder());
    assert_eq!(ask(&client, "resources/read").await, 1);
    let read = client.call(Call::resource("a:b").fresh(true)).await.unwrap();
    assert_eq!(text(&read.into_resource().unwrap()), "2");
    assert_eq!(ask(&client, "resources/read").await, 2);
    // By hand it is the same.
    let step = client.begin(Call::resource("a:b")).await.unwrap();
    assert_eq!(text(&step.done().unwrap().into_resource().unwrap()), "2");
}

#[tokio::test(start_paused = true)]
async fn what_needed_an_answer_or_state_is_not_kept() {
    let kept_for_long = |mut reply: Value| {
        reply["ttlMs"] = 60_000.into();
        Reply::Result(reply)
    };
    let complete = || kept_for_long(result_of("resources/read", json!(null), 1));
    for first in [
        json!({"resultType": "input_required", "inputRequests": {"a": form()}, "requestState": "s"}),
        json!({"resultType": "input_required", "requestState": "s"}),
    ] {
        let first = || kept_for_long(first.clone());
        let fake = Fake::script([first(), complete(), first(), complete(), complete()]);
        let client =
            fake.client(builder().on_elicit_form(async |ask| Ok(ask.accept(json!({"region": "eu"}))?)));
        client.read_resource("a:b").await.unwrap();
        client.read_resource("a:b").await.unwrap();
        // This time it is complete at once, and kept.
        client.read_resource("a:b").await.unwrap();
        client.read_resource("a:b").await.unwrap();
        assert_eq!(fake.requests().len(), 5);
    }
    // Neither is anything that failed, nor what tools and prompts say.
    let fake = Fake::new(move |request| match request["method"].as_str().unwrap() {
        "resources/read" => Reply::Error(-32002, json!({"ttlMs": 60_000})),
        _ => kept_for_long(json!({"content": [], "messages": []})),
    });
    let client = fake.client(builder());
    for _ in 0..2 {
        client.read_resource("a:b").await.unwrap_err();
        client.call_tool("t", ()).await.unwrap();
        client.get_prompt("p", ()).await.unwrap();
    }
    assert_eq!(fake.requests().len(), 6);
}

/// A page of prompts.
fn page(name: &str, next: Option<&str>, ttl: u64) -> Reply {
    let mut page = json!({"resultType": "complete", "prompts": [{"name": name}], "ttlMs": ttl});
    if let Some(next) = next {
        page["nextCursor"] = next.into();
    }
    Reply::Result(page)
}

/// Lists twice, a second apart: the names each time, and the cursors that were sent.
async fn pages(replies: Vec<Reply>, names: [&[&str]; 2], cursors: Value) {
    let fake = Fake::script(replies);
    let client = fake.client(builder());
    for names in names {
        let prompts = client.list_prompts().await.unwrap();
        assert_eq!(prompts.iter().map(|prompt| &*prompt.name).collect::<Vec<_>>(), names, "{cursors}");
        advance(Duration::from_secs(1)).await;
    }
    let sent: Vec<Value> =
        fake.requests().iter().map(|request| request["params"]["cursor"].clone()).collect();
    assert_eq!(Value::Array(sent), cursors);
}

#[tokio::test(start_paused = true)]
async fn each_page_is_kept_by_itself() {
    pages(
        vec![
            page("a", Some("1"), 5000),
            page("b", Some("2"), 500),
            page("c", None, 5000),
            page("B", Some("2"), 0),
        ],
        [&["a", "b", "c"], &["a", "B", "c"]],
        json!([null, "1", "2", "1"]),
    )
    .await;
    // A page that leads elsewhere now is followed there.
    pages(
        vec![page("a", Some("1"), 5000), page("b", Some("2"), 0), page("c", None, 5000), page("B", None, 0)],
        [&["a", "b", "c"], &["a", "B"]],
        json!([null, "1", "2", "1"]),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_cursor_begins_the_list_again_once() {
    let invalid = || Reply::Error(-32602, json!(null));
    pages(
        vec![
            page("a", Some("1"), 5000),
            page("b", None, 0),
            invalid(),
            page("A", Some("x"), 5000),
            page("B", None, 0),
        ],
        [&["a", "b"], &["A", "B"]],
        json!([null, "1", "1", null, "x"]),
    )
    .await;
    let gives_up = [page("a", Some("1"), 5000), invalid(), page("a", Some("1"), 5000), invalid()];
    let fake = Fake::script(gives_up);
    let error = fake.client(builder()).list_prompts().await.unwrap_err();
    assert_eq!((error.server_error().unwrap().code.0, fake.requests().len()), (-32602, 4));
    // Without a cursor it is another mistake.
    let fake = Fake::script([invalid()]);
    fake.client(builder()).list_prompts().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn another_version_asks_anew() {
    let version = Arc::new(AtomicU64::new(0));
    let asked = Arc::clone(&version);
    let fake = Fake::new(move |request| {
        let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
        match number {
            2 => Reply::Error(-32022, json!({"supported": ["2026-07-28"]})),
            _ => Reply::Result(result_of(request["method"].as_str().unwrap(), json!(60_000), number)),
        }
    });
    let client = fake.client(builder().protocol_version(ProtocolVersion::new("2030-01-01")));
    assert_eq!(ask(&client, "resources/read").await, 1);
    assert_eq!(ask(&client, "prompts/list").await, 3);
    assert_eq!(ask(&client, "resources/read").await, 4);
    assert_eq!(ask(&client, "prompts/list").await, 3);
}
