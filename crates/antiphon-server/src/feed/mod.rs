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

mod change;
mod line;
mod publisher;
mod reader;

pub use change::ListKind;
pub(crate) use change::{Change, TaskChange, resource_digest, task_digest};

use antiphon_store::{ChangeChannel, ChangeFeed};
use antiphon_wire::lock::Lock;
use line::Line;
use publisher::Publisher;
use reader::{Reader, Stage};
use std::{fmt, sync::Arc, time::Duration};
use tokio::{runtime::Handle, sync::watch, time::timeout};

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
