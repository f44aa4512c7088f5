//! Functions that several fuzz targets share.

use antiphon::{
    Clock,
    seal::{KeyRing, SecretKey},
    server::{Server, ServerBuilder},
    wire::messages::Incoming,
};
use serde_json::value::RawValue;
use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::runtime::{Builder, Runtime};

/// The time of all tests, in Unix seconds.
pub const NOW: u64 = 1_800_000_000;

/// Returns the time of all tests.
pub fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

/// Returns a runtime whose time stands still while a task can run, and advances when all tasks wait. Each input has its
/// own runtime, whose tasks end with it.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime of one thread")
}

/// Runs a future to its end.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

/// Returns a server builder with the same key and the same clock for every input.
pub fn server() -> ServerBuilder {
    let ring = KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).expect("one key");
    Server::builder("fuzzed", "1.0").keys(ring).clock(Clock::manual(now()).0)
}

/// Counts the answers that each id may receive: one for each message that is a request or cannot be parsed.
pub fn count_requests(text: &[u8], asked: &mut HashMap<String, usize>) {
    let all = messages(text);
    // A batch may be rejected as a whole, and each of its messages too.
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

/// Returns the messages of a batch, or the message itself.
pub fn messages(text: &[u8]) -> Vec<&[u8]> {
    match serde_json::from_slice::<Vec<&RawValue>>(text) {
        Ok(batch) => batch.into_iter().map(|message| message.get().as_bytes()).collect(),
        Err(_) => vec![text],
    }
}
