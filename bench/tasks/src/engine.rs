//! The engines.

use crate::measured::Result;
use antiphon::{
    server::{Server, ServerBuilder},
    store::{CallStore, MemoryTasks, SqliteOptions, SqliteStore, TaskStore},
};
use std::{path::Path, sync::Arc};

/// One engine, with the store of its tasks.
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    pub(crate) tasks: Arc<dyn TaskStore>,
    /// A second store of the same kind, whose rows no runner finds.
    pub(crate) raw: Arc<dyn TaskStore>,
    calls: Option<Arc<dyn CallStore>>,
}

impl Engine {
    /// The engine of a server without a store.
    pub(crate) fn in_memory() -> Self {
        Self {
            name: "memory",
            tasks: Arc::new(MemoryTasks::new()),
            raw: Arc::new(MemoryTasks::new()),
            calls: None,
        }
    }

    /// The engine on a file, and a second file beside it. What they hold is removed.
    pub(crate) async fn sqlite(file: &Path) -> Result<Self> {
        let raw = opened(&file.with_extension("raw")).await?;
        let store = opened(file).await?;
        let tasks = store.tasks().ok_or("SQLite keeps tasks")?;
        let raw = raw.tasks().ok_or("SQLite keeps tasks")?;
        Ok(Self { name: "SQLite", tasks, raw, calls: Some(Arc::new(store)) })
    }

    /// A server that keeps its tasks here.
    pub(crate) fn server(&self) -> ServerBuilder {
        let builder = Server::builder("bench", "1.0").task_store(Arc::clone(&self.tasks));
        match &self.calls {
            None => builder,
            Some(calls) => builder.store(Arc::clone(calls)),
        }
    }
}

async fn opened(file: &Path) -> Result<SqliteStore> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(SqliteStore::open(file, SqliteOptions::default()).await?)
}
