//! Resources: text, bytes, one of a template, and one with subscriptions.

use crate::samples;
use antiphon::{
    server::{Ctx, Resource, ResourceTemplate, ServerBuilder},
    wire::content::ResourceContents,
};
use serde::Deserialize;
use serde_json::json;

const STATIC_TEXT: &str = "test://static-text";
const STATIC_BINARY: &str = "test://static-binary";
pub(crate) const WATCHED: &str = "test://watched-resource";

/// The variables of the template.
#[derive(Deserialize)]
struct Data {
    id: String,
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .resource(
            Resource::new(STATIC_TEXT, "static-text", text)
                .description("A text that never changes.")
                .mime_type("text/plain"),
        )
        .resource(
            Resource::new(STATIC_BINARY, "static-binary", binary)
                .description("A picture that never changes.")
                .mime_type("image/png"),
        )
        .resource(
            Resource::new(WATCHED, "watched-resource", watched)
                .description("A text that may change.")
                .mime_type("text/plain"),
        )
        .template(
            ResourceTemplate::new("test://template/{id}/data", "template", data)
                .description("Data by id.")
                .mime_type("application/json"),
        )
}

async fn text(_ctx: &Ctx) -> ResourceContents {
    ResourceContents::text(STATIC_TEXT, "This is the content of the static text resource.")
        .with_mime_type("text/plain")
}

async fn binary(_ctx: &Ctx) -> ResourceContents {
    ResourceContents::blob(STATIC_BINARY, samples::PNG).with_mime_type("image/png")
}

async fn watched(_ctx: &Ctx) -> ResourceContents {
    ResourceContents::text(WATCHED, "This is the watched resource.").with_mime_type("text/plain")
}

async fn data(_ctx: &Ctx, Data { id }: Data) -> ResourceContents {
    let uri = format!("test://template/{id}/data");
    let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
    ResourceContents::text(uri, data.to_string()).with_mime_type("application/json")
}
