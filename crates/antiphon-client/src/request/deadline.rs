//! The end of a request: its time limit, the extension of that by progress, and a handle that ends calls from outside.

use antiphon_wire::pacing::stretched;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep},
};

/// The time limit of one request. Progress may extend it, and the time in which a person is asked does not count.
pub(crate) struct RequestDeadline {
    started: Instant,
    limit: Duration,
    /// The maximum time of a request that makes progress; none if progress does not extend the time.
    stretched: Option<Duration>,
    /// The time of the latest progress, in microseconds from the start.
    progressed_at: AtomicU64,
    /// The time at which the clock was paused, in microseconds from the start; `RUNNING` while it is not.
    paused_since: AtomicU64,
    /// The sum of earlier pauses, in microseconds.
    paused_for: AtomicU64,
    /// Notified when the clock is paused or runs again.
    changed: Notify,
}

const RUNNING: u64 = u64::MAX;

impl RequestDeadline {
    pub(crate) fn new(limit: Duration, stretched: Option<Duration>) -> Self {
        Self {
            started: Instant::now(),
            limit,
            stretched,
            progressed_at: AtomicU64::new(0),
            paused_since: AtomicU64::new(RUNNING),
            paused_for: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    /// Returns `true` if progress extends the limit.
    pub(crate) fn is_stretched_by_progress(&self) -> bool {
        self.stretched.is_some()
    }

    /// Progress was received: the limit begins anew.
    pub(crate) fn progressed(&self) {
        self.progressed_at
            .store(self.micros().saturating_sub(self.paused_for.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// Pauses the clock while a person is asked, or lets it run on.
    pub(crate) fn pause(&self, paused: bool) {
        let since = self.paused_since.load(Ordering::Relaxed);
        if paused == (since != RUNNING) {
            return;
        }
        if paused {
            self.paused_since.store(self.micros(), Ordering::Relaxed);
        } else {
            self.paused_for.fetch_add(self.micros().saturating_sub(since), Ordering::Relaxed);
            self.paused_since.store(RUNNING, Ordering::Relaxed);
        }
        self.changed.notify_one();
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX - 1)
    }

    /// The end, counted from the start, and the limit that sets it.
    fn end(&self) -> (Duration, Duration) {
        let progressed_at = Duration::from_micros(self.progressed_at.load(Ordering::Relaxed));
        stretched(self.limit, self.stretched, progressed_at)
    }

    /// Does the work, or returns the limit that the work exceeded. The work is dropped then.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Duration> {
        tokio::pin!(work);
        loop {
            let (end, limit) = self.end();
            let paused_for = Duration::from_micros(self.paused_for.load(Ordering::Relaxed));
            let elapsed = self.started.elapsed().saturating_sub(paused_for);
            if self.paused_since.load(Ordering::Relaxed) != RUNNING {
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

/// Ends every call that has this token: the request under way is cancelled, open callbacks are dropped.
///
/// Clones are the same token. Dropping the future of a call does the same without a token.
#[derive(Clone, Debug)]
pub struct CancelToken(watch::Sender<bool>);

impl CancelToken {
    /// A token that is not cancelled yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Cancels. A cancelled token stays cancelled.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Returns `true` once [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until [`cancel`](Self::cancel) is called.
    pub async fn cancelled(&self) {
        // The wait fails only if every sender is dropped, and `self` is one.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}
