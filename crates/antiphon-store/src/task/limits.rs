//! The limits of a store of tasks.

/// The limits of a store of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskLimits {
    /// The number of tasks. Default: 100,000.
    pub tasks: usize,
    /// The number of tasks of one owner. Default: 10,000.
    pub tasks_of_owner: usize,
    /// The number of messages in the queue of one task. Default: 256.
    pub messages: usize,
    /// The bytes of the messages in the queue of one task. Default: 4 MiB.
    pub message_bytes: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { tasks: 100_000, tasks_of_owner: 10_000, messages: 256, message_bytes: 4 << 20 }
    }
}

impl TaskLimits {
    /// Sets [`tasks`](Self::tasks).
    #[must_use]
    pub fn tasks(mut self, number: usize) -> Self {
        self.tasks = number;
        self
    }

    /// Sets [`tasks_of_owner`](Self::tasks_of_owner).
    #[must_use]
    pub fn tasks_of_owner(mut self, number: usize) -> Self {
        self.tasks_of_owner = number;
        self
    }

    /// Sets [`messages`](Self::messages).
    #[must_use]
    pub fn messages(mut self, number: usize) -> Self {
        self.messages = number;
        self
    }

    /// Sets [`message_bytes`](Self::message_bytes).
    #[must_use]
    pub fn message_bytes(mut self, bytes: usize) -> Self {
        self.message_bytes = bytes;
        self
    }
}
