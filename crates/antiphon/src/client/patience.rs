//! How long one request may take, and what progress changes of that.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// The time of one request.
pub(super) struct Patience {
    started: Instant,
    limit: Duration,
    /// How long progress may stretch it, if it may at all.
    stretched: Option<Duration>,
    /// When progress was last heard, in microseconds from the start.
    heard: AtomicU64,
}

impl Patience {
    pub(super) fn new(limit: Duration, stretched: Option<Duration>) -> Self {
        Self { started: Instant::now(), limit, stretched, heard: AtomicU64::new(0) }
    }

    /// Whether progress changes anything.
    pub(super) fn listens(&self) -> bool {
        self.stretched.is_some()
    }

    /// Progress was heard.
    pub(super) fn hear(&self) {
        let since = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.heard.store(since, Ordering::Relaxed);
    }

    /// The end, from the start on, and the limit that sets it.
    ///
    /// > Implementations **MAY** choose to reset the timeout clock when receiving a progress notification [...].
    /// > However, implementations **SHOULD** always enforce a maximum timeout, regardless of progress notifications
    fn end(&self) -> (Duration, Duration) {
        let Some(most) = self.stretched else { return (self.limit, self.limit) };
        let heard = Duration::from_micros(self.heard.load(Ordering::Relaxed));
        let (end, most) = (heard.saturating_add(self.limit), most.max(self.limit));
        if end < most { (end, self.limit) } else { (most, most) }
    }

    /// Does the work, or says which limit it exceeded. The work is dropped then.
    pub(super) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Duration> {
        tokio::pin!(work);
        loop {
            let (end, limit) = self.end();
            let elapsed = self.started.elapsed();
            if elapsed >= end {
                return Err(limit);
            }
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = sleep(end - elapsed) => {}
            }
        }
    }
}
