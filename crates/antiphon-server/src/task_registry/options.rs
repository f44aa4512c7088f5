//! The settings of the tasks of a server.

use antiphon_store::{TaskLimits, TaskStore};
use std::{sync::Arc, time::Duration};

/// The settings of the tasks of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskOptions {
    /// The time for which a task exists, from its creation; `None` for no limit. A question of the task can be answered as long
    /// as the task exists, but not after 390 days. Default: 24 hours.
    pub ttl: Option<Duration>,
    /// The time for which a finished task is kept at least. Default: 1 hour.
    pub keep: Duration,
    /// The time between two polls that is suggested to clients. Default: 1 second.
    pub poll_interval: Duration,
    /// The number of tasks that run at once in this process; tasks that wait for an answer do not count. Default: 256.
    pub running: usize,
    /// The time until a process that does not renew its claim on a task counts as dead. Default: 30 seconds.
    pub lease: Duration,
    /// The limits of the store. Default: [`TaskLimits::default`].
    pub limits: TaskLimits,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            ttl: Some(Duration::from_secs(24 * 3600)),
            keep: Duration::from_secs(3600),
            poll_interval: Duration::from_secs(1),
            running: 256,
            lease: Duration::from_secs(30),
            limits: TaskLimits::default(),
        }
    }
}

impl TaskOptions {
    /// Sets [`ttl`](Self::ttl).
    #[must_use]
    pub fn ttl(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.ttl = time.into();
        self
    }

    /// Sets [`keep`](Self::keep).
    #[must_use]
    pub fn keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }

    /// Sets [`poll_interval`](Self::poll_interval).
    #[must_use]
    pub fn poll_interval(mut self, time: Duration) -> Self {
        self.poll_interval = time;
        self
    }

    /// Sets [`running`](Self::running).
    #[must_use]
    pub fn running(mut self, number: usize) -> Self {
        self.running = number;
        self
    }

    /// Sets [`lease`](Self::lease).
    #[must_use]
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time;
        self
    }

    /// Sets [`limits`](Self::limits).
    #[must_use]
    pub fn limits(mut self, limits: TaskLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// The tasks of a server, before it is built.
#[derive(Debug, Default)]
pub(crate) struct TaskSettings {
    pub(crate) store: Option<Arc<dyn TaskStore>>,
    pub(crate) options: TaskOptions,
    /// True if requests of the draft are served.
    pub(crate) is_draft: bool,
}
