//! Every tool, prompt and resource of the demo server, over HTTP and over stdio.

use crate::support::{
    ANTIPHON, Server, run,
    scripted::{Scripted, Step},
};
use serde_json::{Value, json};

/// A call, its answers, the text of its result, and the number of its rounds.
type Case = (&'static [&'static str], &'static [&'static str], &'static str, u32);

const RESOLVE: &str = r#"{"workItemId": 4522, "fields": {"System.State": "Resolved"}}"#;
const ACTIVATE: &str = r#"{"workItemId": 4522, "fields": {"System.State": "Active"}}"#;
const DUPLICATE: &str =
    "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.";

const CASES: &[Case] = &[
    (&["call", "echo", "--args", r#"{"text": "a = \"b\""}"#], &[], "a = \"b\"", 0),
    (
        &["call", "provision", "--args", r#"{"name": "orders"}"#],
        &["region.region=eu-west-1"],
        "Provisioned \"orders\" in eu-west-1.",
        1,
    ),
    // Single arguments, by their types.
    (&["call", "echo", "text=5"], &[], "5", 0),
    (
        &["call", "provision", "name=orders"],
        &["region.region=eu-west-1"],
        "Provisioned \"orders\" in eu-west-1.",
        1,
    ),
    (
        &["call", "update_work_item", "workItemId=4522", r#"fields={"System.State": "Active"}"#],
        &[],
        "Bug #4522 updated. State set to Active.",
        0,
    ),
    (
        &["call", "provision", "--args", r#"{"name": "orders"}"#],
        &["region=decline"],
        "Nothing was provisioned: the question was declined.",
        1,
    ),
    (
        &["call", "get_weather", "--args", r#"{"location": "New York"}"#],
        &["github_login.name=octocat"],
        "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy",
        1,
    ),
    (
        &["call", "get_weather", "--args", r#"{"location": "New York"}"#],
        &["github_login=cancel"],
        "No weather: the question was cancelled.",
        1,
    ),
    (&["call", "update_work_item", "--args", ACTIVATE], &[], "Bug #4522 updated. State set to Active.", 0),
    (
        &["call", "update_work_item", "--args", RESOLVE],
        &["resolution.resolution=Won't Fix"],
        "Bug #4522 resolved as Won't Fix. State set to Resolved.",
        1,
    ),
    (
        &["call", "update_work_item", "--args", RESOLVE],
        &["duplicate_of.duplicateOfId=4301", "resolution.resolution=Duplicate"],
        DUPLICATE,
        2,
    ),
    (
        &["call", "update_work_item", "--args", RESOLVE],
        &["resolution=decline"],
        "Bug #4522 was not changed: the question was declined.",
        1,
    ),
    (
        &["call", "update_work_item", "--args", RESOLVE],
        &["resolution.resolution=Duplicate", "duplicate_of=cancel"],
        "Bug #4522 was not changed: the question was cancelled.",
        2,
    ),
    (
        &["prompt", "briefing"],
        &["audience.audience=engineers"],
        "user: Write a briefing on the current state of the project for engineers.",
        1,
    ),
    (
        &["prompt", "briefing", "--args", r#"{"topic": "keys"}"#],
        &["audience.audience=engineers"],
        "user: Write a briefing on keys for engineers.",
        1,
    ),
    (
        &["prompt", "briefing"],
        &["audience=decline"],
        "user: There is no briefing to write: the question was declined.",
        1,
    ),
    (&["read", "report://q3"], &["audience.audience=the board"], "Report q3, for the board: all is well.", 1),
    (
        &["read", "report://q3"],
        &["audience=cancel"],
        "Report q3 was not written: the question was cancelled.",
        1,
    ),
];

fn check_all(server: &[&str]) {
    for (called, answers, text, rounds) in CASES {
        let mut arguments = called.to_vec();
        answers.iter().for_each(|answer| arguments.extend(["--answer", answer]));
        run(arguments.iter().chain(server)).ends(0, text.lines().last().unwrap_or_default());

        arguments.push("--json");
        let done = run(arguments.iter().chain(server));
        let object = done.json();
        assert_eq!(
            (done.code, &object["status"], &object["rounds"]),
            (0, &json!("done"), &json!(rounds)),
            "{done:?}"
        );
        let members: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(members, ["result", "rounds", "status"]);
        let result = &object["result"];
        assert_eq!(result["resultType"], "complete");
        let found = [
            &result["content"][0]["text"],
            &result["messages"][0]["content"]["text"],
            &result["contents"][0]["text"],
        ];
        assert!(
            found.iter().any(|found| found.as_str().is_some_and(|found| text.ends_with(found))),
            "{object}"
        );
    }
}

#[test]
fn calls_over_http() {
    let server = Server::start();
    check_all(&[&server.url]);
}

#[test]
fn calls_over_stdio() {
    check_all(&["--", ANTIPHON, "serve-demo", "--stdio"]);
}

#[test]
fn tools_and_discover() {
    let server = Server::start();
    let tools = run(["tools", &server.url]);
    assert_eq!(tools.code, 0, "{tools:?}");
    // The lines of arguments are indented.
    let lines = tools.stdout.lines().filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    let tools = [
        "echo",
        "provision",
        "get_weather",
        "update_work_item",
        "book_table",
        "delete_folder",
        "pick_file",
        "pay_deposit",
        "deposit_status",
        "charge_once",
        "load_shedding",
        "ask_the_model",
        "rolling_upgrade",
        "provision_cluster",
        "confirm_delete",
    ];
    assert_eq!(names, tools);
    let tools = run(["tools", "--json", "--", ANTIPHON, "serve-demo", "--stdio"]).json();
    assert_eq!(
        (&tools["status"], &tools["result"]["tools"][1]["name"]),
        (&json!("done"), &json!("provision"))
    );

    let found = run(["discover", &server.url]);
    assert_eq!(found.code, 0, "{found:?}");
    assert!(
        found.stdout.starts_with("antiphon-demo ") && found.stdout.contains("versions: 2026-07-28\n"),
        "{found:?}"
    );
    let offers = "offers: extensions, prompts, resources, tools\nextensions: io.modelcontextprotocol/tasks\n";
    assert!(found.stdout.contains(offers), "{found:?}");
    let bare = run(["discover", "--mode", "legacy", &server.url]);
    assert!(bare.code == 0 && !bare.stdout.contains("extensions"), "{bare:?}");
    let found = run(["discover", "--json", &server.url]).json();
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
}

#[test]
fn verbose_logs_each_leg_on_standard_error() {
    let server = Server::start();
    let done = run([
        "--verbose",
        "call",
        "provision",
        "--args",
        r#"{"name": "x"}"#,
        "--answer",
        "region.region=eu",
        &server.url,
    ]);
    done.ends(0, "Provisioned \"x\" in eu.");
    assert_eq!(done.stdout.lines().count(), 1);
    assert!(done.stderr.contains("<- leg 1: antiphon-demo asks `region`"), "{done:?}");
}

/// Checks that no part of a message of a server controls the terminal.
#[test]
fn verbose_escapes_each_text_of_the_server() {
    let title = "m\u{1b}]0;owned\u{7}";
    let check = |asks: Value, shown: &str| {
        let result = json!({
            "resultType": "input_required", "requestState": "s", "inputRequests": asks,
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": title, "version": "1"}},
        });
        let ran = Scripted::modern(&[Step::Reply(json!({ "result": result }))]).run(&["call", "t", "-v"]);
        assert!(ran.stderr.contains(shown), "{shown} is not in {ran:?}");
        let bad = |c: char| c.is_control() && c != '\n';
        assert!(!ran.stderr.contains(bad) && !ran.stdout.contains(bad), "{ran:?}");
    };
    let shown = r"m\u{1b}]0;owned\u{7}";
    check(json!({"k": {"method": title, "params": {}}}), &format!("asks `k`: {shown}"));
    check(json!({"k": {"method": title}}), &format!("asks `k`: {shown}"));
    check(
        json!({title: {"method": "elicitation/create", "params": {"mode": title}}}),
        &format!("asks `{shown}`"),
    );
    let form = json!({"type": "object", "properties": {title: {"type": "string"}}});
    let params = json!({"mode": "form", "message": title, "requestedSchema": form});
    check(json!({"k": {"method": "elicitation/create", "params": params}}), &format!("asks `k`: {shown}"));
    check(json!({"k": {"method": "roots/list"}}), &format!("{shown} asks `k`: roots/list"));
}
