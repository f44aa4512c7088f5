//! The settings of the tasks of a server.

use antiphon_store::{TaskEngine, TaskLimits, TaskStore};
use std::{sync::Arc, time::Duration};

/// The settings of the tasks of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskOptions {
    pub(crate) ttl: Option<Duration>,
    pub(crate) keep: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) running: usize,
    pub(crate) lease: Duration,
    pub(crate) limits: TaskLimits,
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
    /// Sets the time for which a task exists, from its creation; `None` for no limit. A question of the task can be answered as
    /// long as the task exists, but not after 390 days. Default: 24 hours.
    #[must_use]
    pub fn ttl(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.ttl = time.into();
        self
    }

    /// Sets the time for which a finished task is kept at least. Default: 1 hour.
    #[must_use]
    pub fn keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }

    /// Sets the time between two polls that is suggested to clients. Default: 1 second.
    #[must_use]
    pub fn poll_interval(mut self, time: Duration) -> Self {
        self.poll_interval = time;
        self
    }

    /// Sets the number of tasks that the embedded engine runs at once in this process; tasks that wait for an answer do not
    /// count. Default: 256.
    #[must_use]
    pub fn running(mut self, number: usize) -> Self {
        self.running = number;
        self
    }

    /// Sets the time until a process that does not renew its claim on a task counts as dead, for the embedded engine.
    /// Default: 30 seconds.
    #[must_use]
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time;
        self
    }

    /// Sets the limits of the engine. Default: [`TaskLimits::default`].
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
    pub(crate) engine: Option<Arc<dyn TaskEngine>>,
    pub(crate) options: TaskOptions,
    /// True if requests of the draft are served.
    pub(crate) is_draft: bool,
}
