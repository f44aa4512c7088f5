//! Arguments that are repeated in headers.

use crate::error::AnyError;
use antiphon::client::Client;
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::env;

/// The calls that the suite requires, with exactly these arguments.
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

/// Calls every listed tool. Tools with invalid annotations must not be in the list.
pub(crate) async fn invalid(client: &Client) -> Result<(), AnyError> {
    for tool in client.list_tools().await? {
        client.call_tool(tool.name, json!({"region": "us-west1"})).await?;
    }
    Ok(())
}
