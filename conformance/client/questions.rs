//! The client's capabilities, and its answers in rounds.

use crate::{calls, error::AnyError};
use antiphon::{
    client::{Call, CallProgress, Client, ClientBuilder, asks::ElicitAsk},
    wire::{
        ElicitResult,
        sampling::{CreateMessageResult, ListRootsResult, Root},
    },
};
use serde_json::json;

/// Adds callbacks for every kind of question.
pub(crate) fn with_all_callbacks(client: ClientBuilder) -> ClientBuilder {
    confirming_forms(client)
        .on_sample(async |_| Ok(CreateMessageResult::text("conformance", "Paris")))
        .on_roots(async |_| Ok(ListRootsResult::new(vec![Root::new("file:///conformance")])))
}

/// Confirms every form, and declines every URL and every other kind.
pub(crate) fn confirming_forms(client: ClientBuilder) -> ClientBuilder {
    client.on_elicit(async |ask| match ask {
        ElicitAsk::Form(form) => Ok(form.accept(json!({"confirmed": true}))?),
        ElicitAsk::Url(url) => Ok(url.decline()),
        _ => Ok(ElicitResult::decline()),
    })
}

/// Accepts every form without values.
pub(crate) fn accepting_defaults(client: ClientBuilder) -> ClientBuilder {
    client.on_elicit(async |ask| match ask {
        ElicitAsk::Form(form) => Ok(form.accept(json!({}))?),
        ElicitAsk::Url(url) => Ok(url.decline()),
        _ => Ok(ElicitResult::decline()),
    })
}

/// Leaves fields out of an answer, so that their defaults apply.
pub(crate) async fn defaults(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    calls::succeed(client, "test_client_elicitation_defaults", json!({})).await
}

/// Makes a call with state and one without, each with an unrelated call between question and answer, and a call whose
/// result has no type.
pub(crate) async fn rounds(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    for tool in ["test_mrtr_echo_state", "test_mrtr_no_state"] {
        let CallProgress::Pending(pending) = client.begin(Call::tool(tool, json!({}))?).await? else {
            return Err(format!("{tool} asked nothing").into());
        };
        client.call_tool("test_mrtr_unrelated", json!({})).await?;
        client.drive(pending).await?;
    }
    client.call_tool("test_mrtr_no_result_type", json!({})).await?;
    Ok(())
}
