//! The feed of a server: it exchanges changes with the other instances, over a [`ChangeFeed`].
//!
//! ```text
//!  report ─▶ pending ─▶ publisher ─▶ feed ─▶ reader ─▶ deliver ─▶ subscriptions
//!            a set      a task while         one task, from the
//!                       there are some       first subscription on
//! ```
//!
//! A change that cannot be published stays pending. A reader that may have missed something delivers [`Change::Everything`]. So a change
//! is lost only with a process that dies before it has published it.

mod channel;

pub use channel::ListKind;
pub(crate) use channel::{Change, TaskChange, resource_digest, task_digest};

use antiphon_store::{ChangeChannel, ChangeFeed};
use antiphon_wire::{escaped, lock::Lock};
use channel::{AT_ONCE, Line, Reader, Stage};
use std::{
    collections::HashSet,
    fmt,
    mem::take,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{sleep, timeout},
};

/// The maximum time for which the first subscription of an instance waits for the reader.
const FIRST_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct Feed {
    line: Arc<Line>,
    publisher: Arc<Publisher>,
    reader: Arc<Reader>,
    stage: watch::Receiver<Stage>,
    /// The latest runtime of the server, for changes that are reported elsewhere.
    runtime: Lock<Option<Handle>>,
    /// The reader ends with its sender.
    _open: watch::Sender<()>,
}

impl Feed {
    /// Returns the feed of an instance with a random name. `deliver` receives the changes of the others.
    pub(crate) fn new(
        feed: Arc<dyn ChangeFeed>,
        audience: &str,
        origin: String,
        deliver: impl Fn(Change) + Send + Sync + 'static,
    ) -> Self {
        let line = Arc::new(Line { feed, channel: ChangeChannel::of(audience), origin });
        let (open, closed) = watch::channel(());
        let (sender, stage) = watch::channel(Stage::default());
        let reader = Reader::new(Arc::clone(&line), Box::new(deliver), sender, closed);
        Self {
            publisher: Arc::new(Publisher::new(Arc::clone(&line))),
            line,
            reader: Arc::new(reader),
            stage,
            runtime: Lock::new(None),
            _open: open,
        }
    }

    /// Publishes a change soon. A change that is reported several times before that is published once.
    pub(crate) fn report(&self, change: Change) {
        self.publisher.add(change);
        self.publish_pending();
    }

    /// Waits until the changes that were reported so far are published.
    pub(crate) async fn published(&self) {
        self.publish_pending();
        self.publisher.published().await;
    }

    fn publish_pending(&self) {
        if let Some(runtime) = self.runtime() {
            self.publisher.begin(&runtime);
        }
    }

    /// Begins to receive changes, unless that has begun. Outside of a runtime, a later call does.
    pub(crate) fn start(&self) {
        if let Some(runtime) = self.runtime().filter(|_| !self.reader.is_running()) {
            runtime.spawn(Arc::clone(&self.reader).run());
        }
    }

    /// Begins to receive changes, and waits until they are received, or cannot be now. A subscription that opens afterwards misses none.
    pub(crate) async fn started(&self) {
        self.start();
        let mut stage = self.stage.clone();
        let begun = stage.wait_for(|stage| *stage != Stage::Begins);
        // Otherwise the subscription is notified of everything as soon as changes are received.
        let _ = timeout(FIRST_WAIT, begun).await.is_ok();
    }

    /// Returns true while the changes of other instances are received.
    pub(crate) fn is_received(&self) -> bool {
        *self.stage.borrow() == Stage::Receives
    }

    fn runtime(&self) -> Option<Handle> {
        let mut latest = self.runtime.lock();
        if let Ok(runtime) = Handle::try_current() {
            *latest = Some(runtime);
        }
        latest.clone()
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("line", &self.line)
            .field("stage", &*self.stage.borrow())
            .finish_non_exhaustive()
    }
}

/// The maximum number of changes that wait. If there are more, everything may have changed.
const WAITING: usize = 1024;

struct Publisher {
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
    fn new(line: Arc<Line>) -> Self {
        Self { line, pending: Lock::default(), is_published: watch::Sender::new(true) }
    }

    /// Adds a change to those that wait.
    fn add(&self, change: Change) {
        let mut pending = self.pending.lock();
        pending.add(change);
        self.is_published.send_replace(false);
    }

    /// Begins to publish what waits, if no task does.
    fn begin(self: &Arc<Self>, runtime: &Handle) {
        if self.pending.lock().begin() {
            let (publisher, changes) = (Arc::downgrade(self), Vec::new());
            runtime.spawn(Task { publisher, changes, has_ended: false }.run());
        }
    }

    /// Waits until nothing waits.
    async fn published(&self) {
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
