//! Tools that send notifications (progress, log messages, changes), and completion.

use antiphon::{
    Result,
    server::{
        Answer, Ask, Completing, Ctx, NoArguments, Reply, ResourceTemplate, Server, Tool, asks::InputRequired,
    },
    wire::{
        LogLevel,
        content::ResourceContents,
        forms::{FormField, FormSchema},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::OnceLock;
use tokio::sync::Notify;

/// The server, used by the tool that changes its list of tools.
pub(super) static SERVER: OnceLock<Server> = OnceLock::new();

/// Notified when a call of `hang` is dropped.
static DROPPED: Notify = Notify::const_new();

#[derive(Deserialize, JsonSchema)]
struct To {
    to: u32,
}

#[derive(Deserialize)]
struct Word {
    word: String,
}

#[derive(Deserialize)]
struct Page {
    name: String,
}

pub(super) fn count() -> Tool {
    Tool::new("count", counts).description("Counts with progress notifications.")
}

async fn counts(ctx: &Ctx, To { to }: To) -> String {
    report_steps(ctx, to);
    format!("counted to {to}")
}

fn report_steps(ctx: &Ctx, to: u32) {
    for at in 1..=to {
        ctx.report_progress(at.into(), Some(to.into()), Some(&format!("at {at}")));
    }
}

pub(super) fn count_then_ask() -> Tool {
    Tool::new("count_then_ask", counts_then_asks).description("Progress in each of two legs.")
}

async fn counts_then_asks(ctx: &Ctx, To { to }: To) -> Result<Reply<String>> {
    report_steps(ctx, to);
    let ask = Ask::form("again", "Count again?", FormSchema::new(vec![FormField::text("word")]));
    Ok(match ctx.by_hand().form(&ask)? {
        None => InputRequired::ask(ask).with_state("counted").into(),
        Some(Answer::Accept(Word { word })) => Reply::Complete(format!("counted twice to {to}, said {word}")),
        Some(_) => Reply::Complete(format!("counted twice to {to}")),
    })
}

pub(super) fn chat() -> Tool {
    Tool::new("chat", chats).description("Logs at three levels.")
}

async fn chats(ctx: &Ctx, _: NoArguments) -> &'static str {
    ctx.log(LogLevel::Debug, "a detail");
    ctx.log_as(LogLevel::Warning, "chat", "mind the gap");
    ctx.log(LogLevel::Error, serde_json::json!({"gone": true}));
    "logged"
}

pub(super) fn turn() -> Tool {
    Tool::new("turn", turns).description("Offers the tool `extra`, or no more; tree://mine changes.")
}

async fn turns(_ctx: &Ctx, _: NoArguments) -> std::result::Result<&'static str, String> {
    let server = SERVER.get().ok_or("the server is not set")?;
    server.resource_updated("tree://mine");
    if server.remove_tool("extra") {
        return Ok("removed");
    }
    server.add_tool(Tool::new("extra", extra)).map_err(|error| error.to_string())?;
    Ok("added")
}

async fn extra(_ctx: &Ctx, _: NoArguments) -> &'static str {
    "extra"
}

pub(super) fn hang() -> Tool {
    Tool::new("hang", hangs).description("Says that it began, and never ends.")
}

async fn hangs(ctx: &Ctx, _: NoArguments) -> String {
    struct DropNotice;
    impl Drop for DropNotice {
        fn drop(&mut self) {
            DROPPED.notify_one();
        }
    }
    let _notice = DropNotice;
    ctx.report_progress(1.0, None, None);
    std::future::pending().await
}

pub(super) fn dropped() -> Tool {
    Tool::new("dropped", drops).description("Ends once a call of `hang` was dropped.")
}

async fn drops(_ctx: &Ctx, _: NoArguments) -> &'static str {
    DROPPED.notified().await;
    "dropped"
}

pub(super) fn pages() -> ResourceTemplate {
    ResourceTemplate::new("page://{name}", "page", reads_page).complete("name", async |typed: Completing| {
        let known = (0..250).map(|number| format!("p{number}"));
        known.filter(|name| name.starts_with(typed.value())).collect::<Vec<_>>()
    })
}

async fn reads_page(_ctx: &Ctx, Page { name }: Page) -> ResourceContents {
    ResourceContents::text(format!("page://{name}"), format!("Page {name}."))
}
