//! The SQLite file of `--store`, and its place in a build without it.

pub(crate) use file::{open, open_tasks};

#[cfg(feature = "sqlite")]
mod file {
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
}

#[cfg(not(feature = "sqlite"))]
mod file {
    use crate::{
        args::StoreArgs,
        failure::{self, Failure},
    };
    use antiphon::store::{CallStore, TaskStore};
    use std::{path::Path, sync::Arc};

    /// Fails if the command line names a store.
    pub(crate) async fn open(args: &StoreArgs) -> Result<Option<Arc<dyn CallStore>>, Failure> {
        match &args.file {
            Some(_) => Err(absent()),
            None => Ok(None),
        }
    }

    /// Fails.
    pub(crate) async fn open_tasks(_: &Path) -> Result<Arc<dyn TaskStore>, Failure> {
        Err(absent())
    }

    fn absent() -> Failure {
        Failure::usage(failure::absent("--store", "sqlite"))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[tokio::test]
        async fn a_store_is_refused_with_the_name_of_the_feature() {
            assert!(open(&StoreArgs { file: None }).await.unwrap().is_none());
            let refused = open(&StoreArgs { file: Some("calls.db".into()) }).await.err().unwrap();
            let expected = "--store needs the feature `sqlite`, which this program was built without: \
                `cargo install antiphon-cli --features sqlite`, or in a clone `cargo run -p antiphon-cli --features sqlite -- ..`";
            assert_eq!(refused.message, expected);
            assert_eq!(open_tasks(Path::new("calls.db")).await.err().unwrap().message, expected);
        }
    }
}
