//! Changes and their text: digests only, because a database may show messages to users who do not see its tables.

use antiphon_store::{BlobDigest, TaskKey};

/// A list of a server that may change: [`Server::list_changed`](crate::Server::list_changed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListKind {
    /// The tools.
    Tools,
    /// The prompts.
    Prompts,
    /// The resources, and their templates.
    Resources,
}

impl ListKind {
    pub(crate) const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];
}

/// A change that instances report to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    /// A list.
    List(ListKind),
    /// The resource whose URI has this digest.
    Resource(BlobDigest),
    /// The task whose key has this digest.
    Task(BlobDigest),
    /// Whatever is watched: what has changed is not known.
    Everything,
}

impl Change {
    pub(crate) fn of_resource(uri: &str) -> Self {
        Self::Resource(resource_digest(uri))
    }

    pub(crate) fn of_task(task: TaskKey) -> Self {
        Self::Task(task_digest(task))
    }
}

/// A change of a task, as subscriptions receive it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskChange {
    /// Of this task.
    Of(TaskKey),
    /// Of the task whose key has this digest, by another instance.
    Elsewhere(BlobDigest),
    /// It may be any.
    Any,
}

impl TaskChange {
    /// Returns true if this task, whose key has this digest, may have changed.
    pub(crate) fn may_be(self, task: TaskKey, digest: BlobDigest) -> bool {
        match self {
            Self::Of(changed) => changed == task,
            Self::Elsewhere(changed) => changed == digest,
            Self::Any => true,
        }
    }
}

/// Returns the digest by which instances name a resource to each other.
pub(crate) fn resource_digest(uri: &str) -> BlobDigest {
    BlobDigest::of(uri.as_bytes())
}

/// Returns the digest of a task's key. The key is the id of the task, which may be all that its owner has.
pub(crate) fn task_digest(task: TaskKey) -> BlobDigest {
    BlobDigest::of(&[b"task ", &task.as_bytes()[..]].concat())
}

/// The maximum number of changes in one message: with the name of the instance, the longest ones fit.
pub(super) const AT_ONCE: usize = 60;

const LISTS: [(ListKind, &str); 3] =
    [(ListKind::Tools, "tools"), (ListKind::Prompts, "prompts"), (ListKind::Resources, "resources")];

/// Returns the message with these changes.
pub(super) fn written(origin: &str, changes: &[Change]) -> String {
    let mut message = origin.to_owned();
    for change in changes {
        message.push(' ');
        match change {
            Change::List(kind) => {
                message.extend(LISTS.iter().filter(|(of, _)| of == kind).map(|(_, name)| *name));
            }
            Change::Resource(digest) => message.push_str(&format!("r{digest}")),
            Change::Task(digest) => message.push_str(&format!("t{digest}")),
            Change::Everything => message.push('*'),
        }
    }
    message
}

/// Returns the name of the instance that wrote a message, and its changes. A word that this version does not know may be any change.
pub(super) fn read(message: &str) -> (&str, impl Iterator<Item = Change>) {
    let (origin, changes) = message.split_once(' ').unwrap_or((message, ""));
    let words = changes.split(' ').filter(|word| !word.is_empty());
    (origin, words.map(|word| read_change(word).unwrap_or(Change::Everything)))
}

fn read_change(word: &str) -> Option<Change> {
    if let Some((kind, _)) = LISTS.iter().find(|(_, name)| *name == word) {
        return Some(Change::List(*kind));
    }
    match word.split_at_checked(1)? {
        ("r", digest) => read_digest(digest).map(Change::Resource),
        ("t", digest) => read_digest(digest).map(Change::Task),
        _ => None,
    }
}

fn read_digest(text: &str) -> Option<BlobDigest> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, number) in bytes.iter_mut().zip(0..) {
        *byte = u8::from_str_radix(text.get(2 * number..2 * number + 2)?, 16).ok()?;
    }
    Some(BlobDigest::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_store::MAX_CHANGE;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let task = TaskKey::from_bytes([0xA7; 16]);
        let uri = "bank://accounts/4711?pin=0000";
        let changes = [
            Change::List(ListKind::Tools),
            Change::List(ListKind::Prompts),
            Change::List(ListKind::Resources),
            Change::of_resource(uri),
            Change::of_task(task),
            Change::Everything,
        ];
        for changes in [&changes[..], &[]] {
            let message = written("me", changes);
            let (origin, found) = read(&message);
            assert_eq!((origin, &found.collect::<Vec<_>>()[..]), ("me", changes), "{message}");
            assert!(!message.contains("bank") && !message.contains("a7a7"), "{message}");
        }
        for unknown in ["x", "r12", &format!("r{}", "g".repeat(64)), "Tools", "\u{20ac}"] {
            let message = format!("me {unknown}");
            assert_eq!(read(&message).1.collect::<Vec<_>>(), [Change::Everything], "{unknown}");
        }
        let longest = written(&"f".repeat(32), &[Change::of_task(task); AT_ONCE]);
        assert!(longest.len() <= MAX_CHANGE, "{}", longest.len());
    }
}
