//! The settings of a server's tasks, on its builder.

use crate::{ServerBuilder, TaskOptions};
use antiphon_store::{TaskEngine, TaskStore};
use std::sync::Arc;

impl ServerBuilder {
    /// Sets the store of tasks, for the embedded engine. Default: that of the [store of calls](Self::store), if it has one
    /// ([`CallStore::tasks`](antiphon_store::CallStore::tasks)); otherwise tasks are in memory, and end with the process.
    #[must_use]
    pub fn task_store(mut self, store: Arc<dyn TaskStore>) -> Self {
        self.tasks.store = Some(store);
        self
    }

    /// Sets the engine of tasks, in the place of the embedded one with its [store](Self::task_store). An engine serves one server.
    #[must_use]
    pub fn task_engine(mut self, engine: Arc<dyn TaskEngine>) -> Self {
        self.tasks.engine = Some(engine);
        self
    }

    /// Sets the times and limits of tasks. Default: [`TaskOptions::default`].
    #[must_use]
    pub fn task_options(mut self, options: TaskOptions) -> Self {
        self.tasks.options = options;
        self
    }
}
