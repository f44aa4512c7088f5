//! A histogram of durations with fixed buckets, and a counter: relaxed atomics.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The upper bounds of the buckets, in milliseconds: those that OpenTelemetry's conventions for MCP recommend.
const BOUNDS: [u64; 14] =
    [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000];

/// A count that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram. The last bucket has everything above the largest bound.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [Counter; BOUNDS.len() + 1],
    micros: Counter,
}

impl Histogram {
    pub(crate) fn record(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.buckets[BOUNDS.partition_point(|bound| bound * 1000 < micros)].add(1);
        self.micros.add(micros);
    }

    /// Returns the cumulative counts with their bounds in seconds, then the count and the sum in seconds of all.
    pub(crate) fn read(&self) -> (Vec<(f64, u64)>, u64, f64) {
        let mut count = 0;
        let mut cumulative = Vec::with_capacity(BOUNDS.len());
        for (bound, bucket) in BOUNDS.iter().zip(&self.buckets) {
            count += bucket.get();
            cumulative.push((Duration::from_millis(*bound).as_secs_f64(), count));
        }
        count += self.buckets[BOUNDS.len()].get();
        (cumulative, count, Duration::from_micros(self.micros.get()).as_secs_f64())
    }

    /// Returns true before the first duration.
    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.get() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_each_bucket_whose_bound_it_does_not_exceed() {
        for (millis, first) in [(0, 0.01), (10, 0.01), (11, 0.02), (300_000, 300.0)] {
            let histogram = Histogram::default();
            assert!(histogram.is_empty());
            histogram.record(Duration::from_millis(millis));
            let (buckets, count, sum) = histogram.read();
            let found = buckets.iter().find(|(_, count)| *count == 1).map(|(bound, _)| *bound);
            assert_eq!((found, count, histogram.is_empty()), (Some(first), 1, false), "{millis}");
            assert!((sum - Duration::from_millis(millis).as_secs_f64()).abs() < 1e-9);
        }
        let histogram = Histogram::default();
        histogram.record(Duration::MAX);
        let (buckets, count, _) = histogram.read();
        assert_eq!((buckets.last().unwrap().1, count), (0, 1));
    }
}
