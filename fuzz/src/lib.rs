//! What several fuzz targets use.

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

/// Seconds since 1970 at which everything happens.
pub const NOW: u64 = 1_800_000_000;

/// The time at which everything happens.
pub fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

/// A runtime whose time stands still while something can run, and goes on by itself where all wait. One for each input:
/// what it leaves running ends with it.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime of one thread")
}

/// Runs this to its end.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

/// A server of which every input meets the same: its key and its clock.
pub fn server() -> ServerBuilder {
    let ring = KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).expect("one key");
    Server::builder("fuzzed", "1.0").keys(ring).clock(Clock::manual(now()).0)
}

/// Notes which ids may be answered, and how often: once for each message that asks something, or cannot be read.
pub fn count_requests(text: &[u8], asked: &mut HashMap<String, usize>) {
    let all = messages(text);
    // A batch may be refused as a whole, and so may each of what is in it.
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

/// The message that this is, or those of a batch.
pub fn messages(text: &[u8]) -> Vec<&[u8]> {
    match serde_json::from_slice::<Vec<&RawValue>>(text) {
        Ok(batch) => batch.into_iter().map(|message| message.get().as_bytes()).collect(),
        Err(_) => vec![text],
    }
}
