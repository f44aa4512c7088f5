//! Records that are too large for a token live in the store.

use super::*;
use antiphon::server::{Caller, Limits};

/// Records thirty results of 10,000 bytes, then asks.
fn large(effects: &Effects) -> Tool {
    let effects = effects.clone();
    tool(move |ctx| {
        let effects = effects.clone();
        async move {
            for part in 0..30 {
                let text: String = ctx
                    .step(("part", part), async |s| {
                        effects.note("part", s.key());
                        Ok("x".repeat(10_000))
                    })
                    .await?;
                assert_eq!(text.len(), 10_000);
            }
            Ok(ctx.elicit::<Pick>("Which?").key("pick").await?.name)
        }
        .boxed()
    })
}

#[tokio::test]
async fn a_large_record_moves_to_the_store_and_its_token_stays_small() {
    let (effects, (store, _)) = (Effects::default(), store());
    let spilling = |tool| built(tool, &store, |builder| builder.spill(true));
    let servers = [spilling(large(&effects)), spilling(large(&effects))];
    let mut call = ToolCall::new(json!({}));
    let reply = call.leg(&servers[0], Value::Null).await;
    assert!(reply["result"]["inputRequests"]["pick"].is_object(), "{reply}");
    assert!(call.state.as_ref().unwrap().len() < 600);
    assert_eq!(result_text(&deliver(&call, &servers[1], pick("mug")).await), "mug");
    assert_eq!(effects.runs("part"), 30);
}

#[tokio::test]
async fn without_a_spill_the_limit_of_the_token_holds() {
    let (store, _) = store();
    let server = built(large(&Effects::default()), &store, |builder| builder.limits(Limits::default()));
    let mut call = ToolCall::new(json!({}));
    let mut reply = call.leg(&server, Value::Null).await;
    if is_state_only(&reply) {
        reply = call.leg(&server, Value::Null).await;
    }
    assert_eq!((reason(&reply), &reply["error"]["data"]["limit"]), ("limit", &json!("state")), "{reply}");
}

#[tokio::test]
async fn a_record_that_the_store_has_lost_or_that_is_another_call_s_is_refused() {
    let effects = Effects::default();
    let (first, second) = (store().0, store().0);
    let server = built(large(&effects), &first, |builder| builder.spill(true));
    let other = built(large(&effects), &second, |builder| builder.spill(true));
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    let reply = deliver(&call, &other, pick("mug")).await;
    assert_eq!(reason(&reply), "invalid_request_state", "{reply}");
    // A server without a store.
    let none = Server::builder("shop", "1").tool(large(&effects)).keys(common::ring(7)).build().unwrap();
    let message =
        common::request(1, "tools/call", json!({ "name": "t", "requestState": call.state })).to_string();
    let reply = none.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(reason(&reply), "store", "{reply}");
}
