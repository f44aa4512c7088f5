//! The changes of this instance, until they are published.

use super::{
    Feed,
    change::{AT_ONCE, Change},
    pause,
};
use antiphon_wire::escaped;
use std::{collections::HashSet, mem::take, sync::Arc};
use tokio::time::sleep;

/// The maximum number of changes that wait. If there are more, everything may have changed.
const WAITING: usize = 1024;

/// The changes that wait.
#[derive(Default)]
pub(super) struct Pending {
    changes: HashSet<Change>,
    is_running: bool,
}

impl Pending {
    pub(super) fn add(&mut self, change: Change) {
        self.changes.insert(change);
        if self.changes.len() > WAITING || self.changes.contains(&Change::Everything) {
            self.changes = HashSet::from([Change::Everything]);
        }
    }

    /// Returns true if a publisher is to begin.
    pub(super) fn begin(&mut self) -> bool {
        let begins = !self.is_running && !self.changes.is_empty();
        self.is_running |= begins;
        begins
    }

    /// Takes the changes of the next message; none if the publisher is to end.
    fn take(&mut self) -> Vec<Change> {
        if self.changes.len() <= AT_ONCE {
            let changes: Vec<Change> = take(&mut self.changes).into_iter().collect();
            self.is_running = !changes.is_empty();
            return changes;
        }
        let changes: Vec<Change> = self.changes.iter().take(AT_ONCE).copied().collect();
        self.changes.retain(|change| !changes.contains(change));
        changes
    }
}

impl Feed {
    fn take_pending(&self) -> Vec<Change> {
        let mut pending = self.pending.lock();
        let changes = pending.take();
        if changes.is_empty() {
            self.is_published.send_replace(true);
        }
        changes
    }

    fn put_back(&self, changes: Vec<Change>) {
        let mut pending = self.pending.lock();
        changes.into_iter().for_each(|change| pending.add(change));
    }
}

/// Publishes until nothing waits. After a failure, it goes on as long as the server exists.
pub(super) async fn run(mut feed: Arc<Feed>) {
    let mut failures = 0;
    loop {
        let changes = feed.take_pending();
        if changes.is_empty() {
            return;
        }
        match feed.line.publish(&changes).await {
            Ok(()) => failures = 0,
            Err(error) => {
                failures += 1;
                if failures == 1 {
                    tracing::warn!(error = %escaped(&error), "changes are not published now: they wait");
                }
                feed.put_back(changes);
                let exists = Arc::downgrade(&feed);
                drop(feed);
                sleep(pause(failures)).await;
                let Some(again) = exists.upgrade() else { return };
                feed = again;
            }
        }
    }
}
