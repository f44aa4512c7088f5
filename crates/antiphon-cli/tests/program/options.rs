//! The flags for servers, arguments and output.

use crate::support::{
    ANTIPHON, Run, Scratch, Server, command, finish, run,
    served::{RunningServer, tool},
};
use antiphon::{
    server::{Ctx, NoArguments, Resource, Server as McpServer, Tool},
    wire::{ContentBlock, content::ResourceContents},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    process::{Command, Stdio},
};

/// Runs the program with this text on its standard input.
fn run_with_input(command: &mut Command, input: &str) -> Run {
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a call whose server is a command that prints its environment, and ends. Returns the variables by name.
fn environment(arguments: &[&str]) -> (Run, Vec<(String, String)>) {
    let child = ["--", "sh", "-c", "env >&2; exit 3"];
    let mut command = command(["call", "x"].iter().chain(arguments).chain(&child));
    command.env("MCP_BEARER", "token-of-ours").env("ANTIPHON_KEYS", "key-of-ours").env("OTHER", "of ours");
    let run = finish(&mut command);
    let lines = run.stderr.lines().filter_map(|line| line.strip_prefix("[sh] ")?.split_once('='));
    let variables = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    (run, variables)
}

#[test]
fn a_command_gets_no_secrets_of_ours() {
    for (arguments, expected) in [
        (&[][..], &[][..]),
        (&["--env", "ADDED=a=b", "--env", "EMPTY="], &[("ADDED", "a=b"), ("EMPTY", "")]),
        (&["--env", "OTHER"], &[("OTHER", "of ours")]),
        (
            &["--inherit-env"],
            &[("OTHER", "of ours"), ("MCP_BEARER", "token-of-ours"), ("ANTIPHON_KEYS", "key-of-ours")],
        ),
    ] {
        let (run, variables) = environment(arguments);
        assert_eq!(run.code, 4, "{run:?}");
        let get =
            |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert!(get("PATH").is_some(), "{run:?}");
        for name in ["MCP_BEARER", "ANTIPHON_KEYS", "OTHER", "ADDED", "EMPTY"] {
            let value = expected.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            assert_eq!(get(name), value, "{name} with {arguments:?}");
        }
    }
    run(["call", "x", "--env", "NOT_SET_ANYWHERE", "--", "true"]).fails(2, "no such variable");
    run(["call", "x", "--env", "=1", "--", "true"]).fails(2, "write NAME or NAME=VALUE");
    run(["call", "x", "--env", "A=1", "http://127.0.0.1:1/mcp"]).fails(2, "are for a command");
}

#[test]
fn quiet_leaves_results_and_errors() {
    let (run, variables) = environment(&["--quiet"]);
    assert_eq!((run.code, variables.len()), (4, 0), "{run:?}");
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].starts_with("error: "), "{run:?}");
    let server = Server::start();
    let echo = ["call", "-q", "echo", "--answer", "unused.x=1", "--args", r#"{"text": "a"}"#, &server.url];
    let run = crate::support::run(echo);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "a\n", ""), "{run:?}");
}

/// The head of the request that the program sends to a server that knows nothing.
fn head_of_request(arguments: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap() == 1 {
            head.push(byte[0]);
        }
        let length: usize = String::from_utf8_lossy(&head)
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok())
            .unwrap();
        connection.read_exact(&mut vec![0; length]).unwrap();
        connection.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8(head).unwrap()
    });
    let pinned = ["call", "x", "--mode", "2026-07-28"];
    run(pinned.iter().chain(arguments).map(|word| word.replace("URL", &url))).fails(4, "401");
    server.join().unwrap()
}

#[test]
fn headers_are_sent() {
    let head =
        head_of_request(&["--header", "X-Team: core ", "--header", "x-two:a:b", "--bearer", "t", "URL"]);
    for line in ["x-team: core\r\n", "x-two: a:b\r\n", "authorization: Bearer t\r\n"] {
        assert!(head.contains(line), "{line}: {head}");
    }
    run(["call", "x", "--header", "nothing", "http://127.0.0.1:1/mcp"]).fails(2, "write NAME:VALUE");
    run(["call", "x", "--header", "a b: c", "http://127.0.0.1:1/mcp"]).fails(2, "cannot be sent");
    run(["call", "x", "--header", "a: b", "--", "true"]).fails(2, "is for a URL");
}

#[test]
fn servers_are_taken_from_a_file() {
    let scratch = Scratch::new();
    let servers = json!({"mcpServers": {
        "demo": {"command": ANTIPHON, "args": ["serve-demo", "${FLAG_OF_TEST:---stdio}"]},
        "own": {"url": "URL", "headers": {"Authorization": "Own ${HOME}", "x-team": "${TEAM_OF_TEST:-core}"}},
        "unset": {"command": "${UNSET_OF_TEST}"},
    }});
    let file = scratch.file("servers.json", &servers.to_string());
    let file = file.to_str().unwrap();
    let of = |name: &'static str| ["--servers", file, "--server", name];
    let echo = ["call", "echo", "--args", r#"{"text": "a"}"#];
    run(echo.iter().chain(&of("demo"))).ends(0, "a");
    run(echo.iter().chain(&of("unset"))).fails(2, "needs variables that are not set: UNSET_OF_TEST");
    run(echo.iter().chain(&of("other"))).fails(2, "no server `other`; there are: demo, own, unset");
    run(echo.iter().chain(&["--servers", "/nonexistent", "--server", "a"])).fails(2, "/nonexistent: ");
    run(echo.iter().chain(&["--servers", file])).fails(2, "Give --server and one of: demo, own, unset");
    run(echo.iter().chain(&of("demo")).chain(&["http://127.0.0.1:1/mcp"])).fails(2, "one server");

    // The token of the environment does not replace that of the file.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    drop(listener);
    let own = |url: &str| scratch.file("own.json", &servers.to_string().replace("URL", url));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = own(&format!("http://{}/mcp", listener.local_addr().unwrap()));
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut read = vec![0; 1 << 16];
        let count = connection.read(&mut read).unwrap();
        connection.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&read[..count]).into_owned()
    });
    let words = ["call", "x", "--mode", "2026-07-28", "--servers", path.to_str().unwrap(), "--server", "own"];
    finish(command(words).env("MCP_BEARER", "t").env("HOME", "/h")).fails(4, "401");
    let head = server.join().unwrap();
    assert!(head.contains("authorization: Own /h\r\n") && head.contains("x-team: core\r\n"), "{head}");
    assert!(!head.contains("Bearer t"), "{head}");
}

/// A file as a host writes it: the server starts in its folder, and has its configured name everywhere.
#[test]
fn a_server_starts_as_its_host_starts_it() {
    let scratch = Scratch::new();
    let folder = scratch.path().canonicalize().unwrap();
    let check = |entry: &str, code: i32, says: &[&str]| {
        let text = format!("\u{feff}{{ // one\n\"servers\": {{\"local\": {entry}, }}, }}");
        let file = scratch.file("mcp.json", &text);
        let mut tools = command(["tools", "--servers", file.to_str().unwrap()]);
        let ran = finish(tools.env("FOLDER_OF_TEST", &folder));
        assert_eq!(ran.code, code, "{ran:?}");
        for text in says {
            assert!(ran.stderr.contains(text), "{text:?} is not in {ran:?}");
        }
    };
    let pwd = format!("[local] {} 3000", folder.display());
    check(
        r#"{"command": "sh", "args": ["-c", "echo $PWD $PORT >&2; exit 3"], "cwd": "${env:FOLDER_OF_TEST}", "env": {"PORT": 3000}}"#,
        4,
        &[&pwd, "the server process `local` ended"],
    );
    check(
        r#"{"command": "/x/nope", "url": null}"#,
        4,
        &["`local` cannot be started with `/x/nope`: No such file"],
    );
    check(
        r#"{"command": "true", "cwd": "/x/nope"}"#,
        2,
        &["the `cwd` of the server `local` is no folder: /x/nope"],
    );
    check(
        r#"{"command": "true", "envFile": "x"}"#,
        4,
        &["the server `local` has members that are not used: envFile"],
    );
}

/// A value of a variable may be a secret: no text of the program has it.
#[test]
fn values_of_variables_are_not_shown() {
    const SECRET: &str = "S3CRETVALUE77";
    let scratch = Scratch::new();
    let entries = json!({
        "program": {"command": "/x/${SECRET_OF_TEST}/nope"},
        "whole": {"command": "${SECRET_OF_TEST}"},
        "argument": {"command": "sh", "args": ["-c", "exit 3", "${SECRET_OF_TEST}"]},
        "folder": {"command": "true", "cwd": "/${SECRET_OF_TEST}/nope"},
        "variable": {"command": "false", "env": {"A": "${SECRET_OF_TEST}"}},
        "path": {"url": "http://127.0.0.1:1/${SECRET_OF_TEST}/mcp"},
        "query": {"url": "http://127.0.0.1:1/mcp?key=${SECRET_OF_TEST}"},
        "scheme": {"url": "${SECRET_OF_TEST}"},
        "host": {"url": "http://${SECRET_OF_TEST} x/mcp"},
        "header": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-A": "${SECRET_OF_TEST}\n"}},
    });
    let file = scratch.file("servers.json", &json!({ "mcpServers": entries }).to_string());
    for name in entries.as_object().unwrap().keys() {
        for flags in [&[][..], &["--json"], &["-v"]] {
            let words = ["call", "x", "--servers", file.to_str().unwrap(), "--server", name];
            let ran = finish(command(words.iter().chain(flags)).env("SECRET_OF_TEST", SECRET));
            assert!(ran.code == 2 || ran.code == 4, "{name}: {ran:?}");
            for text in [&ran.stdout, &ran.stderr] {
                assert!(!text.contains(SECRET) && !text.contains(&SECRET.to_lowercase()), "{name}: {ran:?}");
            }
        }
    }
    // What the server itself writes has its configured name.
    let shown = json!({"mcpServers": {"a": {"command": "${SHELL_OF_TEST}", "args": ["-c", "echo hi >&2"]}}});
    let file = scratch.file("shown.json", &shown.to_string());
    let words = ["call", "x", "--servers", file.to_str().unwrap(), "--server", "a"];
    let ran = finish(command(words).env("SHELL_OF_TEST", "/bin/sh"));
    assert!(ran.stderr.contains("[a] hi") && !ran.stderr.contains("/bin/sh"), "{ran:?}");
}

/// A pending call of such a server does not contain the value either, and names what is missing.
#[test]
fn a_pending_call_has_no_value_of_a_variable() {
    let (server, scratch) = (Server::start(), Scratch::new());
    let url = server.url.replace("/mcp", "/${PATH_OF_TEST}");
    let file = scratch.file("servers.json", &json!({"mcpServers": {"a": {"url": url}}}).to_string());
    let servers = ["--servers", file.to_str().unwrap(), "--server", "a"];
    let with_path = |words: &[&str]| finish(command(words.iter().chain(&servers)).env("PATH_OF_TEST", "mcp"));
    let once = with_path(&["call", "provision", "--args", r#"{"name": "orders"}"#, "--once"]);
    assert_eq!((once.code, &once.json()["server"]["target"]), (3, &json!(url)), "{once:?}");
    let pending = scratch.file("pending", &once.stdout);
    let resume = ["resume", pending.to_str().unwrap(), "--answer", "region.region=eu"];
    run(resume).fails(2, "give --servers and --server");
    with_path(&resume).ends(0, "Provisioned \"orders\" in eu.");
}

/// Errors about a file are short, and a file is read up to a limit.
#[test]
fn a_file_of_servers_is_limited() {
    let scratch = Scratch::new();
    let of = |file: &std::path::Path, name: &str| {
        run(["tools", "--servers", file.to_str().unwrap(), "--server", name])
    };
    let many: serde_json::Map<String, Value> =
        (0..20_000).map(|number| (format!("server-{number}"), json!({}))).collect();
    let unset: String = (0..20_000).map(|number| format!("${{UNSET_OF_TEST_{number}}}")).collect();
    for (servers, name) in [
        (json!(many), "other".to_owned()),
        (json!({"a": {"command": unset}}), "a".to_owned()),
        (json!({}), "x".repeat(50_000)),
        (json!({"a": {"url": "x".repeat(50_000)}}), "a".to_owned()),
        (json!({"a": {"command": ["x".repeat(50_000)]}}), "a".to_owned()),
        (
            json!({"a": {"url": "http://127.0.0.1:1/", "headers": {"host".to_owned() + &"x".repeat(50_000): "a b"}}}),
            "a".to_owned(),
        ),
    ] {
        let file = scratch.file("servers.json", &json!({ "mcpServers": servers }).to_string());
        let ran = of(&file, &name);
        assert!(
            matches!(ran.code, 2 | 4) && ran.stderr.len() < 2000,
            "{} bytes: {:.500}",
            ran.stderr.len(),
            ran.stderr
        );
    }
    of(&scratch.file("long", &" ".repeat((1 << 20) + 1)), "a").fails(2, "more than 1048576 bytes");
    of(scratch.path(), "a").fails(2, "not a regular file");
    of(std::path::Path::new("/dev/zero"), "a").fails(2, "not a regular file");
    let fifo = scratch.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    of(&fifo, "a").fails(2, "not a regular file");
    // The input is read to the same limit.
    let words = ["tools", "--servers", "-", "--server", "a"];
    run_with_input(&mut command(words), r#"{"mcpServers": {"b": {}}}"#).fails(2, "there are: b");
    run_with_input(&mut command(words), &" ".repeat((1 << 20) + 1)).fails(2, "more than 1048576 bytes");
}

/// The transport sets these headers itself: a second one would change how the request is read.
#[test]
fn headers_of_the_transport_are_refused() {
    let scratch = Scratch::new();
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "CONNECTION",
        "Mcp-Method",
        "mcp-session-id",
        "MCP-Protocol-Version",
        "Content-Type",
        "Accept",
        "Last-Event-ID",
        "TE",
        "Upgrade",
    ] {
        let says = format!("the header `{name}` belongs to the transport");
        let servers = json!({"mcpServers": {"a": {"url": "http://127.0.0.1:1/mcp", "headers": {name: "x"}}}});
        let file = scratch.file("servers.json", &servers.to_string());
        run(["tools", "--servers", file.to_str().unwrap(), "--server", "a"]).fails(2, &says);
        run(["tools", "--header", &format!("{name}: x"), "http://127.0.0.1:1/mcp"]).fails(2, &says);
    }
    run(["tools", "--header", "X-Host: x", "http://127.0.0.1:1/mcp"]).fails(4, "error: ");
}

#[test]
fn arguments_are_read_from_a_file_or_the_input() {
    let (server, scratch) = (Server::start(), Scratch::new());
    let file = format!("@{}", scratch.file("arguments.json", "\n{\"text\": \"from a file\"}\n").display());
    run(["call", "echo", "--args", &file, &server.url]).ends(0, "from a file");
    let echo = ["call", "echo", "--args", "-", &server.url];
    run_with_input(&mut command(echo), "{\"text\": \"from the input\"}\n").ends(0, "from the input");
    run(["call", "echo", "--args", "@/nonexistent/a", &server.url]).fails(2, "/nonexistent/a: ");
    run_with_input(&mut command(echo), "{").fails(2, "--args is not JSON");
}

#[test]
fn several_calls_share_one_connection() {
    let server = Server::start();
    let input = r#"
{"tool": "echo", "arguments": {"text": "one"}}
{"tool": "provision", "arguments": {"name": "orders"}}
{"tool": "echo", "arguments": {"text": 1}}
{"tool": "no_such_tool"}
{"name": "echo"}
{"tool": "echo", "arguments": {"text": "last"}}
{"tool": "provision", "arguments": {"name": "orders"}, "answers": ["region=decline"]}
{"tool": "provision", "arguments": {"name": "again"}}
{"tool": "echo", "answers": ["none"]}
"#;
    for target in [&[server.url.as_str()][..], &["--", ANTIPHON, "serve-demo", "--stdio"]] {
        let words = ["calls", "--answer", "region.region=eu-west-1"];
        let run = run_with_input(&mut command(words.iter().chain(target)), input);
        let found: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let short = |object: &Value| {
            let text = object["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            let kind = object["error"]["kind"].as_str().unwrap_or_default().to_owned();
            (object["rounds"].as_u64().unwrap(), kind, text)
        };
        let found: Vec<_> = found.iter().map(short).collect();
        let plain: Vec<(u64, &str, &str)> =
            found.iter().map(|(rounds, kind, text)| (*rounds, kind.as_str(), text.as_str())).collect();
        assert_eq!(plain[..2], [(0, "", "one"), (1, "", "Provisioned \"orders\" in eu-west-1.")], "{run:?}");
        let kinds: Vec<&str> = plain.iter().map(|(_, kind, _)| *kind).collect();
        assert_eq!(kinds, ["", "", "tool", "server", "usage", "", "", "", "usage"], "{run:?}");
        assert_eq!((plain[5].2, run.code), ("last", 1), "{run:?}");
        // An answer of a line is for its call only.
        let declined = "Nothing was provisioned: the question was declined.";
        assert_eq!((plain[6].2, plain[7].2), (declined, "Provisioned \"again\" in eu-west-1."), "{run:?}");
    }
}

/// A server whose tool and resource have binary contents.
fn pictures() -> McpServer {
    let draw = Tool::new("draw", async |_: &Ctx, _: NoArguments| {
        vec![
            ContentBlock::text("two"),
            ContentBlock::image("aGVsbG8=", "image/png"),
            ContentBlock::image("d29ybGQ=", "IMAGE/PNG; a=b"),
            ContentBlock::audio("aGVsbG8=", "../evil"),
        ]
    });
    let bad = Tool::new("bad", async |_: &Ctx, _: NoArguments| vec![ContentBlock::image("?", "image/png")]);
    let read =
        async |_: &Ctx| ResourceContents::blob("file:///a.pdf", "aGVsbG8=").with_mime_type("application/pdf");
    let resource = Resource::new("file:///a.pdf", "a", read);
    McpServer::builder("pictures", "1").tool(draw).tool(bad).resource(resource).build().unwrap()
}

#[test]
fn binary_contents_are_saved() {
    let (served, scratch) = (RunningServer::start(pictures()), Scratch::new());
    // An existing file is not replaced.
    let existing = scratch.file("image-1.png", "mine");
    let directory = existing.parent().unwrap();
    let within = |name: &str| directory.join(name);
    let save = ["--save", directory.to_str().unwrap(), served.url.as_str()];
    let drawn = run(["call", "draw"].iter().chain(&save));
    let lines: Vec<&str> = drawn.stdout.lines().collect();
    assert_eq!(lines[0], "two", "{drawn:?}");
    let shown = |kind: &str, name: &str| format!("[{kind}, saved to {}]", within(name).display());
    assert_eq!(lines[1], shown("image: image/png", "image-2.png"));
    assert_eq!(lines[2], shown("image: IMAGE/PNG; a=b", "image-3.png"));
    assert_eq!(lines[3], shown("audio: ../evil", "audio-1.bin"));
    run(["read", "file:///a.pdf"].iter().chain(&save)).ends(0, &shown("file:///a.pdf", "resource-1.pdf"));
    for (name, text) in [
        ("image-1.png", "mine"),
        ("image-2.png", "hello"),
        ("image-3.png", "world"),
        ("audio-1.bin", "hello"),
        ("resource-1.pdf", "hello"),
    ] {
        assert_eq!(fs::read_to_string(within(name)).unwrap(), text, "{name}");
    }
    let scripted = run(["call", "draw", "--json"].iter().chain(&save));
    assert_eq!(scripted.json()["status"], "done");
    assert!(scripted.stderr.contains("image-4.png"), "{scripted:?}");
    let failed = run(["call", "bad"].iter().chain(&save));
    assert!(
        failed.code == 4 && failed.stderr.contains("image was not saved: it is not base64"),
        "{failed:?}"
    );
    let file = within("image-1.png");
    run(["call", "draw", "--save", file.to_str().unwrap(), &served.url]).fails(2, "--save ");
    let plain = run(["call", "draw", served.url.as_str()]);
    assert!(plain.stdout.contains("[image: image/png, 8 bytes in base64]"), "{plain:?}");
}

#[test]
fn tools_are_listed_with_their_arguments() {
    let server = Server::start();
    let listed = run(["tools", &server.url]);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("provision  ")).unwrap();
    assert!(lines[at + 1].starts_with("    name (string, required)"), "{listed:?}");
    let plain = RunningServer::start(McpServer::builder("plain", "1").tool(tool("bare")).build().unwrap());
    assert_eq!(run(["tools", &plain.url]).stdout, "bare\n");
}

/// Some servers offer more to a client that can be asked.
#[test]
fn lists_declare_what_the_program_can_answer() {
    let show = ["--mode", "legacy", "--", "sh", "-c", "read -r hello; echo \"$hello\" >&2"];
    for (arguments, expected) in [
        (&[][..], json!({"elicitation": {"form": {}, "url": {}}})),
        (
            &["--root", "file:///a"],
            json!({"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}}),
        ),
        (&["--sample", "a"], json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}})),
    ] {
        for list in ["tools", "prompts", "resources"] {
            let shown = run([list].iter().chain(arguments).chain(&show));
            let hello = shown.stderr.lines().find_map(|line| line.strip_prefix("[sh] ")).unwrap();
            let hello: Value = serde_json::from_str(hello).unwrap();
            assert_eq!(hello["params"]["capabilities"], expected, "{list} {arguments:?}");
        }
    }
}

#[test]
fn the_demo_server_has_a_path_and_a_limit() {
    let words = ["serve-demo", "--listen", "127.0.0.1:0", "--path", "/tools", "--max-body", "2000"];
    let server = Server::start_with(&mut command(words));
    assert!(server.url.ends_with("/tools"), "{}", server.url);
    run(["call", "echo", "--args", r#"{"text": "a"}"#, &server.url]).ends(0, "a");
    let long = json!({"text": "a".repeat(2000)}).to_string();
    run(["call", "echo", "--args", &long, &server.url]).fails(4, "413");
    run(["call", "echo", &server.url.replace("/tools", "/mcp")]).fails(4, "404");
    run(["serve-demo", "--path", "tools"]).fails(2, "must begin with `/`");
}

/// The script of a server that opens a session, and gives this answer to each other request.
fn always(answer: &str) -> String {
    format!(
        r#"while read -r line; do
case "$line" in
*'"notifications/'*) continue ;;
*'"initialize"'*) answer='"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}' ;;
*) answer='{answer}' ;;
esac
id=${{line#*\"id\":}}; id=${{id%%,*}}
echo '{{"jsonrpc":"2.0","id":'"$id"','"$answer"'}}'
done"#
    )
}

/// A server that never has a result: it answers with state alone, or requires the same page again and again.
#[test]
fn an_endless_not_yet_does_not_hold_the_program() {
    let state = r#""result":{"resultType":"input_required","requestState":"s"}"#;
    let page = r#""error":{"code":-32042,"message":"later","data":{"elicitations":[{"mode":"url","elicitationId":"page","url":"https://example.com/","message":"Log in."}]}}"#;
    for (mode, answer, says) in [
        ("2026-07-28", state, "keeps answering `not yet`"),
        ("legacy", page, "still requires the same page after 1s"),
    ] {
        let script = always(answer);
        let words = [
            "call",
            "x",
            "--wait",
            "1",
            "--answer",
            "page=accept@example.com",
            "--mode",
            mode,
            "--",
            "sh",
            "-c",
            &script,
        ];
        let run = run(words);
        assert!(run.code == 4 && run.stderr.contains(says), "{mode}: {run:?}");
    }
}

/// The ids of pages that must be opened first are made by the server for each call: the command line uses their numbers.
#[test]
fn pages_that_a_session_requires_have_numbers() {
    let page = |id: &str| {
        format!(
            r#"{{"mode":"url","elicitationId":"{id}","url":"https://example.com/{id}","message":"Log in."}}"#
        )
    };
    let answer = format!(
        r#""error":{{"code":-32042,"message":"later","data":{{"elicitations":[{},{}]}}}}"#,
        page("7f3a"),
        page("90bc")
    );
    let script = always(&answer);
    let call = |flags: &[&str]| {
        let words = ["call", "x", "--wait", "1", "--mode", "legacy"];
        run(words.iter().chain(flags).copied().chain(["--", "sh", "-c", &script]))
    };
    let both = call(&["--answer", "1=accept@example.com", "--answer", "2=accept@example.com"]);
    assert!(both.code == 4 && both.stderr.contains("still requires the same page"), "{both:?}");
    let declined = call(&["--answer", "1=accept@example.com", "--answer", "90bc=decline"]);
    assert!(declined.code == 4 && declined.stderr.contains("-32042"), "{declined:?}");
    call(&["--answer", "1=accept@example.com"]).fails(3, "pass --answer 2=accept@example.com");
}
