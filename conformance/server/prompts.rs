//! Prompts: without and with arguments, with a resource, with an image, and with a question.

use crate::{questions_by_hand, samples};
use antiphon::{
    Error,
    server::{Answer, Ask, Completing, Ctx, NoArguments, Prompt, Reply, ServerBuilder},
    wire::{
        ContentBlock,
        content::{EmbeddedResource, ImageContent, PromptMessage, ResourceContents},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Two {
    /// The first argument.
    arg1: String,
    /// The second argument.
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EmbeddedArguments {
    /// The URI of the resource to embed.
    resource_uri: String,
}

#[derive(Deserialize)]
struct Context {
    context: String,
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .prompt(Prompt::new("test_simple_prompt", simple).description("Says one sentence."))
        .prompt(
            Prompt::new("test_prompt_with_arguments", with_arguments)
                .description("Repeats its arguments.")
                .complete("arg1", async |typed: Completing| beginning_with(&typed)),
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource", with_resource)
                .description("Comes with a resource."),
        )
        .prompt(Prompt::new("test_prompt_with_image", with_image).description("Comes with an image."))
        .prompt(
            Prompt::new("test_input_required_result_prompt", asking_prompt)
                .description("Asks for its context first."),
        )
}

fn beginning_with(typed: &Completing) -> Vec<&'static str> {
    ["test", "testing", "other"].into_iter().filter(|value| value.starts_with(typed.value())).collect()
}

async fn simple(_ctx: &Ctx, _: NoArguments) -> String {
    "This is a simple prompt for testing.".to_owned()
}

async fn with_arguments(_ctx: &Ctx, Two { arg1, arg2 }: Two) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

async fn with_resource(
    _ctx: &Ctx,
    EmbeddedArguments { resource_uri }: EmbeddedArguments,
) -> Vec<PromptMessage> {
    let text = "Embedded resource content for testing.";
    let resource = ResourceContents::text(resource_uri, text).with_mime_type("text/plain");
    vec![
        PromptMessage::user(ContentBlock::Resource(Box::new(EmbeddedResource::new(resource)))),
        PromptMessage::user("Please process the embedded resource above."),
    ]
}

async fn with_image(_ctx: &Ctx, _: NoArguments) -> Vec<PromptMessage> {
    vec![
        PromptMessage::user(ContentBlock::Image(ImageContent::new(samples::PNG, "image/png"))),
        PromptMessage::user("Please analyze the image above."),
    ]
}

async fn asking_prompt(ctx: &Ctx, _: NoArguments) -> Result<Reply<String>, Error> {
    let ask = Ask::form(
        "user_context",
        "What context should the prompt use?",
        questions_by_hand::text_form("context"),
    );
    Ok(match ctx.by_hand().form::<Context>(&ask)? {
        None => ask.into(),
        Some(Answer::Accept(Context { context })) => Reply::Complete(format!("Use this context: {context}")),
        Some(_) => Reply::Complete("Use no context.".to_owned()),
    })
}
