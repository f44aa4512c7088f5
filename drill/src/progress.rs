//! The part of a run that is over.

use crate::options::Options;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The progress of a run, by calls or by time.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    begin: Instant,
    time: Option<Duration>,
    calls: Option<u64>,
    begun: Arc<AtomicU64>,
}

impl Progress {
    /// Returns the progress of a run that begins now.
    pub(crate) fn begin(options: &Options) -> Self {
        let time = options.seconds.map(Duration::from_secs);
        Self { begin: Instant::now(), time, calls: options.calls, begun: Arc::default() }
    }

    /// Returns the number of the next call, unless the run is over.
    pub(crate) fn next_call(&self) -> Option<u64> {
        if self.time.is_some_and(|time| self.begin.elapsed() >= time) {
            return None;
        }
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.calls.is_none_or(|calls| number < calls).then_some(number)
    }

    /// Returns the time since the begin.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Waits until this part of the run is over.
    pub(crate) async fn reaches(&self, part: f64) {
        loop {
            let of_time =
                self.time.map(|time| self.begin.elapsed().as_secs_f64() / time.as_secs_f64().max(1.0));
            let begun = u32::try_from(self.begun.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
            let calls = self
                .calls
                .map(|calls| f64::from(begun) / f64::from(u32::try_from(calls).unwrap_or(u32::MAX)));
            if of_time.into_iter().chain(calls).any(|done| done >= part) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
