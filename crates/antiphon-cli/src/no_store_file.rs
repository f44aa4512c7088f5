//! The place of the SQLite file of `--store` in a build without the feature `sqlite`.

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
