//! Offers that are found at run time: a gateway to another server, what is dropped from its lists, and what fails.

use crate::common::{
    post::{correct, post, set},
    request, ring,
    session::{everything, plain},
    with,
};
use antiphon::{
    Error, Result,
    client::{Call, CallProgress, Client, Finished, PendingCall},
    memory,
    serve::http::HttpService,
    server::{
        Answer, CacheHint, Completing, Ctx, Limits, NoArguments, Prompt, Resource, ResourceTemplate, Server,
        ServerBuilder, TaskMode, Tool,
        offers::{CallerInfo, ListKind, Offers, with_state},
    },
    tool,
    wire::{CallToolResult, ElicitRequest, InputRequest, content::ResourceContents},
};
use serde_json::{Map, Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The databases that the server behind the gateway has made.
#[derive(Clone, Default)]
struct Made(Arc<AtomicUsize>);

/// Adds two numbers.
#[tool(title = "Sum")]
async fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

#[derive(serde::Deserialize, antiphon::Form)]
struct Place {
    region: String,
}

#[derive(serde::Deserialize, antiphon::Form)]
struct Size {
    gigabytes: u32,
}

/// Makes a database.
#[tool]
async fn provision(ctx: &Ctx, name: String, made: antiphon::server::State<Made>) -> Result<String> {
    let place: Place = ctx.elicit("Which region?").await?;
    let number: usize = ctx.step("make", async |_| Ok(made.0.0.fetch_add(1, Ordering::SeqCst) + 1)).await?;
    let size: Size = ctx.elicit("How large?").await?;
    Ok(format!("{name} is database {number} in {} with {} GB", place.region, size.gigabytes))
}

fn upstream(made: &Made) -> Server {
    Server::builder("upstream", "1")
        .keys(ring(1))
        .state(made.clone())
        .tool(add)
        .tool(provision)
        .build()
        .unwrap()
}

/// The tools of another server. `provision` is for clients whose name is not `guest`.
struct Gateway(Client);

impl Offers for Gateway {
    fn has(&self, list: ListKind) -> bool {
        list == ListKind::Tools
    }

    async fn tools(&self, caller: &CallerInfo) -> Result<Vec<Tool>> {
        let is_guest = caller.client().is_some_and(|client| client.name == "guest");
        let mut tools = Vec::new();
        for listed in
            self.0.list_tools().await?.into_iter().filter(|tool| !(is_guest && tool.name == "provision"))
        {
            let state = (self.0.clone(), listed.name.clone());
            let tool =
                Tool::with_schema(listed.name, listed.input_schema.to_value(), with_state(state, forward));
            tools.push(tool.description(listed.description.unwrap_or_default()));
        }
        Ok(tools)
    }
}

/// The end of a leg of the other server.
#[derive(serde::Serialize, serde::Deserialize)]
enum Leg {
    Done(CallToolResult),
    Asks(PendingCall),
}

impl Leg {
    fn of(progress: CallProgress) -> Result<Self> {
        match progress {
            CallProgress::Done(Finished::Tool(result)) => Ok(Self::Done(result)),
            CallProgress::Pending(pending) => Ok(Self::Asks(pending)),
            _ => Err(Error::user_facing("The other server made a task.")),
        }
    }
}

/// Calls a tool of the other server: each of its legs is a step, and its questions are ours.
async fn forward(
    (upstream, tool): (Client, String),
    ctx: &Ctx,
    arguments: Map<String, Value>,
) -> Result<CallToolResult> {
    let call = Call::tool(tool, arguments)?;
    let mut leg: Leg = ctx.step(("leg", 1), async |_| Leg::of(upstream.begin(call.clone()).await?)).await?;
    for number in 2.. {
        let mut pending = match leg {
            Leg::Done(result) => return Ok(result),
            Leg::Asks(pending) => pending,
        };
        for (key, question) in pending.asks().clone() {
            let InputRequest::Elicit(ElicitRequest::Form { message, requested_schema }) = question else {
                return Err(Error::user_facing("The other server asks for more than a form."));
            };
            let asked =
                ctx.elicit_with::<Map<String, Value>>(message, requested_schema).key(&*key).nth(number);
            match asked.outcome().await? {
                Answer::Accept(content) => pending.accept(&key, &content)?,
                Answer::Decline => pending.decline(&key)?,
                Answer::Cancel => pending.cancel(&key)?,
            }
        }
        leg = ctx.step(("leg", number), async |_| Leg::of(upstream.resume(pending.clone()).await?)).await?;
    }
    Err(Error::user_facing("The other server asks too often."))
}

/// Says hello.
#[tool]
async fn hello() -> &'static str {
    "hello"
}

/// One instance of the gateway, with a connection of its own to the server behind it.
fn gateway(behind: &Server) -> ServerBuilder {
    let client = memory::connect(
        behind.clone(),
        Client::builder("gateway", "1").declare(antiphon::wire::AskSupport::FORM),
    );
    Server::builder("gateway", "1").keys(ring(2)).list_changed(true).tool(hello).offers(Gateway(client))
}

fn names(reply: &Value) -> Vec<&str> {
    reply["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// A request of a client of 2026-07-28 that has this name, to this instance.
async fn modern(server: &Server, client: &str, method: &str, params: Value) -> Value {
    let mut meta = crate::common::meta();
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": client, "version": "1"});
    let message = request(1, method, with(&params, json!({"_meta": meta})));
    let service = HttpService::new(server.clone(), Default::default());
    post(&service, correct(&message)).await.json()
}

#[tokio::test]
async fn a_gateway_lists_and_calls_for_each_caller() {
    let made = Made::default();
    let server = gateway(&upstream(&made)).cache(CacheHint::public(Duration::from_secs(9))).build().unwrap();
    for (client, expected) in [("admin", &["hello", "add", "provision"][..]), ("guest", &["hello", "add"])] {
        let reply = modern(&server, client, "tools/list", json!({})).await;
        assert_eq!(names(&reply), expected, "{client}");
        assert_eq!(reply["result"]["cacheScope"], "private");
        assert_eq!(reply["result"]["tools"][1]["description"], "Adds two numbers.");
        assert_eq!(reply["result"]["tools"][1]["inputSchema"]["required"], json!(["a", "b"]));
        for (name, arguments, text) in [
            ("hello", json!({}), "hello"),
            ("add", json!({"a": 2, "b": 3}), "5"),
            ("add", json!({"a": 2}), "Invalid arguments for tool add"),
        ] {
            let reply =
                modern(&server, client, "tools/call", json!({"name": name, "arguments": arguments})).await;
            assert!(reply["result"]["content"][0]["text"].as_str().unwrap().starts_with(text), "{reply}");
        }
    }
    let params = json!({"name": "provision", "arguments": {"name": "orders"}});
    let refused = modern(&server, "guest", "tools/call", params).await;
    assert_eq!(refused["error"]["message"], "Unknown tool: provision");
    // A page at a time, the server's own first.
    let paged = gateway(&upstream(&made)).page_size(2).build().unwrap();
    let first = modern(&paged, "admin", "tools/list", json!({})).await;
    let rest = modern(&paged, "admin", "tools/list", json!({"cursor": first["result"]["nextCursor"]})).await;
    assert_eq!((names(&first), names(&rest)), (vec!["hello", "add"], vec!["provision"]));
}

/// Each leg arrives at the other instance. The questions of the other server are those of the gateway, and its step runs once.
#[tokio::test]
async fn two_instances_pass_the_questions_on() {
    let made = Made::default();
    let behind = upstream(&made);
    let instances = [gateway(&behind).build().unwrap(), gateway(&behind).build().unwrap()];
    let params = json!({"name": "provision", "arguments": {"name": "orders"}});
    let mut next = params.clone();
    let mut asked = Vec::new();
    for leg in 0..8 {
        let reply = modern(&instances[leg % 2], "admin", "tools/call", next.clone()).await;
        let result = &reply["result"];
        if result["resultType"] == "complete" {
            assert_eq!(result["content"][0]["text"], "orders is database 1 in eu with 20 GB", "{reply}");
            assert_eq!(asked, ["Which region?", "How large?"]);
            assert_eq!(made.0.load(Ordering::SeqCst), 1);
            return;
        }
        let mut answers = Map::new();
        for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
            let message = question["params"]["message"].as_str().unwrap().to_owned();
            let content =
                if message == "Which region?" { json!({"region": "eu"}) } else { json!({"gigabytes": 20}) };
            asked.push(message);
            answers.insert(key.clone(), json!({"action": "accept", "content": content}));
        }
        next = with(&params, json!({"requestState": result["requestState"], "inputResponses": answers}));
    }
    panic!("the call does not end");
}

/// In a session the same handler asks at once.
#[tokio::test]
async fn a_session_gets_the_same_from_a_gateway() {
    let made = Made::default();
    let server = gateway(&upstream(&made)).build().unwrap();
    let mut session = crate::common::session::InSession::open(&server, "2025-11-25", everything()).await;
    assert_eq!(names(&session.asks(1, "tools/list", json!({})).await), ["hello", "add", "provision"]);
    let params = json!({"name": "provision", "arguments": {"name": "orders"}});
    session.send(plain(2, "tools/call", params)).await;
    for (message, content) in
        [("Which region?", json!({"region": "us"})), ("How large?", json!({"gigabytes": 7}))]
    {
        let question = session.receive().await;
        assert_eq!(
            (&question["method"], &question["params"]["message"]),
            (&json!("elicitation/create"), &json!(message))
        );
        session.answers(&question, json!({"action": "accept", "content": content})).await;
    }
    let reply = session.receive().await;
    assert_eq!(reply["result"]["content"][0]["text"], "orders is database 1 in us with 7 GB", "{reply}");
    // Its list may change at any time.
    server.list_changed(ListKind::Tools, |caller| caller.client().is_some_and(|client| client.name == "old"));
    assert_eq!(session.receive().await["method"], "notifications/tools/list_changed");
}

fn small(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| "done")
}

/// Every kind of item, some of which cannot be registered.
struct Mixed;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Topic {
    topic: String,
}

impl Offers for Mixed {
    async fn tools(&self, _: &CallerInfo) -> Result<Vec<Tool>> {
        let bad = |schema: Value| Tool::with_schema("bad", schema, async |_: &Ctx, _: Value| "done");
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        struct Region {
            #[schemars(extend("x-mcp-header" = "Region"))]
            region: String,
        }
        Ok(vec![
            small("first"),
            small("no name"),
            small("hello").title("Another"),
            bad(json!({"type": "array"})),
            bad(json!({"type": "object", "properties": {"a": {"type": 7}}})),
            small("first").title("Again"),
            small("task").task(TaskMode::Optional),
            small("once").single_use(true),
            small("scoped").scopes(["a b"]),
            small("hidden").visible_if(|_| false),
            Tool::new("regional", async |_: &Ctx, region: Region| region.region),
            small("last").scopes(["wipe"]),
        ])
    }

    async fn prompts(&self, _: &CallerInfo) -> Result<Vec<Prompt>> {
        let prompt = |name: &str| Prompt::new(name, async |_: &Ctx, topic: Topic| topic.topic);
        let twice = prompt("twice").complete("topic", async |_: Completing| ["a"]);
        Ok(vec![
            prompt("first").complete("topic", async |_: Completing| ["one", "two"]),
            twice.complete("topic", async |_: Completing| ["b"]),
            prompt("last"),
        ])
    }

    async fn resources(&self, _: &CallerInfo) -> Result<Vec<Resource>> {
        let resource =
            |uri: &str| Resource::new(uri, "r", async |_: &Ctx| ResourceContents::text("x://x", "one"));
        Ok(vec![resource("first://r").cache(CacheHint::public(Duration::from_secs(1))), resource("none")])
    }

    async fn templates(&self, _: &CallerInfo) -> Result<Vec<ResourceTemplate>> {
        let template = |uri: &str| {
            let read =
                async |_: &Ctx, values: Value| ResourceContents::text("x://x", values["id"].to_string());
            ResourceTemplate::new(uri, "t", read)
        };
        let completed = template("first://{id}/t").complete("id", async |_: Completing| ["7"]);
        Ok(vec![template("first://{"), completed])
    }
}

#[tokio::test]
async fn an_item_that_could_not_be_registered_costs_no_other() {
    let server = Server::builder("mixed", "1").tool(hello).offers(Mixed).build().unwrap();
    for (method, list, member, expected) in [
        ("tools/list", "tools", "name", json!(["hello", "first", "regional", "last"])),
        ("prompts/list", "prompts", "name", json!(["first", "last"])),
        ("resources/list", "resources", "uri", json!(["first://r"])),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", json!(["first://{id}/t"])),
    ] {
        let reply = modern(&server, "any", method, json!({})).await;
        let names: Vec<&Value> =
            reply["result"][list].as_array().unwrap().iter().map(|one| &one[member]).collect();
        assert_eq!(json!(names), expected, "{reply}");
        assert!(reply["result"][list].as_array().unwrap().iter().all(|one| one["title"].is_null()));
    }
    let completion = |reference: Value, argument: &str| json!({"ref": reference, "argument": {"name": argument, "value": ""}});
    for (method, params, expected) in [
        ("tools/call", json!({"name": "first"}), "done"),
        ("tools/call", json!({"name": "hello"}), "hello"),
        ("tools/call", json!({"name": "no name"}), "Unknown tool: no name"),
        ("tools/call", json!({"name": "bad"}), "Unknown tool: bad"),
        ("tools/call", json!({"name": "task"}), "Unknown tool: task"),
        ("tools/call", json!({"name": "once"}), "Unknown tool: once"),
        ("tools/call", json!({"name": "scoped"}), "Unknown tool: scoped"),
        ("tools/call", json!({"name": "hidden"}), "Unknown tool: hidden"),
        ("tools/call", json!({"name": "last"}), "The access token lacks a required scope"),
        ("prompts/get", json!({"name": "first", "arguments": {"topic": "rain"}}), "rain"),
        ("prompts/get", json!({"name": "first"}), "The argument `topic` is missing"),
        ("prompts/get", json!({"name": "twice", "arguments": {"topic": "rain"}}), "Unknown prompt: twice"),
        ("resources/read", json!({"uri": "first://r"}), "one"),
        ("resources/read", json!({"uri": "first://9/t"}), "\"9\""),
        ("resources/read", json!({"uri": "none"}), "Resource not found"),
        ("completion/complete", completion(json!({"type": "ref/prompt", "name": "first"}), "topic"), "one"),
        (
            "completion/complete",
            completion(json!({"type": "ref/prompt", "name": "first"}), "other"),
            "Unknown argument: other",
        ),
        (
            "completion/complete",
            completion(json!({"type": "ref/prompt", "name": "none"}), "topic"),
            "Unknown prompt: none",
        ),
        (
            "completion/complete",
            completion(json!({"type": "ref/resource", "uri": "first://{id}/t"}), "id"),
            "7",
        ),
        ("completion/complete", completion(json!({"type": "ref/resource", "uri": "first://9/t"}), "id"), "7"),
    ] {
        let reply = modern(&server, "any", method, params.clone()).await;
        let texts = [
            "/error/message",
            "/result/content/0/text",
            "/result/messages/0/content/text",
            "/result/contents/0/text",
            "/result/completion/values/0",
        ];
        let text = texts.iter().find_map(|place| reply.pointer(place)?.as_str());
        assert_eq!(text, Some(expected), "{method} {params}: {reply}");
        if method == "resources/read" && reply["result"].is_object() {
            assert_eq!(reply["result"]["cacheScope"], "private");
        }
    }
    // The headers of a tool that the transport does not know.
    for (region, expected) in [("eu", 0), ("us", -32020)] {
        let params = json!({"name": "regional", "arguments": {"region": "eu"}});
        let mut message = correct(&request(1, "tools/call", params));
        set(&mut message, "mcp-param-region", &[region]);
        let reply = post(&HttpService::new(server.clone(), Default::default()), message).await.json();
        assert_eq!(reply["error"]["code"].as_i64().unwrap_or_default(), expected, "{reply}");
    }
}

/// Fails, or never answers.
struct Failing(fn() -> Option<Error>);

impl Failing {
    async fn fail<T>(&self) -> Result<T> {
        match (self.0)() {
            Some(error) => Err(error),
            None => std::future::pending().await,
        }
    }
}

impl Offers for Failing {
    async fn tools(&self, _: &CallerInfo) -> Result<Vec<Tool>> {
        self.fail().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_fails_fails_its_request_and_no_other() {
    for (fails, expected) in [
        (
            (|| Some(Error::user_facing("The directory is closed."))) as fn() -> Option<Error>,
            "The directory is closed.",
        ),
        (|| Some(std::io::Error::other("/secret/path").into()), "Internal error"),
        (|| panic!("at once"), "Internal error"),
        (|| None, "Internal error"),
    ] {
        let server =
            Server::builder("failing", "1").limits(Limits::default().handler_timeout(Duration::from_secs(2)));
        let server = server.tool(hello).offers(Failing(fails)).build().unwrap();
        for (method, params) in [("tools/list", json!({})), ("tools/call", json!({"name": "other"}))] {
            let reply = modern(&server, "any", method, params).await;
            let error = (&reply["error"]["code"], reply["error"]["message"].as_str().unwrap_or_default());
            assert_eq!(error, (&json!(-32603), expected), "{method}");
        }
        let reply = modern(&server, "any", "tools/call", json!({"name": "hello"})).await;
        assert_eq!(reply["result"]["content"][0]["text"], "hello");
        assert_eq!(modern(&server, "any", "prompts/list", json!({})).await["result"]["prompts"], json!([]));
    }
}

#[tokio::test]
async fn only_lists_that_can_have_items_are_declared() {
    for (server, expected) in [
        (Server::builder("mixed", "1").offers(Mixed), &["completions", "prompts", "resources", "tools"][..]),
        (gateway(&upstream(&Made::default())).list_changed(false), &["tools"]),
        (Server::builder("none", "1"), &[]),
    ] {
        let reply = modern(&server.build().unwrap(), "any", "server/discover", json!({})).await;
        let declared: Vec<&String> = reply["result"]["capabilities"].as_object().unwrap().keys().collect();
        let mut declared: Vec<&str> = declared.into_iter().map(String::as_str).collect();
        declared.sort_unstable();
        assert_eq!(declared, expected, "{reply}");
    }
}

/// A tool that is added needs a store as much as one that was there from the beginning.
#[test]
fn a_protected_tool_is_not_added_without_a_store() {
    let server = Server::builder("plain", "1").list_changed(true).build().unwrap();
    let refused = server.add_tool(small("once").single_use(true)).unwrap_err().to_string();
    assert!(refused.contains("need a store of calls"), "{refused}");
}

/// Tools whose schemas have a regular expression that the validator ignores: it says so each time that it compiles one.
struct Patterned;

impl Offers for Patterned {
    async fn tools(&self, _: &CallerInfo) -> Result<Vec<Tool>> {
        let schema = |word: &str| json!({"type": "object", "properties": {word: {"type": "string", "pattern": "(?=a)"}}});
        let tool =
            |name: &str, word: &str| Tool::with_schema(name, schema(word), async |_: &Ctx, _: Value| "done");
        Ok(vec![tool("one", "a"), tool("two", "b"), tool("three", "a")])
    }
}

#[tokio::test]
async fn a_schema_is_compiled_once() {
    let server = Server::builder("patterned", "1").offers(Patterned).build().unwrap();
    crate::common::log::take_log();
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "one", "arguments": {"a": "x"}})),
        ("tools/call", json!({"name": "two", "arguments": {"b": "x"}})),
        ("tools/list", json!({})),
    ] {
        let message = request(1, method, params).to_string();
        let reply = server.respond(message.as_bytes(), &Default::default()).await.unwrap();
        let reply: Value = serde_json::from_slice(&reply.body).unwrap();
        assert!(reply["result"].is_object(), "{reply}");
    }
    let log = crate::common::log::take_log();
    assert_eq!(log.matches("a regular expression is ignored").count(), 2, "{log}");
    // The kept check is that of the schema: another argument is refused.
    let message = request(1, "tools/call", json!({"name": "two", "arguments": {"b": 1}})).to_string();
    let reply = server.respond(message.as_bytes(), &Default::default()).await.unwrap();
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(reply["result"]["isError"], true, "{reply}");
}
