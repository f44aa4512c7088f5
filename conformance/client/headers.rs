//! Arguments that are repeated in headers.

use crate::AnyError;
use antiphon::client::Client;
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::env;

/// What the suite wants to be called, exactly so.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    tool_calls: Vec<ToolCall>,
}

#[derive(Deserialize)]
struct ToolCall {
    name: String,
    arguments: Box<RawValue>,
}

pub(crate) async fn mirrored(client: &Client) -> Result<(), AnyError> {
    let context: Context = serde_json::from_str(&env::var("MCP_CONFORMANCE_CONTEXT")?)?;
    client.list_tools().await?;
    for ToolCall { name, arguments } in context.tool_calls {
        client.call_tool(name, arguments).await?;
    }
    Ok(())
}

/// Calls whatever the list still offers: the tools whose annotations are wrong are not to be in it.
pub(crate) async fn invalid(client: &Client) -> Result<(), AnyError> {
    for tool in client.list_tools().await? {
        client.call_tool(tool.name, json!({"region": "us-west1"})).await?;
    }
    Ok(())
}
