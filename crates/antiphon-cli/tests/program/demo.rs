//! `antiphon demo`.

use crate::support::run;

#[test]
fn the_demo_with_all_answers_needs_no_terminal() {
    let done = run(["demo", "--answer", "region.region=eu-west-1"]);
    done.ends(0, "Provisioned \"orders\" in eu-west-1.");
    // The lines about the next steps, and nothing else.
    let next: Vec<_> = done.stderr.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(next.len(), 3, "{done:?}");
    assert!(next[0].starts_with("Next: cargo run -p antiphon-cli -- serve-demo  "), "{done:?}");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    assert!(next[1].contains("examples/hello_ask/main.rs"), "{done:?}");
    assert!(std::path::Path::new(root).join("examples/hello_ask/main.rs").exists());
    assert_eq!(run(["demo", "--quiet", "--answer", "region.region=eu-west-1"]).stderr, "");
    for part in [
        "-> leg 1: tools/call `provision`\n",
        "<- leg 1: antiphon-demo asks `region`: Which region should the database live in? (",
        "-> leg 2: tools/call `provision` with the answer to `region` and ",
        " bytes of state\n<- leg 2: antiphon-demo is done\n",
    ] {
        assert!(done.stdout.contains(part), "{part:?} is not in {}", done.stdout);
    }
    // The state itself is not printed, only its length.
    assert!(!done.stdout.contains("r1."), "{done:?}");
}

#[test]
fn the_demo_names_a_missing_answer() {
    let failed = run(["demo"]);
    assert_eq!(failed.code, 2, "{failed:?}");
    let expected =
        "error: no answer for region.region and no terminal to ask: pass --answer region.region=..\n";
    assert_eq!(failed.stderr, expected);
}

#[test]
fn decline_and_cancel_are_answers() {
    for (answer, expected) in [
        ("region=decline", "Nothing was provisioned: the question was declined."),
        ("region=cancel", "Nothing was provisioned: the question was cancelled."),
    ] {
        run(["demo", "--answer", answer]).ends(0, expected);
    }
}

#[test]
fn an_unused_answer_is_a_warning_without_its_value() {
    let done = run(["demo", "--answer", "region.region=eu", "--answer", "regoin.region=private"]);
    done.ends(0, "Provisioned \"orders\" in eu.");
    assert_eq!(done.stderr.lines().next(), Some("warning: `--answer regoin.region=..` was not used"));
    assert!(!done.stderr.contains("private"), "{done:?}");
}
