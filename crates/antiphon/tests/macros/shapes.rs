//! Marked functions in every place and every shape: what compiles, and runs.
#![cfg(feature = "macros")]
#![deny(missing_docs, unused_qualifications, clippy::all)]
#![forbid(unsafe_code)]

use crate::common;
use antiphon::{
    prompt, resource,
    server::{
        Caller, Ctx, Json, NoArguments, Prompt, Resource, ResourceTemplate, Server, Service, State, Tool,
    },
    tool,
    wire::{
        ContentBlock,
        content::{PromptMessage, ResourceContents},
    },
};
use serde_json::json;
use std::sync::{Arc, Mutex};

/// Deeply hidden tools.
mod deep {
    pub(crate) mod module {
        use antiphon::tool;

        /// Found by its path.
        #[tool]
        pub(crate) async fn inner() -> &'static str {
            "inner"
        }
    }
}

/// A module may have the name of a tool.
mod same_name {}

#[tool]
async fn same_name() -> String {
    "same".to_owned()
}

/// Names that the expansion uses itself, and a parameter that is called like its function.
#[tool]
async fn states(states: String, outcome: u8, made: bool, this: u8, ctx: &Ctx) -> String {
    format!("{states} {outcome} {made} {this} {}", ctx.leg())
}

#[tool]
async fn ctx(context: &Ctx) -> String {
    context.leg().to_string()
}

#[tool]
async fn outcome(_: &Ctx) -> Vec<ContentBlock> {
    Vec::new()
}

/// No name of the program's own is in the way.
mod shadowed {
    #![allow(dead_code)]
    mod std {}
    mod core {}
    mod antiphon {}
    struct Some;
    struct None;
    struct Ok;
    struct Result;
    struct String;
    struct Vec;
    trait Clone {}
    trait Send {}

    /// Everything named in full.
    #[::antiphon::tool(read_only, needs(url), answer_timeout = "2w", version = 1)]
    pub(super) async fn hidden(
        #[arg(default = ["a"])] words: ::std::vec::Vec<::std::string::String>,
        text: &str,
    ) -> ::std::string::String {
        ::std::format!("{words:?} {text}")
    }
}

#[tool]
async fn lifetimes<'a>(ctx: &'a Ctx, name: &'a str) -> String
where
    'a: 'a,
{
    let _ = ctx;
    name.to_owned()
}

impl antiphon::server::offers::IntoOutcome<antiphon::wire::CallToolResult> for Own {
    fn into_outcome(self) -> antiphon::server::offers::HandlerOutcome<antiphon::wire::CallToolResult> {
        antiphon::server::offers::IntoOutcome::into_outcome("own")
    }
}

/// An outcome of the program's own.
struct Own;

#[tool]
async fn own() -> Own {
    Own
}

/// An error of the program's own, with a conversion of its own.
struct Failure;

impl From<Failure> for antiphon::Error {
    fn from(_: Failure) -> Self {
        Self::user_facing("it failed")
    }
}

#[tool]
async fn fails() -> Result<Json<u8>, Failure> {
    Err(Failure)
}

/// A tool with as many parameters as there may be.
#[tool]
#[allow(clippy::many_single_char_names)]
async fn sixteen(
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    e: u8,
    f: u8,
    g: u8,
    h: u8,
    i: u8,
    j: u8,
    k: u8,
    l: u8,
    m: u8,
    n: u8,
    o: u8,
    p: u8,
) -> String {
    let all = [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p];
    all.map(|one| one.to_string()).join("")
}

macro_rules! made {
    ($name:ident, $argument:ident: $type:ty => $result:expr) => {
        #[tool]
        async fn $name($argument: $type) -> String {
            format!("{} {:?}", $result, $argument)
        }
    };
}

made!(by_macro, count: Option<u8> => "made");

#[prompt(title = "Review")]
async fn review(
    /// The language.
    #[arg(title = "Language", default = "rust")]
    language: String,
    code: &str,
    tone: Option<String>,
    _ctx: &Ctx,
) -> Vec<PromptMessage> {
    vec![PromptMessage::user(format!("{language} {code} {tone:?}"))]
}

#[prompt]
async fn greeting(name: State<Mutex<String>>) -> Result<String, Failure> {
    let name = name.lock().unwrap().clone();
    if name.is_empty() { Err(Failure) } else { Ok(name) }
}

/// The configuration.
#[resource("config://app", mime_type = "text/plain", title = "Configuration")]
async fn config(ctx: &Ctx) -> ResourceContents {
    ResourceContents::text("config://app", ctx.leg().to_string())
}

/// A row.
#[resource("db://{table}/rows/{id}", name = "row")]
async fn row(id: String, table: &str) -> antiphon::Result<Vec<ResourceContents>> {
    if id == "0" {
        return Err(antiphon::Error::resource_not_found());
    }
    Ok(vec![ResourceContents::text(format!("db://{table}/rows/{id}"), format!("{table} {id}"))])
}

/// Something to look into.
trait Db: Send + Sync + 'static {
    fn get(&self, key: &str) -> impl Future<Output = String> + Send;
}

struct Memory;

impl Db for Memory {
    async fn get(&self, key: &str) -> String {
        tokio::task::yield_now().await;
        format!("memory {key}")
    }
}

struct Files<D> {
    db: D,
    opened: Mutex<Vec<String>>,
}

#[antiphon::server]
impl<D: Db> Files<D> {
    /// Not marked, not offered.
    fn note(&self, path: &str) {
        self.opened.lock().unwrap().push(path.to_owned());
    }

    /// Reads a file.
    #[tool(read_only)]
    async fn read(
        &self,
        ctx: &Ctx,
        path: String,
        #[arg(min = 1)] lines: Option<u32>,
    ) -> Result<String, Failure> {
        self.note(&path);
        let found = self.db.get(&path).await;
        Ok(format!("{found} {lines:?} {}", ctx.leg()))
    }

    #[antiphon::tool(name = "files.opened")]
    async fn opened(&self, greeting: State<Mutex<String>>) -> Json<Vec<String>> {
        greeting.lock().unwrap().push('!');
        Json(self.opened.lock().unwrap().clone())
    }

    /// A tool without `&self` is of the type, not of the value.
    #[tool]
    async fn kind() -> &'static str {
        "files"
    }

    #[prompt]
    async fn explain(&self, path: String) -> String {
        self.db.get(&path).await
    }

    #[resource("file:///{path}")]
    async fn file(&self, path: &str) -> ResourceContents {
        ResourceContents::text(format!("file:///{path}"), self.db.get(path).await)
    }

    #[resource("log://{service}{/path*}{?since,level*}")]
    async fn log(
        &self,
        level: Vec<String>,
        service: &str,
        path: Vec<String>,
        since: Option<String>,
    ) -> ResourceContents {
        ResourceContents::text("log://", format!("{service} {path:?} {since:?} {level:?}"))
    }

    #[resource("find://{+place}{?q}")]
    async fn find(&self, place: String, q: &str) -> ResourceContents {
        ResourceContents::text("find://", format!("{place} {q}"))
    }

    #[resource("file:///")]
    async fn root(&self) -> ResourceContents {
        ResourceContents::text("file:///", "all")
    }
}

fn everything() -> Server {
    Server::builder("shapes", "1.0")
        .tool(deep::module::inner)
        .tool(same_name)
        .tool(states)
        .tool(ctx)
        .tool(outcome)
        .tool(shadowed::hidden)
        .tool(lifetimes)
        .tool(fails)
        .tool(own)
        .tool(sixteen)
        .tool(by_macro)
        .tool(Tool::new("value", async |_: &Ctx, _: NoArguments| "value"))
        .prompt(review)
        .prompt(greeting)
        .prompt(Prompt::new("value", async |_: &Ctx, _: NoArguments| "value".to_owned()))
        .resource(config)
        .template(row)
        .resource(Resource::new("value://one", "value", async |_: &Ctx| Vec::<ResourceContents>::new()))
        .template(ResourceTemplate::new(
            "value://many/{x}",
            "values",
            async |_: &Ctx, _: serde_json::Value| Vec::<ResourceContents>::new(),
        ))
        .with(Files { db: Memory, opened: Mutex::default() })
        .state(Mutex::new("Ada".to_owned()))
        .build()
        .unwrap()
}

async fn respond(server: &Server, method: &str, params: serde_json::Value) -> serde_json::Value {
    let message = common::request(1, method, params).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

#[tokio::test]
async fn tools_in_every_place() {
    let server = everything();
    let letters: serde_json::Map<String, serde_json::Value> =
        ('a'..='p').enumerate().map(|(n, letter)| (letter.to_string(), (n % 10).into())).collect();
    for (name, arguments, expected) in [
        ("inner", json!({}), "inner"),
        ("same_name", json!({}), "same"),
        ("states", json!({"states": "s", "outcome": 1, "made": true, "this": 2}), "s 1 true 2 1"),
        ("ctx", json!({}), "1"),
        ("hidden", json!({"text": "t"}), r#"["a"] t"#),
        ("lifetimes", json!({"name": "n"}), "n"),
        ("fails", json!({}), "it failed"),
        ("own", json!({}), "own"),
        ("sixteen", letters.into(), "0123456789012345"),
        ("by_macro", json!({"count": 3}), "made Some(3)"),
        ("value", json!({}), "value"),
        ("read", json!({"path": "a.txt"}), "memory a.txt None 1"),
        ("files.opened", json!({}), r#"["a.txt"]"#),
        ("kind", json!({}), "files"),
    ] {
        let reply = respond(&server, "tools/call", json!({"name": name, "arguments": arguments})).await;
        assert_eq!(reply["result"]["content"][0]["text"], expected, "{name}: {reply}");
    }
}

#[tokio::test]
async fn prompts_take_texts() {
    let server = everything();
    for (name, arguments, expected) in [
        ("review", json!({"code": "fn"}), "rust fn None"),
        ("review", json!({"code": "fn", "language": "c", "tone": "kind"}), r#"c fn Some("kind")"#),
        ("greeting", json!({}), "Ada"),
        ("explain", json!({"path": "p"}), "memory p"),
        ("value", json!({}), "value"),
    ] {
        let reply = respond(&server, "prompts/get", json!({"name": name, "arguments": arguments})).await;
        assert_eq!(reply["result"]["messages"][0]["content"]["text"], expected, "{name}: {reply}");
    }
    let reply = respond(&server, "prompts/get", json!({"name": "review", "arguments": {}})).await;
    assert_eq!(reply["error"]["message"], "The argument `code` is missing", "{reply}");
    let reply = respond(&server, "prompts/list", json!({})).await;
    let review = &reply["result"]["prompts"][0];
    assert_eq!(review["title"], "Review");
    assert_eq!(
        review["arguments"],
        json!([
            {"name": "language", "title": "Language", "description": "The language."},
            {"name": "code", "required": true},
            {"name": "tone"},
        ])
    );
}

#[tokio::test]
async fn resources_and_templates_by_their_uris() {
    let server = everything();
    for (uri, expected) in [
        ("config://app", "1"),
        ("db://users/rows/7", "users 7"),
        ("file:///a%20b", "memory a b"),
        ("file:///", "all"),
        ("log://api/a/b%2Fc", r#"api ["a", "b/c"] None []"#),
        ("log://api/a?level=x&since=1&level=y", r#"api ["a"] Some("1") ["x", "y"]"#),
        ("find://a/b?q=c", "a/b c"),
    ] {
        let reply = respond(&server, "resources/read", json!({"uri": uri})).await;
        assert_eq!(reply["result"]["contents"][0]["text"], expected, "{uri}: {reply}");
    }
    // A parameter that must be there.
    let reply = respond(&server, "resources/read", json!({"uri": "find://a"})).await;
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    let reply = respond(&server, "resources/read", json!({"uri": "db://users/rows/0"})).await;
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    let reply = respond(&server, "resources/list", json!({})).await;
    let config = &reply["result"]["resources"][0];
    assert_eq!((&config["name"], &config["mimeType"]), (&json!("config"), &json!("text/plain")));
    assert_eq!(
        (&config["title"], &config["description"]),
        (&json!("Configuration"), &json!("The configuration."))
    );
    let reply = respond(&server, "resources/templates/list", json!({})).await;
    let row = &reply["result"]["resourceTemplates"][0];
    assert_eq!((&row["name"], &row["uriTemplate"]), (&json!("row"), &json!("db://{table}/rows/{id}")));
}

#[tokio::test]
async fn functions_and_methods_are_called_as_before() {
    assert_eq!(deep::module::inner().await, "inner");
    let (one, two) = tokio::join!(same_name(), deep::module::inner());
    assert_eq!((one.as_str(), two), ("same", "inner"));
    let spawned = tokio::spawn(by_macro(Some(1))).await.unwrap();
    assert_eq!(spawned, "made Some(1)");
    let contents = row("1".to_owned(), "t").await.unwrap();
    assert_eq!(contents.len(), 1);
    let files = Files { db: Memory, opened: Mutex::default() };
    assert_eq!(files.explain("p".to_owned()).await, "memory p");
    // A variable may be named like a tool.
    let same_name = same_name().await;
    assert_eq!(same_name, "same");
    // A marked function has no size of its own beyond its future's.
    let (marked, plain) = (size_of_val(&review_future()), size_of_val(&plain_future()));
    assert_eq!(marked, plain);
}

#[tool]
async fn review_body(text: String) -> usize_text {
    tokio::task::yield_now().await;
    text
}

/// So that the return types agree.
#[allow(non_camel_case_types)]
type usize_text = String;

fn review_future() -> impl Future<Output = String> {
    review_body("a".to_owned())
}

fn plain_future() -> impl Future<Output = String> {
    async fn plain(text: String) -> String {
        tokio::task::yield_now().await;
        text
    }
    plain("a".to_owned())
}

/// A type that offers, by name.
fn is_service<S: Service>(service: S) -> Arc<S> {
    Arc::new(service)
}

#[test]
fn a_service_is_known_by_its_trait() {
    let files = is_service(Files { db: Memory, opened: Mutex::default() });
    assert!(files.opened.lock().unwrap().is_empty());
}

struct Database(&'static str);

#[antiphon::server]
impl Database {
    /// Tells where the database lives.
    #[antiphon::tool]
    async fn region(&self) -> String {
        self.0.to_owned()
    }

    /// Describes the database.
    #[antiphon::prompt]
    async fn describe(&self) -> String {
        format!("A database in {}.", self.0)
    }
}

#[tokio::test]
async fn two_values_of_one_type_have_prefixes() {
    let built = |second: &str| {
        Server::builder("databases", "1")
            .with_prefix("eu_", Database("eu-west-1"))
            .with_prefix(second, Database("us-east-1"))
            .build()
    };
    let server = built("us_").unwrap();
    for (method, name, text) in [
        ("tools/call", "eu_region", "eu-west-1"),
        ("tools/call", "us_region", "us-east-1"),
        ("prompts/get", "us_describe", "A database in us-east-1."),
    ] {
        let message = common::request(1, method, json!({"name": name})).to_string();
        let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
        let reply = String::from_utf8(reply.body).unwrap();
        assert!(reply.contains(text), "{name}: {reply}");
    }
    assert_eq!(built("eu_").unwrap_err().to_string(), "there are two tools named `eu_region`: rename one");
}
