//! Tools, a prompt and a resource with one question each, of the kinds that the demo does not ask; and other shapes of
//! results.

use antiphon::{
    Result,
    server::{Answer, Ask, Completing, Ctx, Json, NoArguments, Prompt, Reply, Resource, Tool},
    wire::{
        content::ResourceContents,
        sampling::{CreateMessageParams, SamplingMessage},
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Argument of a tool: a number.
#[derive(Deserialize, JsonSchema)]
struct Amount {
    amount: i64,
}

/// Argument of a tool: a text.
#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// Arguments of a tool: two numbers.
#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(JsonSchema, Serialize)]
struct Total {
    total: i64,
    note: Option<String>,
}

pub(super) fn pay() -> Tool {
    Tool::new("pay", pays).description("Sends the person to a page.")
}

async fn pays(ctx: &Ctx, Amount { amount }: Amount) -> Result<Reply<String>> {
    let page = format!("https://pay.example.com/?amount={amount}");
    let ask = Ask::url("checkout", format!("Pay {amount} EUR on our page"), page);
    Ok(Reply::Complete(match ctx.by_hand().url(&ask) {
        None => return Ok(ask.into()),
        Some(Answer::Accept(())) => format!("Consent to pay {amount} EUR noted."),
        Some(Answer::Decline) => "Not paid: declined.".into(),
        Some(Answer::Cancel) => "Not paid: cancelled.".into(),
    }))
}

/// A sampling question with optional members set, so that a check can compare all of them.
pub(super) fn summary_of(text: &str) -> Ask {
    let mut params = CreateMessageParams::new(vec![SamplingMessage::user(format!("Summarize: {text}"))], 50);
    params.system_prompt = Some("Be brief.".into());
    params.stop_sequences = Some(vec!["END".into()]);
    Ask::sample("summary", params)
}

pub(super) fn summarize() -> Tool {
    Tool::new("summarize", summarizes).description("Asks the model of the client.")
}

async fn summarizes(ctx: &Ctx, Text { text }: Text) -> Result<Reply<String>> {
    let ask = summary_of(&text);
    let Some(message) = ctx.by_hand().sampled(&ask) else { return Ok(ask.into()) };
    let text = message.content.first_text().unwrap_or("nothing");
    Ok(Reply::Complete(format!("{} says: {text}", message.model)))
}

pub(super) fn list_my_roots() -> Tool {
    Tool::new("list_my_roots", lists_roots).description("Asks for the roots of the client.")
}

async fn lists_roots(ctx: &Ctx, _: NoArguments) -> Result<Reply<String>> {
    let ask = Ask::roots("roots");
    let Some(found) = ctx.by_hand().listed_roots(&ask) else { return Ok(ask.into()) };
    let roots: Vec<&str> = found.roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(Reply::Complete(format!("Roots: {}", roots.join(", "))))
}

pub(super) fn structured() -> Tool {
    Tool::new("add", adds).description("Adds; the result is data and holds a null.")
}

async fn adds(_ctx: &Ctx, Pair { a, b }: Pair) -> Json<Total> {
    Json(Total { total: a + b, note: None })
}

pub(super) fn fail() -> Tool {
    Tool::new("fail", fails).description("Fails in the way a tool may.")
}

async fn fails(_ctx: &Ctx, Text { text }: Text) -> std::result::Result<String, String> {
    Err(text)
}

pub(super) fn drafted() -> Prompt {
    Prompt::new("drafted", drafts).description("A prompt that the model of the client drafts.").complete(
        "text",
        async |typed: Completing| {
            ["rust", "ruby", "perl"]
                .into_iter()
                .filter(|name| name.starts_with(typed.value()))
                .collect::<Vec<_>>()
        },
    )
}

async fn drafts(ctx: &Ctx, Text { text }: Text) -> Result<Reply<String>> {
    let ask = summary_of(&text);
    let Some(message) = ctx.by_hand().sampled(&ask) else { return Ok(ask.into()) };
    Ok(Reply::Complete(format!("Work from: {}", message.content.first_text().unwrap_or("nothing"))))
}

pub(super) fn tree() -> Resource {
    Resource::new("tree://mine", "tree", reads_tree).mime_type("text/plain")
}

async fn reads_tree(ctx: &Ctx) -> Result<Reply<ResourceContents>> {
    let ask = Ask::roots("roots");
    let Some(found) = ctx.by_hand().listed_roots(&ask) else { return Ok(ask.into()) };
    let roots: Vec<&str> = found.roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(Reply::Complete(ResourceContents::text("tree://mine", roots.join("\n")).with_mime_type("text/plain")))
}
