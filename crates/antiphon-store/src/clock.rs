//! The time of a store, in microseconds since 1970. A test may put a manual clock in the place of the store's own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment on a store's clock: microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(i64);

impl Micros {
    /// Returns the moment with this number of microseconds.
    #[must_use]
    pub const fn new(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the number of microseconds.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Returns the moment that is `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// Returns the time from `earlier` until this moment; zero if this moment is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Returns the microseconds of a duration.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The source of a store's time.
///
/// A lease is valid until a moment of this clock, so all processes that share rows must share the clock. PostgreSQL and Redis
/// use the time of the database server. SQLite uses the time of the host. The memory store uses the time of its process.
#[derive(Clone)]
pub struct StoreClock(Arc<dyn Fn() -> Micros + Send + Sync>);

impl StoreClock {
    /// Returns the system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::from_fn(|| {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            Micros(micros(since_1970))
        })
    }

    /// Returns a clock that begins at the system's time and is not changed when the system's clock is.
    #[must_use]
    pub fn monotonic() -> Self {
        let (start, since) = (Self::system().now(), Instant::now());
        Self::from_fn(move || start.after(since.elapsed()))
    }

    /// Returns a clock that shows the time that `read` returns.
    pub fn from_fn(read: impl Fn() -> Micros + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Returns a clock that does not advance until the test moves it.
    #[must_use]
    pub fn manual(start: Micros) -> (Self, ManualStoreClock) {
        let hand = ManualStoreClock(Arc::new(AtomicI64::new(start.0)));
        let read = hand.clone();
        (Self::from_fn(move || read.now()), hand)
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Micros {
        (self.0)()
    }
}

impl Default for StoreClock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreClock").field(&self.now()).finish()
    }
}

/// The hand of a [manual](StoreClock::manual) clock.
#[derive(Clone, Debug)]
pub struct ManualStoreClock(Arc<AtomicI64>);

impl ManualStoreClock {
    /// Returns the time of the clock.
    #[must_use]
    pub fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::SeqCst))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(micros(by), Ordering::SeqCst);
    }

    /// Moves the clock back, as a wrong time server does.
    pub fn turn_back(&self, by: Duration) {
        self.0.fetch_sub(micros(by), Ordering::SeqCst);
    }
}
