//! Requirements of the specification on every client, against servers that keep no rule: page by page in docs/conformance/spec.md.

use crate::client_support::*;
use antiphon::{
    client::{
        Client, ClientErrorKind,
        events::{ReconnectPolicy, SubscriptionEvent},
    },
    wire::{LogLevel, SubscriptionFilter},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, advance};

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// > A `resultType` of any value unrecognized by the client **MUST** be considered invalid.
#[tokio::test]
async fn an_unknown_type_of_result_is_invalid_whatever_was_asked() {
    for (kind, fits) in [("complete", true), ("task", false), ("", false), ("Complete", false)] {
        let fake = Fake::new(move |request| {
            let mut result = match request["method"].as_str().unwrap() {
                "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
                "completion/complete" => json!({"completion": {"values": []}}),
                "tools/call" => json!({"content": []}),
                "prompts/get" => json!({"messages": []}),
                "resources/read" => json!({"contents": []}),
                "subscriptions/listen" => json!({}),
                _ => json!({"tools": [], "prompts": [], "resources": [], "resourceTemplates": []}),
            };
            result["resultType"] = kind.into();
            Reply::Result(result)
        });
        let client = fake.client(builder().cache(false));
        let reference = antiphon::wire::completion::CompletionReference::prompt("p");
        let mut listening = client.listen(SubscriptionFilter::new().tools());
        let came = [
            client.discover().await.is_ok(),
            client.list_tools().await.is_ok(),
            client.list_prompts().await.is_ok(),
            client.list_resources().await.is_ok(),
            client.list_resource_templates().await.is_ok(),
            client.complete(reference, "a", "", None).await.is_ok(),
            client.call_tool("t", json!({})).await.is_ok(),
            client.get_prompt("p", json!({})).await.is_ok(),
            client.read_resource("a:b").await.is_ok(),
            listening.next().await.is_none(),
        ];
        assert_eq!(came, [fits; 10], "{kind}");
    }
}

/// Counts the requests of three listings, the last a day after the others, if the lists have this `ttlMs`.
async fn asked(ttl: &'static str) -> Result<[usize; 3], String> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let fake = Fake::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Reply::Text(format!(r#"{{"resultType":"complete","tools":[],"cacheScope":"public","ttlMs":{ttl}}}"#))
    });
    let client = fake.client(builder());
    let mut so_far = [0; 3];
    for (turn, pause) in [0, 1, 86_400_000].into_iter().enumerate() {
        advance(Duration::from_millis(pause)).await;
        client.list_tools().await.map_err(|error| error.to_string())?;
        so_far[turn] = count.load(Ordering::SeqCst);
    }
    Ok(so_far)
}

/// > If `ttlMs` is negative, clients **SHOULD** ignore it and treat it as `0`.
#[tokio::test(start_paused = true)]
async fn a_time_to_live_beyond_all_bounds_breaks_nothing() {
    for (ttl, expected) in [
        ("1e308", [1, 1, 1]),
        ("18446744073709551615", [1, 1, 1]),
        ("18446744073709551616", [1, 1, 1]),
        ("2.9", [1, 1, 2]),
        ("0.9", [1, 2, 3]),
        ("-0.0", [1, 2, 3]),
        ("-1e308", [1, 2, 3]),
        ("-9223372036854775808", [1, 2, 3]),
        ("null", [1, 2, 3]),
        // Not of the specification, and read all the same.
        ("\"2.9\"", [1, 1, 2]),
        ("\"soon\"", [1, 2, 3]),
    ] {
        match asked(ttl).await {
            Ok(found) => assert_eq!(found, expected, "{ttl}"),
            Err(error) => assert!(ttl == "null" && error.contains("invalid"), "{ttl}: {error}"),
        }
    }
    for ttl in ["1e400", "[5]", "true"] {
        assert!(asked(ttl).await.is_err(), "{ttl}");
    }
}

/// A list takes no more room than a client has for one.
#[tokio::test]
async fn a_list_that_is_too_large_is_given_up() {
    let fake = Fake::new(|request| {
        let page = request["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<u32>().unwrap());
        assert!(page < 40, "a page that nobody should want");
        let mut prompt = json!({"name": page.to_string()});
        prompt["description"] = "x".repeat(4 << 20).into();
        Reply::Result(json!({"prompts": [prompt], "nextCursor": (page + 1).to_string()}))
    });
    let error = fake.client(builder()).list_prompts().await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::ListTooLong { .. }), "{error}");
}

/// Many tools, some of them twice: the list is given as it came, and calls still work.
#[tokio::test]
async fn very_many_tools_and_two_of_one_name() {
    let fake = Fake::http(|request| match request["method"].as_str().unwrap() {
        "tools/list" => {
            let header = |n: usize| {
                let region = json!({"type": "string", "x-mcp-header": "Region"});
                json!({"name": format!("t{n}"), "inputSchema": {"type": "object", "properties": {"region": region}}})
            };
            let mut tools: Vec<Value> = (0..20_000).map(header).collect();
            tools.push(tool("t7"));
            Reply::Result(json!({"tools": tools}))
        }
        _ => done("ok"),
    });
    let client = fake.client(builder());
    assert_eq!(client.list_tools().await.unwrap().len(), 20_001);
    for name in ["t8", "t19999", "t7", "nobody"] {
        client.call_tool(name, json!({"region": "eu"})).await.unwrap();
    }
    let headers = fake.headers();
    // Nearer to the front than any bound.
    assert_eq!(headers[1], [("Mcp-Param-Region".to_owned(), "eu".to_owned())]);
    // Beyond it nothing is known, so nothing is repeated: the server says so if it minds.
    assert_eq!(headers[2], []);
}

/// > implementations **SHOULD** always enforce a maximum timeout
#[tokio::test(start_paused = true)]
async fn a_list_that_is_read_again_for_a_call_has_the_time_of_one_request() {
    let fake = Fake::http(|request| match request["method"].as_str().unwrap() {
        "tools/list" => {
            let page =
                request["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<u32>().unwrap());
            let next = json!({"tools": [tool("t")], "nextCursor": (page + 1).to_string()});
            let pause = Duration::from_secs(59);
            let silence = vec![(pause, "notifications/nothing", json!({}))];
            Reply::Telling(silence, Box::new(Reply::Result(next)))
        }
        _ => Reply::Error(-32020, json!(null)),
    });
    let begun = Instant::now();
    let error = fake.client(builder()).call_tool("t", json!({})).await.unwrap_err();
    assert_eq!(error.server_error().unwrap().code.0, -32020);
    assert!(begun.elapsed() <= Duration::from_secs(61), "{:?}", begun.elapsed());
}

/// Names of headers that a schema may choose stay behind their prefix, and values are encoded: nothing is smuggled.
#[tokio::test]
async fn a_schema_cannot_choose_just_any_header() {
    let annotated = |name: &str, header: &str| {
        let value = json!({"type": "string", "x-mcp-header": header});
        json!({"name": name, "inputSchema": {"type": "object", "properties": {"v": value}}})
    };
    let hostile = ["a: b", "a\r\nAuthorization: x", "", " a", "é", "a\u{0}", "a\tb", "x".repeat(9).as_str()]
        .map(str::to_owned);
    let tools: Vec<Value> = hostile
        .iter()
        .enumerate()
        .map(|(n, header)| annotated(&format!("h{n}"), header))
        .chain([annotated("auth", "Authorization"), annotated("host", "Host"), annotated("dots", "..")])
        .collect();
    let fake = Fake::http(move |request| match request["method"].as_str().unwrap() {
        "tools/list" => Reply::Result(json!({ "tools": tools })),
        _ => done("ok"),
    });
    let client = fake.client(builder());
    let names: Vec<String> = client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["h7", "auth", "host", "dots"]);
    let smuggled = "a\r\nAuthorization: Bearer x\r\n\r\nGET / HTTP/1.1";
    for name in ["auth", "host", "dots"] {
        client.call_tool(name, json!({ "v": smuggled })).await.unwrap();
    }
    let sent: Vec<_> = fake.headers().into_iter().flatten().collect();
    let named: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(named, ["Mcp-Param-Authorization", "Mcp-Param-Host", "Mcp-Param-.."]);
    for (_, value) in &sent {
        assert!(value.starts_with("=?base64?") && value.ends_with("?="), "{value}");
        assert_eq!(antiphon_wire::header::decode(value).unwrap(), smuggled);
    }
}

/// An output schema that would cost too much is rejected, and the result of its tool is not checked.
#[tokio::test]
async fn an_output_schema_that_explodes_is_not_used() {
    let mut doubling = serde_json::Map::new();
    for n in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        doubling.insert(format!("d{n}"), json!({"allOf": [next, next]}));
    }
    doubling.insert("d60".into(), json!({"type": "string"}));
    let bomb = json!({"$ref": "#/$defs/d0", "$defs": doubling});
    let dialect = json!({"$schema": "https://example.com/mine", "type": "object"});
    let outside = json!({"$ref": "http://127.0.0.1:9/schema.json"});
    for schema in [bomb, dialect, outside] {
        let listed = schema.clone();
        let fake = Fake::new(move |request| match request["method"].as_str().unwrap() {
            "tools/list" => {
                let mut tool = tool("t");
                tool["outputSchema"] = listed.clone();
                Reply::Result(json!({ "tools": [tool] }))
            }
            _ => Reply::Result(json!({"content": [], "structuredContent": "x"})),
        });
        let client = fake.client(builder());
        client.list_tools().await.unwrap();
        let begun = std::time::Instant::now();
        client.call_tool("t", json!({})).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(fake.methods(), ["tools/list", "tools/call"], "{schema}");
    }
}

/// > clients **SHOULD** also accept `-32002` as a resource not found error
#[tokio::test]
async fn a_resource_that_does_not_exist_is_known_by_either_code() {
    for (code, data, missing) in [
        (-32602, json!({"uri": "a:b"}), true),
        (-32602, json!({"uri": "a:c"}), false),
        (-32602, json!(null), false),
        (-32602, json!({"uri": 5}), false),
        (-32002, json!(null), true),
        (-32603, json!({"uri": "a:b"}), false),
    ] {
        let said = data.clone();
        let client = Fake::new(move |_| Reply::Error(code, said.clone())).client(builder());
        let error = client.read_resource("a:b").await.unwrap_err();
        assert_eq!(error.is_resource_not_found(), missing, "{code} {data}");
        assert!(!client.call_tool("a:b", json!({})).await.unwrap_err().is_resource_not_found());
    }
}

/// A stream of a subscription: these notifications, each after a pause, `$` standing for the id of the request.
fn listening(client: &Client) -> antiphon::client::Subscription {
    client
        .listen(SubscriptionFilter::new().tools().resource("file:///a"))
        .reconnect(ReconnectPolicy::default().attempts(0))
}

fn about(id: &Value, more: Value) -> Value {
    let mut params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

const NOW: Duration = Duration::ZERO;
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const UPDATED: &str = "notifications/resources/updated";

/// > The client **SHOULD** check the acknowledged filter against what it requested
#[tokio::test(start_paused = true)]
async fn a_subscription_receives_nothing_beyond_its_filter_whatever_the_server_sends() {
    let fake = Fake::new(|request| {
        let id = request["id"].clone();
        let more = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["file:///a", "file:///etc"], "taskIds": ["x"]
        });
        let mut told = vec![
            (NOW, TOOLS, about(&id, json!({}))),
            (NOW, ACKNOWLEDGED, about(&json!("another"), json!({"notifications": {}}))),
            (NOW, ACKNOWLEDGED, about(&id, json!({ "notifications": more }))),
            (NOW, ACKNOWLEDGED, about(&id, json!({"notifications": {}}))),
            (NOW, PROMPTS, about(&id, json!({}))),
            (NOW, UPDATED, about(&id, json!({"uri": "file:///etc"}))),
            (NOW, TOOLS, about(&json!(999), json!({}))),
            (NOW, TOOLS, about(&json!(id.to_string()), json!({}))),
            (NOW, TOOLS, json!({"_meta": "x"})),
            (NOW, "notifications/progress", json!({"progressToken": "?", "progress": 1})),
            (NOW, "notifications/message", json!({"level": "error", "data": "x"})),
            (NOW, "notifications/cancelled", json!({"requestId": "nobody"})),
        ];
        told.extend(
            (0..20_000).map(|n| (NOW, UPDATED, about(&id, json!({"uri": format!("file:///a/{n}")})))),
        );
        told.push((NOW, TOOLS, about(&id, json!({}))));
        let end = json!({"resultType": "complete"});
        Reply::Telling(told, Box::new(Reply::Result(end)))
    });
    let heard_logs = Arc::new(AtomicUsize::new(0));
    let logs = Arc::clone(&heard_logs);
    let client = fake.client(builder().log_level(LogLevel::Debug).on_log(move |_| {
        logs.fetch_add(1, Ordering::SeqCst);
    }));
    let mut subscription = listening(&client);
    let (mut acknowledged, mut tools, mut updates) = (0, 0, 0);
    while let Some(event) = subscription.next().await {
        match event.unwrap() {
            SubscriptionEvent::Acknowledged(_) => acknowledged += 1,
            SubscriptionEvent::ToolsListChanged => tools += 1,
            SubscriptionEvent::ResourceUpdated { uri } => {
                assert!(uri.starts_with("file:///a"), "{uri}");
                updates += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((acknowledged, tools), (1, 1));
    assert!((1..=20_000).contains(&updates));
    assert_eq!(heard_logs.load(Ordering::SeqCst), 0);
}

/// A server that never acknowledges is given up, even if it talks all the time.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_never_acknowledged_ends() {
    let chatter = |request: &Value| {
        let told = (0..1000).map(|_| (Duration::from_secs(1), TOOLS, about(&request["id"], json!({}))));
        Reply::Telling(told.collect(), Box::new(Reply::Hang))
    };
    for fake in [Fake::new(|_| Reply::Hang), Fake::new(chatter)] {
        let client = fake.client(builder());
        let begun = Instant::now();
        let error = listening(&client).next().await.unwrap().unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert_eq!(begun.elapsed().as_secs(), 60);
    }
}

/// > Clients **MUST NOT** serve a cached response for a request whose method or parameters differ
#[tokio::test]
async fn what_one_cursor_brought_is_not_given_for_another() {
    let fake = Fake::new(|request| {
        let cursor = request["params"].get("cursor").cloned();
        // The empty cursor and none are two requests.
        Reply::Result(match cursor.as_ref().and_then(Value::as_str) {
            None => json!({"tools": [tool("first")], "nextCursor": "", "ttlMs": 60_000}),
            Some("") => json!({"tools": [tool("second")], "nextCursor": "null", "ttlMs": 60_000}),
            Some("null") => json!({"tools": [tool("third")], "nextCursor": null, "ttlMs": 60_000}),
            Some(other) => panic!("{other}"),
        })
    });
    let client = fake.client(builder());
    for _ in 0..2 {
        let names: Vec<_> = client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["first", "second", "third"]);
    }
    assert_eq!(fake.requests().len(), 3);
}
