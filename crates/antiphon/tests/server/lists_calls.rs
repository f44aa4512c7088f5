//! Calls: what becomes of arguments that do not fit, and of handlers that fail.

use crate::common::{Over, fixture, meta, request, send, with};
use antiphon::{
    Error,
    server::{Ctx, NoArguments, Prompt, Resource, ResourceTemplate, Server, Tool},
    wire::content::ResourceContents,
};
use serde_json::{Map, Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    #[schemars(length(min = 1, max = 5))]
    item: String,
    #[schemars(range(min = 1, max = 9))]
    count: u8,
    size: Option<Size>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greeting {
    name: String,
    tone: Option<String>,
}

/// A library's error text that clients must not see.
const SECRET: &str = "postgres://admin:hunter2@10.0.0.1";

fn leak() -> antiphon::Result<String> {
    Err(std::io::Error::other(SECRET))?
}

fn orders() -> Server {
    let order = async |_: &Ctx, order: Order| {
        format!("{} {} {:?} {:?}", order.count, order.item, order.size, order.tags)
    };
    let greet = async |_: &Ctx, greeting: Greeting| format!("{} {:?}", greeting.name, greeting.tone);
    let read = async |_: &Ctx, variables: Map<String, Value>| {
        ResourceContents::text("shop://", Value::Object(variables).to_string())
    };
    fixture(|builder| {
        builder
            .tool(Tool::new("order", order))
            .tool(Tool::new("none", async |_: &Ctx, _: NoArguments| "nothing taken"))
            .tool(Tool::new("any", async |_: &Ctx, given: Map<String, Value>| {
                Value::Object(given).to_string()
            }))
            .prompt(Prompt::new("greet", greet))
            .template(ResourceTemplate::new("shop://{shop}/{item}.txt", "items", read))
            .template(ResourceTemplate::new("file:///{+path}{?line,mark*}", "file", read))
            .template(ResourceTemplate::new("file:///{name}", "one", read))
            .template(ResourceTemplate::new("file:///{+page}.md", "page", read))
            .template(ResourceTemplate::new("file:///{last}", "last", read))
    })
    .server
}

/// The reply to one call, from the server `orders`.
async fn call(method: &str, params: Value) -> Value {
    send(Over::Stdio, &orders(), &request(1, method, params), None).await.1
}

#[tokio::test]
async fn arguments_of_a_tool_fit_or_are_named() {
    let good = json!({"item": "tea", "count": 2});
    for (arguments, is_error, words) in [
        (good.clone(), false, &["2 tea None []"][..]),
        (
            with(&good, json!({"size": "large", "tags": ["a", "b"]})),
            false,
            &["Some(Large)", "[\"a\", \"b\"]"],
        ),
        (with(&good, json!({"size": null, "unknown": 1})), false, &["2 tea None []"]),
        (with(&good, json!({"count": 2.0})), false, &["2"]),
        (with(&good, json!({"count": 2.5})), true, &["count: must be a whole number"]),
        (json!({"item": "tea"}), true, &["missing field `count`"]),
        (json!({}), true, &["missing field"]),
        (Value::Null, true, &["missing field"]),
        (with(&good, json!({"count": "2"})), true, &["count: must be a whole number"]),
        (with(&good, json!({"item": null})), true, &["item: must be a string"]),
        (with(&good, json!({"count": 0})), true, &["count: must be at least"]),
        (with(&good, json!({"count": 10})), true, &["count: must be at most"]),
        (with(&good, json!({"item": ""})), true, &["item: must have at least"]),
        (with(&good, json!({"item": "coffee"})), true, &["item: must have at most"]),
        (with(&good, json!({"size": "medium"})), true, &["size: "]),
        (with(&good, json!({"tags": ["a", 7]})), true, &["expected a string"]),
        (json!({"item": 7, "count": "x"}), true, &["must be"]),
    ] {
        let reply = call("tools/call", json!({"name": "order", "arguments": arguments})).await;
        let result = &reply["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"));
        assert_eq!(result["isError"] == true, is_error, "{arguments}: {text}");
        assert_eq!(text.starts_with("Invalid arguments for tool order: "), is_error, "{text}");
        for word in words {
            assert!(text.contains(word), "{arguments}: {text}");
        }
    }
}

#[tokio::test]
async fn a_tool_without_arguments_takes_none_in_any_form() {
    for (tool, params, text) in [
        ("none", json!({}), Some("nothing taken")),
        ("none", json!({"arguments": null}), Some("nothing taken")),
        ("none", json!({"arguments": {}}), Some("nothing taken")),
        ("none", json!({"arguments": {"x": 1}}), None),
        ("any", json!({}), Some("{}")),
        ("any", json!({"arguments": null}), Some("{}")),
        ("any", json!({"arguments": {"x": 1}}), Some("{\"x\":1}")),
    ] {
        let reply = call("tools/call", with(&params, json!({"name": tool}))).await;
        let result = &reply["result"];
        match text {
            Some(text) => assert_eq!(result["content"][0]["text"], text, "{tool} {params}"),
            None => assert_eq!(result["isError"], true, "{tool} {params}"),
        }
    }
    // No object at all is no call.
    for tool in ["none", "any", "order"] {
        for arguments in [json!([]), json!("x"), json!(7), json!(false)] {
            let reply = call("tools/call", json!({"name": tool, "arguments": arguments})).await;
            assert_eq!(reply["error"]["code"], -32602, "{tool} {arguments}: {reply}");
        }
    }
}

#[tokio::test]
async fn arguments_of_a_prompt_are_strings() {
    for (arguments, expected) in [
        (json!({"name": "Ann"}), Ok("Ann None")),
        (json!({"name": "Ann", "tone": "dry"}), Ok("Ann Some(\"dry\")")),
        (json!({"name": "Ann", "unknown": "x"}), Ok("Ann None")),
        (json!({}), Err("The argument `name` is missing")),
        (Value::Null, Err("The argument `name` is missing")),
        (json!({"tone": "dry"}), Err("The argument `name` is missing")),
        (json!({"name": 7}), Err("The argument `name` must be a string")),
        (json!({"name": "Ann", "tone": null}), Err("The argument `tone` must be a string")),
        (json!({"name": "Ann", "unknown": {}}), Err("The argument `unknown` must be a string")),
        (json!(["Ann"]), Err("arguments must be an object of strings")),
        (json!("Ann"), Err("arguments must be an object of strings")),
    ] {
        let reply = call("prompts/get", json!({"name": "greet", "arguments": arguments})).await;
        match expected {
            Ok(text) => assert_eq!(reply["result"]["messages"][0]["content"]["text"], text, "{arguments}"),
            Err(text) => {
                let error = &reply["error"];
                assert_eq!(
                    (&error["code"], &error["message"]),
                    (&json!(-32602), &json!(text)),
                    "{arguments}"
                );
            }
        }
    }
}

#[tokio::test]
async fn variables_of_a_template_are_decoded() {
    for (uri, variables) in [
        ("shop://north/tea.txt", Some(json!({"shop": "north", "item": "tea"}))),
        ("shop://a%20b/t%C3%A9.txt", Some(json!({"shop": "a b", "item": "té"}))),
        ("shop://a+b/%7Btea%7D.txt", Some(json!({"shop": "a+b", "item": "{tea}"}))),
        ("shop://a/%2525.txt", Some(json!({"shop": "a", "item": "%25"}))),
        ("shop://a/tea.txt.txt", Some(json!({"shop": "a", "item": "tea.txt"}))),
        ("shop://a/tea.txt.md", None),
        ("shop://a/tea.txt?q=1", None),
        ("shop://a/b/tea.txt", None),
        ("shop:///tea.txt", None),
        ("shop://a/%C3.txt", None),
        ("shop://a/%4.txt", None),
        ("SHOP://a/tea.txt", None),
    ] {
        let reply = call("resources/read", json!({"uri": uri})).await;
        match variables {
            Some(variables) => {
                let text = reply["result"]["contents"][0]["text"].as_str().unwrap();
                assert_eq!(serde_json::from_str::<Value>(text).unwrap(), variables, "{uri}");
                assert!(reply["result"]["ttlMs"].is_u64() && reply["result"]["cacheScope"].is_string());
            }
            None => assert_eq!(reply["error"]["data"]["uri"], uri, "{reply}"),
        }
    }
}

/// Of the templates that match, the one with the most literal characters reads the URI; then one whose values hold no `/`; then the first.
#[tokio::test]
async fn the_most_literal_template_reads_a_uri() {
    for (uri, variables) in [
        ("file:///a/b", json!({"path": "a/b", "mark": []})),
        ("file:///a", json!({"name": "a"})),
        ("file:///a.md", json!({"page": "a"})),
        ("file:///a/b%20c.md", json!({"page": "a/b c"})),
        ("file:///a?mark=x&line=7&mark=y", json!({"path": "a", "line": "7", "mark": ["x", "y"]})),
    ] {
        let reply = call("resources/read", json!({"uri": uri})).await;
        let text = reply["result"]["contents"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), variables, "{uri}");
    }
}

/// Two parties could read two things.
#[tokio::test]
async fn a_member_that_is_there_twice_is_refused_wherever_it_is() {
    for (method, params) in [
        ("tools/call", r#""name":"any","name":"any""#),
        ("tools/call", r#""name":"any","n\u0061me":"none""#),
        ("tools/call", r#""name":"any","arguments":{"x":1,"x":1}"#),
        ("tools/call", r#""name":"any","arguments":{"x":1,"\u0078":2}"#),
        ("tools/call", r#""name":"any","arguments":{"a":[{"b":{"x":1,"x":2}}]}"#),
        ("tools/call", r#""name":"any","unknown":{"x":1,"x":2}"#),
        ("tools/call", r#""name":"any","unknown":1,"unknown":1"#),
        ("tools/call", r#""name":"any","inputResponses":{"x":{},"x":{}}"#),
        ("tools/call", r#""name":"any","arguments":{},"arguments":{}"#),
        ("prompts/get", r#""name":"greet","arguments":{"name":"a","name":"b"}"#),
        ("resources/read", r#""uri":"shop://a/b.txt","uri":"shop://a/c.txt""#),
        ("tools/list", r#""cursor":null,"cursor":null"#),
    ] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{}}}}}"#,
            meta()
        );
        let reply = orders().respond(text.as_bytes(), &Default::default()).await.unwrap();
        let reply: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(1), &json!(-32602)), "{text}: {reply}");
    }
}

#[tokio::test]
async fn what_a_handler_fails_with_is_shown_or_hidden() {
    let server = fixture(|builder| {
        builder
            .tool(Tool::new("text", async |_: &Ctx, _: NoArguments| Err::<(), _>("no tea left".to_owned())))
            .tool(Tool::new("own", async |_: &Ctx, _: NoArguments| Err::<(), _>(std::fmt::Error)))
            .tool(Tool::new("told", async |_: &Ctx, _: NoArguments| {
                Err::<(), _>(Error::user_facing("no milk left"))
            }))
            .tool(Tool::new("foreign", async |_: &Ctx, _: NoArguments| leak()))
            .tool(Tool::new("panic", async |_: &Ctx, _: NoArguments| -> String { panic!("{SECRET}") }))
            .prompt(Prompt::new("text", async |_: &Ctx, _: NoArguments| Err::<String, _>("no tea left")))
            .prompt(Prompt::new("foreign", async |_: &Ctx, _: NoArguments| leak()))
            .prompt(Prompt::new("panic", async |_: &Ctx, _: NoArguments| -> String { panic!("{SECRET}") }))
            .resource(Resource::new("x://text", "", async |_: &Ctx| {
                Err::<ResourceContents, _>("no tea left")
            }))
            .resource(Resource::new("x://foreign", "", async |_: &Ctx| {
                leak().map(|text| ResourceContents::text("x://", text))
            }))
            .resource(Resource::new("x://panic", "", async |_: &Ctx| -> ResourceContents {
                panic!("{SECRET}")
            }))
    })
    .server;
    let hidden = "The tool foreign failed; the reason is in the server's log";
    for (method, target, expected) in [
        ("tools/call", json!({"name": "text"}), Ok("no tea left")),
        ("tools/call", json!({"name": "own"}), Ok("The tool own failed; the reason is in the server's log")),
        ("tools/call", json!({"name": "told"}), Ok("no milk left")),
        ("tools/call", json!({"name": "foreign"}), Ok(hidden)),
        ("tools/call", json!({"name": "panic"}), Err("Internal error")),
        ("prompts/get", json!({"name": "text"}), Err("no tea left")),
        ("prompts/get", json!({"name": "foreign"}), Err("Internal error")),
        ("prompts/get", json!({"name": "panic"}), Err("Internal error")),
        ("resources/read", json!({"uri": "x://text"}), Err("no tea left")),
        ("resources/read", json!({"uri": "x://foreign"}), Err("Internal error")),
        ("resources/read", json!({"uri": "x://panic"}), Err("Internal error")),
    ] {
        for over in [Over::Http, Over::Stdio] {
            let (status, reply) = send(over, &server, &request(1, method, target.clone()), None).await;
            assert_eq!(status, 200);
            match expected {
                Ok(text) => {
                    let result = &reply["result"];
                    assert_eq!(
                        (&result["isError"], &result["content"][0]["text"]),
                        (&json!(true), &json!(text))
                    );
                    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "fixture");
                }
                Err(text) => assert_eq!(reply["error"], json!({"code": -32603, "message": text}), "{target}"),
            }
            assert!(!reply.to_string().contains("hunter2"), "{reply}");
        }
    }
    // The server goes on.
    let (_, reply) = send(
        Over::Http,
        &server,
        &request(1, "tools/call", json!({"name": "echo", "arguments": {"name": "x"}})),
        None,
    )
    .await;
    assert_eq!(reply["result"]["content"][0]["text"], "x");
}
