//! Attributes of marked functions: what lists show, completion, flattened arguments, results of several kinds.

use crate::common::request;
use antiphon::{
    prompt, resource,
    server::{CacheHint, Caller, Completing, Ctx, Json, Server, State},
    tool,
    wire::{
        CallToolResult, Icon, Resource,
        content::{ImageContent, ResourceContents, ResourceLink},
    },
};
use serde_json::{Value, json};
use std::time::Duration;

const CUP: &str = "https://bar.example/cup.png";

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Found {
    id: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    /// The number of entries.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    limit: u8,
    cursor: Option<String>,
    within: Within,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Within {
    Town,
    Land,
}

fn ten() -> u8 {
    10
}

/// Orders a coffee.
#[tool(
    icon = CUP,
    icon = large(),
    meta = json!({"com.example/unit": "cup"}),
    returns = Found,
    idempotent
)]
async fn order() -> CallToolResult {
    let mut result = CallToolResult::text("ordered");
    result.structured_content = Some(json!({"id": 1}));
    result
}

fn large() -> Icon {
    let mut icon = Icon::new("https://bar.example/large.png");
    icon.sizes = Some(vec!["96x96".to_owned()]);
    icon
}

/// Searches.
#[tool]
async fn search(ctx: &Ctx, word: String, #[arg(flatten)] page: Page) -> String {
    let within = match page.within {
        Within::Town => "town",
        Within::Land => "land",
    };
    format!("{} {word} {} {:?} {within}", ctx.leg(), page.limit, page.cursor)
}

/// Searches, and ignores what it does not know.
#[tool(additional = "ignore")]
async fn browse(#[arg(flatten)] page: Page) -> String {
    page.limit.to_string()
}

/// Draws.
#[tool]
async fn draw(with_text: Option<bool>) -> (Json<Found>, ImageContent, Option<String>) {
    let text = with_text.unwrap_or_default().then(|| "a cup".to_owned());
    (Json(Found { id: 7 }), ImageContent::new("AAAA", "image/png"), text)
}

/// Links.
#[tool]
async fn link() -> antiphon::Result<(&'static str, ResourceLink, ResourceContents)> {
    let contents = ResourceContents::text("menu://today", "tea");
    Ok(("The menu:", ResourceLink::new(Resource::new("menu://today", "today")), contents))
}

/// Takes an order.
#[prompt(icon = CUP, meta = json!({"com.example/unit": "cup"}))]
async fn take(
    #[arg(complete = drinks)] drink: String,
    #[arg(complete = sizes)] size: Option<String>,
) -> String {
    format!("{drink} {size:?}")
}

async fn drinks(typed: Completing) -> Vec<&'static str> {
    ["tea", "coffee"].into_iter().filter(|drink| drink.starts_with(typed.value())).collect()
}

async fn sizes(typed: Completing, sizes: State<Vec<String>>) -> Result<Vec<String>, String> {
    match typed.known("drink") {
        Some("tea") => Err("Tea has one size.".to_owned()),
        _ => Ok(sizes.to_vec()),
    }
}

/// The menu.
#[resource(
    "menu://today",
    title = "Menu",
    mime_type = "text/plain",
    size = 3,
    audience(user, assistant),
    priority = 0.5,
    last_modified = "2026-11-28T12:00:00Z",
    cache = CacheHint::private(Duration::from_secs(60)),
    icon = CUP,
    meta = json!({"com.example/unit": "cup"})
)]
async fn menu() -> ResourceContents {
    ResourceContents::text("menu://today", "tea")
}

/// The menu of a day.
#[resource("menu://{day}/all", priority = 1, audience(user))]
async fn menu_of(#[arg(complete = days)] day: String) -> ResourceContents {
    ResourceContents::text(format!("menu://{day}/all"), "tea")
}

async fn days(_: Completing) -> [&'static str; 2] {
    ["monday", "tuesday"]
}

struct Bar {
    drinks: Vec<&'static str>,
}

#[antiphon::server]
impl Bar {
    /// Recommends a drink.
    #[prompt]
    async fn recommend(&self, #[arg(complete = self.offered)] like: String) -> String {
        format!("{like}, of {}", self.drinks.len())
    }

    async fn offered(&self, typed: Completing) -> Vec<&'static str> {
        self.drinks.iter().copied().filter(|drink| drink.contains(typed.value())).collect()
    }
}

fn server() -> Server {
    Server::builder("bar", "1")
        .state(vec!["small".to_owned(), "large".to_owned()])
        .tool(order)
        .tool(search)
        .tool(browse)
        .tool(draw)
        .tool(link)
        .prompt(take)
        .resource(menu)
        .template(menu_of)
        .with(Bar { drinks: vec!["mocha", "latte"] })
        .build()
        .unwrap()
}

async fn ask(server: &Server, method: &str, params: Value) -> Value {
    let message = request(1, method, params).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

#[tokio::test]
async fn lists_show_what_the_attributes_say() {
    let server = server();
    let (unit, cup) = (json!({"com.example/unit": "cup"}), json!({"src": CUP}));
    for (method, list, at, member, expected) in [
        (
            "tools/list",
            "tools",
            0,
            "icons",
            json!([cup, {"src": "https://bar.example/large.png", "sizes": ["96x96"]}]),
        ),
        ("tools/list", "tools", 0, "_meta", unit.clone()),
        ("tools/list", "tools", 0, "annotations", json!({"idempotentHint": true})),
        ("prompts/list", "prompts", 0, "icons", json!([cup])),
        ("prompts/list", "prompts", 0, "_meta", unit.clone()),
        ("resources/list", "resources", 0, "icons", json!([cup])),
        ("resources/list", "resources", 0, "_meta", unit),
        ("resources/list", "resources", 0, "title", json!("Menu")),
        ("resources/list", "resources", 0, "size", json!(3)),
        ("resources/list", "resources", 0, "mimeType", json!("text/plain")),
        (
            "resources/list",
            "resources",
            0,
            "annotations",
            json!({"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2026-11-28T12:00:00Z"}),
        ),
        (
            "resources/templates/list",
            "resourceTemplates",
            0,
            "annotations",
            json!({"audience": ["user"], "priority": 1.0}),
        ),
    ] {
        let reply = ask(&server, method, json!({})).await;
        assert_eq!(reply["result"][list][at][member], expected, "{method} {member}: {reply}");
    }
    let tools = ask(&server, "tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"][0]["outputSchema"]["required"], json!(["id"]), "{tools}");
    let read = ask(&server, "resources/read", json!({"uri": "menu://today"})).await;
    assert_eq!(read["result"]["ttlMs"], 60_000, "{read}");
}

#[tokio::test]
async fn arguments_are_completed() {
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    let template = json!({"type": "ref/resource", "uri": "menu://{day}/all"});
    let server = server();
    for (reference, argument, value, known, expected) in [
        (prompt("take"), "drink", "", json!({}), json!(["tea", "coffee"])),
        (prompt("take"), "drink", "t", json!({}), json!(["tea"])),
        (prompt("take"), "size", "", json!({"drink": "coffee"}), json!(["small", "large"])),
        (prompt("recommend"), "like", "tt", json!({}), json!(["latte"])),
        (template, "day", "", json!({}), json!(["monday", "tuesday"])),
    ] {
        let params = json!({
            "ref": reference, "argument": {"name": argument, "value": value}, "context": {"arguments": known},
        });
        let reply = ask(&server, "completion/complete", params).await;
        assert_eq!(reply["result"]["completion"]["values"], expected, "{argument}: {reply}");
    }
    let params = json!({
        "ref": prompt("take"), "argument": {"name": "size", "value": ""},
        "context": {"arguments": {"drink": "tea"}},
    });
    let reply = ask(&server, "completion/complete", params).await;
    assert!(reply["error"]["message"].as_str().unwrap().contains("Tea has one size."), "{reply}");

    let without = Server::builder("bar", "1").prompt(take).build().unwrap_err().to_string();
    assert!(without.contains("the prompt `take` takes the state"), "{without}");
}

#[tokio::test]
async fn fields_of_a_flattened_argument_are_arguments() {
    let server = server();
    let all = json!({"word": "tea", "limit": 5, "cursor": "c", "within": "land"});
    for (name, arguments, is_error, text) in [
        ("search", all, false, "1 tea 5 Some(\"c\") land"),
        ("search", json!({"word": "tea", "within": "town"}), false, "1 tea 10 None town"),
        ("search", json!({"word": "tea", "limit": 5.0, "within": "town"}), false, "1 tea 5 None town"),
        ("search", json!({"word": "tea", "within": "town", "limt": 5}), true, "limt"),
        ("search", json!({"word": "tea"}), true, "within"),
        ("search", json!({"word": "tea", "within": "sea"}), true, "within"),
        ("search", json!({"word": "tea", "within": "town", "limit": 51}), true, "limit"),
        (
            "search",
            json!({"word": "tea", "within": "town", "cursor": 5}),
            true,
            "argument `cursor`: invalid type: integer",
        ),
        ("search", json!({"word": "tea", "within": "town", "limit": "five"}), true, "limit: must be"),
        ("search", json!({"word": "tea", "within": 5, "cursor": "c"}), true, "within"),
        ("search", json!({"within": "town"}), true, "word"),
        ("browse", json!({"within": "town", "limt": 5}), false, "10"),
        ("browse", json!({"limit": 5}), true, "within"),
    ] {
        let reply = ask(&server, "tools/call", json!({"name": name, "arguments": arguments})).await;
        let result = &reply["result"];
        assert_eq!(result["isError"].as_bool().unwrap_or_default(), is_error, "{arguments}: {reply}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(text), "{arguments}: {reply}");
    }
    let listed = ask(&server, "tools/list", json!({})).await["result"]["tools"][1]["inputSchema"].take();
    assert_eq!(listed["required"], json!(["word", "within"]));
    assert_eq!(listed["additionalProperties"], json!(false));
    assert_eq!(listed["properties"]["limit"]["description"], "The number of entries.");
    assert_eq!(listed["properties"]["limit"]["maximum"], 50);
    assert!(listed["properties"]["page"].is_null(), "{listed}");
}

/// Only an unknown type reaches the server: the macro refuses the others.
#[test]
fn what_is_no_struct_is_not_flattened() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    enum Choice {
        One { a: u8 },
        Two { b: u8 },
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Word {
        word: String,
    }
    #[tool]
    async fn choose(#[arg(flatten)] choice: Choice) {
        let _ = choice;
    }
    #[tool]
    async fn any(#[arg(flatten)] all: std::collections::BTreeMap<String, u8>) {
        let _ = all;
    }
    #[tool]
    async fn twice(word: String, #[arg(flatten)] other: Word) {
        let _ = (word, other);
    }
    let fault = |built: Result<Server, antiphon::server::BuildError>| built.unwrap_err().to_string();
    let new = || Server::builder("bar", "1");
    for (fault, text) in [
        (fault(new().tool(choose).build()), "`choice` of the tool `choose` cannot be flattened"),
        (fault(new().tool(any).build()), "(its schema has `additionalProperties`)"),
        (fault(new().tool(twice).build()), "two arguments named `word`"),
    ] {
        assert!(fault.contains(text), "{fault}");
    }
}

#[tokio::test]
async fn a_result_has_several_kinds_of_content() {
    let server = server();
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let (json, text) =
        (json!({"type": "text", "text": "{\"id\":7}"}), json!({"type": "text", "text": "a cup"}));
    for (name, arguments, structured, content) in [
        ("draw", json!({}), json!({"id": 7}), json!([json, image])),
        ("draw", json!({"with_text": true}), json!({"id": 7}), json!([json, image, text])),
        (
            "link",
            json!({}),
            Value::Null,
            json!([
                {"type": "text", "text": "The menu:"},
                {"type": "resource_link", "uri": "menu://today", "name": "today"},
                {"type": "resource", "resource": {"uri": "menu://today", "text": "tea"}},
            ]),
        ),
    ] {
        let reply = ask(&server, "tools/call", json!({"name": name, "arguments": arguments})).await;
        assert_eq!(reply["result"]["structuredContent"], structured, "{reply}");
        assert_eq!(reply["result"]["content"], content, "{reply}");
    }
    let tools = ask(&server, "tools/list", json!({})).await["result"]["tools"].take();
    let has_schema = |name: &str| {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name);
        tool.is_some_and(|tool| tool["outputSchema"]["properties"]["id"].is_object())
    };
    assert_eq!((has_schema("draw"), has_schema("link")), (true, false), "{tools}");
}
