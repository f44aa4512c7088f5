//! Tools on the client, from their list: headers, output schemas, and the schemas as they were written.

use crate::{client_support::*, log::take_log};
use antiphon::{
    client::{Call, ClientBuilder, ClientErrorKind, calls::RequestFault},
    wire::CallToolResult,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// A list with these tools.
fn list(tools: &[Value]) -> Reply {
    Reply::Result(json!({"resultType": "complete", "tools": tools}))
}

/// A tool whose `region` is repeated in this header.
fn routed(header: &str) -> Value {
    json!({"name": "route", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": header},
        "inner": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        "other": {"type": "string"}
    }}})
}

fn mismatch() -> Reply {
    Reply::Error(-32020, json!(null))
}

fn header(name: &str, value: &str) -> (String, String) {
    (format!("Mcp-Param-{name}"), value.to_owned())
}

/// Lists if `listed`, calls `route`: what was sent, with which headers.
async fn check(
    fake: Arc<Fake>,
    listed: bool,
    arguments: Value,
    sent: &[SentRequest],
    expected: Result<(), i64>,
) {
    let client = fake.client(builder());
    if listed {
        client.list_tools().await.unwrap();
    }
    let result = client.call_tool("route", &arguments).await;
    assert_eq!(
        result.map(drop).map_err(|error| error.server_error().unwrap().code.0),
        expected,
        "{arguments}"
    );
    let found: Vec<_> = fake.methods().into_iter().zip(fake.headers()).collect();
    let sent: Vec<_> = sent
        .iter()
        .map(|(method, headers)| {
            let headers = headers.iter().map(|(name, value)| header(name, value));
            ((*method).to_owned(), headers.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(found, sent, "{arguments}");
}

/// The method of a request, and what it repeats in which headers.
type SentRequest = (&'static str, &'static [(&'static str, &'static str)]);

const LIST: SentRequest = ("tools/list", &[]);

fn with(headers: &'static [(&'static str, &'static str)]) -> SentRequest {
    ("tools/call", headers)
}

#[tokio::test]
async fn arguments_are_repeated_in_headers() {
    let script = || [list(&[routed("Region")]), done("ok")];
    check(
        Fake::http_script(script()),
        true,
        json!({"region": "eu", "other": "x", "inner": {"n": 42.0}}),
        &[LIST, with(&[("Region", "eu"), ("N", "42")])],
        Ok(()),
    )
    .await;
    check(
        Fake::http_script(script()),
        true,
        json!({"region": "Zürich ", "inner": {"n": null}}),
        &[LIST, with(&[("Region", "=?base64?WsO8cmljaCA=?=")])],
        Ok(()),
    )
    .await;
    check(Fake::http_script(script()), true, json!(null), &[LIST, with(&[])], Ok(())).await;
    // Other transports have no headers.
    let call = json!({"region": "eu"});
    check(Fake::script(script()), true, call.clone(), &[LIST, with(&[])], Ok(())).await;
    // A tool that was not listed is called as it is.
    check(Fake::http_script([done("ok")]), false, call, &[with(&[])], Ok(())).await;
}

#[tokio::test]
async fn a_mismatch_lists_again_and_retries_once() {
    let call = || json!({"region": "eu"});
    check(
        Fake::http_script([mismatch(), list(&[routed("Region")]), done("ok")]),
        false,
        call(),
        &[with(&[]), LIST, with(&[("Region", "eu")])],
        Ok(()),
    )
    .await;
    // The list is asked for although it could be kept.
    let mut kept = json!({"resultType": "complete", "tools": [routed("Old")], "ttlMs": 60_000});
    kept["cacheScope"] = "public".into();
    check(
        Fake::http_script([Reply::Result(kept), mismatch(), list(&[routed("Region")]), done("ok")]),
        true,
        call(),
        &[LIST, with(&[("Old", "eu")]), LIST, with(&[("Region", "eu")])],
        Ok(()),
    )
    .await;
    check(
        Fake::http_script([mismatch(), list(&[routed("Region")]), mismatch()]),
        false,
        call(),
        &[with(&[]), LIST, with(&[("Region", "eu")])],
        Err(-32020),
    )
    .await;
    // The tool is gone, or cannot be called: nothing to retry with.
    for gone in [list(&[]), list(&[routed("no token")]), Reply::Error(-32601, json!(null)), Reply::Broken] {
        let fake = Fake::http_script([mismatch(), gone]);
        check(fake, false, call(), &[with(&[]), LIST], Err(-32020)).await;
    }
    // Where no header is sent, a list would not help.
    check(Fake::script([mismatch()]), false, call(), &[with(&[])], Err(-32020)).await;
}

#[tokio::test]
async fn the_retry_carries_answers_and_state() {
    let fake = Fake::http_script([
        list(&[routed("Old")]),
        asking(json!({"where": form()}), Some("s1")),
        mismatch(),
        list(&[routed("Region")]),
        done("ok"),
    ]);
    let client = fake.client(builder().on_elicit_form(async |ask| Ok(ask.accept(json!({"region": "x"}))?)));
    client.list_tools().await.unwrap();
    client.call_tool("route", json!({"region": "eu"})).await.unwrap();
    let requests = fake.requests();
    assert_eq!(fake.methods(), ["tools/list", "tools/call", "tools/call", "tools/list", "tools/call"]);
    // > The JSON-RPC `id` **MUST** be different between the initial request and the retry
    assert_ne!(requests[2]["id"], requests[4]["id"]);
    let params = |n: usize| {
        let mut params = requests[n]["params"].clone();
        params.as_object_mut().unwrap().remove("_meta");
        params
    };
    assert_eq!(params(2), params(4));
    assert_eq!(params(4)["requestState"], "s1");
    assert_eq!(
        (&fake.headers()[2], &fake.headers()[4]),
        (&vec![header("Old", "eu")], &vec![header("Region", "eu")])
    );
}

#[tokio::test]
async fn tools_with_impossible_headers_are_left_out_where_headers_are_sent() {
    let mut nested = routed("Ok");
    nested["inputSchema"]["properties"]["other"] =
        json!({"type": "array", "items": {"type": "string", "x-mcp-header": "X"}});
    let mut number = routed("Ok");
    number["inputSchema"]["properties"]["region"]["type"] = "number".into();
    let tools =
        [routed("n"), nested, routed("no token"), json!({"name": "plain", "inputSchema": {}}), number];
    let names = async |fake: Arc<Fake>| {
        let tools = fake.client(builder()).list_tools().await.unwrap();
        tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(names(Fake::http_script([list(&tools)])).await, ["plain"]);
    let all = ["route", "route", "route", "plain", "route"];
    assert_eq!(names(Fake::script([list(&tools)])).await, all);
}

#[tokio::test]
async fn schemas_stay_the_text_that_was_written() {
    let schema = r##"{ "z": 1e2, "$ref":"https://schemas.example/x.json", "a":1.50,"type" : "object",
        "$defs": {"b": {"$ref": "#/$defs/a"}, "a": {"big": 9007199254740993.10, "é": "\u00e9\/"}}, "x-unknown": [ ] }"##;
    let listed = format!(
        r#"{{"resultType":"complete","tools":[{{"name":"t","inputSchema":{schema},"outputSchema":{schema}}}]}}"#
    );
    for fake in [Fake::script([Reply::Text(listed.clone())]), Fake::http_script([Reply::Text(listed)])] {
        let tools = fake.client(builder()).list_tools().await.unwrap();
        assert_eq!(tools[0].input_schema.text(), schema);
        assert_eq!(tools[0].output_schema.as_ref().unwrap().text(), schema);
        let written = serde_json::to_string(&tools[0]).unwrap();
        assert!(written.contains(schema), "{written}");
    }
}

/// A tool with an output schema.
fn typed(schema: Value) -> Value {
    json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema})
}

/// A result with this structured content, if any.
fn structured(content: Option<Value>) -> Reply {
    let mut result = json!({"resultType": "complete", "content": [{"type": "text", "text": "said"}]});
    if let Some(content) = content {
        result["structuredContent"] = content;
    }
    Reply::Result(result)
}

/// Lists, then calls against these replies: what the call came to, and how many requests it took.
async fn output(
    client: ClientBuilder,
    schema: Value,
    replies: Vec<Reply>,
    expected: Result<(), &str>,
    requests: usize,
) -> Option<ClientErrorKind> {
    let fake = Fake::script([list(&[typed(schema.clone())])].into_iter().chain(replies));
    let client = fake.client(client);
    client.list_tools().await.unwrap();
    let result = client.call_tool("t", ()).await;
    assert_eq!(fake.requests().len(), requests + 1, "{schema}: {result:?}");
    match (result, expected) {
        (Ok(_), Ok(())) => None,
        (Err(error), Err(text)) => {
            assert!(chain(&error).contains(text), "{text:?} is not in {}", chain(&error));
            Some(error.into_kind())
        }
        (result, _) => panic!("{schema}: {result:?}"),
    }
}

fn number_in_n() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]})
}

#[tokio::test]
async fn results_are_compared_with_the_output_schema() {
    let fits = || structured(Some(json!({"n": 1.5})));
    let again = || list(&[typed(number_in_n())]);
    output(builder(), number_in_n(), vec![fits()], Ok(()), 1).await;
    // Null is a value.
    output(builder(), json!({"type": "null"}), vec![structured(Some(json!(null)))], Ok(()), 1).await;
    // The schema could have changed, so it is asked for again before the server is blamed.
    let wrong = "the result of `t` does not fit the tool's output schema";
    let kind =
        output(builder(), number_in_n(), vec![structured(Some(json!({"n": "x"}))), again()], Err(wrong), 2)
            .await;
    let Some(ClientErrorKind::Request(RequestFault::OutputSchema { tool, result, faults })) = kind else {
        panic!("{kind:?}")
    };
    assert_eq!((&*tool, result.first_text()), ("t", Some("said")));
    assert!(faults.contains('n'), "{faults}");
    // > Servers **MUST** provide structured results that conform to this schema.
    output(builder(), number_in_n(), vec![structured(None), again()], Err("it has no structuredContent"), 2)
        .await;
    for nobody_knows in [Reply::Broken, list(&[])] {
        output(builder(), number_in_n(), vec![structured(None), nobody_knows], Err(wrong), 2).await;
    }
    // What failed says so, and has no structure to compare.
    let failed = Reply::Result(serde_json::to_value(CallToolResult::error("no")).unwrap());
    output(builder(), number_in_n(), vec![failed], Ok(()), 1).await;
    output(builder().check_results(false), number_in_n(), vec![structured(None)], Ok(()), 1).await;
}

#[tokio::test]
async fn a_schema_that_changed_is_the_one_that_counts() {
    let text = || structured(Some(json!("text")));
    for (now, expected) in [
        (typed(json!({"type": "string"})), Ok(())),
        (json!({"name": "t", "inputSchema": {}}), Ok(())),
        (typed(json!({"type": "boolean"})), Err("boolean")),
    ] {
        output(builder(), number_in_n(), vec![text(), list(&[now])], expected, 2).await;
    }
}

/// A server in PHP writes an object without members as an array.
#[tokio::test]
async fn an_empty_array_fits_where_an_empty_object_does() {
    for (schema, content, expected) in [
        (json!({"type": "object"}), json!([]), Ok(())),
        (json!({"type": "object", "properties": {"a": {}}}), json!([]), Ok(())),
        (json!({"type": "array"}), json!([]), Ok(())),
        (json!({"type": "object", "required": ["a"]}), json!([]), Err(())),
        (json!({"type": "object"}), json!([1]), Err(())),
        (json!({"type": "array", "minItems": 1}), json!([]), Err(())),
    ] {
        let fake = Fake::script([
            list(&[typed(schema.clone())]),
            structured(Some(content.clone())),
            list(&[typed(schema.clone())]),
        ]);
        let client = fake.client(builder());
        client.list_tools().await.unwrap();
        let called = client.call_tool("t", ()).await;
        assert_eq!(called.is_ok(), expected.is_ok(), "{schema} {content}: {called:?}");
    }
}

#[tokio::test]
async fn an_output_schema_that_cannot_be_used_blocks_no_call() {
    for schema in [
        json!({"properties": {"a": {"pattern": r"^(?!\.)[a-z.]+$"}}}),
        json!({"pattern": "(?<=a)b"}),
        json!({"pattern": r"a\Z"}),
        json!({"$ref": "https://schemas.example/x.json"}),
        json!({"$ref": "#/$defs/none"}),
        json!({"minimum": 1, "exclusiveMinimum": true}),
        json!({"required": null}),
        json!({"$schema": "https://schemas.example/dialect"}),
        json!({"type": 7}),
        json!([]),
    ] {
        take_log();
        let fake = Fake::script([list(&[typed(schema.clone())]), structured(None), done("ok")]);
        let client = fake.client(builder());
        client.list_tools().await.unwrap();
        for _ in 0..2 {
            client.call_tool("t", ()).await.unwrap();
        }
        assert_eq!(fake.requests().len(), 3, "{schema}");
        let log = take_log();
        assert_eq!(log.matches("an output schema cannot be used").count(), 1, "{schema}: {log}");
        output(builder().check_results(false), schema, vec![done("ok")], Ok(()), 1).await;
    }
    // > `$schema` field to specify a different dialect
    let draft7 = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "null"}]});
    output(builder(), draft7, vec![structured(Some(json!([null])))], Ok(()), 1).await;
}

#[tokio::test]
async fn only_complete_results_are_compared() {
    let fake = Fake::script([
        list(&[typed(number_in_n())]),
        asking(json!({"a": form()}), Some("s")),
        structured(Some(json!({"n": 1}))),
    ]);
    let client = fake.client(builder().on_elicit_form(async |ask| Ok(ask.decline())));
    client.list_tools().await.unwrap();
    let finished = client.call(Call::tool("t", ()).unwrap()).await.unwrap();
    assert_eq!(finished.into_tool().unwrap().structured_content, Some(json!({"n": 1})));
}
