//! The settings of a server's tasks, on its builder.

use crate::{server::builder::ServerBuilder, task_registry::TaskOptions};
use antiphon_store::{TaskEngine, TaskStore};
use std::sync::Arc;

impl ServerBuilder {
    /// Sets the store of tasks, for the embedded engine. Default: that of the [store of calls](Self::store), if it has one
    /// ([`CallStore::tasks`](antiphon_store::CallStore::tasks)); otherwise tasks are in memory, and end with the process.
    #[must_use]
    pub fn task_store(mut self, store: impl TaskStore) -> Self {
        self.tasks.store = Some(Arc::new(store));
        self
    }

    /// Sets the engine of tasks, in the place of the embedded one with its [store](Self::task_store). An engine serves one server.
    #[must_use]
    pub fn task_engine(mut self, engine: impl TaskEngine) -> Self {
        self.tasks.engine = Some(Arc::new(engine));
        self
    }

    /// Sets the times and limits of tasks. Default: [`TaskOptions::default`].
    #[must_use]
    pub fn task_options(mut self, options: TaskOptions) -> Self {
        self.tasks.options = options;
        self
    }

    /// Serves requests of 2026-07-28 that use tasks as the draft after 2025-11-25 had them, beside the extension: `params.task`,
    /// `tasks/result` with the open questions, and `tasks/input_response`. The draft was never released, and contradicts the
    /// extension, so it is never advertised; a request that declares the extension is served by the extension. Default: `false`.
    #[must_use]
    pub fn draft_tasks(mut self, on: bool) -> Self {
        self.tasks.is_draft = on;
        self
    }
}
