//! The time between the reply of a leg and its end in the task: the store of calls is late there, or the process stops.

use crate::{
    client::{TaskClient, text_of},
    common::late_store::{LateStore, Moment},
};
use antiphon::{
    Clock, Error, Form, ManualClock,
    seal::{KeyRing, SecretKey},
    server::{AskError, Ctx, Server},
    store::{CallStore, ManualStoreClock, MemoryStore, StoreClock, calls::Micros},
    tool,
};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{runtime::Runtime, sync::Notify};

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

/// A store of calls that stores each reply a second late; or that of a process that stops when one is stored.
fn late(store: Arc<MemoryStore>, stops: Option<Arc<Notify>>) -> Arc<dyn CallStore> {
    LateStore::new(store, move |moment| {
        let stops = stops.clone();
        async move {
            match (moment, stops) {
                (Moment::BeforeCommit, _) => tokio::time::sleep(Duration::from_secs(1)).await,
                (Moment::AfterCommit, Some(stored)) => {
                    stored.notify_one();
                    std::future::pending().await
                }
                _ => {}
            }
        }
    })
}

/// A process, and the runtime that drives it.
struct Process {
    runtime: Runtime,
    client: TaskClient,
}

/// The clocks of all processes, and their store.
struct Clocks {
    clock: Clock,
    hand: ManualClock,
    store: Arc<MemoryStore>,
    store_hand: ManualStoreClock,
}

impl Clocks {
    fn new() -> Self {
        let (clock, hand) = Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
        let (store_clock, store_hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
        Self { clock, hand, store: Arc::new(MemoryStore::new().clock(store_clock)), store_hand }
    }

    fn process(&self, stops: Option<Arc<Notify>>) -> Process {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        let _entered = runtime.enter();
        let server = Server::builder("tasks", "1")
            .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
            .clock(self.clock.clone())
            .store(late(Arc::clone(&self.store), stops))
            .single_instance(true)
            .tool(hurry)
            .build()
            .unwrap();
        drop(_entered);
        Process { client: TaskClient::of(server), runtime }
    }

    fn advance(&self, time: Duration) {
        self.hand.advance(time);
        self.store_hand.advance(time);
    }

    /// An hour later, the question has expired.
    fn expires(&self, process: &Process, id: &str) {
        process.runtime.block_on(async {
            process.client.asked(id, &["name"]).await;
            self.advance(Duration::from_secs(3602));
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert_eq!(text_of(&process.client.status(id, "completed").await), "nobody");
        });
    }
}

#[test]
fn a_question_expires_whose_round_was_stored_late() {
    let clocks = Clocks::new();
    let process = clocks.process(None);
    let id = process.runtime.block_on(process.client.task("hurry", json!({})));
    clocks.expires(&process, &id);
}

/// The stored round is the reply to the leg that runs again.
#[test]
fn a_question_expires_whose_process_stopped_when_its_round_was_stored() {
    let (clocks, stored) = (Clocks::new(), Arc::new(Notify::new()));
    let (first, second) = (clocks.process(Some(Arc::clone(&stored))), clocks.process(None));
    let id = first.runtime.block_on(async {
        let id = first.client.task("hurry", json!({})).await;
        stored.notified().await;
        id
    });
    clocks.advance(Duration::from_secs(31));
    clocks.expires(&second, &id);
}
