//! `antiphon demo`.

use crate::support::run;

#[test]
fn with_all_answers_it_needs_no_terminal() {
    let done = run(["demo", "--answer", "region.region=eu-west-1"]);
    done.ends(0, "Provisioned \"orders\" in eu-west-1.");
    assert_eq!(done.stderr, "", "{done:?}");
    for part in [
        "-> leg 1: tools/call `provision`\n",
        "<- leg 1: antiphon-demo asks `region`: Which region should the database live in? (",
        "-> leg 2: tools/call `provision` with the answer to `region` and ",
        " bytes of state\n<- leg 2: antiphon-demo is done\n",
    ] {
        assert!(done.stdout.contains(part), "{part:?} is not in {}", done.stdout);
    }
    // Of the state only its length.
    assert!(!done.stdout.contains("r1."), "{done:?}");
}

#[test]
fn without_an_answer_it_fails_at_once_and_names_it() {
    let failed = run(["demo"]);
    assert_eq!(failed.code, 2, "{failed:?}");
    let expected =
        "error: no answer for region.region and no terminal to ask: pass --answer region.region=..\n";
    assert_eq!(failed.stderr, expected);
}

#[test]
fn a_refusal_is_an_answer() {
    for (answer, expected) in [
        ("region=decline", "Nothing was provisioned: the question was declined."),
        ("region=cancel", "Nothing was provisioned: the question was cancelled."),
    ] {
        run(["demo", "--answer", answer]).ends(0, expected);
    }
}

#[test]
fn an_answer_that_answers_nothing_is_told_without_its_value() {
    let done = run(["demo", "--answer", "region.region=eu", "--answer", "regoin.region=private"]);
    done.ends(0, "Provisioned \"orders\" in eu.");
    assert_eq!(done.stderr, "warning: `--answer regoin.region=..` was not used\n");
}
