//! The task that runs the driver, as an executor provides it.

use loom::sync::{
    Arc, Notify,
    atomic::{AtomicUsize, Ordering},
};

/// A waker of the driver's task.
#[derive(Clone)]
pub struct Parent(Arc<Task>);

struct Task {
    /// The number of wakes that no wait has taken.
    wakes: AtomicUsize,
    parked: Notify,
}

impl Parent {
    /// Creates a task without wakes.
    #[expect(clippy::new_without_default, reason = "each execution of a model creates one")]
    pub fn new() -> Self {
        Self(Arc::new(Task { wakes: AtomicUsize::new(0), parked: Notify::new() }))
    }

    /// Wakes the task.
    pub fn wake(&self) {
        self.0.wakes.fetch_add(1, Ordering::Release);
        self.0.parked.notify();
    }

    /// Waits until the task was woken. All wakes so far count as one. Returns their number.
    pub fn wait(&self) -> usize {
        loop {
            match self.take_wakes() {
                0 => self.0.parked.wait(),
                wakes => return wakes,
            }
        }
    }

    /// Takes the wakes that no wait has taken. Returns their number.
    pub fn take_wakes(&self) -> usize {
        self.0.wakes.swap(0, Ordering::AcqRel)
    }
}
