//! Schemas: the client keeps them unchanged, and fetches nothing for them.

use crate::error::AnyError;
use antiphon::client::Client;
use serde_json::{Value, json};

pub(crate) async fn list_only(client: &Client) -> Result<(), AnyError> {
    let tools = client.list_tools().await?;
    if tools.is_empty() { Err("the list is empty".into()) } else { Ok(()) }
}

/// Sends the schema of one tool to another tool.
pub(crate) async fn echo(client: &Client) -> Result<(), AnyError> {
    let tools = client.list_tools().await?;
    let listed = tools.into_iter().find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema: Value = listed.ok_or("the tool is not listed")?.input_schema.to_value();
    client.call_tool("json_schema_echo", json!({"schema": schema})).await?;
    Ok(())
}
