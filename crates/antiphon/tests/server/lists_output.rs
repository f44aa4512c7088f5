//! A tool's output schema and its headers are enforced.

use crate::common::{
    Over,
    post::{correct, post},
    request, send,
};
use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::{Ctx, Json, NoArguments, Server, Tool},
    wire::CallToolResult,
};
use http::HeaderValue;
use serde_json::{Map, Value, json};

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Weather {
    /// The temperature in degrees Celsius.
    temperature: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wind: Option<u32>,
}

async fn call(tool: Tool, over: Over) -> Value {
    let server = Server::builder("output", "1").tool(tool).build().expect("a server");
    send(over, &server, &request(1, "tools/call", json!({"name": "t"})), None).await.1["result"].take()
}

fn structured(content: Option<Value>, failed: Option<bool>) -> CallToolResult {
    let mut result = CallToolResult::text("text");
    (result.structured_content, result.is_error) = (content, failed);
    result
}

/// > Servers **MUST** provide structured results that conform to this schema.
#[tokio::test]
async fn a_result_fits_its_output_schema() {
    let object = || json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let numbers = || json!({"type": "array", "items": {"type": "integer"}});
    let draft_7 = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
        "items": [{"type": "string"}, {"type": "integer"}]
    });
    for (what, schema, content, failed, fits) in [
        ("an object", object(), Some(json!({"n": 1})), None, true),
        ("not failed", object(), Some(json!({"n": 1})), Some(false), true),
        ("more members", object(), Some(json!({"n": 1, "m": 2})), None, true),
        ("another type", object(), Some(json!({"n": "hunter2"})), None, false),
        ("a member missing", object(), Some(json!({})), None, false),
        ("nothing", object(), None, None, false),
        ("nothing, not failed", object(), None, Some(false), false),
        ("null for an object", object(), Some(Value::Null), None, false),
        // A failed tool has no result to check.
        ("failed with nothing", object(), None, Some(true), true),
        ("failed with another type", object(), Some(json!({"n": "x"})), Some(true), true),
        // > This can be any JSON value
        ("a list", numbers(), Some(json!([1, 2])), None, true),
        ("a list of text", numbers(), Some(json!(["a"])), None, false),
        ("text", json!({"type": "string"}), Some(json!("a")), None, true),
        ("null", json!({"type": "null"}), Some(Value::Null), None, true),
        ("no null", json!({"type": "null"}), None, None, false),
        ("anything", json!({}), Some(json!(7)), None, true),
        ("nothing for anything", json!({}), None, None, false),
        ("its own dialect", draft_7.clone(), Some(json!(["a", 1])), None, true),
        ("not its own dialect", draft_7, Some(json!([1, "a"])), None, false),
    ] {
        let result = structured(content.clone(), failed);
        let make = || {
            let result = result.clone();
            let run = move |_: &Ctx, _: NoArguments| {
                let result = result.clone();
                async move { result }
            };
            Tool::new("t", run).output_schema(&schema)
        };
        for over in [Over::Http, Over::Stdio] {
            let got = call(make(), over).await;
            if fits {
                assert_eq!(got["content"][0]["text"], "text", "{what}: {got}");
                assert_eq!(got.get("structuredContent"), content.as_ref(), "{what}");
                assert_eq!(got["isError"] == true, failed == Some(true), "{what}");
            } else {
                let text = "The tool t failed; the reason is in the server's log";
                assert_eq!(
                    (&got["isError"], &got["content"][0]["text"]),
                    (&json!(true), &json!(text)),
                    "{what}"
                );
                assert!(
                    got.get("structuredContent").is_none() && !got.to_string().contains("hunter2"),
                    "{got}"
                );
                assert_eq!(got["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "output");
            }
        }
    }
    // Without a schema nothing is checked.
    let free = Tool::new("t", async |_: &Ctx, _: NoArguments| structured(Some(json!({"n": "x"})), None));
    assert_eq!(call(free, Over::Http).await["structuredContent"], json!({"n": "x"}));
}

#[tokio::test]
async fn an_output_schema_comes_from_a_type() {
    let tool = || {
        Tool::new("t", async |_: &Ctx, _: NoArguments| Json(Weather { temperature: 22.5, wind: None }))
            .returns::<Weather>()
    };
    let got = call(tool(), Over::Http).await;
    assert_eq!(got["structuredContent"], json!({"temperature": 22.5}), "{got}");
    assert_eq!(got["content"][0]["text"], "{\"temperature\":22.5}");
    let server = Server::builder("output", "1").tool(tool()).build().unwrap();
    let (_, listed) = send(Over::Http, &server, &request(1, "tools/list", json!({})), None).await;
    let schema = &listed["result"]["tools"][0]["outputSchema"];
    assert_eq!((&schema["type"], schema.get("title")), (&json!("object"), None), "{schema}");
    assert_eq!(schema["properties"]["temperature"]["description"], "The temperature in degrees Celsius.");
    // What is left out where it is absent need not be there.
    assert_eq!(schema["required"], json!(["temperature"]));
    // Another type than was said.
    let wrong = Tool::new("t", async |_: &Ctx, _: NoArguments| Json(7)).returns::<Weather>();
    assert_eq!(call(wrong, Over::Http).await["isError"], true);
    let list = Tool::new("t", async |_: &Ctx, _: NoArguments| Json(vec![1, 2])).returns::<Vec<u8>>();
    assert_eq!(call(list, Over::Http).await["structuredContent"], json!([1, 2]));
    let any = Tool::new("t", async |_: &Ctx, _: NoArguments| Json(json!(null))).returns::<Value>();
    assert_eq!(call(any, Over::Http).await.get("structuredContent"), Some(&Value::Null));
}

/// A type can say it as well.
#[tokio::test]
async fn a_type_names_its_headers() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Query {
        #[serde(default)]
        #[schemars(extend("x-mcp-header" = "Region"))]
        region: String,
    }
    let tool = Tool::new("t", async |_: &Ctx, query: Query| query.region);
    let service = Server::builder("headers", "1").tool(tool).build().unwrap();
    let service = HttpService::new(service, HttpOptions::default());
    for (arguments, header, code) in [
        (json!({"region": "a"}), Some("a"), (200, 0)),
        (json!({"region": "a"}), None, (400, -32020)),
        (json!({}), None, (200, 0)),
    ] {
        let mut call = correct(&request(1, "tools/call", json!({"name": "t", "arguments": arguments})));
        header.map(|value| call.headers_mut().insert("mcp-param-region", value.parse().unwrap()));
        post(&service, call).await.check("region", code);
    }
}

fn with_headers() -> Server {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
            "inner": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
            "plain": {"type": "string"}
        }
    });
    let echo = async |_: &Ctx, given: Map<String, Value>| Value::Object(given).to_string();
    Server::builder("headers", "1")
        .tool(Tool::with_schema("t", schema, echo))
        .tool(Tool::new("other", async |_: &Ctx, _: Map<String, Value>| "other"))
        .list_changed(true)
        .build()
        .expect("a server")
}

/// > Servers **MUST** reject requests with a `400 Bad Request` HTTP status and JSON-RPC error code `-32020`
/// > (`HeaderMismatch`) if any validation fails.
#[tokio::test]
async fn arguments_in_headers_are_those_of_the_body() {
    let region = json!({"region": "us-west1"});
    for (what, arguments, headers, fits) in [
        ("the same", region.clone(), &[("mcp-param-region", "us-west1")][..], true),
        ("in any case", region.clone(), &[("MCP-PARAM-REGION", "us-west1")], true),
        ("another value", region.clone(), &[("mcp-param-region", "us-east1")], false),
        ("in another case", region.clone(), &[("mcp-param-region", "US-WEST1")], false),
        ("missing", region.clone(), &[], false),
        (
            "twice",
            region.clone(),
            &[("mcp-param-region", "us-west1"), ("mcp-param-region", "us-west1")],
            false,
        ),
        ("null", json!({"region": null}), &[], true),
        ("null with a header", json!({"region": null}), &[("mcp-param-region", "null")], false),
        ("absent", json!({}), &[], true),
        ("absent with a header", json!({}), &[("mcp-param-region", "us-west1")], false),
        ("absent with an empty header", json!({}), &[("mcp-param-region", "")], false),
        ("no arguments", Value::Null, &[], true),
        ("no arguments with a header", Value::Null, &[("mcp-param-region", "us-west1")], false),
        ("base64", json!({"region": "世界"}), &[("mcp-param-region", "=?base64?5LiW55WM?=")], true),
        ("bad base64", json!({"region": "世界"}), &[("mcp-param-region", "=?base64?5LiW!!WM?=")], false),
        ("not ASCII", json!({"region": "é"}), &[("mcp-param-region", "é")], false),
        ("a number", json!({"count": 42}), &[("mcp-param-count", "42")], true),
        ("a number of the same value", json!({"count": 42}), &[("mcp-param-count", "42.0")], true),
        ("another number", json!({"count": 42}), &[("mcp-param-count", "43")], false),
        ("yes", json!({"dry": true}), &[("mcp-param-dry-run", "true")], true),
        ("no for yes", json!({"dry": true}), &[("mcp-param-dry-run", "false")], false),
        ("inside", json!({"inner": {"zone": "a"}}), &[("mcp-param-zone", "a")], true),
        ("inside and missing", json!({"inner": {"zone": "a"}}), &[], false),
        ("one of two", json!({"region": "a", "count": 1}), &[("mcp-param-region", "a")], false),
        // > Intermediate servers that do not recognize an `Mcp-Param-{Name}` header **MUST** [...] ignore it
        ("an unknown one", region.clone(), &[("mcp-param-region", "us-west1"), ("mcp-param-x", "y")], true),
        ("not in a header", json!({"plain": "x"}), &[], true),
        ("not in a header, but there", json!({"plain": "x"}), &[("mcp-param-plain", "y")], true),
    ] {
        let params = json!({"name": "t", "arguments": arguments});
        let mut request = correct(&request(1, "tools/call", params));
        for (header, value) in headers {
            let name = http::HeaderName::from_bytes(header.as_bytes()).unwrap();
            request.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let got = post(&HttpService::new(with_headers(), HttpOptions::default()), request).await;
        got.check(what, if fits { (200, 0) } else { (400, -32020) });
        if !fits {
            let message = got.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.to_lowercase().contains("mcp-param-"), "{what}: {message}");
            assert_eq!(message.matches("Header mismatch: ").count(), 1, "{message}");
        }
    }
}

/// The headers are those of the tool that is called, as it is offered now.
#[tokio::test]
async fn headers_belong_to_one_tool_at_one_time() {
    let server = with_headers();
    let service = HttpService::new(server.clone(), HttpOptions::default());
    let call =
        |name: &str| correct(&request(1, "tools/call", json!({"name": name, "arguments": {"region": "a"}})));
    post(&service, call("t")).await.check("declared", (400, -32020));
    post(&service, call("other")).await.check("another tool", (200, 0));
    post(&service, call("no")).await.check("no tool", (400, -32602));
    assert!(server.remove_tool("t"));
    server.add_tool(Tool::new("t", async |_: &Ctx, _: Map<String, Value>| "new")).unwrap();
    post(&service, call("t")).await.check("no longer declared", (200, 0));
    // On other transports there are no headers.
    let message = request(1, "tools/call", json!({"name": "t", "arguments": {"region": "a"}}));
    let (_, reply) = send(Over::Stdio, &with_headers(), &message, None).await;
    assert_eq!(reply["result"]["content"][0]["text"], "{\"region\":\"a\"}");
}

/// An argument that may be left out is told without `null`, and `null` is taken for it all the same.
#[tokio::test]
async fn an_optional_argument_may_be_in_a_header() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct PlaceArguments {
        #[schemars(extend("x-mcp-header" = "Region"))]
        region: Option<String>,
    }
    let place = async |_: &Ctx, place: PlaceArguments| place.region.unwrap_or_else(|| "anywhere".to_owned());
    let server = Server::builder("headers", "1").tool(Tool::new("t", place)).build().expect("a server");
    let (_, list) = send(Over::Stdio, &server, &request(1, "tools/list", json!({})), None).await;
    assert_eq!(list["result"]["tools"][0]["inputSchema"]["properties"]["region"]["type"], "string");
    for (arguments, header, told) in [
        (json!({"region": "eu"}), Some("eu"), "eu"),
        (json!({"region": null}), None, "anywhere"),
        (json!({}), None, "anywhere"),
    ] {
        let mut request = correct(&request(1, "tools/call", json!({"name": "t", "arguments": arguments})));
        if let Some(header) = header {
            request.headers_mut().insert("mcp-param-region", HeaderValue::from_static(header));
        }
        let got = post(&HttpService::new(server.clone(), HttpOptions::default()), request).await;
        got.check(told, (200, 0));
        assert_eq!(got.json()["result"]["content"][0]["text"], told);
    }
}
