//! Descriptions of a server: discovery and the lists.

use crate::common::{Over, fixture, request, send};
use antiphon::{
    server::{Completing, Ctx, NoArguments, Prompt, Resource, ResourceTemplate, Server, Tool},
    wire::{
        Annotations, Icon, Meta, ToolAnnotations,
        content::{PromptArgument, ResourceContents},
    },
};
use serde_json::{Value, json};

async fn ask(server: &Server, method: &str, params: Value) -> Value {
    let (_, over_http) = send(Over::Http, server, &request(1, method, params.clone()), None).await;
    let (_, over_stdio) = send(Over::Stdio, server, &request(1, method, params), None).await;
    assert_eq!(over_http, over_stdio);
    over_http
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "only its schema is looked at")]
struct Order {
    /// The item to order.
    #[schemars(length(min = 1, max = 20))]
    item: String,
    #[schemars(range(min = 1, max = 9))]
    count: u8,
    size: Option<Size>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is looked at")]
enum Size {
    Small,
    Large,
}

fn tool(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| ())
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, async |_: &Ctx, _: NoArguments| String::new())
}

fn resource(uri: &str) -> Resource {
    Resource::new(uri, uri, async |_: &Ctx| ResourceContents::text("x://x", ""))
}

fn template(uri: &str) -> ResourceTemplate {
    ResourceTemplate::new(uri, uri, async |_: &Ctx, _: Value| ResourceContents::text("x://x", ""))
}

#[tokio::test]
async fn discovery_names_what_is_there_and_nothing_else() {
    let bare = || Server::builder("bare", "1.2");
    for (builder, capabilities) in [
        (bare(), json!({})),
        (bare().tool(tool("t")), json!({"tools": {}})),
        (bare().prompt(prompt("p")), json!({"prompts": {}})),
        (bare().resource(resource("x://x")), json!({"resources": {}})),
        (bare().template(template("x://{x}")), json!({"resources": {}})),
        (bare().logging(true), json!({"logging": {}})),
        (bare().resource_updates(true), json!({"resources": {"subscribe": true}})),
        (
            bare().list_changed(true).resource_updates(true),
            json!({
                "tools": {"listChanged": true}, "prompts": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true}
            }),
        ),
        (
            bare().tool(tool("t")).list_changed(true),
            json!({
                "tools": {"listChanged": true}, "prompts": {"listChanged": true},
                "resources": {"listChanged": true}
            }),
        ),
        (
            bare().prompt(
                prompt("p").argument(PromptArgument::optional("a")).complete("a", async |_: Completing| [""]),
            ),
            json!({"prompts": {}, "completions": {}}),
        ),
        (
            bare().template(template("x://{x}").complete("x", async |_: Completing| [""])),
            json!({"resources": {}, "completions": {}}),
        ),
        (
            bare()
                .tool(tool("t"))
                .prompt(prompt("p"))
                .resource(resource("x://x"))
                .template(template("x://{x}")),
            json!({"tools": {}, "prompts": {}, "resources": {}}),
        ),
    ] {
        let reply = ask(&builder.build().unwrap(), "server/discover", json!({})).await;
        let expected = json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bare", "version": "1.2"}}
        });
        assert_eq!(reply, json!({"jsonrpc": "2.0", "id": 1, "result": expected}));
    }
    let told = bare()
        .title("Bare")
        .description("Nothing at all.")
        .website_url("https://bare.example")
        .icon(Icon::new("https://bare.example/icon.png"))
        .instructions("Ask for nothing.")
        .build()
        .unwrap();
    let result = &ask(&told, "server/discover", json!({})).await["result"];
    assert_eq!(result["instructions"], "Ask for nothing.");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"],
        json!({
            "name": "bare", "version": "1.2", "title": "Bare", "description": "Nothing at all.",
            "websiteUrl": "https://bare.example", "icons": [{"src": "https://bare.example/icon.png"}]
        })
    );
}

/// > Method not found: `-32601` (Capability not supported)
#[tokio::test]
async fn methods_of_what_is_not_offered_do_not_exist() {
    let bare = || Server::builder("bare", "1");
    let completing = template("x://{x}").complete("x", async |_: Completing| [""]);
    let servers = [
        ("tools", bare().tool(tool("t"))),
        ("prompts", bare().prompt(prompt("t"))),
        ("resources", bare().resource(resource("t:t"))),
        ("resources", bare().template(template("x://{x}"))),
        ("resources", bare().resource_updates(true)),
        ("resources completions", bare().template(completing)),
        ("tools prompts resources", bare().list_changed(true)),
        ("", bare()),
    ];
    for (offered, builder) in servers {
        let server = builder.build().unwrap();
        for (capability, method) in [
            ("tools", "tools/list"),
            ("tools", "tools/call"),
            ("prompts", "prompts/list"),
            ("prompts", "prompts/get"),
            ("resources", "resources/list"),
            ("resources", "resources/templates/list"),
            ("resources", "resources/read"),
            ("completions", "completion/complete"),
        ] {
            let message = request(1, method, json!({"name": "t", "uri": "t"}));
            let (status, reply) = send(Over::Http, &server, &message, None).await;
            let error = &reply["error"];
            if offered.split(' ').any(|one| one == capability) {
                assert_ne!(error["code"], -32601, "{offered}: {method}: {reply}");
            } else {
                assert_eq!((status, &error["code"]), (404, &json!(-32601)), "{offered}: {method}: {reply}");
                assert_eq!(error["data"], json!({"method": method}));
            }
        }
    }
}

/// A definition can have each member that the schema of the protocol has for it.
#[tokio::test]
async fn a_definition_has_every_member() {
    let icon = || Icon::new("https://a.example/icon.png");
    let meta = || Meta(json!({"com.example/a": 1}).as_object().unwrap().clone());
    let mut hints = ToolAnnotations::default();
    (hints.title, hints.read_only_hint) = (Some("Reads".to_owned()), Some(true));
    let mut annotations = Annotations::default();
    annotations.last_modified = Some("2026-07-28T00:00:00Z".to_owned());
    let mut argument = PromptArgument::required("a");
    (argument.title, argument.description) = (Some("A".to_owned()), Some("What.".to_owned()));
    let server = Server::builder("all", "1")
        .tool(
            tool("t")
                .title("T")
                .description("Does.")
                .annotations(hints)
                .icon(icon())
                .icon(icon())
                .meta(meta())
                .output_schema(&json!({"type": "array", "items": {"type": "string"}})),
        )
        .prompt(prompt("p").title("P").description("Says.").icon(icon()).meta(meta()).argument(argument))
        .resource(
            resource("r://r")
                .title("R")
                .description("Is.")
                .mime_type("text/plain")
                .annotations(annotations.clone())
                .size(7)
                .icon(icon())
                .meta(meta()),
        )
        .template(
            template("m://{x}")
                .title("M")
                .description("Are.")
                .mime_type("text/plain")
                .annotations(annotations)
                .icon(icon())
                .meta(meta()),
        )
        .build()
        .unwrap();
    let icons = json!([{"src": "https://a.example/icon.png"}]);
    let modified = json!({"lastModified": "2026-07-28T00:00:00Z"});
    for (method, list, expected) in [
        (
            "tools/list",
            "tools",
            json!({
                "name": "t", "title": "T", "description": "Does.", "inputSchema": null,
                "annotations": {"title": "Reads", "readOnlyHint": true}, "icons": [icons[0], icons[0]],
                "_meta": {"com.example/a": 1}, "outputSchema": {"type": "array", "items": {"type": "string"}}
            }),
        ),
        (
            "prompts/list",
            "prompts",
            json!({
                "name": "p", "title": "P", "description": "Says.", "icons": icons, "_meta": {"com.example/a": 1},
                "arguments": [{"name": "a", "title": "A", "description": "What.", "required": true}]
            }),
        ),
        (
            "resources/list",
            "resources",
            json!({
                "uri": "r://r", "name": "r://r", "title": "R", "description": "Is.", "mimeType": "text/plain",
                "annotations": modified, "size": 7, "icons": icons, "_meta": {"com.example/a": 1}
            }),
        ),
        (
            "resources/templates/list",
            "resourceTemplates",
            json!({
                "uriTemplate": "m://{x}", "name": "m://{x}", "title": "M", "description": "Are.",
                "mimeType": "text/plain", "annotations": modified, "icons": icons, "_meta": {"com.example/a": 1}
            }),
        ),
    ] {
        let mut listed = ask(&server, method, json!({})).await["result"][list][0].take();
        if list == "tools" {
            listed["inputSchema"] = Value::Null;
        }
        assert_eq!(listed, expected);
    }
}

/// The lists hold everything, in the order it was given, on one page, the same each time.
#[tokio::test]
async fn lists_are_in_the_order_of_registration() {
    let names = ["zebra", "Alpha", "m.1", "b-2", "a_3", "Zebra"];
    let mut builder = Server::builder("lists", "1");
    for name in names {
        builder = builder
            .tool(tool(name))
            .prompt(prompt(name))
            .resource(resource(&format!("one://{name}")))
            .template(template(&format!("many-{}://{{x}}", name.replace('_', "-"))));
    }
    let server = builder.build().unwrap();
    for (method, list, member, prefix) in [
        ("tools/list", "tools", "name", ""),
        ("prompts/list", "prompts", "name", ""),
        ("resources/list", "resources", "uri", "one://"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", "many-"),
    ] {
        let reply = ask(&server, method, json!({})).await;
        let result = &reply["result"];
        let listed: Vec<&str> =
            result[list].as_array().unwrap().iter().map(|one| one[member].as_str().unwrap()).collect();
        assert_eq!(listed.len(), names.len());
        for (listed, name) in listed.iter().zip(names) {
            assert!(listed.starts_with(&format!(
                "{prefix}{}",
                if prefix == "many-" { name.replace('_', "-") } else { name.to_owned() }
            )));
        }
        assert_eq!((&result["resultType"], result.get("nextCursor")), (&json!("complete"), None));
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "lists");
        for same in [json!({"cursor": null}), json!({"unknown": [1]})] {
            assert_eq!(ask(&server, method, same).await, reply, "{method}");
        }
        for cursor in [json!(""), json!("2"), json!(2), json!({})] {
            let reply = ask(&server, method, json!({"cursor": cursor})).await;
            assert_eq!(
                (&reply["error"]["code"], &reply["error"]["message"]),
                (&json!(-32602), &json!("Invalid cursor"))
            );
        }
        let empty = Server::builder("empty", "1").list_changed(true).build().unwrap();
        assert_eq!(ask(&empty, method, json!({})).await["result"][list], json!([]));
    }
}

#[tokio::test]
async fn a_tool_is_listed_with_the_schema_of_its_type() {
    let by_hand = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "x-note": {"b": 1, "a": 2.50},
        "properties": {"b": {"$ref": "#/$defs/b"}, "a": {"type": "integer"}}, "$defs": {"b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "additionalProperties": false
    });
    let server = Server::builder("schemas", "1")
        .tool(Tool::new("order", async |_: &Ctx, _: Order| ()).description("Orders."))
        .tool(tool("none"))
        .tool(Tool::with_schema("by_hand", by_hand.clone(), async |_: &Ctx, _: Value| ()))
        .build()
        .unwrap();
    let listed = ask(&server, "tools/list", json!({})).await["result"]["tools"].take();
    assert_eq!(listed[0]["description"], "Orders.");
    let mut order = schemars::schema_for!(Order);
    order.remove("title");
    let mut order = order.to_value();
    // JSON Schema does not define the formats of numbers.
    assert_eq!(order["properties"]["count"]["format"].take(), "uint8");
    order["properties"]["count"].as_object_mut().unwrap().remove("format");
    assert_eq!(listed[0]["inputSchema"], order);
    assert_eq!(
        listed[0]["inputSchema"]["properties"]["item"],
        json!({"type": "string", "description": "The item to order.", "minLength": 1, "maxLength": 20})
    );
    assert_eq!(listed[0]["inputSchema"]["required"], json!(["item", "count"]));
    assert_eq!(listed[1]["inputSchema"]["type"], "object");
    assert_eq!(listed[1]["inputSchema"]["additionalProperties"], false);
    assert_eq!(listed[2]["inputSchema"].to_string(), by_hand.to_string());
}

#[tokio::test]
async fn a_prompt_is_listed_with_its_arguments() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Greeting {
        /// Whom to greet.
        #[schemars(title = "Name")]
        name: String,
        tone: Option<String>,
    }
    let greet = |name: &str| Prompt::new(name, async |_: &Ctx, _: Greeting| String::new());
    let mut tone = PromptArgument::optional("tone");
    tone.description = Some("How.".to_owned());
    let server = Server::builder("prompts", "1")
        .prompt(greet("greet"))
        .prompt(prompt("none"))
        .prompt(greet("told").argument(tone))
        .build()
        .unwrap();
    let listed = ask(&server, "prompts/list", json!({})).await["result"]["prompts"].take();
    let name = json!({"name": "name", "title": "Name", "description": "Whom to greet.", "required": true});
    assert_eq!(listed[0]["arguments"][0], name);
    assert_eq!(listed[0]["arguments"][1]["name"], "tone");
    assert_ne!(listed[0]["arguments"][1]["required"], true);
    assert!(listed[1].get("arguments").is_none_or(|arguments| arguments == &json!([])));
    // By hand, in its place.
    assert_eq!(listed[2]["arguments"], json!([name, {"name": "tone", "description": "How."}]));
}

#[tokio::test]
async fn what_is_not_there_is_an_error_that_names_it() {
    let server = fixture(|builder| builder).server;
    for (method, params, message, data) in [
        ("tools/call", json!({"name": "no"}), "Unknown tool: no", Value::Null),
        ("tools/call", json!({"name": "Echo"}), "Unknown tool: Echo", Value::Null),
        ("tools/call", json!({}), "params.name is missing", Value::Null),
        ("tools/call", json!({"name": null}), "params.name is missing", Value::Null),
        ("prompts/get", json!({"name": "no"}), "Unknown prompt: no", Value::Null),
        ("prompts/get", json!({"uri": "ask"}), "params.name is missing", Value::Null),
        ("resources/read", json!({"uri": "no://x"}), "Resource not found", json!({"uri": "no://x"})),
        (
            "resources/read",
            json!({"uri": "ask://many/"}),
            "Resource not found",
            json!({"uri": "ask://many/"}),
        ),
        (
            "resources/read",
            json!({"uri": "ask://many/a/b"}),
            "Resource not found",
            json!({"uri": "ask://many/a/b"}),
        ),
        (
            "resources/read",
            json!({"uri": "ask://many/%zz"}),
            "Resource not found",
            json!({"uri": "ask://many/%zz"}),
        ),
        ("resources/read", json!({"uri": ""}), "Resource not found", json!({"uri": ""})),
        ("resources/read", json!({"name": "x"}), "params.uri is missing", Value::Null),
    ] {
        let reply = ask(&server, method, params.clone()).await;
        let error = &reply["error"];
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32602), &json!(message)),
            "{method} {params}"
        );
        assert_eq!(error["data"], data, "{method} {params}");
    }
    let (_, reply) = send(Over::Stdio, &server, &request(1, "tools/call", json!({"name": 7})), None).await;
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["message"]),
        (&json!(-32602), &json!("params.name must be a string"))
    );
}
