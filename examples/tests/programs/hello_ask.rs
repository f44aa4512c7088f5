//! The smallest client, `answer`, with the smallest server, `hello_ask`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

fn check(typed: &str, expected: &str) {
    let mut client = Command::new(env!("CARGO_BIN_EXE_answer"))
        .args(["greet", env!("CARGO_BIN_EXE_hello_ask")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    client.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = client.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{typed:?}");
    assert!(stderr.contains("asks: \"What is your name?\"") && stderr.contains("hello"), "{stderr}");
}

#[test]
fn the_person_answers_or_declines() {
    check("Ada\n", "Hello, Ada!\n");
    check("\n", "Hello, whoever you are!\n");
    check("", "Hello, whoever you are!\n");
}
