//! Holds a paused clock of tokio while the thread of the file works.
//!
//! Tokio advances a paused clock to the next timer as soon as its own tasks wait, and does not know of this thread: the time
//! limit of an operation, leases and the handlers' timers would end within a moment. It does not advance the clock while a
//! blocking task runs (`tokio::time::pause`, "Preventing auto-advance").

use std::convert::Infallible;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// Holds the clock until it is dropped, at most for the real time of the limit. It does nothing if the clock runs.
pub(super) struct ClockHold {
    /// Ends the blocking task when it is dropped.
    _task: Option<Sender<Infallible>>,
}

impl ClockHold {
    pub(super) fn new(limit: Duration) -> Self {
        if !is_paused() {
            return Self { _task: None };
        }
        let (task, held) = channel::<Infallible>();
        tokio::task::spawn_blocking(move || held.recv_timeout(limit));
        Self { _task: Some(task) }
    }
}

/// Returns true if tokio's clock stands still while the system's clock advances by one tick.
fn is_paused() -> bool {
    let (tokio_time, time) = (tokio::time::Instant::now(), Instant::now());
    while Instant::now() == time {}
    tokio::time::Instant::now() == tokio_time
}
