//! The tool that changes a resource, for the rule about changes.

use antiphon::server::{Ctx, Tool};
use serde::{Deserialize, Serialize};

/// The arguments of the tool that changes a resource.
#[derive(Debug, Deserialize, Serialize, schemars::JsonSchema)]
pub(crate) struct Touched {
    pub(crate) resource: usize,
}

/// Returns the tool that changes a resource. Its reply says that other instances can receive the change.
pub(crate) fn touch() -> Tool {
    Tool::new("touch", async |ctx: &Ctx, touched: Touched| {
        let server = ctx.server();
        server.resource_updated(&uri(touched.resource));
        server.changes_published().await;
        "published"
    })
}

/// Returns the URI of a resource.
pub(crate) fn uri(resource: usize) -> String {
    format!("drill://{resource}")
}
