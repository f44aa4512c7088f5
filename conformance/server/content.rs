//! Tools without questions: one for each kind of content, one that fails, one whose schema must stay unchanged.

use crate::samples;
use antiphon::{
    server::{Ctx, NoArguments, ServerBuilder, Tool},
    wire::{
        CallToolResult, ContentBlock,
        content::{AudioContent, EmbeddedResource, ImageContent, ResourceContents},
    },
};
use serde_json::{Map, Value, json};

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(Tool::new("test_simple_text", simple_text).description("Answers with a text."))
        .tool(Tool::new("test_image_content", image).description("Answers with an image."))
        .tool(Tool::new("test_audio_content", audio).description("Answers with a sound."))
        .tool(Tool::new("test_embedded_resource", embedded).description("Answers with a resource."))
        .tool(
            Tool::new("test_multiple_content_types", multiple)
                .description("Answers with a text, an image and a resource."),
        )
        .tool(Tool::new("test_error_handling", error).description("Always fails."))
        .tool(
            Tool::with_schema("json_schema_2020_12_tool", schema_2020_12(), contact)
                .description("Has a schema with the keywords of JSON Schema 2020-12."),
        )
}

async fn simple_text(_ctx: &Ctx, _: NoArguments) -> &'static str {
    "This is a simple text response for testing."
}

async fn image(_ctx: &Ctx, _: NoArguments) -> ContentBlock {
    ContentBlock::Image(ImageContent::new(samples::PNG, "image/png"))
}

async fn audio(_ctx: &Ctx, _: NoArguments) -> ContentBlock {
    ContentBlock::Audio(AudioContent::new(samples::WAV, "audio/wav"))
}

async fn embedded(_ctx: &Ctx, _: NoArguments) -> ContentBlock {
    let text = "This is an embedded resource content.";
    let resource = ResourceContents::text("test://embedded-resource", text).with_mime_type("text/plain");
    ContentBlock::Resource(Box::new(EmbeddedResource::new(resource)))
}

async fn multiple(_ctx: &Ctx, _: NoArguments) -> Vec<ContentBlock> {
    let data = json!({"test": "data", "value": 123}).to_string();
    let resource =
        ResourceContents::text("test://mixed-content-resource", data).with_mime_type("application/json");
    vec![
        ContentBlock::text("Multiple content types test:"),
        ContentBlock::Image(ImageContent::new(samples::PNG, "image/png")),
        ContentBlock::Resource(Box::new(EmbeddedResource::new(resource))),
    ]
}

async fn error(_ctx: &Ctx, _: NoArguments) -> Result<CallToolResult, &'static str> {
    Err("This tool intentionally returns an error for testing")
}

async fn contact(_ctx: &Ctx, arguments: Map<String, Value>) -> String {
    format!("Called with: {}", Value::Object(arguments))
}

/// Returns the schema that the suite expects in the list, with all its keywords.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
