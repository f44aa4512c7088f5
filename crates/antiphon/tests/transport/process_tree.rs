//! The processes that a child starts: nothing of them is left when the transport is closed or dropped.
#![cfg(unix)]

use crate::transport_support::{Outcome, ask, request, soon};
use antiphon::client::transport::{ChildCommand, ChildTransport, Transport};
use serde_json::json;
use std::{
    fs::{self, File},
    io::Read as _,
    process::Command,
    time::Duration,
};

/// The end of a transport.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Close,
    Drop,
    /// The request after the child's own end starts another one.
    Restart,
}

/// Answers one request of id 1.
const ANSWER: &str = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{"ok":true}}'"#;
/// Ignores SIGTERM, and reads no input.
const STUBBORN: &str = r#"sh -c 'trap "" TERM; exec sleep 600'"#;

/// Every process of the script inherits the writing end of a FIFO, whose reading end ends with the last of them.
async fn check(name: &str, script: &str, ends: &[End]) {
    for (number, end) in ends.iter().enumerate() {
        let fifo = std::env::temp_dir().join(format!(
            "antiphon-tree-{}-{number}-{}",
            std::process::id(),
            name.len()
        ));
        let _ = fs::remove_file(&fifo);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let script = format!("[ -p \"$FIFO\" ] && exec 9>\"$FIFO\"; {script}");
        let command = ChildCommand::new("sh").args(["-c", &script]).env("FIFO", &fifo);
        let child = ChildTransport::spawn(command.grace(Duration::from_millis(200))).unwrap();
        let mut pipe = tokio::task::spawn_blocking({
            let fifo = fifo.clone();
            move || File::open(fifo)
        })
        .await
        .unwrap()
        .unwrap();
        // Another child has no FIFO.
        fs::remove_file(&fifo).unwrap();
        let ok = Outcome::Result(json!({"ok": true}));
        assert_eq!(ask(&child, request(1, "tools/call")).await.0, ok, "{name}");
        let (gone, mut is_gone) = tokio::sync::oneshot::channel();
        // A thread of its own: the runtime would wait for it if the test fails.
        std::thread::spawn(move || gone.send(pipe.read_to_end(&mut Vec::new())));
        match end {
            End::Close => soon(child.close()).await,
            End::Drop => drop(child),
            End::Restart => {
                // The next child answers id 1 again, as soon as the end of this one is known.
                while child.id().is_some() {
                    tokio::task::yield_now().await;
                }
                assert_eq!(ask(&child, request(1, "tools/call")).await.0, ok, "{name}");
            }
        }
        let gone = tokio::time::timeout(Duration::from_secs(10), &mut is_gone).await;
        assert!(gone.is_ok(), "{name}, {end:?}: a process is left");
    }
}

#[tokio::test]
async fn nothing_of_a_process_tree_is_left_behind() {
    use End::{Close, Drop, Restart};
    let both = &[Close, Drop][..];
    for (name, script, ends) in [
        ("a launcher that waits for its server", format!("{ANSWER}; sleep 600; true"), both),
        ("a server behind it that ignores the end and SIGTERM", format!("{ANSWER}; {STUBBORN}; true"), both),
        ("a background job", format!("sleep 600 & {ANSWER}; cat > /dev/null"), both),
        (
            "a background job without pipes",
            format!("sleep 600 < /dev/null > /dev/null 2>&1 & {ANSWER}; exec cat"),
            both,
        ),
        ("two launchers", format!("{ANSWER}; sh -c 'sh -c \"sleep 600; true\"; true'; true"), both),
        ("the child is dead", format!("sleep 600 & {ANSWER}; exit 0"), &[Close, Drop, Restart]),
        (
            "the child is dead, the other ignores SIGTERM",
            format!("{STUBBORN} & {ANSWER}; exit 3"),
            &[Close, Drop, Restart],
        ),
        ("the child was killed", format!("sleep 600 & {ANSWER}; kill -9 $$"), &[Close, Drop, Restart]),
        ("a process that has stopped", format!("{ANSWER}; sh -c 'kill -STOP $$; sleep 600'; true"), both),
    ] {
        check(name, &script, ends).await;
    }
}

/// A process that reads the terminal from another group is stopped: SIGTERM still reaches it.
#[tokio::test]
async fn a_stopped_child_is_terminated() {
    let script =
        format!("trap 'echo bye >&2; exit 3' TERM; {ANSWER}; kill -STOP $$; while :; do sleep 0.01; done");
    let command =
        ChildCommand::new("sh").args(["-c", &script]).grace(Duration::from_secs(1)).named("stopped");
    let child = ChildTransport::spawn(command).unwrap();
    assert_eq!(ask(&child, request(1, "tools/call")).await.0, Outcome::Result(json!({"ok": true})));
    soon(child.close()).await;
    let (outcome, _) = ask(&child, request(2, "tools/call")).await;
    assert!(format!("{outcome:?}").contains("exit status: 3"), "{outcome:?}");
}
