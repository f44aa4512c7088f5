//! A client that is asked: what it declares, and what it does with rounds.

use crate::{AnyError, calls};
use antiphon::{
    client::{Call, Client, ClientBuilder, ElicitAsk, Step},
    wire::{CreateMessageResult, ListRootsResult, Root},
};
use serde_json::json;

/// Can be asked anything.
pub(crate) fn by_everything(client: ClientBuilder) -> ClientBuilder {
    confirming(client)
        .on_sample(async |_| Ok(CreateMessageResult::text("conformance", "Paris")))
        .on_roots(async |_| Ok(ListRootsResult::new(vec![Root::new("file:///conformance")])))
}

/// Confirms every form, and opens no URL.
pub(crate) fn confirming(client: ClientBuilder) -> ClientBuilder {
    client.on_elicit(async |ask| match ask {
        ElicitAsk::Form(form) => Ok(form.accept(json!({"confirmed": true}))?),
        ElicitAsk::Url(url) => Ok(url.decline()),
    })
}

/// Accepts every form as it stands.
pub(crate) fn leaving_defaults(client: ClientBuilder) -> ClientBuilder {
    client.on_elicit(async |ask| match ask {
        ElicitAsk::Form(form) => Ok(form.accept(json!({}))?),
        ElicitAsk::Url(url) => Ok(url.decline()),
    })
}

/// What was left out of an answer has a default.
pub(crate) async fn defaults(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    calls::succeed(client, "test_client_elicitation_defaults", json!({})).await
}

/// A call with state and one without, each with an unrelated call between question and answer; and a result that does
/// not say its type.
pub(crate) async fn rounds(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    for tool in ["test_mrtr_echo_state", "test_mrtr_no_state"] {
        let Step::Pending(pending) = client.begin(Call::tool(tool, json!({}))?).await? else {
            return Err(format!("{tool} asked nothing").into());
        };
        client.call_tool("test_mrtr_unrelated", json!({})).await?;
        client.drive(pending).await?;
    }
    client.call_tool("test_mrtr_no_result_type", json!({})).await?;
    Ok(())
}
