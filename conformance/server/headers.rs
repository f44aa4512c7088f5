//! A tool with an argument that is repeated in a header.

use antiphon::server::{Ctx, ServerBuilder, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Region {
    /// The region of the work. Optional.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server.tool(Tool::new("test_x_mcp_header", header).description("Has an argument that proxies can read."))
}

async fn header(_ctx: &Ctx, Region { region }: Region) -> String {
    match region {
        Some(region) => format!("The region is {region}."),
        None => "There is no region.".to_owned(),
    }
}
