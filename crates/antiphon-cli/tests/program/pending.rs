//! A call that stops at its question, and continues in another process with another server.

use crate::support::{ANTIPHON, Scratch, Server, command, finish, run};
use serde_json::json;
use std::process::Command;

const ORDERS: &str = r#"{"name": "orders"}"#;
const RESOLVE: &str = r#"{"workItemId": 4522, "fields": {"System.State": "Resolved"}}"#;

#[test]
fn another_process_finishes_the_call_with_another_server() {
    let scratch = Scratch::new();
    let keys = scratch.keys("keys");
    let first = Server::with_keys(&keys);
    let once = run(["call", "update_work_item", "--args", RESOLVE, "--once", &first.url]);
    assert_eq!(once.code, 3, "{once:?}");
    assert!(once.stderr.contains("protect it like a password"), "{once:?}");
    assert_eq!(once.json()["round"], 1);
    let file = scratch.file("pending", &once.stdout);
    let file = file.to_str().unwrap();
    first.kill();

    let second = Server::with_keys(&keys);
    // The next leg asks the next question.
    let answer = ["--answer", "resolution.resolution=Duplicate"];
    let next = run(["resume", file, "--once", "--json", &second.url].iter().chain(&answer));
    assert_eq!((next.code, &next.json()["rounds"]), (3, &json!(2)), "{next:?}");
    assert!(next.stderr.contains("its state and answers now go to"), "{next:?}");
    let file = scratch.file("next", &next.stdout);
    let file = file.to_str().unwrap();
    // The server is the one of the pending call. `resume` also reads the object that `--json` prints.
    let done = run(["resume", file, "--answer", "duplicate_of.duplicateOfId=4301"]);
    done.ends(
        0,
        "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.",
    );
    let done = run(["resume", file, "--json", "--answer", "duplicate_of=decline"]).json();
    assert_eq!((&done["status"], &done["rounds"]), (&json!("done"), &json!(2)));
}

#[test]
fn a_pending_call_is_read_from_standard_input() {
    let server = Server::start();
    let once = run(["call", "provision", "--args", ORDERS, "--once", &server.url]);
    let scratch = Scratch::new();
    let file = std::fs::File::open(scratch.file("pending", &once.stdout)).unwrap();
    finish(command(["resume", "-", "--answer", "region.region=eu"]).stdin(file))
        .ends(0, "Provisioned \"orders\" in eu.");
}

#[test]
fn prompts_and_resources_can_be_pending() {
    let server = Server::start();
    let scratch = Scratch::new();
    for (called, expected) in [
        (&["prompt", "briefing"][..], "user: Write a briefing on the current state of the project for all."),
        (&["read", "report://q3"], "Report q3, for all: all is well."),
    ] {
        let once = run(called.iter().chain(&["--once", &server.url]));
        assert_eq!(once.code, 3, "{once:?}");
        let file = scratch.file("pending", &once.stdout);
        run(["resume", file.to_str().unwrap(), "--answer", "audience.audience=all"]).ends(0, expected);
    }
}

#[test]
fn a_call_without_questions_is_done_at_once() {
    let server = Server::start();
    run(["call", "echo", "--args", r#"{"text": "hi"}"#, "--once", &server.url]).ends(0, "hi");
}

#[test]
fn resume_without_an_answer_sends_nothing() {
    let server = Server::start();
    let once = run(["call", "provision", "--args", ORDERS, "--once", &server.url]);
    let scratch = Scratch::new();
    let file = scratch.file("pending", &once.stdout);
    server.kill();
    run(["resume", file.to_str().unwrap()]).fails(3, "no answer for region.region and no terminal to ask");
}

#[test]
fn a_server_with_another_key_rejects_the_call() {
    let scratch = Scratch::new();
    let (first, second) = (Server::with_keys(&scratch.keys("a")), Server::with_keys(&scratch.keys("b")));
    let once = run(["call", "provision", "--args", ORDERS, "--once", &first.url]);
    let file = scratch.file("pending", &once.stdout);
    let refused =
        run(["resume", file.to_str().unwrap(), "--json", "--answer", "region.region=eu", &second.url]);
    let object = refused.json();
    assert_eq!((refused.code, &object["error"]["kind"]), (4, &json!("state_refused")), "{refused:?}");
    assert_eq!(object["error"]["code"], -32602);
}

#[test]
fn a_call_outlives_a_child_only_with_a_key_file() {
    let scratch = Scratch::new();
    let keys = scratch.keys("keys");
    let keys = keys.to_str().unwrap();
    let bare = ["--", ANTIPHON, "serve-demo", "--stdio"];
    let keyed = ["--", ANTIPHON, "serve-demo", "--stdio", "--key-file", keys];
    let call = ["call", "provision", "--args", ORDERS, "--once"];

    let once = run(call.iter().chain(&keyed));
    assert_eq!(once.code, 3, "{once:?}");
    assert!(once.stderr.contains("It becomes invalid when the server started here ends"), "{once:?}");
    let file = scratch.file("pending", &once.stdout);
    let resume = ["resume", file.to_str().unwrap(), "--answer", "region.region=eu"];
    run(resume.iter().chain(&keyed)).ends(0, "Provisioned \"orders\" in eu.");
    run(resume.iter().chain(&bare)).fails(4, "did not take back the state");
    run(resume).fails(2, "give the whole command after `--`");
}

#[test]
fn invalid_pending_calls_are_rejected() {
    let scratch = Scratch::new();
    for text in ["", "{}", "[1]", r#"{"status": "pending", "pending": {}}"#] {
        let file = scratch.file("pending", text);
        run(["resume", file.to_str().unwrap()]).fails(2, "contains no pending call");
    }
}

#[test]
fn two_servers_share_keys_through_the_environment() {
    let key = run(["keygen"]).stdout;
    let serve = |order: &str| {
        let mut serve: Command = command(["serve-demo", "--listen", "127.0.0.1:0"]);
        Server::start_with(serve.env("ANTIPHON_KEYS", order))
    };
    let other = run(["keygen"]).stdout;
    let (first, second) = (serve(key.trim()), serve(&format!("{}, {}", other.trim(), key.trim())));
    let once = run(["call", "provision", "--args", ORDERS, "--once", &first.url]);
    let scratch = Scratch::new();
    let file = scratch.file("pending", &once.stdout);
    let resume = ["resume", file.to_str().unwrap(), "--answer", "region.region=eu", &second.url];
    run(resume).ends(0, "Provisioned \"orders\" in eu.");
}

#[test]
fn a_file_cannot_choose_the_receiver_of_a_token() {
    let server = Server::start();
    let scratch = Scratch::new();
    let once = run(["call", "provision", "--args", ORDERS, "--once", &server.url]);
    let file = scratch.file("pending", &once.stdout);
    let resume = ["resume", file.to_str().unwrap(), "--answer", "region.region=eu"];
    finish(command(resume).env("MCP_BEARER", "t0ken")).fails(2, "give the URL on the command line");
    let url = [server.url.as_str()];
    finish(command(resume.iter().chain(&url)).env("MCP_BEARER", "t0ken"))
        .ends(0, "Provisioned \"orders\" in eu.");
}

#[test]
fn answers_survive_a_broken_connection() {
    let scratch = Scratch::new();
    let keys = scratch.keys("keys");
    let first = Server::with_keys(&keys);
    let once = run(["call", "provision", "--args", ORDERS, "--once", &first.url]);
    let file = scratch.file("pending", &once.stdout);
    let url = first.url.clone();
    first.kill();
    let broken = run(["resume", file.to_str().unwrap(), "--json", "--answer", "region.region=eu", &url]);
    assert_eq!((broken.code, &broken.json()["error"]["kind"]), (4, &json!("transport")), "{broken:?}");
    // The pending call contains the answer, so it is not asked again.
    let second = Server::with_keys(&keys);
    let file = scratch.file("kept", &broken.stdout);
    run(["resume", file.to_str().unwrap(), &second.url]).ends(0, "Provisioned \"orders\" in eu.");
}
