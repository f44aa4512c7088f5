//! The server as a host sees it.

use crate::{CARD, server};
use antiphon::{
    client::Client,
    memory,
    server::apps::{EXTENSION, MIME_TYPE},
    wire::Tool,
};
use serde_json::json;

#[tokio::test]
async fn a_host_shows_the_card_and_others_read_the_text() -> Result<(), Box<dyn std::error::Error>> {
    let host = Client::builder("host", "1.0").extension(EXTENSION, json!({"mimeTypes": [MIME_TYPE]}))?;
    let host = memory::connect(server()?, host);
    assert!(host.server_extension::<serde_json::Value>(EXTENSION).await?.is_some());
    let tools = host.list_tools().await?;
    let ui = |tool: &Tool| tool.meta.as_ref().map(|meta| meta.0["ui"].clone());
    assert_eq!(ui(&tools[0]), Some(json!({"resourceUri": CARD})));
    assert_eq!(ui(&tools[1]), Some(json!({"resourceUri": CARD, "visibility": ["app"]})));

    let card = host.read_resource(CARD).await?.contents.remove(0);
    assert_eq!(card.mime_type.as_deref(), Some(MIME_TYPE));
    assert_eq!(card.meta.map(|meta| meta.0["ui"].clone()), Some(json!({"prefersBorder": true})));
    assert!(card.uri == CARD);

    let other = memory::connect(server()?, Client::builder("other", "1.0"));
    for (client, blocks) in [(host, 1), (other, 2)] {
        let result = client.call_tool("weather", json!({"city": "Rome"})).await?;
        assert_eq!(result.structured_content, Some(json!({"city": "Rome", "degrees": 21})));
        assert_eq!(result.content.len(), blocks, "the last block is the text for those who see no card");
    }
    Ok(())
}
