//! The SQLite file of `--store`.

use crate::{args::StoreArgs, failure::Failure};
use antiphon::store::{CallStore, SqliteOptions, SqliteStore, StoreError, TaskStore};
use std::{path::Path, sync::Arc};

/// Opens the store, if the command line names one.
pub(crate) async fn open(args: &StoreArgs) -> Result<Option<Arc<dyn CallStore>>, Failure> {
    let Some(file) = &args.file else { return Ok(None) };
    let store = SqliteStore::open(file, SqliteOptions::default()).await;
    Ok(Some(Arc::new(store.map_err(|error| failure(file, &error))?)))
}

/// Opens the tasks in a file, to read them.
pub(crate) async fn open_tasks(file: &Path) -> Result<Arc<dyn TaskStore>, Failure> {
    let store = SqliteStore::open(file, SqliteOptions::default().read_only(true)).await;
    let store = store.map_err(|error| failure(file, &error))?;
    store.tasks().ok_or_else(|| Failure::usage(format!("--store {} has no tasks", file.display())))
}

fn failure(file: &Path, error: &StoreError) -> Failure {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    Failure::usage(format!("--store {}: {error}: {cause}", file.display()))
}
