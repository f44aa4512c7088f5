//! The worst case of the defaults, as docs/limits.md states it.

use crate::{
    identity::caller_info::CLIENT,
    options::limits::{CLIENT_INFO, Limits},
    outbox::MAX_ALL_BYTES,
    quota::UNCOUNTED,
    serve::http::{HttpOptions, connection::LARGE_HEADS, reply::REUSED_FIELDS},
    session::TASKS,
};
use antiphon_store::{MemoryTasks, TaskKey};
use std::path::Path;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The buffers of a connection: 16 KiB for reads, 16 KiB for bytes behind a body, 8 KiB for bytes that are written.
const CONNECTION: usize = 40 * KIB;

/// The map of header fields that a connection keeps between two requests: 104 bytes for each of its fields, and an index.
const HEADER_MAP: usize = REUSED_FIELDS * 128;

/// The bytes of each part in the worst case, from the default values.
fn parts() -> Vec<(&'static str, usize)> {
    let (limits, http) = (Limits::default(), HttpOptions::default());
    vec![
        ("buffers of connections", http.connections * CONNECTION),
        // A head of 32 KiB, in a buffer that grew by half of it.
        ("large heads", LARGE_HEADS * (http.max_head + 16 * KIB)),
        ("header maps of connections", http.connections * HEADER_MAP),
        ("short requests", http.connections * UNCOUNTED),
        // The text, and the arguments that are decoded from it; a task for a subscription, and its copy on the way out.
        ("long requests, and tasks that are sent", 2 * limits.request_bytes),
        ("heads of requests in sessions", limits.session_handlers * 32 * KIB),
        ("records of calls in sessions", limits.session_handlers * limits.engine.state),
        ("clients of sessions", limits.sessions * CLIENT_INFO),
        ("clients of subscriptions", limits.subscriptions * CLIENT),
        ("events of sessions", http.sessions.limits.all_bytes),
        ("messages before replies", MAX_ALL_BYTES),
        // In the subscription, in the registry, and in a notification.
        ("URIs of subscriptions", 3 * limits.all_subscription_uri_bytes),
        ("tasks in memory", MemoryTasks::DEFAULT_MAX_BYTES),
        ("names of tasks in sessions", limits.sessions * TASKS * size_of::<TaskKey>()),
    ]
}

#[test]
fn the_defaults_stay_below_a_gibibyte() {
    let bytes: usize = parts().iter().map(|(_, bytes)| bytes).sum();
    assert!(bytes < 1024 * MIB, "{:#?}", parts());
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
    // A published package does not have the document.
    let Ok(document) = std::fs::read_to_string(document) else { return };
    for (name, bytes) in parts() {
        let row = format!("| {name} | {} MiB |", bytes.div_ceil(MIB));
        assert!(document.contains(&row), "docs/limits.md lacks: {row}");
    }
    let sum = format!("| in all | {} MiB |", bytes.div_ceil(MIB));
    assert!(document.contains(&sum), "docs/limits.md lacks: {sum}");
}
