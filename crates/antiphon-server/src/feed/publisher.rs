//! The changes of this instance, until they are published.

use super::{
    change::{AT_ONCE, Change},
    line::Line,
};
use antiphon_wire::{escaped, lock::Lock};
use std::{
    collections::HashSet,
    mem::take,
    sync::{Arc, Weak},
};
use tokio::{runtime::Handle, sync::watch, time::sleep};

/// The maximum number of changes that wait. If there are more, everything may have changed.
const WAITING: usize = 1024;

pub(super) struct Publisher {
    line: Arc<Line>,
    pending: Lock<Pending>,
    /// True if every change was published.
    is_published: watch::Sender<bool>,
}

/// The changes that wait.
#[derive(Default)]
struct Pending {
    changes: HashSet<Change>,
    is_running: bool,
}

impl Publisher {
    pub(super) fn new(line: Arc<Line>) -> Self {
        Self { line, pending: Lock::default(), is_published: watch::Sender::new(true) }
    }

    /// Adds a change to those that wait.
    pub(super) fn add(&self, change: Change) {
        let mut pending = self.pending.lock();
        pending.add(change);
        self.is_published.send_replace(false);
    }

    /// Begins to publish what waits, if no task does.
    pub(super) fn begin(self: &Arc<Self>, runtime: &Handle) {
        if self.pending.lock().begin() {
            let (publisher, changes) = (Arc::downgrade(self), Vec::new());
            runtime.spawn(Task { publisher, changes, has_ended: false }.run());
        }
    }

    /// Waits until nothing waits.
    pub(super) async fn published(&self) {
        // The sender is here, so there is no error.
        let _ = self.is_published.subscribe().wait_for(|is_published| *is_published).await;
    }

    /// Takes the changes of the next message; none if the task is to end.
    fn take(&self) -> Vec<Change> {
        let mut pending = self.pending.lock();
        let changes = pending.take();
        if changes.is_empty() {
            self.is_published.send_replace(true);
        }
        changes
    }

    /// Lets changes that were not published wait again, for this task or for another one.
    fn put_back(&self, changes: Vec<Change>, is_running: bool) {
        let mut pending = self.pending.lock();
        changes.into_iter().for_each(|change| pending.add(change));
        pending.is_running = is_running;
    }
}

impl Pending {
    fn add(&mut self, change: Change) {
        self.changes.insert(change);
        if self.changes.len() > WAITING || self.changes.contains(&Change::Everything) {
            self.changes = HashSet::from([Change::Everything]);
        }
    }

    /// Returns true if a task is to begin.
    fn begin(&mut self) -> bool {
        let begins = !self.is_running && !self.changes.is_empty();
        self.is_running |= begins;
        begins
    }

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

/// The task that publishes, with the changes of its message. If it is dropped, with its runtime, they wait for another one.
struct Task {
    publisher: Weak<Publisher>,
    changes: Vec<Change>,
    has_ended: bool,
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(publisher) = self.publisher.upgrade().filter(|_| !self.has_ended) {
            publisher.put_back(take(&mut self.changes), false);
        }
    }
}

impl Task {
    /// Publishes until nothing waits. After a failure, it goes on as long as the server exists.
    async fn run(mut self) {
        let mut failures = 0;
        while let Some(publisher) = self.publisher.upgrade() {
            self.changes = publisher.take();
            self.has_ended = self.changes.is_empty();
            if self.has_ended {
                return;
            }
            match publisher.line.publish(&self.changes).await {
                Ok(()) => {
                    failures = 0;
                    self.changes.clear();
                }
                Err(error) => {
                    failures += 1;
                    if failures == 1 {
                        tracing::warn!(error = %escaped(&error), "changes are not published now: they wait");
                    }
                    publisher.put_back(take(&mut self.changes), true);
                    let pause = publisher.line.pause(failures);
                    drop(publisher);
                    sleep(pause).await;
                }
            }
        }
    }
}
