//! `--mode`: the same calls in sessions of legacy versions, over HTTP and over stdio.

use crate::support::{ANTIPHON, Server, run};

const PROVISION: [&str; 4] = ["call", "provision", "--args", r#"{"name": "orders"}"#];

#[test]
fn calls_have_the_same_result_in_every_mode() {
    let server = Server::start();
    let servers: [&[&str]; 2] = [&[&server.url], &["--", ANTIPHON, "serve-demo", "--stdio"]];
    for server_args in servers {
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
                    .chain(server_args.iter().copied());
                run(words.map(str::to_owned).collect::<Vec<_>>())
            };
            with(".region=eu-west-1").ends(0, "Provisioned \"orders\" in eu-west-1.");
            with("=decline").ends(0, "Nothing was provisioned: the question was declined.");
        }
        let discovered = run(["discover", "--json", "--mode", "legacy"].iter().chain(server_args)).json();
        assert_eq!(discovered["result"]["supportedVersions"], serde_json::json!(["2025-11-25"]));
        // Without a terminal, a question in a session cannot wait.
        let missing = "no answer for 1.region and no terminal to ask: pass --answer 1.region=..";
        run(PROVISION.iter().chain(&["--mode", "legacy"]).chain(server_args)).fails(3, missing);
    }
    run(["tools", "--mode", "newest", &server.url]).fails(2, "one of auto, legacy, 2026-07-28, 2025-11-25");
}
