//! The channel of a server on its feed: the changes and their text, which has digests only, because a database may show messages to users
//! who do not see its tables; and the reader, which receives the changes of other instances, and notices when it may have missed some.
//!
//! ```text
//!  Begins ─▶ Receives ◀─┐
//!    │          │       │ its own message came back
//!    └──────────┴─▶ Fails
//! ```
//!
//! A connection can be dead without an error, or lead to a pooler that drops notifications. So the reader publishes a message without
//! changes, at first and after silence, and receives changes only as long as its own messages come back.

use antiphon_store::{BlobDigest, ChangeChannel, ChangeFeed, StoreError, StoreErrorKind, TaskKey};
use antiphon_wire::escaped;
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

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

/// The pauses after failures: the first one, and the longest.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Line {
    pub(super) feed: Arc<dyn ChangeFeed>,
    pub(super) channel: ChangeChannel,
    /// The instance does not deliver its own changes twice.
    pub(super) origin: String,
}

impl Line {
    pub(super) async fn publish(&self, changes: &[Change]) -> Result<(), StoreError> {
        self.feed.publish(self.channel, &written(&self.origin, changes)).await
    }

    /// Returns the pause after this number of failures in a row. Each instance has its own, between half of it and the whole, so that
    /// they do not all return to the store at once.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        let longest = PAUSE.saturating_mul(1 << failures.min(8).saturating_sub(1)).min(LONGEST_PAUSE);
        let share = self.origin.bytes().fold(0_u8, u8::wrapping_add);
        longest / 2 + longest / 2 * u32::from(share) / u32::from(u8::MAX)
    }
}

/// The time between two messages of the reader.
const SILENCE: Duration = Duration::from_secs(30);
/// The maximum time until such a message comes back, and until it can be published.
const RETURN: Duration = Duration::from_secs(10);

/// Receives the changes of other instances.
pub(super) type Deliver = Box<dyn Fn(Change) + Send + Sync>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// No attempt has ended yet.
    #[default]
    Begins,
    /// Changes are received.
    Receives,
    /// Changes may be missed.
    Fails,
}

pub(super) struct Reader {
    line: Arc<Line>,
    deliver: Deliver,
    stage: watch::Sender<Stage>,
    /// Closed when the server is gone.
    closed: watch::Receiver<()>,
    is_running: AtomicBool,
}

/// The mark of the task of a reader.
struct Running(Arc<Reader>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stage.send_replace(Stage::Fails);
        self.0.is_running.store(false, Ordering::Release);
    }
}

impl Reader {
    pub(super) fn new(
        line: Arc<Line>,
        deliver: Deliver,
        stage: watch::Sender<Stage>,
        closed: watch::Receiver<()>,
    ) -> Self {
        Self { line, deliver, stage, closed, is_running: AtomicBool::new(false) }
    }

    /// Receives until the server is gone, unless a task does. A task that is dropped, with its runtime, makes room for another one.
    pub(super) async fn run(self: Arc<Self>) {
        if self.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let reader = Running(self);
        let mut closed = reader.0.closed.clone();
        tokio::select! {
            biased;
            // Nothing is ever sent.
            _ = closed.changed() => {}
            () = reader.0.receive_always() => {}
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    async fn receive_always(&self) {
        let mut failures = 0;
        loop {
            let Err(error) = self.receive().await;
            let before = self.stage.send_replace(Stage::Fails);
            failures = if before == Stage::Receives { 1 } else { failures + 1 };
            if failures == 1 {
                tracing::warn!(error = %escaped(&error), "changes of other instances are not received now: subscribers are notified of everything later");
            }
            sleep(self.line.pause(failures)).await;
        }
    }

    async fn receive(&self) -> Result<Infallible, StoreError> {
        let mut watch = self.line.feed.watch(self.line.channel).await?;
        self.line.publish(&[]).await?;
        let (mut is_awaited, mut deadline) = (true, Instant::now() + RETURN);
        // The time of the first message in a row that could not be published.
        let mut failing = None;
        loop {
            tokio::select! {
                biased;
                message = watch.next() => {
                    let message = message?;
                    let (origin, changes) = read(&message);
                    if origin != self.line.origin {
                        changes.for_each(|change| (self.deliver)(change));
                    } else if is_awaited {
                        (is_awaited, deadline) = (false, Instant::now() + SILENCE);
                        self.receives();
                    }
                }
                () = sleep_until(deadline) => {
                    if is_awaited {
                        return Err(no_return());
                    }
                    match self.line.publish(&[]).await {
                        Ok(()) => (is_awaited, deadline, failing) = (true, Instant::now() + RETURN, None),
                        // A store that is busy for a moment still delivers.
                        Err(_) if failing.get_or_insert_with(Instant::now).elapsed() < RETURN => {
                            deadline = Instant::now() + self.line.pause(1);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    /// Notes that changes are received from now on. Those before that may be missed.
    fn receives(&self) {
        if *self.stage.borrow() == Stage::Receives {
            return;
        }
        (self.deliver)(Change::Everything);
        self.stage.send_replace(Stage::Receives);
    }
}

fn no_return() -> StoreError {
    let text = "a message of this instance did not come back: the connection is dead, or a pooler in front of the database does not \
                pass notifications on";
    StoreError::read(StoreErrorKind::Timeout, "watch", text)
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
