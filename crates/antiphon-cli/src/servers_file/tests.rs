//! Tests of the files of servers.

use super::*;
use serde_json::json;

fn variable(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/me".to_owned()),
        "TOKEN" => Some("s3cret".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

/// The server of this name in a file, without the warnings.
fn of(text: &str, name: Option<&str>) -> Result<NamedServer, String> {
    named(text, name, &variable, &mut Vec::new())
}

/// The parts of a server, as one text.
fn text_of_parts(server: NamedServer) -> String {
    let named = |all: Vec<(String, Expanded)>| {
        all.into_iter().map(|(name, text)| format!(" {name}={}", text.value)).collect::<String>()
    };
    match server.place {
        Place::Url { url, headers } => url.value + &named(headers),
        Place::Command { program, args, env, directory } => {
            let args: String = args.into_iter().map(|word| format!(" {}", word.value)).collect();
            let directory = directory.map_or(String::new(), |it| format!(" in {}", it.value));
            format!("{}{args};{}{directory}", program.value, named(env))
        }
    }
}

fn parts(entry: Value) -> Result<String, String> {
    let text = json!({"mcpServers": {"one": entry, "broken": {"url": "${UNSET}"}}}).to_string();
    of(&text, Some("one")).map(text_of_parts)
}

#[test]
fn servers_are_read_with_their_variables() {
    for (entry, expected) in [
        (
            json!({"command": "a", "args": ["${HOME}/x", "$HOME"], "env": {"T": "${TOKEN}"}, "type": "stdio"}),
            Ok("a /home/me/x $HOME; T=s3cret"),
        ),
        (json!({"url": "https://e/${EMPTY}mcp"}), Ok("https://e/mcp")),
        (
            json!({"url": "https://e", "headers": {"A": "Bearer ${TOKEN}", "B": "${UNSET:-b}${EMPTY:-c}"}}),
            Ok("https://e A=Bearer s3cret B=bc"),
        ),
        (json!({"command": "${HOME", "args": ["}${"]}), Ok("${HOME }${;")),
        (
            json!({"command": "a", "args": ["${X}"], "env": {"T": "${Y}"}}),
            Err("the server `one` needs variables that are not set: X, Y"),
        ),
        // opencode, and older versions of Zed.
        (
            json!({"type": "local", "command": ["a", "${HOME}", 1], "environment": {"T": "${TOKEN}"}}),
            Ok("a /home/me 1; T=s3cret"),
        ),
        (json!({"command": {"path": "a", "args": ["b"], "env": {"T": "t"}}, "settings": {}}), Ok("a b; T=t")),
        (json!({"command": ["a"]}), Ok("a;")),
        (json!({"command": []}), Err("the server `one` has a `command` that is not a text")),
        (
            json!({"command": ["a"], "args": ["b"]}),
            Err("the server `one` has a `command` that is not a text"),
        ),
        (json!({"command": {"args": []}}), Err("the server `one` has a `command` that is not a text")),
        (json!({}), Err("the server `one` must have a `command` or a `url`")),
        (
            json!({"command": "a", "url": "b"}),
            Err("the server `one` has a `command` and a `url`: only one can be used"),
        ),
    ] {
        assert_eq!(parts(entry.clone()), expected.map(str::to_owned).map_err(str::to_owned), "{entry}");
    }
}

#[test]
fn the_shown_text_has_no_values() {
    for (entry, expected) in [
        (json!({"command": "/x/${TOKEN}/nope"}), "/x/${TOKEN}/nope"),
        (json!({"command": "${TOKEN}${EMPTY}"}), "${TOKEN}${EMPTY}"),
        (json!({"command": "${UNSET:-${TOKEN}"}), "${UNSET}"),
        (json!({"command": "plain", "args": ["${TOKEN}"]}), "plain"),
        (
            json!({"url": "https://${UNSET:-h}/${TOKEN}/mcp?k=${TOKEN}"}),
            "https://${UNSET}/${TOKEN}/mcp?k=${TOKEN}",
        ),
    ] {
        let text = json!({"mcpServers": {"one": entry}}).to_string();
        let shown = match of(&text, Some("one")).map(|server| server.place) {
            Ok(Place::Url { url: text, .. } | Place::Command { program: text, .. }) => text.shown,
            Err(_) => String::new(),
        };
        assert_eq!(shown, expected, "{entry}");
    }
}

#[test]
fn errors_are_cut_and_have_no_values() {
    let many: Map<String, Value> = (0..1000).map(|number| (format!("n{number:04}"), json!({}))).collect();
    let names: Vec<String> = (0..10).map(|number| format!("n{number:04}")).collect();
    let unset: String = (0..500).map(|number| format!("${{U{number}}}")).collect();
    let long = "x".repeat(5000);
    for (servers, name, expected) in [
        (json!(many), "other", format!("no server `other`; there are: {}, and 990 more", names.join(", "))),
        (json!({}), &*long, format!("no server `{}… (5000 bytes)`; there are: ", "x".repeat(60))),
        (
            json!({"a": {"command": unset}}),
            "a",
            "the server `a` needs variables that are not set: U0, U1, U2, U3, U4, U5, U6, U7, U8, U9, and 490 more".to_owned(),
        ),
        (json!({"a": 1}), "a", "the server `a` must be an object".to_owned()),
        (json!({"a": {"command": 7}}), "a", "the server `a` has a `command` that is not a text".to_owned()),
        (json!({"a": {"url": ["s3cret"]}}), "a", "the server `a` has a `url` that is not a text".to_owned()),
        (
            json!({"a": {"command": "c", "args": "s3cret"}}),
            "a",
            "the server `a` has `args` that are not an array of texts".to_owned(),
        ),
        (
            json!({"a": {"command": "c", "env": {"A": [7]}}}),
            "a",
            "the server `a` has `env` that are not an object of texts".to_owned(),
        ),
        (
            json!({"a": {"url": "u", "headers": "Bearer s3cret"}}),
            "a",
            "the server `a` has `headers` that are not an object of texts".to_owned(),
        ),
    ] {
        let text = json!({"mcpServers": servers}).to_string();
        let failed = of(&text, Some(name)).err();
        assert_eq!(failed.as_deref(), Some(&*expected));
    }
}

/// The files are written as the documents of these hosts show them.
#[test]
fn files_of_hosts_are_read_as_they_are() {
    const FILES: [(&str, &str, &str); 15] = [
        (
            "Claude Desktop on Windows: a byte order mark",
            "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"files\", \"C:\\\\Users\\\\me\"]}\r\n  }\r\n}\r\n",
            r"npx -y files C:\Users\me;",
        ),
        (
            "Claude Code",
            r#"{"mcpServers": {"db": {"type": "http", "url": "https://e/${TEAM:-core}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}"#,
            "https://e/core/mcp Authorization=Bearer s3cret",
        ),
        (
            "VS Code: comments, a trailing comma, its root, a null",
            r#"{
                // The servers of this workspace
                "inputs": [{"id": "key", "type": "promptString", "password": true}],
                "servers": {
                    "py": {
                        "type": "stdio",
                        "command": "uvx", /* not pip */
                        "args": ["server", "--url", "http://localhost:1//x"],
                        "env": {"KEY": "${env:TOKEN}", "PORT": 3000, "DEBUG": true, "NONE": null},
                        "cwd": "${HOME}/work", "envFile": null,
                    },
                },
            }"#,
            "uvx server --url http://localhost:1//x; DEBUG=true KEY=s3cret PORT=3000 in /home/me/work",
        ),
        (
            "Cursor",
            r#"{"mcpServers": {"a": {"command": "node", "args": ["a.js"], "env": null, "url": ""}}}"#,
            "node a.js;",
        ),
        (
            "Windsurf",
            r#"{"mcpServers": {"figma": {"serverUrl": "https://e/mcp", "headers": {"X-N": 7}, "disabled": false}}}"#,
            "https://e/mcp X-N=7",
        ),
        (
            "Gemini: the newer transport wins",
            r#"{"theme": "dark", "mcpServers": {"g": {"httpUrl": "https://e/new", "url": "https://e/sse", "timeout": 5000, "trust": true}}}"#,
            "https://e/new",
        ),
        (
            "Cline",
            r#"{"mcpServers": {"c": {"command": "c", "args": null, "alwaysAllow": ["a"], "autoApprove": [], "disabled": true, "timeout": 60}}}"#,
            "c;",
        ),
        (
            "Roo",
            r#"{"mcpServers": {"r": {"command": "", "type": "streamable-http", "url": "https://e"}}}"#,
            "https://e",
        ),
        (
            "Zed",
            r#"{"context_servers": {"z": {"source": "custom", "command": "z", "args": ["--n", 1, false]}}}"#,
            "z --n 1 false;",
        ),
        (
            "Codex, as JSON: its names of time limits and of switches",
            r#"{"mcpServers": {"c": {"command": "c", "args": [], "env": {}, "enabled": true, "startup_timeout_sec": 20, "tool_timeout_sec": 60.5}}}"#,
            "c;",
        ),
        (
            "Continue",
            r#"{"mcpServers": {"p": {"type": "sse", "url": "http://localhost:3000/sse", "requestOptions": null, "headers": {}}}}"#,
            "http://localhost:3000/sse",
        ),
        (
            "LM Studio",
            "{\n\t\"mcpServers\": {\n\t\t\"hf\": {\"url\": \"https://e/mcp\", \"headers\": {\"Authorization\": \"Bearer ${TOKEN}\"}},\n\t}\n}",
            "https://e/mcp Authorization=Bearer s3cret",
        ),
        (
            "Laravel: `[]` for an object without members",
            r#"{"mcpServers": {"l": {"command": "php", "args": ["artisan", "mcp"], "env": [], "headers": []}}}"#,
            "php artisan mcp;",
        ),
        (
            "VS Code: an argument and a header that are numbers, a default with a colon",
            r#"{"servers": {"n": {"type": "http", "url": "${HOST:-http://localhost:8080}/mcp", "headers": {"X-Id": 1e3, "X-No": null}}}, "inputs": []}"#,
            "http://localhost:8080/mcp X-Id=1000.0",
        ),
        (
            "a workflow: texts that are no variables",
            r#"{"servers": null, "mcpServers": {"w": {"command": "w", "args": ["${{ matrix.os }}", "${}", "${/}"]}}}"#,
            "w ${{ matrix.os }} ${} ${/};",
        ),
    ];
    for (host, text, expected) in FILES {
        assert_eq!(of(text, None).map(text_of_parts).as_deref(), Ok(expected), "{host}");
    }
}

#[test]
fn what_is_not_understood_is_named() {
    for (entry, expected) in [
        (json!({"command": "a"}), &[][..]),
        (json!({"command": "a", "type": "stdio", "timeout": 1, "alwaysAllow": ["x"], "headers": {}}), &[]),
        (
            json!({"command": "a", "envFile": ".env"}),
            &["the server `a` has members that are not used: envFile"],
        ),
        (
            json!({"command": "a", "headers": {"X": "y"}, "oauth": true}),
            &["the server `a` has members that are not used: headers, oauth"],
        ),
        (
            json!({"url": "u", "cwd": "/x", "args": ["b"], "env": null}),
            &["the server `a` has members that are not used: args, cwd"],
        ),
        (
            json!({"command": "${{ a }}"}),
            &["the server `a` has texts that are no variables, and stay as they are: ${{ a }"],
        ),
    ] {
        let mut warnings = Vec::new();
        let text = json!({"mcpServers": {"a": entry}}).to_string();
        named(&text, None, &variable, &mut warnings).unwrap();
        assert_eq!(warnings, expected, "{entry}");
    }
}

#[test]
fn a_server_is_selected() {
    for (text, name, expected) in [
        (r#"{"mcpServers": {"a": {"url": "u"}}}"#, None, Ok("u")),
        (
            r#"{"mcpServers": {"a": {"url": "u"}}, "servers": {"a": {"url": "v"}, "b": {"url": "w"}}}"#,
            Some("a"),
            Ok("u"),
        ),
        (r#"{"mcpServers": {"a": {"url": "u"}}, "servers": {"b": {"url": "w"}}}"#, Some("b"), Ok("w")),
        (r#"{"mcpServers": {"a": {}, "b": {}}}"#, Some("c"), Err("no server `c`; there are: a, b")),
        (r#"{"mcpServers": {"a": {}, "b": {}}}"#, None, Err("which server? Give --server and one of: a, b")),
        (
            r#"{"mcpServers": {}, "servers": {"b": {}, "c": {}}}"#,
            None,
            Err("which server? Give --server and one of: b, c"),
        ),
        (r#"{"mcpServers": {}}"#, None, Err("it has no server")),
        (
            r#"{"mcpServers": null}"#,
            None,
            Err("not a JSON object with `mcpServers` or `servers`; it has: mcpServers"),
        ),
        (
            r#"{"tools": {}}"#,
            Some("a"),
            Err("not a JSON object with `mcpServers` or `servers`; it has: tools"),
        ),
        (r#"{"servers": []}"#, Some("a"), Err("`servers` must be an object")),
        ("[]", Some("a"), Err("not a JSON object with `mcpServers` or `servers`")),
        (
            r#"{"servers": {"a": {"command": "${input:key}", "args": ["${workspaceFolder}", "${env:NO}"]}}}"#,
            None,
            Err("the server `a` needs variables that are not set: input:key, workspaceFolder, NO"),
        ),
    ] {
        let found = of(text, name).map(text_of_parts);
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
    }
}
