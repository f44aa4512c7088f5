//! Features that the suite does not require, for the clients of other SDKs: structured results, a resource that
//! changes, an argument whose header is renamed, and a shutdown on request.

use crate::resources::WATCHED;
use antiphon::server::{
    BuildError, CacheHint, Completing, Ctx, Json, NoArguments, Resource, ResourceTemplate, ServerBuilder,
    Tool,
};
use antiphon::wire::content::ResourceContents;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

const RENAMED_HEADER_TOOL: &str = "test_renamed_header";
const TEMPORARY_RESOURCE: &str = "test://comes-and-goes";
const COUNTER: &str = "test://counted";
const CACHE_TIME: Duration = Duration::from_secs(600);

#[derive(Deserialize, JsonSchema)]
struct Two {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct TypedArguments {
    #[schemars(extend("x-mcp-header" = "Count"))]
    count: Option<i64>,
    #[schemars(extend("x-mcp-header" = "Sure"))]
    sure: Option<bool>,
    #[serde(default)]
    place: Place,
}

#[derive(Default, Deserialize, JsonSchema)]
#[schemars(inline)]
struct Place {
    #[schemars(extend("x-mcp-header" = "Zone"))]
    zone: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Total {
    total: i64,
    /// Always null, as an example of a member that is present and empty.
    note: Option<String>,
}

#[derive(Deserialize)]
struct File {
    dir: String,
    name: String,
}

/// A counted call that waits until this value is dropped.
struct WaitingCall(Arc<AtomicUsize>);

impl WaitingCall {
    fn begin(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(waiting))
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds the tools. `end` is notified when a caller requests a shutdown.
pub(crate) fn add(server: ServerBuilder, end: Arc<Notify>) -> ServerBuilder {
    let (reads, waiting) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let counted = move |_: &Ctx| {
        let reads = reads.fetch_add(1, Ordering::Relaxed) + 1;
        async move { ResourceContents::text(COUNTER, format!("Read {reads} times.")) }
    };
    let waiting_now = Arc::clone(&waiting);
    let wait = move |_: &Ctx, _: NoArguments| {
        let waits = WaitingCall::begin(&waiting);
        async move {
            std::future::pending::<()>().await;
            drop(waits);
        }
    };
    let count_waiting = move |_: &Ctx, _: NoArguments| {
        let waiting = waiting_now.load(Ordering::Relaxed);
        async move { waiting.to_string() }
    };
    let shut_down = move |_: &Ctx, _: NoArguments| {
        end.notify_one();
        async { "The server shuts down." }
    };
    server
        .tool(Tool::new("test_structured", sum).description("Adds two numbers.").returns::<Total>())
        .tool(
            Tool::new("test_wrong_structured", wrong)
                .description("Declares a number and returns a text.")
                .output_schema(&json!({"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]})),
        )
        .tool(Tool::new("test_wait", wait).description("WaitingCall for ever."))
        .tool(Tool::new("test_waiting", count_waiting).description("The number of waiting calls."))
        .resource(Resource::new(COUNTER, "counted", counted).cache(CacheHint::private(CACHE_TIME)))
        .tool(Tool::new("test_trigger_resource_update", update).description("Changes the watched resource."))
        .tool(Tool::new("test_trigger_header_rename", rename).description("Renames a header."))
        .tool(Tool::new("test_trigger_shutdown", shut_down).description("Shuts the server down."))
        .tool(renamed("First"))
        .tool(
            Tool::new("test_typed_headers", typed)
                .description("Has arguments of every kind that a header can repeat."),
        )
        .tool(
            Tool::new("test_trigger_resource_change", change_resources)
                .description("Adds or removes a resource."),
        )
        .template(
            ResourceTemplate::new("test://files/{dir}/{name}", "files", file)
                .description("Files by directory.")
                .complete("name", async |typed: Completing| names(&typed)),
        )
}

async fn sum(_ctx: &Ctx, Two { a, b }: Two) -> Json<Total> {
    Json(Total { total: a + b, note: None })
}

async fn wrong(_ctx: &Ctx, _: NoArguments) -> Json<Value> {
    Json(json!({"total": "many"}))
}

async fn update(ctx: &Ctx, _: NoArguments) -> &'static str {
    ctx.server().resource_updated(WATCHED);
    ctx.server().resource_updated(COUNTER);
    "The watched resource and the counted one changed."
}

async fn rename(ctx: &Ctx, _: NoArguments) -> Result<&'static str, BuildError> {
    let server = ctx.server();
    server.remove_tool(RENAMED_HEADER_TOOL);
    server.add_tool(renamed("Second"))?;
    Ok("The header has another name from now on.")
}

fn renamed(header: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {"value": {"type": "string", "x-mcp-header": header}},
    });
    Tool::with_schema(RENAMED_HEADER_TOOL, schema, echo_value)
        .description("Has an argument whose header changes its name.")
}

async fn echo_value(_ctx: &Ctx, arguments: Map<String, Value>) -> String {
    format!("The value is {}.", arguments.get("value").and_then(Value::as_str).unwrap_or("missing"))
}

/// Returns the arguments as text. `null` is treated as absent.
async fn typed(_ctx: &Ctx, TypedArguments { count, sure, place }: TypedArguments) -> String {
    let word = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let count = word(count.map(|count| count.to_string()));
    let sure = word(sure.map(|sure| sure.to_string()));
    format!("{count} {sure} {}", word(place.zone))
}

async fn change_resources(ctx: &Ctx, _: NoArguments) -> Result<&'static str, BuildError> {
    let server = ctx.server();
    if !server.remove_resource(TEMPORARY_RESOURCE) {
        server.add_resource(Resource::new(TEMPORARY_RESOURCE, "comes-and-goes", passing))?;
    }
    Ok("The resources changed.")
}

async fn passing(_ctx: &Ctx) -> ResourceContents {
    ResourceContents::text(TEMPORARY_RESOURCE, "Here for a while.")
}

fn names(typed: &Completing) -> Vec<&'static str> {
    let all: &[&str] = match typed.known("dir") {
        Some("music") => &["song", "sonata", "tune"],
        Some(_) => &[],
        None => &["song", "sonata", "tune", "sketch"],
    };
    all.iter().copied().filter(|name| name.starts_with(typed.value())).collect()
}

async fn file(_ctx: &Ctx, File { dir, name }: File) -> ResourceContents {
    ResourceContents::text(format!("test://files/{dir}/{name}"), format!("{name} of {dir}"))
}
