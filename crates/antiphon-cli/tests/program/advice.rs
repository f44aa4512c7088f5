//! The notes beside results and errors: what a person can do next.

use crate::support::{
    Run, Scratch, Server, command, finish, run,
    scripted::{Scripted, Step, error, form, page, pages_first, round},
};
use serde_json::{Value, json};

const LOST: &str = "the answers are lost; with --json they are printed";
const LOOK: &str = "look at what the call did before you call again";
const OTHER: &str = "could go on with another answer";
const ALL: [&str; 5] = [LOST, LOOK, OTHER, "the call can go on", "when its tool is corrected"];

/// Checks which of the texts are printed.
#[track_caller]
fn says(ran: &Run, expected: &[&str]) {
    for text in expected.iter().chain(&ALL) {
        assert_eq!(ran.stderr.contains(text), expected.contains(text), "{text:?}: {ran:?}");
    }
}

/// A call whose first question is answered, and which then gets this step.
fn answered(step: Step) -> Scripted {
    Scripted::modern(&[round(&[("who", form("name"))]), step])
}

const CALL: [&str; 4] = ["call", "t", "--answer", "who.name=Ada"];

/// Each reason of docs/errors.md, after an answered question.
#[test]
fn an_error_says_how_the_call_can_go_on() {
    let reason = |name: &str| json!({ "reason": name });
    let limit = |name: &str| json!({ "reason": "limit", "limit": name });
    for (code, data, expected) in [
        (-32603, reason("busy"), &[LOST][..]),
        (-32603, reason("codec"), &[LOST]),
        (-32603, reason("store"), &[LOST]),
        (-32603, reason("in_flight"), &[LOST]),
        (-32603, json!({"reason": "step_failed", "step": "charge"}), &[LOST]),
        (-32602, limit("times_asked"), &[OTHER]),
        (-32603, reason("not_approver"), &[OTHER]),
        (-32603, reason("flow_diverged"), &["when its tool is corrected"]),
        (-32602, reason("used"), &["went to whoever continued it"]),
        (-32603, reason("outcome_unknown"), &[LOOK]),
        (-32602, reason("version"), &[LOOK]),
        (-32602, limit("legs"), &[LOOK]),
        (-32602, limit("state"), &[LOOK]),
        (-32602, limit("call_timeout"), &[LOOK]),
        // The same request has the same error.
        (-32602, reason("invalid_request_state"), &[]),
        (-32600, json!({"reason": "insufficient_scope", "scopes": ["pay"]}), &[]),
        (-32602, Value::Null, &[]),
        (-32601, Value::Null, &[]),
        (-32603, Value::Null, &[]),
        (-32021, json!({"requiredCapabilities": {"roots": {}}}), &[]),
        (-32042, json!({"elicitations": []}), &[]),
    ] {
        let ran = answered(error(code, &data.to_string(), &data)).run(&CALL);
        assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{data}: {ran:?}");
        says(&ran, expected);
    }
    says(&answered(Step::End).run(&CALL), &[LOST]);
    // Nothing was answered, so nothing is lost.
    for (step, code) in [
        (error(-32602, "Unknown tool: t", &Value::Null), 4),
        (error(-32603, "busy", &reason("busy")), 4),
        (Step::End, 4),
    ] {
        let ran = Scripted::modern(&[step]).run(&["call", "t"]);
        assert_eq!(ran.code, code, "{ran:?}");
        says(&ran, &[]);
    }
    let declined = Scripted::session(&[pages_first(&["https://a.example/"])]);
    let declined = declined.run(&["call", "t", "--answer", "1=decline"]);
    assert!(declined.code == 4 && declined.stderr.contains("-32042"), "{declined:?}");
    says(&declined, &[]);
}

/// Money was spent: the call is printed, because a new one would spend it again.
#[test]
fn a_call_that_continues_after_steps_is_printed() {
    let sentence = "The last requestState continues this call; a new call repeats these steps.";
    for (data, message) in [
        (json!({"done": ["charge"]}), sentence),
        (json!({"done": ["charge"], "reason": "store"}), sentence),
        (json!({"done": ["charge"], "reason": "limit", "limit": "times_asked"}), sentence),
        (json!({"done": ["charge"], "reason": "insufficient_scope"}), sentence),
    ] {
        let ran = answered(error(-32603, message, &data)).run(&CALL);
        assert!(ran.code == 4 && ran.stderr.contains("the call can go on"), "{data}: {ran:?}");
        let scratch = Scratch::new();
        let file = scratch.file("pending", &ran.stdout);
        let done = Scripted::modern(&[]).run(&["resume", file.to_str().unwrap()]);
        done.ends(0, "done accept");
    }
    let nowhere = "Do not send this again: look at what these steps did first; a new call repeats them.";
    for data in [
        json!({"done": ["charge"]}),
        json!({"done": ["charge"], "reason": "step_failed", "step": "mail"}),
        json!({"done": ["charge"], "reason": "store"}),
        json!({"done": ["charge"], "reason": "flow_diverged"}),
    ] {
        let ran = answered(error(-32603, nowhere, &data)).run(&CALL);
        assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{ran:?}");
        says(&ran, &[LOOK]);
    }
    // No state continues a call of a session or a task, whatever the reason.
    for data in [
        json!({"done": ["charge"]}),
        json!({"done": ["charge"], "reason": "store"}),
        json!({"done": ["charge"], "reason": "limit", "limit": "times_asked"}),
        json!({"done": ["charge"], "reason": "not_approver"}),
    ] {
        let asks = Scripted::session(&[Step::Ask(form("name")), error(-32603, "no", &data)]);
        says(&asks.run(&["call", "t", "--answer", "1.name=Ada"]), &[LOOK]);
    }
    // The file of a stored call has its answers.
    let scratch = Scratch::new();
    let stored = answered(Step::End).run(&["call", "t", "--answer", "who.name=Ada", "--json"]);
    let file = scratch.file("stored", &stored.stdout);
    let resume = ["resume", file.to_str().unwrap()];
    says(&Scripted::modern(&[Step::End]).run(&resume), &["the call can go on"]);
    let again = Scripted::modern(&[round(&[("city", form("city"))]), Step::End]);
    says(&again.run(&[&resume[..], &["--answer", "1.city=Rome"]].concat()), &[LOST]);
    // With `--json` everything is in the object.
    let used = answered(error(-32602, "used", &json!({"reason": "used"})));
    let ran = used.run(&["call", "t", "--answer", "who.name=Ada", "--json"]);
    assert_eq!(ran.json()["status"], "error");
    says(&ran, &["went to whoever continued it"]);
    let busy = answered(error(-32603, "busy", &json!({"reason": "busy"})));
    says(&busy.run(&["call", "t", "--answer", "who.name=Ada", "--json"]), &["the call can go on"]);
}

/// A note says what an option cannot do on a session, or what another mode could.
#[test]
fn a_note_names_the_limits_of_an_era() {
    let once = "--once: this server has a session";
    let mode = "try `--mode legacy`";
    let failed = |text: &str| {
        Step::Reply(json!({"result": {"isError": true, "content": [{"type": "text", "text": text}]}}))
    };
    let fastmcp = "elicitation via server-initiated requests is unavailable on 2026-07-28 connections.";
    let sampling = "server-initiated sampling is not available on MCP 2026-07-28 connections";
    for (server, words, code, note) in [
        (Scripted::session(&[]), &["call", "t", "--once"][..], 0, Some(once)),
        (Scripted::session(&[failed("no")]), &["call", "t", "--once"], 1, Some(once)),
        (
            Scripted::session(&[error(-32602, "Tool not found", &Value::Null)]),
            &["call", "t", "--once"],
            4,
            Some(once),
        ),
        (Scripted::session(&[]), &["prompt", "t", "--once"], 4, Some(once)),
        (Scripted::session(&[pages_first(&["https://a.example/"])]), &["call", "t", "--once"], 3, None),
        (Scripted::session(&[]), &["call", "t"], 0, None),
        (Scripted::session(&[]), &["call", "t", "--once", "--quiet"], 0, None),
        (Scripted::modern(&[]), &["call", "t", "--once"], 0, None),
        (Scripted::modern(&[failed(fastmcp)]), &["call", "t"], 1, Some(mode)),
        (Scripted::modern(&[failed(sampling)]), &["call", "t"], 1, Some(mode)),
        (Scripted::modern(&[error(-32603, fastmcp, &Value::Null)]), &["call", "t"], 4, Some(mode)),
        (Scripted::session(&[failed(fastmcp)]), &["call", "t"], 1, None),
        (Scripted::modern(&[failed("unavailable")]), &["call", "t"], 1, None),
    ] {
        let ran = server.run(words);
        assert_eq!(ran.code, code, "{words:?}: {ran:?}");
        for text in [once, mode] {
            assert_eq!(
                ran.stderr.matches(text).count(),
                usize::from(note == Some(text)),
                "{words:?}: {ran:?}"
            );
        }
    }
}

/// The program waits for the report of a server, and says so.
#[test]
fn a_wait_for_a_page_is_announced() {
    let url = "https://a.example/";
    let waiting = "Waiting until s (sh) reports that the page is finished, at most 1s (--wait)";
    let agreed = "1=accept@a.example";
    for (server, answer, count) in [
        (Scripted::session(&[pages_first(&[url])]), agreed, 1),
        (Scripted::session(&[pages_first(&[url]), pages_first(&[url])]), agreed, 1),
        (Scripted::session(&[pages_first(&[url])]), "1=decline", 0),
        (Scripted::session(&[Step::Ask(page(url))]), agreed, 0),
        (Scripted::modern(&[round(&[("a", page(url))])]), agreed, 0),
    ] {
        let ran = server.run(&["call", "t", "--wait", "1", "--answer", answer]);
        assert_eq!(ran.stderr.matches(waiting).count(), count, "{ran:?}");
    }
}

/// A server of sessions whose task asks outside of a request, and goes on without the answer.
const TASK: &str = r#"answered=
reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
task() { printf '{"taskId":"t1","status":"%s","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":60000,"pollInterval":50}' "$1"; }
while read -r line; do
case "$line" in *'"method":"notifications/'*) continue ;; *'"method"'*) ;; *) answered=yes; continue ;; esac
id=${line#*\"id\":}; id=${id%%,*}
case "$line" in
*'"initialize"'*) reply '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}' ;;
*'"tools/list"'*) reply '"result":{"tools":[{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}' ;;
*'"tools/call"'*'"task"'*) reply '"result":{"task":'"$(task working)"'}'
    printf '%s\n' '{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"kind":{"type":"string"}},"required":["kind"]}}}' ;;
*'"tools/call"'*) reply '"error":{"code":-32601,"message":"a task is required"}' ;;
*'"tasks/get"'*) if [ "$answered" ]; then reply '"result":'"$(task completed)"; else reply '"result":'"$(task working)"; fi ;;
*'"tasks/result"'*) reply '"result":{"content":[{"type":"text","text":"default"}]}' ;;
*) reply '"result":{}' ;;
esac
done"#;

/// The server went on without an answer: its result is not lost.
#[test]
fn a_result_without_an_answer_is_printed() {
    let target = ["--mode", "legacy", "--", "sh", "-c", TASK];
    let missing = "no answer for 1.kind and no terminal to ask: pass --answer 1.kind=..";
    let ran = run(["call", "t"].iter().chain(&target));
    ran.ends(3, "default");
    assert!(ran.stderr.contains(missing), "{ran:?}");
    let ran = run(["call", "t", "--json"].iter().chain(&target));
    let object = ran.json();
    assert_eq!(
        (ran.code, &object["status"], &object["error"]["kind"]),
        (3, &json!("error"), &json!("unanswered"))
    );
    assert_eq!(object["result"]["content"][0]["text"], "default");
    let ran = run(["call", "t", "--answer", "1.kind=b"].iter().chain(&target));
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.contains(missing)),
        (0, "default\n", false),
        "{ran:?}"
    );
    // The question may come before the program has ended.
    let detached = run(["call", "t", "--detach"].iter().chain(&target));
    assert_eq!(detached.stdout, "t1\n", "{detached:?}");
}

#[test]
fn calls_show_log_messages() {
    let script = r#"while read -r line; do
id=${line#*\"id\":}; id=${id%%,*}
case "$line" in
*logging/setLevel*) echo "$line" >&2; echo '{"jsonrpc":"2.0","id":'"$id"',"result":{}}' ;;
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
*'"tools/call"'*) echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"hot"}}'
    echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[]}}' ;;
esac
done"#;
    let scratch = Scratch::new();
    let lines = scratch.file("calls", "{\"tool\": \"t\"}\n{\"tool\": \"t\"}\n");
    for (flags, shown) in [(&["--log-level", "info"][..], 2), (&["--log-level", "error"], 0), (&[], 0)] {
        let server = ["--mode", "legacy", "--", "sh", "-c", script];
        let words = ["calls"].iter().chain(flags).chain(&server);
        let ran = finish(command(words).stdin(std::fs::File::open(&lines).unwrap()));
        assert_eq!((ran.code, ran.stderr.matches("log warning: hot").count()), (0, shown), "{ran:?}");
    }
    run(["calls", "--log-level", "loud", "--", "true"]).fails(2, "must be one of debug");
}

/// The log of a server has words, not the names of fields in its source.
#[test]
fn the_log_names_a_missing_capability() {
    let server = Server::start();
    for (tool, arguments) in [
        ("provision", r#"{"name": "orders"}"#),
        ("pay_deposit", r#"{"booking_id": 7}"#),
        ("ask_the_model", r#"{"question": "a"}"#),
    ] {
        let ran = run(["call", tool, "--args", arguments, "--once", "--mode", "legacy", &server.url]);
        assert!(ran.code != 0, "{ran:?}");
    }
    let (_, said) = server.terminate();
    assert!(said.contains(r#"missing="elicitation.form""#), "{said}");
    assert!(said.contains("does not support this question") && !said.contains("AskSupport"), "{said}");
}
