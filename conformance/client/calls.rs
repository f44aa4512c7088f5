//! Lists, calls, and every other request with a name in its headers.

use crate::AnyError;
use antiphon::client::Client;
use serde_json::json;

pub(crate) async fn add_numbers(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    let result = client.call_tool("add_numbers", json!({"a": 5, "b": 3})).await?;
    match result.failed() {
        false => Ok(()),
        true => Err("the sum failed".into()),
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
