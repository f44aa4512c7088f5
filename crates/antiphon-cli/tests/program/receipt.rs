//! `antiphon receipt verify`.

use crate::support::{Scratch, command, finish};
use antiphon::{
    Result,
    client::{CallbackError, Client, FormAsk},
    memory,
    seal::KeyRing,
    server::{Ctx, Server},
    tool,
};
use serde_json::json;
use std::{fs, path::Path};

/// Pays. The question has characters that move the cursor.
#[tool]
async fn pay(ctx: &Ctx, to: String) -> Result<String> {
    let _: String = ctx.elicit(format!("Pay \u{1b}[2J{to}?\nBy: the boss")).key("pay").await?;
    Ok(ctx.receipt()?)
}

/// Returns a receipt that a server with the keys of this file makes.
fn receipt_of(keys: &Path) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let ring = KeyRing::parse_file(&fs::read_to_string(keys).unwrap()).unwrap();
        let server = Server::builder("bank", "1").keys(ring).tool(pay).build().unwrap();
        let answer = async |ask: FormAsk| -> std::result::Result<_, CallbackError> {
            Ok(ask.accept(json!({"value": "yes\u{202e}"}))?)
        };
        let client = memory::connect(server, Client::builder("test", "1").on_elicit_form(answer));
        let result = client.call_tool("pay", json!({"to": "ada"})).await.unwrap();
        result.first_text().unwrap().to_owned()
    })
}

#[test]
fn a_receipt_is_printed_or_refused() {
    let scratch = Scratch::new();
    let (old, new) = (scratch.keys("old"), scratch.keys("new"));
    let text = receipt_of(&old);
    let receipt = scratch.file("receipt.txt", &format!("{text}\n"));
    let verify = |file: &Path, keys: &[&Path], more: &[&str]| {
        let mut verify = command(["receipt", "verify"]);
        for keys in keys {
            verify.arg("--keys").arg(keys);
        }
        finish(verify.arg(file).args(more))
    };
    let printed = verify(&receipt, &[&new, &old], &["--args", r#"{"to": "ada"}"#]);
    assert_eq!(printed.code, 0, "{printed:?}");
    let lines: Vec<&str> = printed.stdout.lines().collect();
    assert!(
        lines[0].starts_with("The receipt is authentic. Made 20") && lines[0].ends_with("\"bank\""),
        "{lines:?}"
    );
    for (at, line) in [
        (1, r#"call       tools/call "pay", version 0"#),
        (3, "caller     nobody who was authenticated"),
        (6, r#"1. "pay" in round 1"#),
        (7, r#"shown      "Pay \u{1b}[2Jada? By: the boss" with the fields "value""#),
        (8, r#"answered   accept {"value":"yes\u202e"}"#),
        (10, "by         nobody who was authenticated"),
    ] {
        assert_eq!(lines[at], line);
    }
    let json = verify(&receipt, &[&old], &["--json"]).json();
    assert_eq!(json["entries"][0]["answer"]["content"]["value"], "yes\u{202e}");
    assert_eq!(json["call"]["target"], "pay");

    verify(&receipt, &[&new], &[]).fails(1, "the receipt was sealed under another key");
    verify(&receipt, &[&old], &["--args", r#"{"to": "eve"}"#]).fails(1, "had other arguments");
    let other = if &text[70..72] == "AA" { "BB" } else { "AA" };
    let changed = format!("{}{other}{}", &text[..70], &text[72..]);
    verify(&scratch.file("changed.txt", &changed), &[&old], &[]).fails(1, "the receipt was changed");
    verify(&scratch.file("cut.txt", &text[..40]), &[&old], &[]).fails(1, "the text is not a receipt");
    verify(&receipt, &[], &[]).fails(2, "--key-file");
    verify(&scratch.path().join("none"), &[&old], &[]).fails(2, "none");
}
