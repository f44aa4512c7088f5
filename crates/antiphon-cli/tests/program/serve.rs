//! `antiphon serve-demo` and `antiphon keygen`.

use crate::support::{Scratch, Server, command, finish, run};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

#[test]
fn keygen_prints_one_line_and_notes_on_standard_error() {
    let made = run(["keygen"]);
    assert_eq!((made.code, made.stdout.len()), (0, 44), "{made:?}");
    assert!(made.stdout.trim_end().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    assert!(made.stderr.contains("--key-file"), "{made:?}");
    assert_ne!(made.stdout, run(["keygen"]).stdout);
}

#[test]
fn an_invalid_key_is_reported_with_its_line() {
    let scratch = Scratch::new();
    let (one, two) = (run(["keygen"]).stdout, run(["keygen"]).stdout);
    for (text, says) in [
        (format!("{one}not a key\n"), "line 2: not a key"),
        (format!("# old\n{one}\n{two}{one}"), "line 5: the same key as line 2"),
        (format!("{}AA\n", one.trim()), "line 1: not a key"),
        (String::new(), "no key given"),
    ] {
        let file = scratch.file("keys", &text);
        for transport in [&["--listen", "127.0.0.1:0"][..], &["--stdio"]] {
            let failed = finish(command(["serve-demo"]).args(transport).arg("--key-file").arg(&file));
            failed.fails(2, says);
            assert!(failed.stderr.contains(file.to_str().unwrap()), "{failed:?}");
            assert!(!failed.stderr.contains(one.trim()), "{failed:?}");
        }
    }
    finish(command(["serve-demo", "--key-file", "/nonexistent/keys"]).arg("--stdio"))
        .fails(2, "/nonexistent/keys");
    finish(command(["serve-demo", "--stdio"]).env("ANTIPHON_KEYS", format!("{},x", one.trim())))
        .fails(2, "ANTIPHON_KEYS: key 2: not a key");
    finish(command(["serve-demo", "--stdio"]).env("ANTIPHON_KEYS", ""))
        .fails(2, "ANTIPHON_KEYS: no key given");
}

#[test]
fn a_random_key_is_a_warning() {
    let (_, said) = Server::start().terminate();
    assert_eq!((said.lines().count(), said.matches("random key").count()), (1, 1), "{said}");
    let scratch = Scratch::new();
    let (_, said) = Server::with_keys(&scratch.keys("keys")).terminate();
    assert_eq!(said, "");
}

#[test]
fn port_0_is_a_free_port() {
    let (one, two) = (Server::start(), Server::start());
    assert_ne!(one.url, two.url);
    for server in [&one, &two] {
        let port =
            server.url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
        assert_ne!(port.parse::<u16>().unwrap(), 0);
        run(["call", "echo", "--args", r#"{"text": "hi"}"#, &server.url]).ends(0, "hi");
    }
}

#[test]
fn sigterm_drains_the_server() {
    let server = Server::start();
    let url = server.url.clone();
    run(["call", "echo", "--args", r#"{"text": "hi"}"#, &url]).ends(0, "hi");
    let (status, rest) = server.terminate();
    assert!(status.success(), "{status} {rest}");
    run(["call", "echo", &url]).fails(4, "no response came back");
}

#[test]
fn the_end_of_standard_input_ends_the_server() {
    let ended = run(["serve-demo", "--stdio"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
}

/// Returns the status line and the headers of the response to a request, in lower case.
fn head_of(server: &Server, request: &str) -> String {
    let address = server.url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("{request}\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split_once("\r\n\r\n").unwrap().0.to_lowercase()
}

#[test]
fn pages_of_an_allowed_origin_may_use_it() {
    let server = Server::with_arguments(&[
        "--allow-origin",
        "https://a.example",
        "--allow-origin",
        "https://b.example",
    ]);
    let preflight = |origin: &str| {
        head_of(
            &server,
            &format!("OPTIONS /mcp HTTP/1.1\r\norigin: {origin}\r\naccess-control-request-method: POST"),
        )
    };
    for (origin, status) in
        [("https://a.example", 204), ("https://b.example", 204), ("https://c.example", 403)]
    {
        let head = preflight(origin);
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{head}");
        let allowed = format!("access-control-allow-origin: {origin}\r\n");
        assert_eq!(head.contains(&allowed), status == 204, "{head}");
    }
}

/// A typing error ends the program before it listens.
#[test]
fn a_name_that_no_request_has_is_refused_at_the_start() {
    for (flag, name) in [
        ("--allow-host", "https://mcp.example.com"),
        ("--allow-host", "*"),
        ("--allow-host", "mcp.example.com/mcp"),
    ] {
        let says = format!("no request has the host or origin `{name}`");
        run(["serve-demo", "--listen", "127.0.0.1:0", flag, name]).fails(2, &says);
    }
}

#[test]
fn an_origin_that_no_page_has_is_refused() {
    for origin in ["*", "null", "https://*.example", "x/y", "https://", "https://a.example/page", "a.example"]
    {
        run(["serve-demo", "--allow-origin", origin]).fails(2, "scheme, host and port of a page");
    }
    Server::with_arguments(&[
        "--allow-origin",
        "HTTPS://A.example:8443/",
        "--allow-origin",
        "http://[::1]:80",
    ]);
}

#[test]
fn the_health_route_answers() {
    let head = head_of(&Server::start(), "GET /health HTTP/1.1");
    assert!(head.starts_with("http/1.1 200 ok"), "{head}");
}

#[test]
fn a_token_is_required_and_names_its_user() {
    let server = Server::with_arguments(&["--token", "secret=ada", "--token", "padded===bob"]);
    for (token, code) in [(None, 4), (Some("demo-ada"), 4), (Some("secret"), 0), (Some("padded=="), 0)] {
        let mut call = command(["call", "echo", "--args", r#"{"text": "hi"}"#, &server.url]);
        call.envs(token.map(|token| ("MCP_BEARER", token)));
        let run = finish(&mut call);
        assert_eq!(run.code, code, "{token:?}: {run:?}");
        assert_eq!(run.stderr.contains("401"), code == 4, "{token:?}: {run:?}");
    }
    for wrong in ["secret", "=ada", "secret="] {
        run(["serve-demo", "--token", wrong]).fails(2, "TOKEN=USER");
    }
}
