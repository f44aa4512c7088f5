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
        let is_it = |change: &Change| matches!(change, Change::KeepStale(step) if number_in(path, step).is_some());
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
        if self.asked_before.is_none() && self.asked.iter().any(|asked| number_in(&asked.path, key).is_some()) {
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
mod tests;
