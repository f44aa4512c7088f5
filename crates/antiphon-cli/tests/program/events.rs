//! Progress and log messages of a server, on standard error.

#![cfg(unix)]

use crate::support::run;

/// A server that prints its first request to standard error, sends these notifications, and answers the request.
const SERVER: &str = r#"
read -r line
printf '%s\n' "$line" >&2
printf '%s\n' \
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5,"total":2,"message":"half\u001b[31m"}}' \
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.4}}' \
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"quiet"}}' \
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"db","data":{"a":1}}}' \
    '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ok"}]}}'
read -r line
"#;

fn check(options: &[&str], shown: &[&str], asked: &str) {
    let done =
        run(["call", "t"].iter().chain(options).chain(&["--mode", "2026-07-28", "--", "sh", "-c", SERVER]));
    done.ends(0, "ok");
    assert_eq!(done.stdout.lines().count(), 1);
    let notes: Vec<&str> = done.stderr.lines().filter(|line| !line.starts_with("[sh]")).collect();
    assert_eq!(notes, shown, "{done:?}");
    assert!(done.stderr.contains("\"progressToken\":1"), "{done:?}");
    assert_eq!(done.stderr.contains("logLevel"), !asked.is_empty(), "{done:?}");
    assert!(done.stderr.contains(asked), "{done:?}");
}

#[test]
fn progress_and_log_messages_are_shown() {
    let progress = "progress 0.5 of 2: half\\u{1b}[31m";
    check(&[], &[progress], "");
    check(&["--log-level", "info"], &[progress, r#"log error db: {"a":1}"#], r#"logLevel":"info""#);
    check(
        &["--log-level", "debug"],
        &[progress, "log debug: quiet", r#"log error db: {"a":1}"#],
        r#"logLevel":"debug""#,
    );
    check(&["--log-level", "alert"], &[progress], r#"logLevel":"alert""#);
}

#[test]
fn an_unknown_level_is_a_usage_error() {
    run(["call", "t", "--log-level", "loud", "--", "true"]).fails(2, "one of debug, info");
}
