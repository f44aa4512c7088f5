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
mod publisher;
mod reader;

pub(crate) use change::{Change, TaskChange, task_digest};

use antiphon_store::{ChangeChannel, ChangeFeed, StoreError};
use antiphon_wire::lock::Lock;
use change::written;
use publisher::Pending;
use reader::{Reader, Stage};
use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{runtime::Handle, sync::watch, time::timeout};

/// The maximum time for which the first subscription of an instance waits for the reader.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The pauses after failures: the first one, and the longest.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct Feed {
    line: Arc<Line>,
    pending: Lock<Pending>,
    /// True if every change was published.
    is_published: watch::Sender<bool>,
    /// The reader, until it is started.
    reader: Lock<Option<Reader>>,
    stage: watch::Receiver<Stage>,
    /// The runtime of the server, for changes that are reported elsewhere.
    runtime: OnceLock<Handle>,
    /// The reader ends with its sender.
    _open: watch::Sender<()>,
}

/// The channel of the server, and the name of this instance on it.
struct Line {
    feed: Arc<dyn ChangeFeed>,
    channel: ChangeChannel,
    /// The instance does not deliver its own changes twice.
    origin: String,
}

impl Line {
    async fn publish(&self, changes: &[Change]) -> Result<(), StoreError> {
        self.feed.publish(self.channel, &written(&self.origin, changes)).await
    }
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
            line,
            pending: Lock::default(),
            is_published: watch::Sender::new(true),
            reader: Lock::new(Some(reader)),
            stage,
            runtime: OnceLock::new(),
            _open: open,
        }
    }

    /// Publishes a change soon. A change that is reported several times before that is published once.
    pub(crate) fn report(self: &Arc<Self>, change: Change) {
        self.pending.lock().add(change);
        self.is_published.send_replace(false);
        self.publish_pending();
    }

    /// Waits until the changes that were reported so far are published.
    pub(crate) async fn published(self: &Arc<Self>) {
        self.publish_pending();
        // The sender is here, so there is no error.
        let _ = self.is_published.subscribe().wait_for(|is_published| *is_published).await;
    }

    fn publish_pending(self: &Arc<Self>) {
        let Some(runtime) = self.runtime() else { return };
        if self.pending.lock().begin() {
            runtime.spawn(publisher::run(Arc::clone(self)));
        }
    }

    /// Begins to receive changes, once. Outside of a runtime, a later call does.
    pub(crate) fn start(&self) {
        let Some(runtime) = self.runtime() else { return };
        if let Some(reader) = self.reader.lock().take() {
            runtime.spawn(reader.run());
        }
    }

    /// Begins to receive changes, and waits until they are received, or cannot be now. A subscription that opens afterwards misses none.
    pub(crate) async fn started(&self) {
        self.start();
        let mut stage = self.stage.clone();
        let begun = stage.wait_for(|stage| *stage != Stage::Begins);
        // Otherwise the subscription is told that everything may have changed, as soon as changes are received.
        let _ = timeout(FIRST_WAIT, begun).await.is_ok();
    }

    /// Returns true while the changes of other instances are received.
    pub(crate) fn is_received(&self) -> bool {
        *self.stage.borrow() == Stage::Receives
    }

    fn runtime(&self) -> Option<&Handle> {
        if let Ok(runtime) = Handle::try_current() {
            return Some(self.runtime.get_or_init(|| runtime));
        }
        self.runtime.get()
    }
}

/// Returns the pause after this number of failures in a row.
fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(8).saturating_sub(1)).min(LONGEST_PAUSE)
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("feed", &self.line.feed)
            .field("channel", &self.line.channel)
            .field("stage", &*self.stage.borrow())
            .finish_non_exhaustive()
    }
}
