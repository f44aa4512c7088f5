//! The examples of extensions: each is a client and a server, over a socket and in memory.

use std::process::Command;

fn check(program: &str, expected: &[&str]) {
    let output = Command::new(program).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout.lines().collect::<Vec<_>>(), expected, "{program}");
}

#[test]
fn extension_search_has_a_request_a_notification_and_settings() {
    check(
        env!("CARGO_BIN_EXE_extension_search"),
        &[
            "the server searches 4 titles",
            r#"found: ["sea", "seaside"]"#,
            r#"found after a view: ["seaside", "sea"]"#,
            "an empty query: Search for one letter or more",
            "another client: The client did not declare a required extension: com.example/search",
        ],
    );
}

#[test]
fn extension_skills_serves_an_official_extension() {
    check(
        env!("CARGO_BIN_EXE_extension_skills"),
        &[
            r#""code-review": "Reviews a change. Use it before a merge.""#,
            "skill://code-review/SKILL.md is unchanged: true",
            "skill://none/SKILL.md: no skill of this server",
        ],
    );
}
