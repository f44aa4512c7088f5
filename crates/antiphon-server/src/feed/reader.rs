//! The channel of a server on its feed, and its reader, which receives the changes of other instances, and notices when it may have
//! missed some.
//!
//! ```text
//!  Begins ─▶ Receives ◀─┐
//!    │          │       │ its own message came back
//!    └──────────┴─▶ Fails
//! ```
//!
//! A connection can be dead without an error, or lead to a pooler that drops notifications. So the reader publishes a message without
//! changes, at first and after silence, and receives changes only as long as its own messages come back.

use super::change::{Change, read, written};
use antiphon_store::{ChangeChannel, ChangeFeed, StoreError, StoreErrorKind};
use antiphon_wire::escaped;
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

/// The pauses after failures: the first one, and the longest.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Line {
    pub(super) feed: Arc<dyn ChangeFeed>,
    pub(super) channel: ChangeChannel,
    /// The instance does not deliver its own changes twice.
    pub(super) origin: String,
}

impl Line {
    pub(super) async fn publish(&self, changes: &[Change]) -> Result<(), StoreError> {
        self.feed.publish(self.channel, &written(&self.origin, changes)).await
    }

    /// Returns the pause after this number of failures in a row. Each instance has its own, between half of it and the whole, so that
    /// they do not all return to the store at once.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        let longest = PAUSE.saturating_mul(1 << failures.min(8).saturating_sub(1)).min(LONGEST_PAUSE);
        let share = self.origin.bytes().fold(0_u8, u8::wrapping_add);
        longest / 2 + longest / 2 * u32::from(share) / u32::from(u8::MAX)
    }
}

/// The time between two messages of the reader.
const SILENCE: Duration = Duration::from_secs(30);
/// The maximum time until such a message comes back, and until it can be published.
const RETURN: Duration = Duration::from_secs(10);

/// Receives the changes of other instances.
pub(super) type Deliver = Box<dyn Fn(Change) + Send + Sync>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// No attempt has ended yet.
    #[default]
    Begins,
    /// Changes are received.
    Receives,
    /// Changes may be missed.
    Fails,
}

pub(super) struct Reader {
    line: Arc<Line>,
    deliver: Deliver,
    stage: watch::Sender<Stage>,
    /// Closed when the server is gone.
    closed: watch::Receiver<()>,
    is_running: AtomicBool,
}

/// The mark of the task of a reader.
struct Running(Arc<Reader>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stage.send_replace(Stage::Fails);
        self.0.is_running.store(false, Ordering::Release);
    }
}

impl Reader {
    pub(super) fn new(
        line: Arc<Line>,
        deliver: Deliver,
        stage: watch::Sender<Stage>,
        closed: watch::Receiver<()>,
    ) -> Self {
        Self { line, deliver, stage, closed, is_running: AtomicBool::new(false) }
    }

    /// Receives until the server is gone, unless a task does. A task that is dropped, with its runtime, makes room for another one.
    pub(super) async fn run(self: Arc<Self>) {
        if self.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let reader = Running(self);
        let mut closed = reader.0.closed.clone();
        tokio::select! {
            biased;
            // Nothing is ever sent.
            _ = closed.changed() => {}
            () = reader.0.receive_always() => {}
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    async fn receive_always(&self) {
        let mut failures = 0;
        loop {
            let Err(error) = self.receive().await;
            let before = self.stage.send_replace(Stage::Fails);
            failures = if before == Stage::Receives { 1 } else { failures + 1 };
            if failures == 1 {
                tracing::warn!(error = %escaped(&error), "changes of other instances are not received now: subscribers are notified of everything later");
            }
            sleep(self.line.pause(failures)).await;
        }
    }

    async fn receive(&self) -> Result<Infallible, StoreError> {
        let mut watch = self.line.feed.watch(self.line.channel).await?;
        self.line.publish(&[]).await?;
        let (mut is_awaited, mut deadline) = (true, Instant::now() + RETURN);
        // The time of the first message in a row that could not be published.
        let mut failing = None;
        loop {
            tokio::select! {
                biased;
                message = watch.next() => {
                    let message = message?;
                    let (origin, changes) = read(&message);
                    if origin != self.line.origin {
                        changes.for_each(|change| (self.deliver)(change));
                    } else if is_awaited {
                        (is_awaited, deadline) = (false, Instant::now() + SILENCE);
                        self.receives();
                    }
                }
                () = sleep_until(deadline) => {
                    if is_awaited {
                        return Err(no_return());
                    }
                    match self.line.publish(&[]).await {
                        Ok(()) => (is_awaited, deadline, failing) = (true, Instant::now() + RETURN, None),
                        // A store that is busy for a moment still delivers.
                        Err(_) if failing.get_or_insert_with(Instant::now).elapsed() < RETURN => {
                            deadline = Instant::now() + self.line.pause(1);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    /// Notes that changes are received from now on. Those before that may be missed.
    fn receives(&self) {
        if *self.stage.borrow() == Stage::Receives {
            return;
        }
        (self.deliver)(Change::Everything);
        self.stage.send_replace(Stage::Receives);
    }
}

fn no_return() -> StoreError {
    let text = "a message of this instance did not come back: the connection is dead, or a pooler in front of the database does not \
                pass notifications on";
    StoreError::read(StoreErrorKind::Timeout, "watch", text)
}
