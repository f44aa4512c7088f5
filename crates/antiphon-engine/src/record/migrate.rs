//! Migrations: the changes of a new version of a tool to steps that an older version has recorded.

use super::{Entry, EntryBody, EntryKind, Record};
use crate::key::NUMBER;
use std::sync::Arc;

/// The changes of a new version of a tool to recorded steps and answers. A change names a path: the scopes and the key,
/// such as `alice/create`. `charge` also means `charge#0`, `charge#1` and so on; `charge#1` means only that one.
///
/// ```
/// use antiphon_engine::Migration;
///
/// let migration =
///     Migration::new().added("audit").rename("create", "create_db").forget("warm_up").keep_stale("quote");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Migration {
    changes: Vec<Change>,
}

/// One change, with the paths of steps.
#[derive(Clone, Debug)]
enum Change {
    Added(String),
    Forget(String),
    Rename(String, String),
    KeepStale(String),
}

/// Two recorded steps that a migration gives the same path. Neither result is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The common path.
    pub path: String,
}

impl Migration {
    /// Returns a migration without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step that this version runs before the recorded steps of older versions. The step runs although those
    /// steps were not replayed yet. Without this change, a call that reaches such a step ends as `flow_diverged`.
    #[must_use]
    pub fn added(mut self, step: impl Into<String>) -> Self {
        self.changes.push(Change::Added(step.into()));
        self
    }

    /// Removes the steps and questions with this key from the record. A recorded step or a refused question with this
    /// key does not end the call.
    #[must_use]
    pub fn forget(mut self, key: impl Into<String>) -> Self {
        self.changes.push(Change::Forget(key.into()));
        self
    }

    /// Renames a step. Its idempotency key stays derived from the old key. Changes apply in order. If the new key was
    /// recorded as well, neither result is valid.
    #[must_use]
    pub fn rename(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.changes.push(Change::Rename(from.into(), to.into()));
        self
    }

    /// Keeps the outcome of a step valid although an answer before it has changed.
    #[must_use]
    pub fn keep_stale(mut self, step: impl Into<String>) -> Self {
        self.changes.push(Change::KeepStale(step.into()));
        self
    }

    /// Returns the path that this version gives to a recorded step; `None` if the version has removed the step.
    pub(super) fn path_of_step(&self, path: Arc<str>) -> Option<Arc<str>> {
        let mut path = path;
        for change in &self.changes {
            match change {
                Change::Added(_) | Change::KeepStale(_) => {}
                Change::Forget(key) if number_in(&path, key).is_some() => return None,
                Change::Forget(_) => {}
                Change::Rename(from, to) => path = renamed(&path, from, to).unwrap_or(path),
            }
        }
        Some(path)
    }

    /// Returns `true` if this version has removed the question.
    pub(super) fn forgets(&self, path: &str) -> bool {
        let is_it = |change: &Change| matches!(change, Change::Forget(key) if number_in(path, key).is_some());
        self.changes.iter().any(is_it)
    }

    /// Returns `true` if the outcome of the step stays valid although an answer before it has changed.
    pub(super) fn keeps_stale(&self, path: &str) -> bool {
        let is_it =
            |change: &Change| matches!(change, Change::KeepStale(step) if number_in(path, step).is_some());
        self.changes.iter().any(is_it)
    }

    /// Returns `true` if this version has added the step.
    pub(crate) fn adds(&self, path: &str) -> bool {
        let is_it =
            |change: &Change| matches!(change, Change::Added(step) if number_in(path, step).is_some());
        self.changes.iter().any(is_it)
    }
}

/// Returns the number after the name of this step in a path, or `""` if there is none. Returns `None` if the path
/// belongs to another step.
fn number_in<'p>(path: &'p str, step: &str) -> Option<&'p str> {
    let number = path.strip_prefix(step)?;
    (number.is_empty() || number.starts_with(NUMBER)).then_some(number)
}

/// Returns the new path of a step; `None` if the path belongs to another step, or stays.
fn renamed(path: &str, from: &str, to: &str) -> Option<Arc<str>> {
    // A path has at most one number.
    match number_in(path, from)? {
        "" => Some(to.into()),
        _ if to.contains(NUMBER) => None,
        number => Some(format!("{to}{number}").into()),
    }
}

fn number_of<'e>(entry: &'e Entry, step: &str) -> Option<&'e str> {
    number_in(&entry.path, step).filter(|_| entry.kind() == EntryKind::Step)
}

impl Record {
    /// Applies the changes of a newer version. Returns the collisions, for the log.
    pub fn migrate(&mut self, migration: &Migration) -> Vec<Collision> {
        let mut collisions = Vec::new();
        for change in &migration.changes {
            match change {
                Change::Added(_) => {}
                Change::Forget(key) => self.forget(key),
                Change::Rename(from, to) if from == to => {}
                Change::Rename(from, to) => collisions.extend(self.rename(from, to)),
                Change::KeepStale(step) => {
                    for entry in self.entries.iter_mut().filter(|entry| number_of(entry, step).is_some()) {
                        // Round 0 is before all answers, so no change of an answer makes the step stale.
                        entry.round = 0;
                        if let EntryBody::Step { stale, .. } = &mut entry.body {
                            *stale = false;
                        }
                    }
                }
            }
        }
        collisions
    }

    fn forget(&mut self, key: &str) {
        if self.asked_before.is_none() && self.asked.iter().any(|asked| number_in(&asked.path, key).is_some())
        {
            self.asked_before = Some(self.asked.iter().map(|asked| asked.path.clone()).collect());
        }
        let is_kept = |path: &str| number_in(path, key).is_none();
        self.entries.retain(|entry| {
            is_kept(&entry.path) || !matches!(entry.kind(), EntryKind::Step | EntryKind::Ask)
        });
        self.received.retain(|received| is_kept(&received.asked.path));
        self.asked.retain(|asked| is_kept(&asked.path));
    }

    fn rename(&mut self, from: &str, to: &str) -> Vec<Collision> {
        let mut collisions = Vec::new();
        for at in 0..self.entries.len() {
            let entry = &self.entries[at];
            let path = (entry.kind() == EntryKind::Step).then(|| renamed(&entry.path, from, to)).flatten();
            let Some(path) = path else { continue };
            if self.entries.iter().any(|entry| entry.kind() == EntryKind::Step && entry.path == path) {
                collisions.push(Collision { path: path.to_string() });
            }
            self.entries[at].path = path;
        }
        for collision in &collisions {
            self.mark_stale(&collision.path);
        }
        collisions
    }

    /// Marks both steps of a collision as stale, because the record cannot show which result belongs to the step.
    fn mark_stale(&mut self, step: &str) {
        for entry in self.entries.iter_mut().filter(|entry| *entry.path == *step) {
            if let EntryBody::Step { input, stale, .. } = &mut entry.body {
                (*input, *stale) = (None, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        let others =
            &["answer create", "select create", "checkpoint create", "received create", "asked create"];
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
        check(
            forget(),
            &["received a", "asked a#1", "received b", "asked ab"],
            &["received b", "asked ab"],
            &[],
        );
        check(
            forget(),
            &["select a", "checkpoint a", "step b"],
            &["select a", "checkpoint a", "step b"],
            &[],
        );
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
}
