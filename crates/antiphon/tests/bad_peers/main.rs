//! Peers that do what they must not: every call ends in time, with a good result or an error that says what it was, and
//! leaves no task and no open file behind.
#![cfg(all(feature = "http", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod child;
mod http;
mod streams;

use antiphon::{
    client::{
        Call, Client, ClientErrorKind, Mode,
        calls::RequestFault,
        transport::{Transport, TransportErrorKind as Kind},
    },
    wire::ProtocolVersion,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CallEnd {
    Good,
    /// The server's error code.
    Refused(i64),
    Failed(Kind),
    /// The call's own timeout ended it.
    Timeout,
    /// The result is none of this method.
    BadResult,
}

/// The timeout of calls that must end by it, and of all others.
const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(30);

fn limit_of(expected: CallEnd) -> Duration {
    if expected == CallEnd::Timeout { SHORT } else { LONG }
}

/// One call through a client, as an application makes it.
async fn call(transport: Arc<dyn Transport>, limit: Duration) -> CallEnd {
    let modern = Mode::Pinned(ProtocolVersion::V2026_07_28);
    let client = Client::builder("my-host", "1.0").mode(modern).connect(transport);
    let call = Call::tool("x", ()).unwrap().leg_timeout(limit);
    match client.call(call).await {
        Ok(_) => CallEnd::Good,
        Err(error) => match error.kind() {
            ClientErrorKind::Request(RequestFault::Transport(error)) => CallEnd::Failed(error.kind()),
            ClientErrorKind::Request(RequestFault::Server(error)) => CallEnd::Refused(error.code.0),
            ClientErrorKind::Request(RequestFault::Timeout(_)) => CallEnd::Timeout,
            ClientErrorKind::Request(RequestFault::Result { .. }) => CallEnd::BadResult,
            other => panic!("{other:?}"),
        },
    }
}

/// The result of a call that went well, to the request of id 1.
const GOOD: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#;

/// The numbers of live tasks and open files.
fn alive() -> (usize, usize) {
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    (tasks, std::fs::read_dir("/proc/self/fd").unwrap().count())
}

/// Waits until nothing is alive that was not alive before.
async fn settles(name: &str, before: (usize, usize)) {
    let settled = async {
        while alive() != before {
            tokio::task::yield_now().await;
        }
    };
    let limit = std::time::Instant::now() + LONG;
    tokio::select! {
        biased;
        () = settled => {}
        () = async { while std::time::Instant::now() < limit { tokio::task::yield_now().await } } => {
            panic!("{name}: {:?} (tasks, files) are alive instead of {before:?}", alive());
        }
    }
}

/// Runs one test alone in this process: open files are counted.
fn alone(paused: bool, test: impl Future<Output = ()>) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(paused).build().unwrap();
    runtime.block_on(test);
}
