//! How long one request may take, and what progress changes of that.

use antiphon_wire::pacing::stretched;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

/// The time of one request.
pub(crate) struct Patience {
    started: Instant,
    limit: Duration,
    /// How long progress may stretch it, if it may at all.
    stretched: Option<Duration>,
    /// When progress was last heard, in microseconds from the start.
    heard: AtomicU64,
    /// When it stood still, in microseconds from the start; `RUNNING` while it does not.
    stands_since: AtomicU64,
    /// For how long it stood still before, in microseconds.
    stood: AtomicU64,
    /// It stands still, or runs again.
    changed: Notify,
}

const RUNNING: u64 = u64::MAX;

impl Patience {
    pub(crate) fn new(limit: Duration, stretched: Option<Duration>) -> Self {
        Self {
            started: Instant::now(),
            limit,
            stretched,
            heard: AtomicU64::new(0),
            stands_since: AtomicU64::new(RUNNING),
            stood: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    /// Whether progress changes anything.
    pub(crate) fn listens(&self) -> bool {
        self.stretched.is_some()
    }

    /// Progress was heard.
    pub(crate) fn hear(&self) {
        self.heard.store(self.micros().saturating_sub(self.stood.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// Stands still while somebody is asked, whose time is not the server's; or runs on.
    pub(crate) fn pause(&self, stands: bool) {
        let since = self.stands_since.load(Ordering::Relaxed);
        if stands == (since != RUNNING) {
            return;
        }
        if stands {
            self.stands_since.store(self.micros(), Ordering::Relaxed);
        } else {
            self.stood.fetch_add(self.micros().saturating_sub(since), Ordering::Relaxed);
            self.stands_since.store(RUNNING, Ordering::Relaxed);
        }
        self.changed.notify_one();
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX - 1)
    }

    /// The end, from the start on, and the limit that sets it.
    fn end(&self) -> (Duration, Duration) {
        let heard = Duration::from_micros(self.heard.load(Ordering::Relaxed));
        stretched(self.limit, self.stretched, heard)
    }

    /// Does the work, or says which limit it exceeded. The work is dropped then.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Duration> {
        tokio::pin!(work);
        loop {
            let (end, limit) = self.end();
            let stood = Duration::from_micros(self.stood.load(Ordering::Relaxed));
            let elapsed = self.started.elapsed().saturating_sub(stood);
            if self.stands_since.load(Ordering::Relaxed) != RUNNING {
                tokio::select! {
                    biased;
                    done = &mut work => return Ok(done),
                    () = self.changed.notified() => continue,
                }
            }
            if elapsed >= end {
                return Err(limit);
            }
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = self.changed.notified() => {}
                () = sleep(end - elapsed) => {}
            }
        }
    }
}
