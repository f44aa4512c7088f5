//! Consents to pages, and the names of questions on the command line.

use crate::support::{
    Run, Scratch, run,
    scripted::{Scripted, Step, form, page, pages_first, round},
};

const GOOD: &str = "https://login.good.example/a";
const EVIL: &str = "https://evil.example/b";

fn call(server: &Scripted, answers: &[&str]) -> Run {
    let flags = answers.iter().flat_map(|answer| ["--answer", answer]);
    let words: Vec<&str> = ["call", "t", "--wait", "1"].into_iter().chain(flags).collect();
    server.run(&words)
}

/// Checks the exit code, and the last line of the output, or the error if the call is not done.
#[track_caller]
fn check(server: &Scripted, answers: &[&str], code: i32, says: &str) -> Run {
    let ran = call(server, answers);
    let shown = if code == 0 { ran.stdout.trim_end() } else { ran.stderr.as_str() };
    assert_eq!(ran.code, code, "{answers:?}: {ran:?}");
    assert!(shown.contains(says), "{says:?} is not in {shown:?}");
    assert!(!ran.stderr.contains("was not used"), "{ran:?}");
    ran
}

/// Two pages of two hosts, in every way and order that they come.
#[test]
fn one_consent_is_for_one_page() {
    let ask = |url: &str| Step::Ask(page(url));
    let key = |url: &str| round(&[("page", page(url))]);
    for (name, server) in [
        ("error, request", Scripted::session(&[pages_first(&[GOOD]), ask(EVIL)])),
        ("request, error", Scripted::session(&[ask(GOOD), pages_first(&[EVIL])])),
        ("error, error", Scripted::session(&[pages_first(&[GOOD]), pages_first(&[EVIL])])),
        ("request, request", Scripted::session(&[ask(GOOD), ask(EVIL)])),
        ("one error", Scripted::session(&[pages_first(&[GOOD, EVIL])])),
        ("round, round", Scripted::modern(&[key(GOOD), key(EVIL)])),
        ("one round", Scripted::modern(&[round(&[("a", page(GOOD)), ("b", page(EVIL))])])),
    ] {
        let ran = call(&server, &["1=accept@login.good.example"]);
        assert_eq!(ran.code, 3, "{name}: {ran:?}");
        assert!(ran.stderr.contains("accept@evil.example"), "{name}: {ran:?}");
        // The second page may have the same host.
        let ran = call(&server, &["1=accept@evil.example"]);
        assert!(ran.code == 3 && ran.stderr.contains("is another host"), "{name}: {ran:?}");
    }
    let server = Scripted::session(&[pages_first(&[GOOD]), ask(EVIL)]);
    check(&server, &["1=accept@login.good.example", "2=decline"], 0, "done decline");
    check(&server, &["1=accept@login.good.example", "2=accept@evil.example"], 0, "done accept");
    let server = Scripted::modern(&[key(GOOD), key(EVIL)]);
    check(&server, &["page=accept@login.good.example", "page=accept@evil.example"], 0, "done accept accept");
}

/// The host of a page is in the consent: the program agrees to none that the person has not named.
#[test]
fn a_consent_names_the_host() {
    let says = "pass --answer 1=accept@login.good.example";
    for server in [
        Scripted::session(&[pages_first(&[GOOD])]),
        Scripted::session(&[Step::Ask(page(GOOD))]),
        Scripted::modern(&[round(&[("7f3a90bc1d", page(GOOD))])]),
    ] {
        check(&server, &[], 3, says);
        let plain = check(&server, &["1=accept"], 3, says);
        assert!(plain.stderr.contains(GOOD) && plain.stderr.contains("agrees to no page"), "{plain:?}");
        check(&server, &["1=accept@good.example"], 3, says);
        check(&server, &["1=accept@login.good.example.evil.example"], 3, says);
        check(&server, &["1=accept@LOGIN.good.example"], 0, "done");
    }
    let server = Scripted::modern(&[round(&[("page", page(GOOD))])]);
    check(&server, &["page=accept@login.good.example"], 0, "done accept");
    check(&server, &["page=yes"], 2, "must be accept@HOST, decline or cancel");
    check(&server, &["page=accept@a/b"], 2, "the name of a host and nothing else");
    let server = Scripted::modern(&[round(&[("who", form("name"))])]);
    check(&server, &["who=accept@login.good.example"], 2, "the question is a form");
}

/// A page that is asked again needs no second consent.
#[test]
fn the_same_page_is_the_same_question() {
    let key = |key: &str| round(&[(key, page(GOOD))]);
    for server in [
        Scripted::session(&[pages_first(&[GOOD]), Step::Ask(page(GOOD)), Step::Ask(form("name"))]),
        Scripted::modern(&[key("a"), key("b"), round(&[("who", form("name"))])]),
    ] {
        check(&server, &["1=accept@login.good.example", "2.name=Ada"], 0, "accept");
    }
}

/// A question has its number, in both eras and in each command: keys may be random.
#[test]
fn questions_have_numbers() {
    const RANDOM: &str = "RezM57SLv2hYVghF3oRKwMvE:27ed770836dec846";
    let (first, second) = (form("name"), form("city"));
    for server in [
        Scripted::session(&[Step::Ask(first.clone()), Step::Ask(second.clone())]),
        Scripted::modern(&[round(&[(RANDOM, first.clone())]), round(&[("7f3a90bc1d", second.clone())])]),
        Scripted::modern(&[round(&[("a", first.clone()), ("b", second.clone())])]),
        Scripted::modern(&[round(&[("2", first.clone())]), round(&[("1", second.clone())])]),
    ] {
        check(&server, &["1.name=Ada", "2.city=Rome"], 0, "done accept");
        check(&server, &["1=decline", "2.city=Rome"], 0, "done");
        check(&server, &["name=Ada", "city=Rome"], 0, "done accept");
    }
    // The advice works in the next run.
    for (server, says) in [
        (Scripted::modern(&[round(&[(RANDOM, first.clone())])]), "pass --answer 1.name=.."),
        (Scripted::modern(&[round(&[("2", first.clone())])]), "pass --answer 1.name=.."),
        (Scripted::session(&[Step::Ask(first.clone())]), "pass --answer 1.name=.."),
        (Scripted::modern(&[round(&[("who", first.clone())])]), "pass --answer who.name=.."),
    ] {
        check(&server, &[], 3, says);
    }
    // A field that two open questions have needs its question.
    let twice = Scripted::modern(&[round(&[("a", first.clone()), ("b", first.clone())])]);
    let ran = call(&twice, &["name=Ada"]);
    assert!(ran.code == 3 && ran.stderr.contains("pass --answer a.name=.. --answer b.name=.."), "{ran:?}");
    check(&twice, &["a.name=Ada", "2.name=Bob"], 0, "done accept");
    // The same question again is another one.
    let again = Scripted::modern(&[round(&[("who", first.clone())]), round(&[("who", first)])]);
    check(&again, &["who.name=Ada"], 3, "pass --answer who.name=..");
    check(&again, &["who.name=Ada", "who.name=Bob"], 0, "done accept accept");
}

#[test]
fn a_resumed_call_has_numbers() {
    let server = Scripted::modern(&[round(&[("7f3a90bc1d", form("name")), ("who", form("city"))])]);
    let scratch = Scratch::new();
    let stored = server.run(&["call", "t", "--once"]);
    assert_eq!(stored.code, 3, "{stored:?}");
    let file = scratch.file("pending", &stored.stdout);
    let file = file.to_str().unwrap();
    let done = Scripted::modern(&[]);
    let resume = |answers: &[&str]| {
        let flags = answers.iter().flat_map(|answer| ["--answer", answer]);
        let words: Vec<&str> = ["resume", file].into_iter().chain(flags).collect();
        done.run(&words)
    };
    resume(&["1.name=Ada", "2.city=Rome"]).ends(0, "done accept");
    resume(&["name=Ada", "who.city=Rome"]).ends(0, "done accept");
    resume(&["who.city=Rome"]).fails(3, "pass --answer 1.name=..");
}

/// An answer that is in the file is replaced by its key, as after an error that asks for another one.
#[test]
fn an_answer_of_a_stored_call_is_replaced() {
    let scratch = Scratch::new();
    let asks = round(&[("who", form("name"))]);
    let pending = Scripted::modern(&[asks, Step::Reply(serde_json::json!({"result": 7}))]).run(&[
        "call",
        "t",
        "--json",
        "--answer",
        "who.name=Ada",
    ]);
    let file = scratch.file("pending", &pending.stdout);
    let resume = ["resume", file.to_str().unwrap()];
    let done = Scripted::modern(&[]);
    let words = |answers: &[&'static str]| -> Vec<String> {
        let flags = answers.iter().flat_map(|answer| ["--answer", answer]);
        resume.iter().copied().chain(flags).chain(done.target()).map(str::to_owned).collect()
    };
    run(words(&[])).ends(0, "done accept");
    run(words(&["who=decline"])).ends(0, "done decline");
}
