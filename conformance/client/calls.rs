//! Lists, calls, and the other requests with a name in their headers.

use crate::error::AnyError;
use antiphon::client::Client;
use serde_json::{Value, json};

/// Connects to a server that offers nothing.
pub(crate) async fn handshake(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    client.close().await;
    Ok(())
}

/// Calls a tool whose stream ends before the answer. The client must wait as long as the server says, then fetch the
/// answer.
pub(crate) async fn interrupted(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    succeed(client, "test_reconnection", json!({})).await
}

pub(crate) async fn add_numbers(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    succeed(client, "add_numbers", json!({"a": 5, "b": 3})).await
}

/// Calls a tool, and closes the connection.
pub(crate) async fn succeed(client: &Client, tool: &str, arguments: Value) -> Result<(), AnyError> {
    let result = client.call_tool(tool, arguments).await?;
    client.close().await;
    match result.failed() {
        false => Ok(()),
        true => Err(format!("{tool} failed").into()),
    }
}

/// Sends requests. The server rejects the first one with a list of versions, and must serve the next ones.
pub(crate) async fn request_metadata(client: &Client) -> Result<(), AnyError> {
    client.discover().await?;
    client.list_tools().await?;
    client.call_tool("any_tool", json!({})).await?;
    Ok(())
}

pub(crate) async fn standard_headers(client: &Client) -> Result<(), AnyError> {
    client.discover().await?;
    for tool in client.list_tools().await? {
        client.call_tool(tool.name, json!({})).await?;
    }
    for resource in client.list_resources().await? {
        client.read_resource(resource.uri).await?;
    }
    for prompt in client.list_prompts().await? {
        client.get_prompt(prompt.name, ()).await?;
    }
    Ok(())
}
