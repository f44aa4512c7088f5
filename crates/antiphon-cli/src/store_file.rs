//! The SQLite file of `--store`.

use crate::{args::StoreArgs, failure::Failure};
use antiphon::store::{CallStore, SqliteOptions, SqliteStore};
use std::sync::Arc;

/// Opens the store, if the command line names one.
pub(crate) async fn open(args: &StoreArgs) -> Result<Option<Arc<dyn CallStore>>, Failure> {
    let Some(file) = &args.file else { return Ok(None) };
    let store = SqliteStore::open(file, SqliteOptions::default()).await.map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        Failure::usage(format!("--store {}: {error}: {cause}", file.display()))
    })?;
    Ok(Some(Arc::new(store)))
}
