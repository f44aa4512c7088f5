//! Functions marked `#[tool]`: what is told of them, and what reaches them.
#![cfg(feature = "macros")]

use crate::common;
use crate::common::request;
use antiphon::{
    Clock,
    server::{Caller, Ctx, Json, Reply, Server, ServerBuilder, State},
    tool,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

fn server(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    build(Server::builder("macros", "1.0")).build().unwrap()
}

async fn respond(server: &Server, method: &str, params: Value) -> Value {
    let message = request(1, method, params).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

/// The first text of a call's result.
async fn call(server: &Server, name: &str, arguments: Value) -> String {
    let reply = respond(server, "tools/call", json!({"name": name, "arguments": arguments})).await;
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}

/// Returns the entry of `tools/list` for the tool of this name.
async fn listed(server: &Server, name: &str) -> Value {
    let reply = respond(server, "tools/list", json!({})).await;
    let tools = reply["result"]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name} in {reply}")).clone()
}

/// Says it back.
///
/// As it
/// came.
#[tool]
async fn echo(text: String) -> String {
    text
}

struct Db(&'static str);

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Found {
    key: String,
    limit: Option<u32>,
}

#[tool]
async fn find(State(db): State<Db>, ctx: &Ctx, key: &str, limit: Option<u32>) -> Result<Json<Found>, String> {
    if ctx.leg() != 1 || key.is_empty() {
        return Err("nothing to look for".to_owned());
    }
    Ok(Json(Found { key: format!("{} {key}", db.0), limit }))
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

/// An `Option` that the macro cannot see.
type Maybe<T> = Option<T>;

/// Every kind of argument; in an order that is not the alphabet's.
#[tool(
    name = "every.kind",
    title = "Every kind",
    description = "In place of the comment",
    read_only,
    destructive = false,
    idempotent = true,
    open_world,
    version = 3,
    answer_timeout = "3d",
    needs(form, url)
)]
async fn every_kind(
    /// The name of
    /// the thing.
    #[arg(title = "Name", min_length = 2, max_length = 5, default = "abc")]
    name: String,
    #[arg(min = -1, max = 3)] count: i8,
    #[arg(min = 0.5, default = 1)] share: f64,
    #[arg(default = true)] really: bool,
    #[arg(default = ["x"], max_items = 2)] tags: Vec<String>,
    #[arg(header = "Region")] mut region: Option<String>,
    #[arg(default = "large")] size: Size,
    #[arg(name = "maybeNot", description = "By hand")] maybe: Maybe<u64>,
    r#type: Option<Vec<u8>>,
) -> String {
    region = region.map(|region| region.to_uppercase());
    format!("{name} {count} {share} {really} {tags:?} {region:?} {size:?} {maybe:?} {:?}", r#type)
}

/// Takes nothing.
#[tool]
async fn nothing() {}

fn all() -> Server {
    server(|builder| builder.tool(echo).tool(find).state(Db("db")).tool(every_kind).tool(nothing))
}

#[tokio::test]
async fn a_marked_function_is_a_tool_and_a_function() {
    let server = all();
    assert_eq!(call(&server, "echo", json!({"text": "hello"})).await, "hello");
    assert_eq!(echo("a".to_owned()).await, "a");
    let echo = echo("b".to_owned());
    assert_eq!(echo.await, "b");
    assert_eq!(listed(&server, "echo").await["description"], "Says it back.\n\nAs it came.");
    let reply = respond(&server, "tools/call", json!({"name": "nothing"})).await;
    assert_eq!(reply["result"]["content"], json!([]));
}

#[tokio::test]
async fn arguments_reach_the_function_and_what_does_not_fit_is_named() {
    let server = all();
    let least = r#"abc 1 1 true ["x"] None Large None None"#;
    for (name, arguments, expected) in [
        ("find", json!({"key": "k", "limit": 2.0}), r#"{"key":"db k","limit":2}"#),
        ("find", json!({"key": "k"}), r#"{"key":"db k","limit":null}"#),
        ("find", json!({"key": "k", "limit": null}), r#"{"key":"db k","limit":null}"#),
        ("find", json!({"key": ""}), "nothing to look for"),
        // States and the context are no arguments.
        ("find", json!({"key": "k", "db": "mine"}), "Invalid arguments for tool find: has no member `db`"),
        ("find", json!({"key": "k", "ctx": 1}), "Invalid arguments for tool find: has no member `ctx`"),
        ("every.kind", json!({"count": 1}), least),
        ("every.kind", json!({"count": 1.0}), least),
        (
            "every.kind",
            json!({
                "count": 3, "name": "ab", "share": 2, "really": false, "tags": [], "region": "eu", "size": "small",
                "maybeNot": 7e0, "type": [1.0, 2],
            }),
            r#"ab 3 2 false [] Some("EU") Small Some(7) Some([1, 2])"#,
        ),
        ("every.kind", json!({"count": 1, "region": null, "maybeNot": null}), least),
    ] {
        assert_eq!(call(&server, name, arguments.clone()).await, expected, "{name} {arguments}");
    }
    for (arguments, named) in [
        (json!({}), "count"),
        (json!({"count": 4}), "count"),
        (json!({"count": "1"}), "count"),
        (json!({"count": 1, "name": "a"}), "name"),
        (json!({"count": 1, "name": null}), "name"),
        (json!({"count": 1, "share": 0.25}), "share"),
        (json!({"count": 1, "tags": ["x", "y", "z"]}), "tags"),
        (json!({"count": 1, "size": "huge"}), "size"),
        (json!({"count": 1, "maybeNot": -1}), "maybeNot"),
    ] {
        let told = call(&server, "every.kind", arguments.clone()).await;
        assert!(told.starts_with("Invalid arguments for tool every.kind"), "{arguments}: {told}");
        assert!(told.contains(named), "{arguments}: {told}");
    }
    let told = call(&server, "nothing", json!({"a": 1})).await;
    assert!(told.starts_with("Invalid arguments"), "{told}");
}

/// A text of digits: its schema says less than what it reads.
#[derive(Debug)]
struct Digits(u32);

impl<'de> serde::Deserialize<'de> for Digits {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| serde::de::Error::custom("these are no digits"))
    }
}

impl schemars::JsonSchema for Digits {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digits".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string"})
    }
}

#[tool]
async fn digits(first: u8, second: Digits) -> String {
    format!("{first} {}", second.0)
}

#[tokio::test]
async fn what_the_schema_lets_through_is_still_read() {
    let server = server(|builder| builder.tool(digits));
    assert_eq!(call(&server, "digits", json!({"first": 1, "second": "22"})).await, "1 22");
    let told = call(&server, "digits", json!({"first": 1, "second": "x"})).await;
    assert!(told.contains("argument `second`: these are no digits"), "{told}");
    assert_eq!(listed(&server, "digits").await["inputSchema"]["$defs"]["Digits"], json!({"type": "string"}));
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"digits",
        "arguments":{"first":1,"first":2,"second":"3"},"_meta":META}}"#;
    let twice = twice.replace("META", &common::meta().to_string());
    let reply = server.respond(twice.as_bytes(), &Caller::default()).await.unwrap();
    assert!(!String::from_utf8_lossy(&reply.body).contains("2 3"), "{reply:?}");
}

#[tokio::test]
async fn a_definition_says_what_the_signature_says() {
    let server = all();
    let tool = listed(&server, "every.kind").await;
    assert_eq!(tool["title"], "Every kind");
    assert_eq!(tool["description"], "In place of the comment");
    assert_eq!(
        tool["annotations"],
        json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true})
    );
    let schema = &tool["inputSchema"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["count"]));
    for (name, expected) in [
        (
            "name",
            json!({
                "type": "string", "title": "Name", "description": "The name of the thing.", "minLength": 2,
                "maxLength": 5, "default": "abc",
            }),
        ),
        ("count", json!({"type": "integer", "minimum": -1, "maximum": 3})),
        ("share", json!({"type": "number", "minimum": 0.5, "default": 1})),
        ("really", json!({"type": "boolean", "default": true})),
        ("tags", json!({"type": "array", "items": {"type": "string"}, "maxItems": 2, "default": ["x"]})),
        // Not that it may be null, though it may.
        ("region", json!({"type": "string", "x-mcp-header": "Region"})),
        ("size", json!({"$ref": "#/$defs/Size", "default": "large"})),
        ("maybeNot", json!({"type": ["integer", "null"], "minimum": 0, "description": "By hand"})),
    ] {
        assert_eq!(schema["properties"][name], expected, "{name}");
    }
    assert_eq!(schema["$defs"]["Size"]["enum"], json!(["small", "large"]));
    assert_eq!(listed(&server, "nothing").await["inputSchema"]["additionalProperties"], Value::Bool(false));
    // In the order of the signature, as text.
    let message = request(1, "tools/list", json!({})).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    let text = String::from_utf8(reply.body).unwrap();
    let names = ["name", "count", "share", "really", "tags", "region", "size", "maybeNot", "type"];
    let properties = &text[text.find("\"properties\":{\"name\":").unwrap()..];
    let places: Vec<usize> = names.map(|name| properties.find(&format!("\"{name}\":{{")).unwrap()).to_vec();
    assert!(places.is_sorted(), "{places:?} in {properties}");
}

#[tool]
async fn region_of(#[arg(header = "Region")] region: Option<String>) -> String {
    format!("{region:?}")
}

#[tool]
async fn plain_json() -> Json<Value> {
    Json(json!({"a": 1}))
}

#[tool]
async fn perhaps() -> Result<Reply<Json<Found>>, antiphon::Error> {
    Ok(Reply::Complete(Json(Found { key: "k".to_owned(), limit: None })))
}

#[tokio::test]
async fn output_schemas_are_those_of_the_return_type() {
    let server = server(|builder| {
        builder
            .tool(echo)
            .tool(find)
            .state(Db(""))
            .tool(plain_json)
            .tool(perhaps)
            .tool(nothing)
            .tool(region_of)
    });
    for (name, expected) in
        [("find", true), ("perhaps", true), ("plain_json", false), ("echo", false), ("nothing", false)]
    {
        let schema = &listed(&server, name).await["outputSchema"];
        assert_eq!(schema["required"] == json!(["key", "limit"]), expected, "{name}: {schema}");
        assert_eq!(schema.is_object(), expected, "{name}: {schema}");
    }
    let reply = respond(&server, "tools/call", json!({"name": "perhaps"})).await;
    assert_eq!(reply["result"]["structuredContent"], json!({"key": "k", "limit": null}));
}

#[tool(needs(form, roots, sampling_tools))]
async fn needy() -> String {
    "ran".to_owned()
}

#[tokio::test]
async fn what_it_needs_is_asked_of_the_client_first() {
    let server = server(|builder| builder.tool(needy));
    let mut meta = common::meta();
    let all = json!({"elicitation": {}, "roots": {}, "sampling": {"tools": {}}});
    meta["io.modelcontextprotocol/clientCapabilities"] = all;
    let reply = respond(&server, "tools/call", json!({"name": "needy", "_meta": meta})).await;
    assert_eq!(reply["result"]["content"][0]["text"], "ran", "{reply}");
    for (capabilities, expected) in [
        (json!({"elicitation": {}, "sampling": {"tools": {}}}), json!({"roots": {}})),
        (json!({"roots": {}, "sampling": {"tools": {}}}), json!({"elicitation": {"form": {}}})),
        (json!({"roots": {}, "elicitation": {}, "sampling": {}}), json!({"sampling": {"tools": {}}})),
    ] {
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        let reply = respond(&server, "tools/call", json!({"name": "needy", "_meta": meta})).await;
        assert_eq!(reply["error"]["code"], -32021, "{reply}");
        assert_eq!(reply["error"]["data"]["requiredCapabilities"], expected, "{reply}");
    }
}

#[tool(name = "ask", answer_timeout = "2h")]
async fn ask_region(ctx: &Ctx) -> antiphon::Result<Reply<String>> {
    match ctx.by_hand().form::<common::Region>(&common::region())? {
        None => Ok(common::region().into()),
        Some(answer) => Ok(Reply::Complete(answer.accepted().unwrap().region)),
    }
}

#[tokio::test]
async fn answers_come_within_the_time_of_the_tool() {
    let (clock, hand) = Clock::manual(common::start());
    let server = server(|builder| builder.clock(clock).tool(ask_region));
    let asked = respond(&server, "tools/call", json!({"name": "ask"})).await;
    let answered = json!({
        "name": "ask", "requestState": common::state_of(&asked), "inputResponses": common::answers(),
    });
    hand.advance(Duration::from_secs(7199));
    let reply = respond(&server, "tools/call", answered.clone()).await;
    assert_eq!(reply["result"]["content"][0]["text"], "eu", "{reply}");
    // Well beyond the leeway that clocks of other machines get.
    hand.advance(Duration::from_secs(3600));
    let reply = respond(&server, "tools/call", answered).await;
    assert_eq!(reply["error"]["data"]["reason"], "invalid_request_state", "{reply}");
}

#[tool]
async fn stateful(db: State<Db>, counter: State<AtomicUsize>) -> String {
    format!("{} {}", db.0.0, counter.fetch_add(1, Ordering::SeqCst))
}

#[tokio::test]
async fn state_is_shared_and_given_once() {
    let server = server(|builder| {
        // Before or after what takes it.
        builder.state(Db("db")).tool(stateful).state(AtomicUsize::new(5)).list_changed(true)
    });
    assert_eq!(call(&server, "stateful", json!({})).await, "db 5");
    assert_eq!(call(&server, "stateful", json!({})).await, "db 6");
    server.add_tool(find).unwrap();
    assert_eq!(call(&server, "find", json!({"key": "k"})).await, r#"{"key":"db k","limit":null}"#);
    let called = stateful(State::new(Db("here")), State::from(Arc::new(AtomicUsize::new(0)))).await;
    assert_eq!(called, "here 0");
}

#[tokio::test]
async fn what_is_missing_is_named_when_the_server_is_built() {
    #[tool]
    async fn wrong_default(#[arg(default = "huge")] size: Size) -> String {
        format!("{size:?}")
    }
    let begin = || Server::builder("macros", "1.0");
    let failed = |builder: ServerBuilder| builder.build().unwrap_err().to_string();
    for (fault, parts) in [
        (failed(begin().tool(stateful)), ["the tool `stateful`", "Db", ".state(..)"]),
        (
            failed(begin().tool(stateful).state(Db(""))),
            ["the tool `stateful`", "core::sync::atomic::", ".state(..)"],
        ),
        (failed(begin().state(Db("")).state(Db(""))), ["Db", "twice", "a type of its own"]),
        (failed(begin().tool(wrong_default)), ["the tool `wrong_default`", "`size`", "huge"]),
        (failed(begin().tool(echo).tool(echo)), ["two tools named", "`echo`", "rename"]),
    ] {
        for part in parts {
            assert!(fault.contains(part), "{fault:?} does not say {part:?}");
        }
    }
    let server = begin().list_changed(true).build().unwrap();
    assert!(server.add_tool(stateful).unwrap_err().to_string().contains("Db"));
}
