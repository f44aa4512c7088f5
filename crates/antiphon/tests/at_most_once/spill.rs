//! Records that are too large for a token live in the store.

use super::*;
use antiphon::{
    server::{Caller, Limits, steps::Attempt},
    store::{
        StoreError, StoreErrorKind, StoreFuture,
        calls::{
            Appended, BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner, StepRecord, StoreReach, Swept,
        },
    },
};
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

/// A store that may refuse blobs.
#[derive(Debug)]
struct NoBlobs {
    inner: Arc<dyn CallStore>,
    refuses: AtomicBool,
    changes: Option<Change>,
}

/// A function that returns something in the place of a blob.
type Change = fn(Vec<u8>) -> Result<Vec<u8>, StoreError>;

fn no_blobs(changes: Option<Change>) -> (Arc<NoBlobs>, Arc<dyn CallStore>) {
    let store = Arc::new(NoBlobs { inner: store().0, refuses: AtomicBool::new(false), changes });
    (Arc::clone(&store), store)
}

impl CallStore for NoBlobs {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.inner.claim(request)
    }
    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.inner.renew(fence, lease)
    }
    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        self.inner.append(fence, record)
    }
    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        self.inner.commit(fence, outcome)
    }
    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        self.inner.release(fence)
    }
    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.inner.load(call)
    }
    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        if self.refuses.load(SeqCst) {
            let error = StoreError::read(StoreErrorKind::Unreachable, "put", "the store is down");
            return Box::pin(async { Err(error) });
        }
        self.inner.put(blob, keep, owner)
    }
    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            let stored = self.inner.get(digest).await?;
            stored.map(self.changes.unwrap_or(Ok)).transpose()
        })
    }
    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.inner.sweep(limit)
    }
    fn reach(&self) -> StoreReach {
        self.inner.reach()
    }
}

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

/// Asks, runs a step with a large result, and asks again. The record of the step does not reach the store.
async fn without_its_record(level: impl Fn(ServerBuilder) -> ServerBuilder) -> (Effects, Value, Value) {
    let effects = Effects::default();
    let of_tool = effects.clone();
    let tool = tool(move |ctx| {
        let effects = of_tool.clone();
        async move {
            ctx.elicit::<Pick>("Which?").key("pick").await?;
            let charge = async |s: Attempt| {
                effects.note("charge", s.key());
                Ok("x".repeat(10_000))
            };
            ctx.step("charge", charge).await?;
            Ok(ctx.elicit::<Pick>("And then?").key("then").await?.name)
        }
        .boxed()
    });
    let (store, shared) = no_blobs(None);
    let server =
        built(tool, &shared, |builder| level(builder.spill(true).limits(Limits::default().state(1000))));
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    store.refuses.store(true, SeqCst);
    let first = deliver(&call, &server, pick("a")).await;
    store.refuses.store(false, SeqCst);
    let again = deliver(&call, &server, pick("a")).await;
    (effects, first, again)
}

#[tokio::test]
async fn a_leg_whose_record_does_not_reach_the_store_goes_on_with_its_stored_steps() {
    let (effects, first, again) = without_its_record(|builder| builder.write_ahead(true)).await;
    assert_eq!(reason(&first), "store", "{first}");
    assert!(again["result"]["inputRequests"]["then"].is_object(), "{again}");
    assert_eq!(effects.runs("charge"), 1);
}

#[tokio::test]
async fn a_leg_whose_record_is_lost_does_not_ask_for_the_same_request_again() {
    let (effects, first, again) = without_its_record(|builder| builder.single_use(true)).await;
    assert_eq!(reason(&first), "outcome_unknown", "{first}");
    assert_eq!(first["error"]["data"], json!({ "reason": "outcome_unknown", "done": ["charge"] }));
    assert_eq!(again["error"], first["error"]);
    assert_eq!(effects.runs("charge"), 1);
}

/// A record that was changed in the store can never come back: the client is not told to send its request again. A store that is down
/// is another matter.
#[tokio::test]
async fn a_record_that_was_changed_in_the_store_is_refused_for_good() {
    for (what, change, expected) in [
        (
            "the store finds another digest",
            (|_| Err(StoreError::read(StoreErrorKind::Corrupt, "get", "another digest"))) as Change,
            "invalid_request_state",
        ),
        (
            "one bit",
            |mut bytes| {
                bytes[40] ^= 1;
                Ok(bytes)
            },
            "invalid_request_state",
        ),
        ("nothing is left", |_| Ok(Vec::new()), "invalid_request_state"),
        ("half is left", |bytes| Ok(bytes[..bytes.len() / 2].to_vec()), "invalid_request_state"),
        ("no text", |bytes| Ok(vec![0xff; bytes.len()]), "invalid_request_state"),
        ("the store is down", |_| Err(StoreError::read(StoreErrorKind::Unreachable, "get", "down")), "store"),
        ("the store is slow", |_| Err(StoreError::read(StoreErrorKind::Timeout, "get", "slow")), "store"),
    ] {
        let effects = Effects::default();
        let (_, store) = no_blobs(Some(change));
        let server = built(large(&effects), &store, |builder| builder.spill(true));
        let mut call = ToolCall::new(json!({}));
        call.leg(&server, Value::Null).await;
        for _ in 0..2 {
            let reply = deliver(&call, &server, pick("mug")).await;
            assert_eq!(reason(&reply), expected, "{what}: {reply}");
        }
        assert_eq!(effects.runs("part"), 30, "{what}");
    }
}
