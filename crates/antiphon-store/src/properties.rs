//! The properties of a store: its identity, which compares a store with another value that may be the same store, its reach,
//! and the limits of a store of tasks.

use std::sync::atomic::{AtomicU64, Ordering};

/// The identity of one opened store within this process. The clones of a store have the same one.
///
/// A store behind a wrapper of your own keeps its identity if the wrapper returns it from
/// [`CallStore::identity`](crate::CallStore::identity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreIdentity(u64);

impl StoreIdentity {
    /// Returns an identity that no other store of this process has.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "two values of a default are equal; two of these never are"
    )]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The set of processes that see the rows of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StoreReach {
    /// Only this process. If several instances share sealing keys, each would run the same leg.
    Process,
    /// The processes of one host.
    Host,
    /// All instances.
    Fleet,
}

/// The limits of a store of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskLimits {
    tasks: usize,
    tasks_of_owner: usize,
    messages: usize,
    message_bytes: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { tasks: 100_000, tasks_of_owner: 10_000, messages: 256, message_bytes: 4 << 20 }
    }
}

impl TaskLimits {
    /// Sets the number of tasks that are not final. Default: 100,000.
    #[must_use]
    pub fn tasks(mut self, number: usize) -> Self {
        self.tasks = number;
        self
    }

    /// Sets the number of tasks of one owner that are not final. Default: 10,000.
    #[must_use]
    pub fn tasks_of_owner(mut self, number: usize) -> Self {
        self.tasks_of_owner = number;
        self
    }

    /// Sets the number of messages in the queue of one task. Default: 256.
    #[must_use]
    pub fn messages(mut self, number: usize) -> Self {
        self.messages = number;
        self
    }

    /// Sets the bytes of the messages in the queue of one task. Default: 4 MiB.
    #[must_use]
    pub fn message_bytes(mut self, bytes: usize) -> Self {
        self.message_bytes = bytes;
        self
    }

    /// Returns the number that [`tasks`](Self::tasks) sets.
    #[must_use]
    pub fn max_tasks(&self) -> usize {
        self.tasks
    }

    /// Returns the number that [`tasks_of_owner`](Self::tasks_of_owner) sets.
    #[must_use]
    pub fn max_tasks_of_owner(&self) -> usize {
        self.tasks_of_owner
    }

    /// Returns the number that [`messages`](Self::messages) sets.
    #[must_use]
    pub fn max_messages(&self) -> usize {
        self.messages
    }

    /// Returns the number that [`message_bytes`](Self::message_bytes) sets.
    #[must_use]
    pub fn max_message_bytes(&self) -> usize {
        self.message_bytes
    }
}
