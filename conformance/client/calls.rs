//! Lists, calls, and every other request with a name in its headers.

use crate::AnyError;
use antiphon::client::Client;
use serde_json::{Value, json};

/// The server offers nothing: this is about how one comes to ask it.
pub(crate) async fn handshake(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    client.close().await;
    Ok(())
}

/// The stream of the call's answer ends before the answer. It is to be waited for as long as the server said, and fetched.
pub(crate) async fn interrupted(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    succeed(client, "test_reconnection", json!({})).await
}

pub(crate) async fn add_numbers(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    succeed(client, "add_numbers", json!({"a": 5, "b": 3})).await
}

/// The call of a tool, and the end of the connection.
pub(crate) async fn succeed(client: &Client, tool: &str, arguments: Value) -> Result<(), AnyError> {
    let result = client.call_tool(tool, arguments).await?;
    client.close().await;
    match result.failed() {
        false => Ok(()),
        true => Err(format!("{tool} failed").into()),
    }
}

/// Whatever comes first is refused with a list of versions; what comes after it must be served.
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
