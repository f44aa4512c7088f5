//! What a new version of a tool does with the steps that an older one has recorded.

use super::{Entry, EntryBody, EntryKind, Record};
use crate::key::NUMBER;
use std::sync::Arc;

/// What a new version does with steps that an older one has recorded, and with answers: by their paths, which are their keys below their
/// scopes, `alice/create`. `charge` stands for `charge#0`, `charge#1` and so on as well; `charge#1` for that one alone.
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

/// By the paths of steps: scopes and key.
#[derive(Clone, Debug)]
enum Change {
    Added(String),
    Forget(String),
    Rename(String, String),
    KeepStale(String),
}

/// A step that was recorded under the name that a migration gives to another one: neither result counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The path that both would have.
    pub path: String,
}

impl Migration {
    /// No change.
    pub fn new() -> Self {
        Self::default()
    }

    /// A step that this version runs before steps that older versions have recorded. The step runs although those were not
    /// replayed yet. Without this word, a call that comes to such a step ends as `flow_diverged`.
    #[must_use]
    pub fn added(mut self, step: impl Into<String>) -> Self {
        self.changes.push(Change::Added(step.into()));
        self
    }

    /// The step of this key is no more, or the question: that a step was recorded, or that a question was refused, does not
    /// end the call.
    #[must_use]
    pub fn forget(mut self, key: impl Into<String>) -> Self {
        self.changes.push(Change::Forget(key.into()));
        self
    }

    /// This step has another key now. Its idempotency key was made of the old one. Changes are made in their order; where
    /// the new key was recorded as well, neither result counts.
    #[must_use]
    pub fn rename(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.changes.push(Change::Rename(from.into(), to.into()));
        self
    }

    /// The outcome of this step counts though an answer before it has changed.
    #[must_use]
    pub fn keep_stale(mut self, step: impl Into<String>) -> Self {
        self.changes.push(Change::KeepStale(step.into()));
        self
    }

    /// Returns whether this step is one that the version has added.
    pub(crate) fn adds(&self, path: &str) -> bool {
        let is_it =
            |change: &Change| matches!(change, Change::Added(step) if number_in(path, step).is_some());
        self.changes.iter().any(is_it)
    }
}

/// The number behind the name of this step in a path, `""` if there is none; `None` if the path is of another step.
fn number_in<'p>(path: &'p str, step: &str) -> Option<&'p str> {
    let number = path.strip_prefix(step)?;
    (number.is_empty() || number.starts_with(NUMBER)).then_some(number)
}

fn number_of<'e>(entry: &'e Entry, step: &str) -> Option<&'e str> {
    number_in(&entry.path, step).filter(|_| entry.kind() == EntryKind::Step)
}

impl Record {
    /// Does with recorded steps what a newer version says. Names that collide are for the log.
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
                        // It rests on no answer.
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
            let Some(number) = number_of(&self.entries[at], from) else { continue };
            // A number stands there once.
            let path: Arc<str> = match number {
                "" => to.into(),
                _ if to.contains(NUMBER) => continue,
                number => format!("{to}{number}").into(),
            };
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

    /// Of two results nobody knows which is this step's: neither counts.
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
