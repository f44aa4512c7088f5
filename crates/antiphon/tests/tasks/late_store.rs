//! A store of calls that is late: what a leg has told its task before its reply is stored is not lost.

use crate::client::{TaskClient, text_of};
use antiphon::{
    Clock, Error, Form,
    server::{AskError, Ctx, Server},
    store::{
        Appended, BlobDigest, CallKey, CallStore, Claim, ClaimRequest, Fence, MemoryStore, Micros, Owner,
        StepRecord, StoreClock, StoreFuture, StoreReach, Swept, TaskStore,
    },
    tool,
};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Waits an hour for an answer, after a step: its leg is stored.
#[tool(task = "required")]
async fn hurry(ctx: &Ctx) -> Result<String, Error> {
    ctx.step("work", async |_| Ok(())).await?;
    match ctx.elicit::<Name>("Who?").timeout(Duration::from_secs(3600)).await {
        Err(AskError::Expired { .. }) => Ok("nobody".to_owned()),
        answer => Ok(answer?.name),
    }
}

/// The store of calls stores each reply a second late.
#[derive(Debug)]
struct Late(MemoryStore);

impl CallStore for Late {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.0.claim(request)
    }
    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.0.renew(fence, lease)
    }
    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        self.0.append(fence, record)
    }
    fn commit<'a>(&'a self, fence: &'a Fence, reply: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.0.commit(fence, reply).await
        })
    }
    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        self.0.release(fence)
    }
    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.0.load(call)
    }
    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        self.0.put(blob, keep, owner)
    }
    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.0.get(digest)
    }
    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.0.sweep(limit)
    }
    fn tasks(&self) -> Option<Arc<dyn TaskStore>> {
        self.0.tasks()
    }
    fn reach(&self) -> StoreReach {
        self.0.reach()
    }
}

#[test]
fn a_question_expires_whose_round_was_stored_late() {
    let (clock, hand) = Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let (store_clock, store_hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let store = Late(MemoryStore::new().clock(store_clock));
        let server = Server::builder("tasks", "1").clock(clock).store(store).tool(hurry).build().unwrap();
        let client = TaskClient::of(server);
        let id = client.task("hurry", json!({})).await;
        client.asked(&id, &["name"]).await;
        hand.advance(Duration::from_secs(3602));
        store_hand.advance(Duration::from_secs(3602));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(text_of(&client.status(&id, "completed").await), "nobody");
    });
}
