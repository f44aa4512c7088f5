//! The store: each operation is sent to the thread of the file.

use super::{changes::SqliteChanges, rows::Rows, schema::SqliteOptions, tasks::SqliteTasks, worker::Worker};
use crate::{
    blob::BlobDigest,
    changes::ChangeFeed,
    check,
    claim::{CallKey, Claim, ClaimRequest, Fence, Owner},
    error::{StoreError, StoreErrorKind, Written},
    identity::StoreIdentity,
    row::{Operation, Reply},
    step::{Appended, StepRecord},
    store::{CallStore, StoreFuture, StoreReach, Swept},
    task::TaskStore,
};
use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

/// A store in one SQLite file, for the processes of one host.
///
/// The file has a write-ahead log, and a write returns when it is on the disk. The clock is the host's; the file remembers the
/// latest time, so a clock that goes back stops the time of the rows until it is right again. The file must be on a local disk:
/// on a network file system, the locks between processes do not hold. The file is created for its owner alone.
///
/// One thread has the connection. Operations that wait at the same moment are one transaction. A body of
/// [`Transact::transact`](crate::Transact::transact) runs on that thread, alone: every other operation waits for its end, so it
/// only reads and writes the file.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    pub(super) worker: Worker,
    /// The number of messages that this store has published.
    published: Arc<AtomicU64>,
    identity: StoreIdentity,
}

impl SqliteStore {
    /// Opens the file, and creates it and its tables if they are missing.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Version`] if a later version of antiphon wrote the tables; other kinds if the file cannot be used.
    pub async fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        let worker = Worker::start(path.as_ref().to_owned(), options).await?;
        Ok(Self { worker, published: Arc::default(), identity: StoreIdentity::new() })
    }

    async fn write(
        &self,
        name: &'static str,
        work: impl FnOnce(&Rows<'_>) -> rusqlite::Result<Reply> + Send + 'static,
    ) -> Result<(), StoreError> {
        match self.worker.run(name, Written::Unknown, work).await? {
            Reply::FenceLost => Err(StoreError::fence_lost(name)),
            Reply::Claim(_) | Reply::Written | Reply::Existing => Ok(()),
        }
    }
}

impl CallStore for SqliteStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        Box::pin(async move {
            check::claim(request)?;
            let request = request.clone();
            let run = move |rows: &Rows<'_>| rows.run(request.call, Operation::Claim(&request));
            match self.worker.run("claim", Written::Unknown, run).await? {
                Reply::Claim(claim) => Ok(claim),
                reply => Err(StoreError::read(StoreErrorKind::Corrupt, "claim", format!("{reply:?}"))),
            }
        })
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::lease("renew", lease)?;
            let fence = fence.clone();
            self.write("renew", move |rows| rows.run(fence.call(), Operation::Renew(&fence, lease))).await
        })
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            check::record(record)?;
            let (fence, record) = (fence.clone(), record.clone());
            let run = move |rows: &Rows<'_>| {
                let reply = rows.run(fence.call(), Operation::Append(&fence, &record))?;
                Ok(match reply {
                    Reply::FenceLost => None,
                    Reply::Existing => Some(Appended::Existing(rows.value(fence.call(), &record)?)),
                    Reply::Claim(_) | Reply::Written => Some(Appended::First),
                })
            };
            let appended = self.worker.run("append", Written::Unknown, run).await?;
            appended.ok_or_else(|| StoreError::fence_lost("append"))
        })
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::value("commit", outcome)?;
            let (fence, outcome) = (fence.clone(), outcome.to_vec());
            self.write("commit", move |rows| rows.run(fence.call(), Operation::Commit(&fence, &outcome)))
                .await
        })
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let fence = fence.clone();
            self.write("release", move |rows| rows.run(fence.call(), Operation::Release(&fence))).await
        })
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        Box::pin(self.worker.run("load", Written::No, move |rows| rows.load(call)))
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, _owner: Owner) -> StoreFuture<'a, BlobDigest> {
        Box::pin(async move {
            check::value("put", blob)?;
            check::keep("put", keep)?;
            let (digest, blob) = (BlobDigest::of(blob), blob.to_vec());
            self.worker.run("put", Written::Unknown, move |rows| rows.put(digest, &blob, keep)).await?;
            Ok(digest)
        })
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            let blob = self.worker.run("get", Written::No, move |rows| rows.get(digest)).await?;
            blob.map(|blob| digest.verify(blob)).transpose()
        })
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        Box::pin(self.worker.run("sweep", Written::Unknown, move |rows| rows.sweep(limit)))
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Host
    }

    fn tasks(&self) -> Option<Arc<dyn TaskStore>> {
        Some(Arc::new(SqliteTasks { worker: self.worker.clone() }))
    }

    /// Reaches the processes that have the file open, by looking at its version ten times a second.
    fn change_feed(&self) -> Option<Arc<dyn ChangeFeed>> {
        let (worker, published) = (self.worker.clone(), Arc::clone(&self.published));
        Some(Arc::new(SqliteChanges { worker, published }))
    }

    fn identity(&self) -> Option<StoreIdentity> {
        Some(self.identity)
    }
}
