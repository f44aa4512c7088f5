//! Servers as child processes: small shell scripts, from polite to stubborn.
#![cfg(unix)]

use crate::transport_support::{Outcome, ask, failed, request, soon};
use antiphon::client::transport::{
    ChildCommand, ChildStderr, ChildTransport, Transport,
    TransportErrorKind::{Closed, Malformed, Unreachable},
};
use serde_json::json;
use std::time::Duration;
use tokio::{io::AsyncReadExt, net::TcpListener, sync::mpsc};

/// Answers one request of id 1.
const ANSWER: &str = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{"ok":true}}'"#;

fn shell(script: &str) -> ChildCommand {
    ChildCommand::new("sh").arg("-c").arg(script).named("test server")
}

fn ok() -> Outcome {
    Outcome::Result(json!({"ok": true}))
}

/// The child answers once; what the next request, after `close` if asked for, says of its end.
async fn check(name: &str, script: &str, grace: Duration, close: bool, expected: Outcome) {
    let child = ChildTransport::spawn(shell(script).grace(grace)).unwrap();
    assert_eq!(ask(&child, request(1, "tools/call")).await.0, ok(), "{name}");
    if close {
        soon(child.close()).await;
        assert_eq!(child.id(), None, "{name}");
    }
    let (outcome, _) = ask(&child, request(2, "tools/call")).await;
    assert!(outcome.fits(&expected), "{name}: {outcome:?} instead of {expected:?}");
}

#[tokio::test]
async fn a_child_is_closed_as_gently_as_it_lets() {
    let (short, long) = (Duration::from_millis(500), Duration::from_secs(20));
    let forever = "while :; do sleep 0.01; done";
    for (name, script, grace, end) in [
        ("exits when its input ends", format!("{ANSWER}; cat >/dev/null; exit 7"), long, "exit status: 7"),
        (
            "says more while it exits",
            format!("{ANSWER}; cat >/dev/null; echo bye && exit 7"),
            long,
            "exit status: 7",
        ),
        ("honours TERM", format!("trap 'exit 3' TERM; {ANSWER}; {forever}"), short, "exit status: 3"),
        ("ignores both", format!("trap '' TERM; {ANSWER}; {forever}"), short, "signal: 9"),
    ] {
        check(name, &script, grace, true, failed(Closed, &format!("`test server` ended: {end}"))).await;
    }
}

#[tokio::test]
async fn a_child_that_dies_is_named_with_its_end() {
    let grace = Duration::from_secs(20);
    let ended = |end: &str| failed(Closed, &format!("`test server` ended: {end}"));
    check("exits", &format!("{ANSWER}; exit 5"), grace, false, ended("exit status: 5")).await;
    check("kills itself", &format!("{ANSWER}; kill -9 $$"), grace, false, ended("signal: 9")).await;
    for script in ["exit 4", "read line; exit 4", "read line; printf '{\"jsonrpc'; exit 4"] {
        let child = ChildTransport::spawn(shell(script)).unwrap();
        let (outcome, _) = ask(&child, request(1, "tools/call")).await;
        assert!(outcome.fits(&ended("exit status: 4")), "{script}: {outcome:?}");
        soon(child.close()).await;
    }
}

#[tokio::test]
async fn garbage_before_the_response_is_ignored_and_garbage_alone_is_an_error() {
    let child = ChildTransport::spawn(shell(&format!("echo Welcome!; echo '{{'; {ANSWER}"))).unwrap();
    assert_eq!(ask(&child, request(1, "tools/call")).await.0, ok());
    soon(child.close()).await;
    let child = ChildTransport::spawn(shell("while echo garbage; do :; done").grace(Duration::from_secs(20)))
        .unwrap();
    let (outcome, _) = ask(&child, request(1, "tools/call")).await;
    assert!(outcome.fits(&failed(Malformed, "no messages")), "{outcome:?}");
    soon(child.close()).await;
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_unreachable() {
    let command = ChildCommand::new("/does/not/exist").args(["--token", "hunter2"]);
    assert!(!format!("{command:?}").contains("hunter2"));
    let error = ChildTransport::spawn(command).unwrap_err();
    assert_eq!(error.kind(), Unreachable);
    assert_eq!(error.to_string(), "`/does/not/exist` cannot be started");
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn standard_error_comes_line_by_line() {
    let (to_test, mut lines) = mpsc::unbounded_channel();
    let callback = Box::new(move |line: &str| to_test.send(line.to_owned()).unwrap());
    let script = format!(
        "echo one >&2; head -c 9000 /dev/zero | tr '\\0' x >&2; echo >&2; {ANSWER}; cat; printf \"$LAST\" >&2"
    );
    let command = shell(&script).env("LAST", "no end").stderr(ChildStderr::Lines(callback));
    let child = ChildTransport::spawn(command.grace(Duration::from_secs(20))).unwrap();
    assert_eq!(ask(&child, request(1, "tools/call")).await.0, ok());
    soon(child.close()).await;
    for expected in ["one", "(a line of more than 8192 bytes)", "no end"] {
        assert_eq!(soon(lines.recv()).await.as_deref(), Some(expected));
    }
    assert_eq!(soon(lines.recv()).await, None);
}

/// The variables whose names the child prints, of its own environment.
#[tokio::test]
async fn a_child_gets_a_list_of_variables_and_no_secrets() {
    // The test program was started by cargo, whose variables stand for those of a host.
    let (ours, value) = ("CARGO_MANIFEST_DIR", std::env::var("CARGO_MANIFEST_DIR").unwrap());
    let listed = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
    type Change = fn(ChildCommand) -> ChildCommand;
    for (name, change, has_ours, has_listed, added) in [
        ("by default", (|command| command) as Change, false, true, None),
        ("one more", |command| command.env("ADDED", "1"), false, true, Some("1")),
        ("all", |command| command.env("ADDED", "1").inherit_env(true), true, true, Some("1")),
        ("not all", |command| command.inherit_env(true).inherit_env(false), false, true, None),
        ("none", |command| command.env("GONE", "1").clear_env().env("ADDED", "2"), false, false, Some("2")),
    ] {
        let (to_test, mut lines) = mpsc::unbounded_channel();
        let callback = Box::new(move |line: &str| to_test.send(line.to_owned()).unwrap());
        let command = change(ChildCommand::new("/usr/bin/env")).stderr(ChildStderr::Lines(callback));
        // `env` prints to standard output, which is no place for that: a shell turns it round.
        let command = command.args(["/bin/sh", "-c", "/usr/bin/env >&2"]);
        let child = ChildTransport::spawn(command).unwrap();
        soon(child.close()).await;
        let mut found = Vec::new();
        while let Some(line) = soon(lines.recv()).await {
            found.push(line);
        }
        let get = |name: &str| found.iter().find_map(|line| line.strip_prefix(&format!("{name}=")));
        assert_eq!(get(ours), has_ours.then_some(&*value), "{name}: {found:?}");
        assert_eq!(get("ADDED"), added, "{name}: {found:?}");
        assert_eq!(get("GONE"), None, "{name}: {found:?}");
        if !has_ours {
            // The shell adds some of its own.
            let allowed = |line: &&String| {
                let name = line.split('=').next().unwrap_or_default();
                let is_of_shell = ["PWD", "SHLVL", "_", "OLDPWD", "ADDED"].contains(&name);
                let is_listed = has_listed && listed.contains(&name);
                !is_of_shell && !is_listed
            };
            assert_eq!(found.iter().find(allowed), None, "{name}");
        }
        for listed in listed.iter().filter(|_| has_listed) {
            assert_eq!(get(listed).map(str::to_owned), std::env::var(listed).ok(), "{name}: {listed}");
        }
    }
}

#[tokio::test]
async fn dropping_the_transport_kills_the_child() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    // As long as the child lives, so does its connection.
    let script = "import signal,socket,sys,time\nsignal.signal(signal.SIGTERM,signal.SIG_IGN)\n\
                  s=socket.create_connection(('127.0.0.1',int(sys.argv[1])))\nwhile True: time.sleep(1)";
    let child = ChildTransport::spawn(ChildCommand::new("python3").args(["-c", script, &port])).unwrap();
    let (mut connection, _) = soon(listener.accept()).await.unwrap();
    drop(child);
    assert_eq!(soon(connection.read(&mut [0; 1])).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn closing_ends_every_task() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    // A grandchild keeps the pipes open.
    let child =
        ChildTransport::spawn(shell(&format!("sleep 30 & {ANSWER}; cat")).grace(Duration::from_secs(20)))
            .unwrap();
    assert_eq!(ask(&child, request(1, "tools/call")).await.0, ok());
    soon(child.close()).await;
    drop(child);
    tokio::task::yield_now().await;
    assert_eq!(alive(), before);
}
