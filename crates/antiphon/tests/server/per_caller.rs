//! Lists per caller: what a caller does not see does not exist for it, in both eras.

use crate::common;
use crate::common::{
    by_header,
    lines::{Peer, serve},
    post::{correct, post, set},
    request,
    session::{everything, initialize, plain},
    with,
};
use antiphon::{
    client::Client,
    memory, prompt, resource,
    serve::http::HttpService,
    server::{
        CacheHint, Completing, Ctx, NoArguments, Prompt, Resource, ResourceTemplate, Server, ServerBuilder,
        TaskMode, Tool,
        offers::{CallerInfo, ListKind},
    },
    tool,
    wire::{self, Meta, content::ResourceContents},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tower_service::Service as _;

/// The clients named `admin` see everything.
fn is_admin(caller: &CallerInfo) -> bool {
    caller.client().is_some_and(|client| client.name == "admin")
}

/// Runs and is listed.
fn tool(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| "done")
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, async |_: &Ctx, _: Topic| "said".to_owned())
        .complete("topic", async |_: Completing| ["one"])
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Topic {
    #[expect(dead_code, reason = "only its schema is used")]
    topic: Option<String>,
}

fn resource(uri: &str) -> Resource {
    Resource::new(uri, "r", async |_: &Ctx| ResourceContents::text("x://x", "read"))
}

fn template(uri: &str) -> ResourceTemplate {
    ResourceTemplate::new(uri, "t", async |_: &Ctx, _: Value| ResourceContents::text("x://x", "read"))
        .complete("id", async |_: Completing| ["one"])
}

/// Each of all kinds; those that begin with `secret` are for admins.
fn of(names: &[&str]) -> ServerBuilder {
    let builder = Server::builder("per-caller", "1").list_changed(true).resource_updates(true);
    names.iter().fold(builder, |builder, name| {
        let (tool, prompt) = (tool(name), prompt(name));
        let (resource, template) =
            (resource(&format!("{name}://r")), template(&format!("{name}://{{id}}/t")));
        if name.starts_with("secret") {
            return builder
                .tool(tool.visible_if(is_admin))
                .prompt(prompt.visible_if(is_admin))
                .resource(resource.visible_if(is_admin))
                .template(template.visible_if(is_admin));
        }
        builder.tool(tool).prompt(prompt).resource(resource).template(template)
    })
}

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Era {
    Modern,
    Legacy,
}

const ERAS: [Era; 2] = [Era::Modern, Era::Legacy];

/// A client with a name, on streams of its own.
struct Person {
    peer: Peer,
    era: Era,
    name: &'static str,
    id: u32,
}

impl Person {
    async fn open(server: &Server, era: Era, name: &'static str) -> Self {
        let mut peer = serve(server.clone(), 1 << 16);
        if era == Era::Legacy {
            let mut params = initialize("2025-11-25", everything());
            params["clientInfo"]["name"] = json!(name);
            peer.send(plain(0, "initialize", params).to_string()).await;
            peer.receive().await.unwrap();
            peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
        }
        Self { peer, era, name, id: 10 }
    }

    async fn send(&mut self, method: &str, params: Value) {
        self.id += 1;
        let message = match self.era {
            Era::Legacy => plain(self.id, method, params),
            Era::Modern => {
                let mut meta = common::meta();
                meta["io.modelcontextprotocol/clientInfo"] = json!({"name": self.name, "version": "1"});
                request(self.id, method, with(&params, json!({"_meta": meta})))
            }
        };
        self.peer.send(message.to_string()).await;
    }

    async fn receive(&mut self) -> Value {
        self.peer.receive().await.expect("a message")
    }

    async fn asks(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params).await;
        self.receive().await
    }

    /// The names on the page at this cursor, and the next cursor.
    async fn page(&mut self, (method, list, member): (&str, &str, &str), at: &Value) -> (String, Value) {
        let params = if at.is_null() { json!({}) } else { json!({"cursor": at}) };
        let reply = self.asks(method, params).await;
        let entries = reply["result"][list].as_array().unwrap_or_else(|| panic!("{method}: {reply}"));
        let name = |one: &Value| one[member].as_str().unwrap().split(':').next().unwrap().to_owned();
        let names: Vec<String> = entries.iter().map(name).collect();
        (names.join(" "), reply["result"]["nextCursor"].clone())
    }

    /// Watches all lists and these resources.
    async fn listens(&mut self, uris: &[&str]) {
        if self.era == Era::Modern {
            let filter = json!({"toolsListChanged": true, "promptsListChanged": true,
                "resourcesListChanged": true, "resourceSubscriptions": uris});
            let first = self.asks("subscriptions/listen", json!({"notifications": filter})).await;
            // It tells nothing about the resources.
            assert_eq!(first["params"]["notifications"]["resourceSubscriptions"], json!(uris));
            return;
        }
        for uri in uris {
            let reply = self.asks("resources/subscribe", json!({"uri": uri})).await;
            assert_eq!(reply["result"], json!({}), "{uri}");
        }
    }

    /// The next notification: its method, and the URI if it has one.
    async fn notified(&mut self) -> String {
        let message = self.receive().await;
        let method = message["method"].as_str().unwrap_or_else(|| panic!("{message}"));
        let method = method.trim_start_matches("notifications/");
        match message["params"]["uri"].as_str() {
            Some(uri) => format!("{method} {uri}"),
            None => method.to_owned(),
        }
    }
}

#[tokio::test]
async fn each_caller_sees_the_offers_of_its_own() {
    let server = of(&["open", "secret", "last"]).build().unwrap();
    for era in ERAS {
        for (name, expected) in [("admin", "open secret last"), ("guest", "open last"), ("", "open last")] {
            let mut person = Person::open(&server, era, name).await;
            for list in LISTS {
                assert_eq!(
                    person.page(list, &Value::Null).await,
                    (expected.to_owned(), Value::Null),
                    "{list:?}"
                );
            }
        }
    }
}

/// The requests that name an item, with the place of its name.
fn requests(name: &str) -> Vec<(&'static str, Value)> {
    let completes = |reference: Value, argument: &str| {
        ("completion/complete", json!({"ref": reference, "argument": {"name": argument, "value": ""}}))
    };
    vec![
        ("tools/call", json!({"name": name, "arguments": {}})),
        // Not even the faults of arguments tell that it exists.
        ("tools/call", json!({"name": name, "arguments": 7})),
        ("prompts/get", json!({"name": name})),
        ("resources/read", json!({"uri": format!("{name}://r")})),
        ("resources/read", json!({"uri": format!("{name}://1/t")})),
        completes(json!({"type": "ref/prompt", "name": name}), "topic"),
        completes(json!({"type": "ref/prompt", "name": name}), "other"),
        completes(json!({"type": "ref/resource", "uri": format!("{name}://{{id}}/t")}), "id"),
        completes(json!({"type": "ref/resource", "uri": format!("{name}://1/t")}), "id"),
        completes(json!({"type": "ref/resource", "uri": format!("{name}://r")}), "id"),
    ]
}

#[tokio::test]
async fn what_a_caller_does_not_see_is_unknown_to_the_last_letter() {
    let server = of(&["open", "secret"]).build().unwrap();
    for era in ERAS {
        let mut guest = Person::open(&server, era, "guest").await;
        let mut admin = Person::open(&server, era, "admin").await;
        for (hidden, unknown) in requests("secret").into_iter().zip(requests("absent")) {
            let (method, params) = hidden;
            let seen = admin.asks(method, params.clone()).await;
            let refused = guest.asks(method, params.clone()).await;
            let absent = guest.asks(method, unknown.1).await;
            assert!(refused["error"].is_object(), "{era:?} {method} {params}: {refused}");
            assert_eq!(
                refused["error"].to_string(),
                absent["error"].to_string().replace("absent", "secret"),
                "{era:?} {method} {params}"
            );
            assert_ne!(seen["error"], refused["error"], "{era:?} {method} {params}: {seen}");
        }
    }
}

/// A cursor counts what its caller sees: it is the same as if there were nothing else.
#[tokio::test]
async fn pages_are_cut_from_the_list_of_the_caller() {
    let server = of(&["a", "secret-1", "b", "secret-2", "secret-3", "c"]).page_size(2).build().unwrap();
    let without = of(&["a", "b", "c"]).page_size(2).build().unwrap();
    for era in ERAS {
        for list in LISTS {
            let mut guest = Person::open(&server, era, "guest").await;
            let (names, cursor) = guest.page(list, &Value::Null).await;
            assert_eq!(names, "a b");
            let mut other = Person::open(&without, era, "guest").await;
            assert_eq!(other.page(list, &Value::Null).await, (names, cursor.clone()));
            assert_eq!(guest.page(list, &cursor).await, ("c".to_owned(), Value::Null));
            // It is valid for another caller, who may see more behind it; and theirs, where the last item is hidden.
            let mut admin = Person::open(&server, era, "admin").await;
            assert_eq!(admin.page(list, &cursor).await.0, "secret-2 secret-3");
            let (names, theirs) = admin.page(list, &Value::Null).await;
            assert_eq!(names, "a secret-1");
            assert_eq!(guest.page(list, &theirs).await.0, "b c");
        }
    }
}

#[tokio::test]
async fn what_differs_by_caller_is_cached_for_the_caller_only() {
    let hint = CacheHint::public(Duration::from_secs(60));
    let described = tool("described").listed_as(|_, tool| tool.title = Some("Mine".to_owned()));
    let own = async |_: &Ctx| {
        let mut result = wire::ReadResourceResult::new(vec![ResourceContents::text("x://x", "own")]);
        (result.ttl_ms, result.cache_scope) = (wire::Ttl(5), wire::CacheScope::Public);
        result
    };
    let server = Server::builder("cached", "1")
        .cache(hint)
        .tool(described)
        .prompt(prompt("open"))
        .resource(resource("open://r").cache(hint))
        .resource(resource("secret://r").cache(hint).visible_if(is_admin))
        .resource(Resource::new("secret://own", "own", own).visible_if(is_admin))
        .template(template("open://{id}/t").cache(hint))
        .template(template("secret://{id}/t").cache(hint).visible_if(is_admin))
        .build()
        .unwrap();
    let mut admin = Person::open(&server, Era::Modern, "admin").await;
    for (method, params, ttl, scope) in [
        ("server/discover", json!({}), 60_000, "public"),
        ("tools/list", json!({}), 60_000, "private"),
        ("prompts/list", json!({}), 60_000, "public"),
        ("resources/list", json!({}), 60_000, "private"),
        ("resources/templates/list", json!({}), 60_000, "private"),
        ("resources/read", json!({"uri": "open://r"}), 60_000, "public"),
        ("resources/read", json!({"uri": "secret://r"}), 60_000, "private"),
        ("resources/read", json!({"uri": "secret://own"}), 5, "private"),
        ("resources/read", json!({"uri": "open://1/t"}), 60_000, "public"),
        ("resources/read", json!({"uri": "secret://1/t"}), 60_000, "private"),
    ] {
        let result = admin.asks(method, params.clone()).await["result"].take();
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(ttl), &json!(scope)),
            "{method} {params}"
        );
    }
}

/// A notification that does not come is seen by the one behind it.
#[tokio::test]
async fn only_those_whose_list_changed_are_notified() {
    for era in ERAS {
        let server = of(&["open", "secret"]).build().unwrap();
        let uris = ["open://r", "secret://r", "secret://7/t", "absent://r"];
        let mut admin = Person::open(&server, era, "admin").await;
        let mut guest = Person::open(&server, era, "guest").await;
        admin.listens(&uris).await;
        guest.listens(&uris).await;
        type Change = fn(&Server);
        for (change, admin_hears, guest_hears) in [
            (
                (|server| server.add_tool(tool("secret-2").visible_if(is_admin)).unwrap()) as Change,
                "tools/list_changed",
                "",
            ),
            (|server| assert!(server.remove_tool("secret-2")), "tools/list_changed", ""),
            (|server| assert!(server.remove_tool("secret")), "tools/list_changed", ""),
            (|server| assert!(server.remove_tool("open")), "tools/list_changed", "tools/list_changed"),
            (
                |server| server.add_resource(resource("secret-2://r").visible_if(is_admin)).unwrap(),
                "resources/list_changed",
                "",
            ),
            (
                |server| server.add_template(template("secret-2://{id}/t").visible_if(is_admin)).unwrap(),
                "resources/list_changed",
                "",
            ),
            (
                |server| server.list_changed(ListKind::Tools, |_| true),
                "tools/list_changed",
                "tools/list_changed",
            ),
            (|server| server.list_changed(ListKind::Tools, is_admin), "tools/list_changed", ""),
            (
                |server| server.list_changed(ListKind::Resources, |caller| !is_admin(caller)),
                "",
                "resources/list_changed",
            ),
            (
                |server| server.resource_updated("open://r"),
                "resources/updated open://r",
                "resources/updated open://r",
            ),
            (|server| server.resource_updated("secret://r"), "resources/updated secret://r", ""),
            (|server| server.resource_updated("secret://7/t"), "resources/updated secret://7/t", ""),
            (
                |server| server.resource_updated("absent://r"),
                "resources/updated absent://r",
                "resources/updated absent://r",
            ),
        ] {
            change(&server);
            for (person, expected) in [(&mut admin, admin_hears), (&mut guest, guest_hears)] {
                if !expected.is_empty() {
                    assert_eq!(person.notified().await, expected, "{era:?} {}", person.name);
                }
            }
            // What is not expected would come before this one, or as one more after it.
            server.list_changed(ListKind::Prompts, |_| true);
            for person in [&mut admin, &mut guest] {
                assert_eq!(person.notified().await, "prompts/list_changed", "{era:?} {}", person.name);
            }
        }
    }
}

/// Speaks the language of its caller.
fn translated(caller: &CallerInfo, tool: &mut wire::Tool) {
    if is_admin(caller) {
        (tool.title, tool.description) = (Some("Alle".to_owned()), Some("Zählt alle.".to_owned()));
        tool.meta = Some(Meta::default());
        tool.name = "other".to_owned();
        tool.input_schema = wire::JsonSchema::from_value(&json!({"type": "object", "properties": {}}));
        tool.output_schema = None;
    }
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Count {
    count: u32,
}

/// Counts everything.
#[tool(title = "All", listed_as(translated), visible_if(is_anybody))]
async fn count(#[arg(min = 1)] from: u32) -> antiphon::server::Json<Count> {
    antiphon::server::Json(Count { count: from })
}

fn is_anybody(_: &CallerInfo) -> bool {
    true
}

/// A list may change texts: what calls are checked by stays.
#[tokio::test]
async fn descriptions_differ_and_schemas_do_not() {
    let server = Server::builder("described", "1").tool(count).build().unwrap();
    for era in ERAS {
        let mut listed = Vec::new();
        for (name, title, description) in [
            ("guest", "All", "Counts everything."),
            ("admin", "Alle", "Zählt alle."),
            ("guest", "All", "Counts everything."),
        ] {
            let mut person = Person::open(&server, era, name).await;
            let mut entry = person.asks("tools/list", json!({})).await["result"]["tools"][0].take();
            assert_eq!(
                (&entry["title"], &entry["description"]),
                (&json!(title), &json!(description)),
                "{era:?}"
            );
            let members = entry.as_object_mut().unwrap();
            members.retain(|name, _| !matches!(name.as_str(), "title" | "description" | "_meta"));
            assert!(entry["outputSchema"].is_object() && entry["name"] == "count", "{entry}");
            listed.push(entry);
            let reply = person.asks("tools/call", json!({"name": "count", "arguments": {"from": 0}})).await;
            assert_eq!(reply["result"]["isError"], true, "{era:?}: {reply}");
        }
        assert!(listed[0] == listed[1] && listed[1] == listed[2], "{listed:?}");
    }
}

/// A prompt for admins.
#[prompt(visible_if(is_admin), listed_as(translated_prompt))]
async fn wish(topic: String) -> String {
    topic
}

fn translated_prompt(_: &CallerInfo, prompt: &mut wire::Prompt) {
    prompt.title = Some("Wunsch".to_owned());
    prompt.arguments.clear();
}

/// A resource for admins.
#[resource("marked://r", visible_if(is_admin))]
async fn marked() -> ResourceContents {
    ResourceContents::text("marked://r", "read")
}

/// A template for admins.
#[resource("marked://{id}/t", visible_if(is_admin))]
async fn marked_each(id: String) -> ResourceContents {
    ResourceContents::text(format!("marked://{id}/t"), "read")
}

#[tokio::test]
async fn marked_functions_have_the_same_rules() {
    let server = Server::builder("marked", "1").prompt(wish).resource(marked).template(marked_each);
    let server = server.build().unwrap();
    for era in ERAS {
        for (name, expected) in [("admin", [1, 1, 1]), ("guest", [0, 0, 0])] {
            let mut person = Person::open(&server, era, name).await;
            for (list, expected) in LISTS[1..].iter().zip(expected) {
                let reply = person.asks(list.0, json!({})).await;
                let entries = reply["result"][list.1].as_array().unwrap();
                assert_eq!(entries.len(), expected, "{era:?} {name} {list:?}");
                if let (Some(entry), "prompts") = (entries.first(), list.1) {
                    assert_eq!(
                        (&entry["title"], entry["arguments"].as_array().unwrap().len()),
                        (&json!("Wunsch"), 1)
                    );
                }
            }
        }
    }
}

/// Over HTTP the caller has an identity. An item that is hidden has neither scopes nor headers that would tell of it.
#[tokio::test]
async fn http_refuses_what_is_hidden_as_what_is_unknown() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Region {
        #[expect(dead_code, reason = "only its schema is used")]
        #[schemars(extend("x-mcp-header" = "Region"))]
        region: String,
    }
    let is_anna = |caller: &CallerInfo| {
        let is_named = caller.principal().is_some_and(|principal| principal.subject() == Some("anna"));
        // Without a token no scope, over a network.
        is_named
            && caller.is_remote()
            && !caller.has_scope("any")
            && caller.protocol_version() == "2026-07-28"
    };
    let regional = Tool::new("regional", async |_: &Ctx, _: Region| "done");
    let server = Server::builder("hidden", "1")
        .bind_principal(by_header)
        .tool(regional.visible_if(is_anna))
        .tool(tool("scoped").visible_if(is_anna).scopes(["wipe"]))
        .resource(resource("secret://one").visible_if(is_anna).scopes(["wipe"]))
        .resource_updates(true)
        .build()
        .unwrap();
    let service = HttpService::new(server, Default::default());
    let call = async |name: &str, user: &str, region: &[&str]| {
        let params = json!({"name": name, "arguments": {"region": "eu"}});
        let mut message = correct(&request(1, "tools/call", params));
        set(&mut message, "x-user", &[user]);
        set(&mut message, "mcp-param-region", region);
        let reply = post(&service, message).await;
        (reply.status, reply.json()["error"]["code"].as_i64().unwrap_or_default())
    };
    for (name, user, region, expected) in [
        ("regional", "anna@app", &["eu"][..], (200, 0)),
        ("regional", "anna@app", &["us"], (400, -32020)),
        ("regional", "anna@app", &[], (400, -32020)),
        ("regional", "anna@app", &["eu", "eu"], (400, -32020)),
        ("regional", "bert@app", &["eu"], (400, -32602)),
        ("regional", "bert@app", &["us"], (400, -32602)),
        ("regional", "bert@app", &[], (400, -32602)),
        // Nobody who cannot be identified sees it.
        ("regional", "?", &["eu"], (400, -32602)),
        ("scoped", "anna@app", &[], (403, -32600)),
        ("scoped", "bert@app", &[], (400, -32602)),
        ("absent", "bert@app", &[], (400, -32602)),
        ("absent", "?", &[], (400, -32602)),
    ] {
        assert_eq!(call(name, user, region).await, expected, "{name} {user} {region:?}");
    }
    // A subscription is opened for a hidden resource as for an unknown one: no scope tells of it.
    for (user, uri, status) in [
        ("anna@app", "secret://one", 403),
        ("bert@app", "secret://one", 200),
        ("bert@app", "secret://none", 200),
        ("anna@app", "secret://none", 200),
    ] {
        let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
        let mut message = correct(&request(1, "subscriptions/listen", filter));
        set(&mut message, "x-user", &[user]);
        let opened = service.clone().call(message.map(http_body_util::Full::new)).await.unwrap();
        assert_eq!(opened.status().as_u16(), status, "{user} {uri}");
    }
    for (user, expected) in [("anna@app", json!(2)), ("bert@app", json!(0)), ("?", json!(-32603))] {
        let mut message = correct(&request(1, "tools/list", json!({})));
        set(&mut message, "x-user", &[user]);
        let reply = post(&service, message).await.json();
        let count = reply["result"]["tools"].as_array().map(|tools| json!(tools.len()));
        assert_eq!(count.unwrap_or_else(|| reply["error"]["code"].clone()), expected, "{user}");
    }
}

#[tokio::test]
async fn a_rule_that_panics_hides_its_item_and_nothing_else() {
    let server = Server::builder("panics", "1")
        .tool(tool("open"))
        .tool(tool("broken").visible_if(|_| panic!("no rule")))
        .tool(tool("plain").title("Plain").listed_as(|_, tool| {
            tool.title = None;
            panic!("no text")
        }))
        .build()
        .unwrap();
    for era in ERAS {
        let mut admin = Person::open(&server, era, "admin").await;
        let reply = admin.asks("tools/list", json!({})).await;
        assert_eq!(reply["result"]["tools"].as_array().unwrap().len(), 2, "{reply}");
        assert_eq!(reply["result"]["tools"][1]["title"], "Plain");
        let reply = admin.asks("tools/call", json!({"name": "broken"})).await;
        assert_eq!(reply["error"]["message"], "Unknown tool: broken");
    }
}

/// The rule admits each request of a client. A call that has become a task was admitted, and goes on.
#[tokio::test(start_paused = true)]
async fn a_task_goes_on_whose_tool_is_hidden_meanwhile_and_a_round_does_not() {
    for (mode, expected) in [(TaskMode::Required, "true"), (TaskMode::Never, "Unknown tool: agree (-32602)")]
    {
        let is_open = Arc::new(AtomicBool::new(true));
        let rule = Arc::clone(&is_open);
        let agree = Tool::new("agree", async |ctx: &Ctx, _: NoArguments| {
            ctx.confirm("Go on?").await.map(|agreed| agreed.to_string())
        });
        let agree = agree.task(mode).visible_if(move |_| rule.load(Ordering::SeqCst));
        let server = Server::builder("tasks", "1").tool(agree).build().unwrap();
        let client = Client::builder("client", "1").tasks(true);
        let client = client.on_elicit_form(move |ask| {
            is_open.store(false, Ordering::SeqCst);
            async move { Ok(ask.accept(json!({"value": true}))?) }
        });
        let client = memory::connect(server, client);
        let result = client.call_tool("agree", json!({})).await;
        let text = result.map(|result| result.first_text().unwrap_or_default().to_owned());
        let text = text.unwrap_or_else(|error| error.to_string());
        assert!(text.contains(expected), "{mode:?}: {text}");
    }
}
