//! `antiphon serve-demo` and `antiphon keygen`.

use crate::support::{Scratch, Server, command, finish, run};

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
