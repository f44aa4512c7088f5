//! Requests that ask nothing: discovery and lists.

use crate::client_support::*;
use antiphon::{
    client::ClientError,
    wire::{
        ProtocolVersion,
        completion::{CompletionContext, CompletionReference},
    },
};
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
    // Unless the server means the end by it: its answer is the first page again.
    let again = vec![page("a", Some("1")), page("b", Some("")), page("a", Some("1"))];
    check(again, json!([null, "1", ""]), Ok(&["a", "b"])).await;
    check(vec![page("a", Some("")), page("a", Some(""))], json!([null, ""]), Ok(&["a"])).await;
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
async fn the_result_of_discovery_is_stored() {
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

#[tokio::test]
async fn a_refused_version_is_tried_once_more_even_if_it_is_the_same() {
    let refused = || Reply::Error(-32022, json!({"supported": ["2026-07-28"], "requested": "2026-07-28"}));
    let fake = Fake::script([refused(), done("ok"), refused(), refused()]);
    let client = fake.client(builder());
    assert_eq!(client.call_tool("t", ()).await.unwrap().first_text(), Some("ok"));
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert_eq!(
        chain(&error),
        "tools/call `t` at fake:server: no common protocol version: this client speaks 2026-07-28, the server 2026-07-28"
    );
    let ids: Vec<Value> = fake.requests().iter().map(|request| request["id"].clone()).collect();
    assert_eq!(ids, [1, 2, 3, 4]);
}

#[tokio::test]
async fn arguments_are_completed() {
    let fake = Fake::script([
        Reply::Result(
            json!({"resultType": "complete", "completion": {"values": ["python", "pytorch"], "total": 10, "hasMore": true}}),
        ),
        Reply::Result(json!({"completion": {"values": []}})),
        Reply::Error(-32601, json!(null)),
        Reply::Result(json!({"resultType": "input_required", "inputRequests": {"a": form()}})),
    ]);
    let client = fake.client(builder());
    let prompt = || CompletionReference::prompt("code_review");
    let found = client.complete(prompt(), "language", "py", None).await.unwrap();
    assert_eq!(
        (found.values.as_slice(), found.total, found.has_more),
        (["python", "pytorch"].map(str::to_owned).as_slice(), Some(10), Some(true))
    );
    let context = CompletionContext::new([("language".to_owned(), "python".to_owned())].into());
    let template = CompletionReference::resource("file:///{path}");
    assert!(client.complete(template, "path", "", Some(context)).await.unwrap().values.is_empty());
    let error = client.complete(prompt(), "language", "", None).await.unwrap_err();
    assert!(error.to_string().starts_with("completion/complete at fake:server: "), "{error}");
    client.complete(prompt(), "language", "", None).await.unwrap_err();
    let sent = |n: usize| {
        let mut params = fake.requests()[n]["params"].clone();
        params.as_object_mut().unwrap().remove("_meta");
        params
    };
    assert_eq!(
        sent(0),
        json!({"ref": {"type": "ref/prompt", "name": "code_review"}, "argument": {"name": "language", "value": "py"}})
    );
    assert_eq!(
        sent(1),
        json!({
            "ref": {"type": "ref/resource", "uri": "file:///{path}"},
            "argument": {"name": "path", "value": ""},
            "context": {"arguments": {"language": "python"}}
        })
    );
}
