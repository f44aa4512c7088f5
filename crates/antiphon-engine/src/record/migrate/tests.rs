use super::*;
use crate::record::{AskRecord, ReceivedAnswer, StepOutcome, Within};
use antiphon_seal::Digest;

/// Builds a record from descriptions: `step KEY`, `stale KEY`, `pinned KEY`, `select KEY`, `checkpoint KEY`, `answer
/// KEY`, `received KEY`, `asked KEY`. The entries belong to the rounds 1, 2, and so on.
fn record(words: &[&str]) -> Record {
    let mut record = Record::default();
    let digest = Digest::from_bytes([7; 16]);
    for (word, round) in words.iter().zip(1..) {
        let (what, path) = word.split_once(' ').expect("two words");
        let asked = AskRecord {
            path: path.into(),
            digest,
            times: 1,
            round,
            first: round,
            deadline: None,
            agreed: None,
            question: None,
            answer: None,
            not_asked: None,
            within: Within::default(),
        };
        let step = |input, stale| EntryBody::Step {
            input,
            stale,
            undelivered: None,
            outcome: StepOutcome::Done((*word).into()),
        };
        let body = match what {
            "step" => step(None, false),
            "stale" => step(None, true),
            "pinned" => step(Some(digest), false),
            "select" => EntryBody::Select { winner: 0 },
            "checkpoint" => EntryBody::Checkpoint,
            "answer" => {
                EntryBody::Answer { digest, times: 1, text: None, refusal: false, at: None, first: round }
            }
            "received" => {
                record.received.push(ReceivedAnswer { asked, text: None, response: None, at: None });
                continue;
            }
            _ => {
                record.asked.push(asked);
                continue;
            }
        };
        record.entries.push(Entry { path: path.into(), round, body });
    }
    record
}

/// Describes a record. `0` after an entry: it belongs to round 0.
fn words(record: &Record) -> Vec<String> {
    let entries = record.entries.iter().map(|entry| {
        let what = match &entry.body {
            EntryBody::Step { input: Some(_), stale: false, .. } => "pinned",
            EntryBody::Step { input: None, stale: false, .. } => "step",
            EntryBody::Step { input: None, stale: true, .. } => "stale",
            EntryBody::Step { input: Some(_), stale: true, .. } => "stale pinned",
            EntryBody::Open(_) => "open",
            EntryBody::Select { .. } => "select",
            EntryBody::Checkpoint => "checkpoint",
            EntryBody::Answer { .. } => "answer",
        };
        let round = if entry.round == 0 { " 0" } else { "" };
        format!("{what} {}{round}", entry.path)
    });
    let received = record.received.iter().map(|received| format!("received {}", received.asked.path));
    let asked = record.asked.iter().map(|asked| format!("asked {}", asked.path));
    entries.chain(received).chain(asked).collect()
}

#[track_caller]
fn check(migration: Migration, before: &[&str], after: &[&str], collisions: &[&str]) {
    let mut migrated = record(before);
    let collided = migrated.migrate(&migration);
    let collided: Vec<&str> = collided.iter().map(|collision| collision.path.as_str()).collect();
    assert_eq!(
        (words(&migrated), collided),
        (after.iter().map(ToString::to_string).collect(), collisions.to_vec())
    );
}

fn migration() -> Migration {
    Migration::new()
}

#[test]
fn steps_are_renamed() {
    let rename = || migration().rename("create", "make");
    check(rename(), &["step create"], &["step make"], &[]);
    check(rename(), &["pinned create", "stale create#1"], &["pinned make", "stale make#1"], &[]);
    check(rename(), &["step create#0", "step create#-3"], &["step make#0", "step make#-3"], &[]);
    // Other keys, other scopes and other kinds stay.
    check(rename(), &["step created", "step a/create"], &["step created", "step a/create"], &[]);
    let others = &["answer create", "select create", "checkpoint create", "received create", "asked create"];
    check(rename(), others, others, &[]);
    // One number of several.
    check(migration().rename("a#1", "b"), &["step a#0", "step a#1"], &["step a#0", "step b"], &[]);
    check(migration().rename("a#1", "b#2"), &["step a#1", "step a#11"], &["step b#2", "step a#11"], &[]);
    // A path has at most one number.
    check(migration().rename("a", "b#2"), &["step a", "step a#1"], &["step b#2", "step a#1"], &[]);
    check(migration().rename("a", "x/b"), &["step a#1"], &["step x/b#1"], &[]);
    check(migration().rename("a", "a"), &["step a"], &["step a"], &[]);
    check(migration().rename("a", "b"), &[], &[], &[]);
}

#[test]
fn colliding_results_are_stale() {
    let rename = || migration().rename("a", "b");
    check(rename(), &["step a", "step b"], &["stale b", "stale b"], &["b"]);
    check(rename(), &["pinned b", "pinned a"], &["stale b", "stale b"], &["b"]);
    let numbers = &["step a#0", "step a#1", "step b#1"];
    check(rename(), numbers, &["step b#0", "stale b#1", "stale b#1"], &["b#1"]);
    // Entries that are not steps do not collide and do not change.
    check(rename(), &["step a", "answer b"], &["step b", "answer b"], &[]);
}

#[test]
fn changes_apply_in_order() {
    let chain = migration().rename("a", "b").rename("b", "c");
    check(chain, &["step a"], &["step c"], &[]);
    let back = migration().rename("b", "c").rename("a", "b");
    check(back, &["step a", "step b"], &["step b", "step c"], &[]);
    let swap = migration().rename("a", "t").rename("b", "a").rename("t", "b");
    check(swap, &["step a", "pinned b"], &["step b", "pinned a"], &[]);
    check(migration().forget("b").rename("a", "b"), &["step a", "step b"], &["step b"], &[]);
    check(migration().rename("a", "b").forget("b"), &["step a", "step b"], &[], &["b"]);
}

#[test]
fn steps_and_questions_are_forgotten() {
    let forget = || migration().forget("a");
    check(forget(), &["step a", "stale a#1", "answer a", "answer a#2"], &[], &[]);
    check(forget(), &["received a", "asked a#1", "received b", "asked ab"], &["received b", "asked ab"], &[]);
    check(forget(), &["select a", "checkpoint a", "step b"], &["select a", "checkpoint a", "step b"], &[]);
    check(forget(), &["step ab", "step x/a"], &["step ab", "step x/a"], &[]);
    check(migration().forget("a#1"), &["step a", "step a#1", "step a#10"], &["step a", "step a#10"], &[]);
}

#[test]
fn stale_results_are_kept() {
    let keep = || migration().keep_stale("a");
    check(keep(), &["stale a", "stale a#1", "stale b"], &["step a 0", "step a#1 0", "stale b"], &[]);
    check(keep(), &["pinned a", "answer a"], &["pinned a 0", "answer a"], &[]);
    check(keep().rename("a", "b"), &["stale a"], &["step b 0"], &[]);
    check(
        migration().rename("b", "a").keep_stale("a"),
        &["step b", "step a"],
        &["step a 0", "step a 0"],
        &["a"],
    );
}

#[test]
fn steps_are_added() {
    let added = migration().added("a").added("x/b#2");
    check(added.clone(), &["step a"], &["step a"], &[]);
    for (path, adds) in [
        ("a", true),
        ("a#4", true),
        ("ab", false),
        ("x/a", false),
        ("x/b#2", true),
        ("x/b", false),
        ("x/b#22", false),
        ("", false),
    ] {
        assert_eq!(added.adds(path), adds, "{path:?}");
    }
}
