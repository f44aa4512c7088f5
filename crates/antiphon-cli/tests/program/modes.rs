//! `--mode`: the same calls in sessions of legacy versions, over HTTP and over the pipes of a child process.

use crate::support::{ANTIPHON, Server, run};

const PROVISION: [&str; 4] = ["call", "provision", "--args", r#"{"name": "orders"}"#];

#[test]
fn the_same_calls_in_every_mode() {
    let server = Server::start();
    let ways: [&[&str]; 2] = [&[&server.url], &["--", ANTIPHON, "serve-demo", "--stdio"]];
    for way in ways {
        for (mode, key) in [
            ("auto", "region"),
            ("2026-07-28", "region"),
            ("legacy", "1"),
            ("2025-11-25", "1"),
            ("2025-06-18", "1"),
        ] {
            let with = |answer: &str| {
                let answer = format!("{key}{answer}");
                let words = PROVISION
                    .into_iter()
                    .chain(["--mode", mode, "--answer", &answer])
                    .chain(way.iter().copied());
                run(words.map(str::to_owned).collect::<Vec<_>>())
            };
            with(".region=eu-west-1").ends(0, "Provisioned \"orders\" in eu-west-1.");
            with("=decline").ends(0, "Nothing was provisioned: the question was declined.");
        }
        let discovered = run(["discover", "--json", "--mode", "legacy"].iter().chain(way)).json();
        assert_eq!(discovered["result"]["supportedVersions"], serde_json::json!(["2025-11-25"]));
        // There is nobody to ask, and a question cannot wait in a session.
        let missing = "no answer for 1.region and no terminal to ask: pass --answer 1.region=..";
        run(PROVISION.iter().chain(&["--mode", "legacy"]).chain(way)).fails(4, missing);
    }
    run(["tools", "--mode", "newest", &server.url]).fails(2, "one of auto, legacy, 2026-07-28, 2025-11-25");
}
