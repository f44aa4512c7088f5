//! The exit codes, and the object that `--json` prints with each.

use crate::support::{ANTIPHON, Run, Server, command, finish, run};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread::JoinHandle,
};

const ORDERS: &str = r#"{"name": "orders"}"#;

/// A server that asks for roots.
const ASKS_FOR_ROOTS: &str = r#"read -r request
echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}}'
cat > /dev/null"#;

/// Runs `call .. URL` without and with `--json`. Checks the exit code, the message, the status and the kind of the error.
fn check(server: &[&str], arguments: &[&str], code: i32, says: &str, kind: &str, rounds: u32) -> Run {
    run(["call"].iter().chain(arguments).chain(server)).fails(code, says);
    let failed = run(["call", "--json"].iter().chain(arguments).chain(server));
    let object = failed.json();
    assert_eq!(failed.code, code, "{failed:?}");
    assert_eq!((&object["status"], &object["rounds"]), (&json!("error"), &json!(rounds)), "{object}");
    assert_eq!(object["error"]["kind"], kind, "{object}");
    assert!(object["error"]["message"].as_str().unwrap().contains(says), "{object}");
    assert!(failed.stderr.contains(says), "{failed:?}");
    failed
}

#[test]
fn usage_errors_exit_with_2() {
    let server = Server::start();
    let url = [server.url.as_str()];
    check(&url, &["provision", "--args", "{"], 2, "--args is not JSON", "usage", 0);
    check(&url, &["provision", "--args", "[1]"], 2, "must be a JSON object", "usage", 0);
    check(&url, &["provision", "--answer", "region"], 2, "has no `=`", "usage", 0);
    check(&[], &["provision"], 2, "no server: give its URL", "usage", 0);
    check(&["localhost:8000"], &["provision"], 2, "begins with http://", "usage", 0);
    let bad = ["provision", "--args", ORDERS, "--answer", "region=eu"];
    let failed =
        check(&url, &bad, 2, "must be accept, decline or cancel, or region.region=VALUE", "usage", 1);
    assert!(!failed.stderr.contains("not used"), "{failed:?}");
    let resolve = r#"{"workItemId": 1, "fields": {"System.State": "Resolved"}}"#;
    let bad = ["update_work_item", "--args", resolve, "--answer", "resolution.resolution=Later"];
    let says = "the answer for resolution.resolution must be one of: Fixed, Won't Fix, Duplicate, By Design";
    check(&url, &bad, 2, says, "usage", 1);
    let mut bad = bad.to_vec();
    bad[4] = "resolution.resolution=Duplicate";
    bad.extend(["--answer", "duplicate_of.duplicateOfId=many"]);
    check(&url, &bad, 2, "the answer for duplicate_of.duplicateOfId must be a number", "usage", 2);

    run(["call", "x", &server.url, "--", "y"]).fails(2, "one server");
    run(["call", "x", "y", &server.url]).fails(2, "`y` is neither NAME=VALUE nor the URL of a server");
    let misspelt = "there is no tool `provison`; did you mean: provision, provision_cluster?";
    run(["call", "provison", "name=a", &server.url]).fails(4, misspelt);
    run(["call", "provison", "--mode", "legacy", &server.url]).fails(4, misspelt);
    run(["prompt", "briefng", &server.url]).fails(4, "did you mean: briefing?");
    run(["cull"]).fails(2, "unrecognized subcommand");
    run(["resume", "/nonexistent/pending", &server.url]).fails(2, "/nonexistent/pending: ");
    run(["prompt", "briefing", "--args", r#"{"topic": 1}"#, &server.url])
        .fails(2, "`topic` must be a string");
    run(["serve-demo", "--listen", "256.0.0.1:0"]).fails(2, "cannot listen on 256.0.0.1:0");
}

#[test]
fn a_missing_answer_without_a_terminal_exits_with_3() {
    let server = Server::start();
    let arguments = ["call", "provision", "--args", ORDERS, &server.url];
    let says = "no answer for region.region and no terminal to ask: pass --answer region.region=..";
    run(arguments).fails(3, says);
    let pending = run(arguments.iter().chain(&["--json"]));
    let object = pending.json();
    assert_eq!((pending.code, &object["status"], &object["rounds"]), (3, &json!("pending"), &json!(1)));
    assert_eq!(object["pending"]["asks"]["region"]["method"], "elicitation/create");
    assert!(pending.stderr.contains(says), "{pending:?}");
}

#[test]
fn protocol_and_transport_errors_exit_with_4() {
    let server = Server::start();
    let url = [server.url.as_str()];
    let failed = check(&url, &["no_such_tool"], 4, "no_such_tool", "server", 0);
    assert_eq!(failed.json()["error"]["code"], -32602, "{failed:?}");

    // A free port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    check(&[&format!("http://127.0.0.1:{port}/mcp")], &["echo"], 4, "no response came back", "transport", 0);
    check(&[&format!("{}/elsewhere", server.url)], &["echo"], 4, "the server answered 404", "transport", 0);
    check(&["--", "/nonexistent/server"], &["echo"], 4, "cannot be started", "transport", 0);
    check(&["--", "false"], &["echo"], 4, "ended", "transport", 0);
    run(["tools", "--", "false"]).fails(4, "ended");
    run(["discover", "--json", "--", "false"]).json();

    // A server that asks an undeclared question.
    let says =
        "`roots/list` (the question `k`) was not declared by the client: this program answers forms and URLs";
    check(
        &["--mode", "2026-07-28", "--", "sh", "-c", ASKS_FOR_ROOTS],
        &["echo"],
        4,
        says,
        "not_supported",
        1,
    );

    // A server that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    check(&[&url], &["echo", "--timeout", "1"], 4, "no response within 1s", "timeout", 0);
}

#[test]
fn a_failed_tool_exits_with_1() {
    // Invalid arguments are an error of the tool, so that the model reads the message.
    let server = Server::start();
    for way in [&[server.url.as_str()][..], &["--", ANTIPHON, "serve-demo", "--stdio"]] {
        let failed = run(["call", "echo", "--args", r#"{"text": 1}"#].iter().chain(way));
        assert_eq!(failed.code, 1, "{failed:?}");
        assert!(failed.stderr.contains("the tool failed"), "{failed:?}");
        let failed = run(["call", "--json", "echo", "--args", r#"{"text": 1}"#].iter().chain(way));
        let object = failed.json();
        assert_eq!(
            (failed.code, &object["status"], &object["error"]["kind"]),
            (1, &json!("error"), &json!("tool"))
        );
        assert_eq!(object["result"]["isError"], true);
    }
}

#[test]
fn the_help_lists_the_exit_codes() {
    let help = run(["--help"]);
    assert_eq!(help.code, 0);
    for line in [
        "0    done",
        "1    the tool failed",
        "2    usage",
        "3    pending",
        "4    protocol",
        "130  interrupted",
    ] {
        assert!(help.stdout.contains(line), "{line}");
    }
    let help = finish(command(["call", "--help"]).env("MCP_BEARER", "secret"));
    assert!(help.stdout.contains("--bearer") && !help.stdout.contains("secret"), "{help:?}");
}

/// A server that answers one request with this status, these headers and this error.
fn one_refusal(status: &'static str, headers: &'static str, error: &Value) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let body = json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string();
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut read = vec![0; 1 << 16];
        assert_ne!(connection.read(&mut read).unwrap(), 0);
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
        connection.write_all(format!("{head}{headers}\r\n{body}").as_bytes()).unwrap();
    });
    (url, server)
}

/// A script sees what the server says about the next action: not only a text.
#[test]
fn the_json_of_an_error_has_the_data_of_the_server() {
    let scopes = json!({"reason": "insufficient_scope", "scopes": ["a:pay"]});
    let capability = json!({"requiredCapabilities": {"sampling": {}}});
    for (status, headers, code, data, http, retry) in [
        ("403 Forbidden", "", -32600, scopes, json!(403), Value::Null),
        ("429 Too Many Requests", "retry-after: 7\r\n", -32000, Value::Null, json!(429), json!(7000)),
        ("200 OK", "", -32603, json!({"reason": "busy", "retryAfterMs": 1500}), Value::Null, json!(1500)),
        ("400 Bad Request", "", -32021, capability, Value::Null, Value::Null),
    ] {
        let mut error = json!({"code": code, "message": "no"});
        if !data.is_null() {
            error["data"] = data.clone();
        }
        let (url, server) = one_refusal(status, headers, &error);
        let failed = run(["call", "x", "--json", "--mode", "2026-07-28", &url]);
        server.join().unwrap();
        let error = failed.json()["error"].take();
        assert_eq!((failed.code, &error["code"]), (4, &json!(code)), "{error}");
        assert_eq!(
            (&error["data"], &error["status"], &error["retryAfterMs"]),
            (&data, &http, &retry),
            "{error}"
        );
    }
}

/// Both sides have versions, and the mode excludes the common one.
#[test]
fn a_missing_common_version_is_told_with_the_versions_of_the_mode() {
    let refuses = r#"read -r request
echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}'
cat > /dev/null"#;
    let hint = "the server 2026-07-28; with the mode `auto`, this client speaks 2026-07-28";
    for (mode, ours) in [
        ("legacy", "2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
    ] {
        let says = format!("no common protocol version: this client speaks {ours}, {hint}");
        check(&["--", "sh", "-c", refuses], &["x", "--mode", mode], 4, &says, "version", 0);
    }
}
