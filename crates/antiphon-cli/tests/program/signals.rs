//! A server that is a child ends with the program: with all of its processes, and by a signal too.
#![cfg(unix)]

use crate::support::{Scratch, command};
use std::{
    fs::{self, File},
    io::Read as _,
    process::{Command, Stdio},
};

/// Ignores SIGTERM, and reads no input.
const STUBBORN: &str = r#"sh -c 'trap "" TERM; exec sleep 600'"#;

/// Every process of the server inherits the writing end of a FIFO, whose reading end ends with the last of them.
fn check(words: &[&str], server: &str, signal: &str, code: i32) {
    let scratch = Scratch::new();
    let fifo = scratch.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let script = format!("exec 9>{}; {server}", fifo.display());
    let words = [words, &["--", "sh", "-c", &script]].concat();
    let mut program = command(&words).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // The server has started.
    let mut pipe = File::open(&fifo).unwrap();
    fs::remove_file(&fifo).unwrap();
    let kill = Command::new("sh").args(["-c", &format!("kill -{signal} {}", program.id())]).status();
    assert!(kill.unwrap().success());
    let input = program.stdin.take();
    assert_eq!(program.wait().unwrap().code(), Some(code), "{words:?} {signal}");
    drop(input);
    pipe.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_server_ends_with_the_program() {
    std::thread::scope(|scope| {
        for (words, server, signal, code) in [
            (&["tools"][..], "sleep 600; true", "INT", 130),
            (&["tools"], "sleep 600; true", "TERM", 143),
            (&["call", "x"], &format!("{STUBBORN}; true"), "HUP", 129),
            (&["call", "x", "--json"], "sleep 600 & cat > /dev/null", "INT", 130),
            // The main thread waits for standard input.
            (&["calls"], "sleep 600; true", "TERM", 143),
            (&["listen", "--tools"], "sleep 600; true", "INT", 130),
        ] {
            let server = server.to_owned();
            scope.spawn(move || check(words, &server, signal, code));
        }
    });
}
