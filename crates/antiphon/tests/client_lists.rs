//! Requests that ask nothing: discovery and lists.

mod client_support;

use antiphon::{client::ClientError, wire::ProtocolVersion};
use client_support::*;
use serde_json::{Value, json};

/// Lists the tools against the script: their names, and the cursors that were sent.
async fn check(pages: Vec<Reply>, cursors: Value, expected: Result<&[&str], &str>) {
    let fake = Fake::script(pages);
    let tools = fake.client(builder()).list_tools().await;
    let sent: Vec<Value> =
        fake.requests().iter().map(|request| request["params"]["cursor"].clone()).collect();
    assert_eq!(Value::Array(sent), cursors);
    match (tools, expected) {
        (Ok(tools), Ok(names)) => assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), names),
        (Err(error), Err(text)) => {
            let text = format!("tools/list at fake:server: {text}");
            assert!(error.to_string().starts_with(&text), "{error}");
        }
        (result, _) => panic!("{result:?}"),
    }
}

fn page(name: &str, next: Option<&str>) -> Reply {
    let mut page =
        json!({"resultType": "complete", "tools": [{"name": name, "inputSchema": {"type": "object"}}]});
    if let Some(next) = next {
        page["nextCursor"] = next.into();
    }
    Reply::Result(page)
}

#[tokio::test]
async fn pages_are_followed_to_their_end() {
    check(vec![page("a", None)], json!([null]), Ok(&["a"])).await;
    // An empty cursor is a cursor.
    check(
        vec![page("a", Some("")), page("b", Some("2")), page("c", None)],
        json!([null, "", "2"]),
        Ok(&["a", "b", "c"]),
    )
    .await;
    let repeated = "the server's list leads back to a page it had shown already";
    check(
        vec![page("a", Some("1")), page("b", Some("2")), page("c", Some("1"))],
        json!([null, "1", "2"]),
        Err(repeated),
    )
    .await;
    check(vec![Reply::Error(-32601, json!(null))], json!([null]), Err("the server answered with an error"))
        .await;
    check(
        vec![Reply::Result(json!({"resultType": "input_required", "inputRequests": {"a": form()}}))],
        json!([null]),
        Err("the server's answer is invalid"),
    )
    .await;
    check(
        vec![Reply::Result(json!({"resultType": "other", "tools": []}))],
        json!([null]),
        Err("the server's answer is invalid"),
    )
    .await;
    check(vec![Reply::Broken], json!([null]), Err("no response came back")).await;
}

#[tokio::test]
async fn a_list_without_end_is_given_up() {
    let fake = Fake::new(|request| {
        let page = request["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<u32>().unwrap());
        Reply::Result(json!({"prompts": [], "nextCursor": (page + 1).to_string()}))
    });
    let error = fake.client(builder()).list_prompts().await.unwrap_err();
    assert!(error.to_string().ends_with("the server's list does not end after 1000 pages"), "{error}");
}

#[tokio::test]
async fn every_list_reads_its_own_result() {
    let fake = Fake::new(|request| {
        Reply::Result(match request["method"].as_str().unwrap() {
            "prompts/list" => json!({"prompts": [{"name": "p"}]}),
            "resources/list" => json!({"resources": [{"uri": "file:///r", "name": "r"}]}),
            "resources/templates/list" => {
                json!({"resourceTemplates": [{"uriTemplate": "file:///{x}", "name": "t"}]})
            }
            other => panic!("{other}"),
        })
    });
    let client = fake.client(builder());
    assert_eq!(client.list_prompts().await.unwrap()[0].name, "p");
    assert_eq!(client.list_resources().await.unwrap()[0].uri, "file:///r");
    assert_eq!(client.list_resource_templates().await.unwrap()[0].name, "t");
}

#[tokio::test]
async fn what_discovery_tells_is_remembered() {
    let result = |versions: Value| {
        Reply::Result(json!({
            "resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "db", "version": "3"}}
        }))
    };
    let fake = Fake::script([result(json!(["2025-11-25", "2026-07-28"])), result(json!(["2025-11-25"]))]);
    let client = fake.client(builder().protocol_version(ProtocolVersion::new("2030-01-01")));
    assert!(client.server_info().is_none() && client.capabilities().is_none());
    assert_eq!(client.server().to_string(), "fake:server");
    client.discover().await.unwrap();
    assert_eq!(client.server_info().unwrap().name, "db");
    assert_eq!(client.server().to_string(), "db (fake:server)");
    assert!(client.capabilities().unwrap().has("tools"));
    assert_eq!(client.protocol_version().as_str(), "2026-07-28");
    let error: ClientError = client.discover().await.unwrap_err();
    let text = "server/discover at db (fake:server): no common protocol version: this client speaks 2026-07-28, the server 2025-11-25";
    assert_eq!(error.to_string(), text);
}
