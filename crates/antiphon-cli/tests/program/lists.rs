//! The commands `tools`, `prompts`, `resources` and `complete`.

use crate::support::{
    Scratch, Server, command, finish, run,
    served::{RunningServer, changing, empty},
};
use serde_json::{Value, json};

/// Runs a command and checks its output. Returns the result that `--json` prints.
#[track_caller]
fn check(served: &RunningServer, arguments: &[&str], lines: &[&str], note: &str) -> Value {
    let plain = run(arguments.iter().chain(&[served.url.as_str()]));
    assert_eq!(plain.code, 0, "{plain:?}");
    assert_eq!(plain.stdout.lines().collect::<Vec<_>>(), lines, "{plain:?}");
    assert_eq!(plain.stderr.trim_end(), note, "{plain:?}");
    let scripted = run(arguments.iter().chain(&["--json", served.url.as_str()]));
    let object = scripted.json();
    assert_eq!((scripted.code, &object["status"]), (0, &json!("done")), "{scripted:?}");
    object["result"].clone()
}

#[test]
fn tools_prompts_and_resources_are_listed() {
    let served = RunningServer::start(changing());
    let tools = check(&served, &["tools"], &["echo"], "");
    assert_eq!(tools["tools"][0]["name"], "echo");
    let lines = ["review  Review of code", "    language", "    framework"];
    let prompts = check(&served, &["prompts"], &lines, "");
    assert_eq!(prompts["prompts"][0]["arguments"][1]["name"], "framework");
    let resources = check(&served, &["resources"], &["file:///a  a", "db://{table}  A table."], "");
    assert_eq!(resources["resources"][0]["uri"], "file:///a");
    assert_eq!(resources["resourceTemplates"][0]["uriTemplate"], "db://{table}");
}

#[test]
fn one_entry_is_printed_in_full() {
    let server = Server::start();
    let shown = run(["tools", "provision", "confirm_delete", &server.url]);
    let names: Vec<_> = shown.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!((shown.code, names), (0, vec!["provision", "confirm_delete"]), "{shown:?}");
    assert!(shown.stdout.contains("  it says: "), "{shown:?}");
    assert!(shown.stdout.contains("    name (string, required)"), "{shown:?}");
    let one = run(["tools", "provision", "--json", &server.url]).json();
    assert_eq!(one["result"]["tools"].as_array().map(Vec::len), Some(1), "{one}");
    run(["tools", "provison", &server.url])
        .fails(2, "there is no tool `provison`; did you mean: provision, provision_cluster?");
    run(["prompts", "x", &server.url]).fails(2, "there is no prompt `x`; there are: briefing");
    run(["resources", "x:y", &server.url]).fails(2, "there is no resource `x:y`; ");
    run(["tools", "http://a/mcp", "http://b/mcp"]).fails(2, "one server");
    run(["tools", "http://a/mcp", "--", "true"]).fails(2, "one server");
}

#[test]
fn the_lists_of_all_servers_of_a_file() {
    let served = RunningServer::start(changing());
    let scratch = Scratch::new();
    let file = json!({"mcpServers": {"b": {"url": &served.url}, "a": {"command": "false"}, "c": {"url": &served.url}}});
    let file = scratch.file("mcp.json", &file.to_string());
    let file = file.to_str().unwrap();
    // One that fails does not hide the others.
    let listed = run(["tools", "--servers", file]);
    assert_eq!((listed.code, listed.stdout.as_str()), (4, "a\nb\n  echo\nc\n  echo\n"), "{listed:?}");
    assert!(listed.stderr.contains("tools/list at a"), "{listed:?}");
    let listed = run(["prompts", "--json", "--servers", file]);
    let lines: Vec<Value> = listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> = lines.iter().map(|line| (&line["server"], &line["status"])).collect();
    let expected =
        [("a", "error"), ("b", "done"), ("c", "done")].map(|(name, status)| (json!(name), json!(status)));
    assert_eq!(seen, expected.iter().map(|(name, status)| (name, status)).collect::<Vec<_>>(), "{listed:?}");
    run(["tools", "--servers", file, "--server", "c"]).ends(0, "echo");
    run(["call", "echo", "--servers", file]).fails(2, "which server?");
}

#[test]
fn an_absent_capability_is_not_an_error() {
    let served = RunningServer::start(empty());
    for (what, empty) in [
        ("tools", json!({"tools": []})),
        ("prompts", json!({"prompts": []})),
        ("resources", json!({"resources": [], "resourceTemplates": []})),
    ] {
        let said = format!("the server offers no {what}");
        assert_eq!(check(&served, &[what], &[], &said), empty);
        run([what, "--", "false"]).fails(4, "ended");
    }
    let nothing = ["complete", "prompt", "review", "language="];
    assert_eq!(check(&served, &nothing, &[], "the server offers no completion"), json!({"values": []}));
}

#[test]
fn suggestions_are_one_per_line() {
    let served = RunningServer::start(changing());
    let (prompt, resource) = (["complete", "prompt", "review"], ["complete", "resource", "db://{table}"]);
    let found = check(&served, &[&prompt[..], &["language=p"]].concat(), &["python", "perl"], "");
    assert_eq!(found, json!({"values": ["python", "perl"], "total": 2, "hasMore": false}));
    check(&served, &[&prompt[..], &["language="]].concat(), &["python", "perl", "rust"], "");
    check(&served, &[&prompt[..], &["language=x"]].concat(), &[], "");
    let found = check(&served, &[&resource[..], &["table="]].concat(), &["orders\\u{1b}[31m", "users"], "");
    assert_eq!(found["values"][0], "orders\u{1b}[31m");

    let known = ["framework=", "--with", "language=a=b", "--with", "style="];
    let found = run(prompt.iter().chain(&known).chain(&[served.url.as_str()]));
    let lines: Vec<&str> = found.stdout.lines().collect();
    assert_eq!((lines.len(), &lines[..3]), (100, &["language=a=b", "style=", "0"][..]), "{found:?}");
    assert_eq!((found.code, found.stderr.as_str()), (0, "showing 100 of 102\n"));
}

#[test]
fn invalid_completions_are_errors() {
    let served = RunningServer::start(changing());
    let url = served.url.as_str();
    run(["complete", "prompt", "missing", "a=", url]).fails(4, "Unknown prompt: missing");
    let failed = run(["complete", "prompt", "review", "a=", "--json", url]);
    assert_eq!((failed.code, &failed.json()["error"]["code"]), (4, &json!(-32602)), "{failed:?}");
    run(["complete", "resource", "file:///b", "a=", url]).fails(4, "error: ");
    run(["complete", "prompt", "review", "language", url]).fails(2, "write ARGUMENT=VALUE");
    run(["complete", "prompt", "review", "a=", "--with", "=b", url]).fails(2, "write ARGUMENT=VALUE");
    run(["complete", "tool", "echo", "a=", url]).fails(2, "invalid value 'tool'");
    run(["complete", "prompt", "review", "a="]).fails(2, "no server: give its URL");
}

#[test]
fn a_token_is_never_printed() {
    for subcommand in ["tools", "prompts", "resources", "complete", "listen", "discover"] {
        let help = finish(command([subcommand, "--help"]).env("MCP_BEARER", "secret"));
        assert!(help.stdout.contains("--bearer") && !help.stdout.contains("secret"), "{help:?}");
    }
    let failed = finish(command(["prompts", "-v", "http://127.0.0.1:1/mcp"]).env("MCP_BEARER", "secret"));
    assert_eq!(failed.code, 4);
    assert!(!failed.stderr.contains("secret"), "{failed:?}");
}

/// JSON texts that are no `Value`: a server may send them, and they are printed as they are, or with U+FFFD.
#[test]
fn json_of_a_server_is_printed_as_text() {
    let check = |what: &str, entry: &str, shown: &str| {
        let lists = format!(r#""{what}":[{entry}],"ttlMs":0,"cacheScope":"private","resultType":"complete""#);
        let (other, word) =
            if what == "resources" { (r#","resourceTemplates":[]"#, "resources") } else { ("", what) };
        let script = format!(
            r#"while read -r line; do
id=${{line#*\"id\":}}; id=${{id%%,*}}
case "$line" in
*'"server/discover"'*) result='{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}},"prompts":{{}},"resources":{{}}}},"ttlMs":0,"cacheScope":"private"}}' ;;
*) result='{{{lists}{other}}}' ;;
esac
printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$result"
done"#
        );
        let listed = run([word, "--json", "--", "sh", "-c", &script]);
        assert_eq!((listed.code, listed.stdout.lines().count()), (0, 1), "{entry}: {listed:?}");
        assert!(listed.stdout.contains(shown), "{shown} is not in {listed:?}");
    };
    let tool = |schema: &str| format!(r#"{{"name":"t","inputSchema":{{"type":"object",{schema}}}}}"#);
    check("tools", &tool(r#""maximum":1e400"#), "1e400");
    check("tools", &tool(r#""properties":{"a":{"default":-1e999}}"#), "-1e999");
    check("tools", &tool(r#""description":"\ud83d""#), r#""name":"t""#);
    check("tools", &tool(r#""properties":{"\ud83d":{}}"#), r#""name":"t""#);
    check("tools", &tool(r#""properties":{"a":{"enum":["\udc00"]}}"#), r#""name":"t""#);
    check(
        "tools",
        r#"{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object","maxProperties":1e400}}"#,
        "1e400",
    );
    check("prompts", r#"{"name":"p","description":"a prompt"}"#, r#""name":"p""#);
    check("resources", r#"{"name":"r","uri":"file:///r"}"#, r#""uri":"file:///r""#);
}
