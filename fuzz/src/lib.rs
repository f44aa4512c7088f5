//! Helpers of the fuzz targets.

use antiphon::{
    Clock,
    seal::{KeyRing, SecretKey},
    server::{Server, ServerBuilder},
    wire::Incoming,
};
use serde_json::value::RawValue;
use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::runtime::{Builder, Runtime};

/// The fixed time of all targets, in seconds since 1970.
pub const NOW: u64 = 1_800_000_000;

/// The fixed time of all targets.
pub fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

/// Creates a runtime with paused time, which advances only if all tasks wait. Each input has its own runtime, so its tasks
/// end with the input.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime of one thread")
}

/// Runs a future to its end.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

/// Creates a server with a fixed key and a fixed clock.
pub fn server() -> ServerBuilder {
    let ring = KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).expect("one key");
    Server::builder("fuzzed", "1.0").keys(ring).clock(Clock::manual(now()).0)
}

/// Records the ids that may be answered, and the number of answers: one per request or unreadable message.
pub fn count_requests(text: &[u8], asked: &mut HashMap<String, usize>) {
    let all = messages(text);
    // The server may refuse a batch as a whole or each message in it.
    let whole = (all.len() > 1 || all[..] != [text]).then_some(text);
    for message in all.into_iter().chain(whole) {
        let id = match Incoming::parse(message) {
            Ok(Incoming::Request(request)) => Some(request.id),
            Ok(_) => None,
            Err(unreadable) => unreadable.id,
        };
        *asked.entry(id.map_or("null".to_owned(), |id| id.to_string())).or_default() += 1;
    }
}

/// Returns the messages of a body: one, or those of a batch.
pub fn messages(text: &[u8]) -> Vec<&[u8]> {
    match serde_json::from_slice::<Vec<&RawValue>>(text) {
        Ok(batch) => batch.into_iter().map(|message| message.get().as_bytes()).collect(),
        Err(_) => vec![text],
    }
}
