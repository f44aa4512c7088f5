//! The task that runs the driver, as an executor sees it.

use loom::sync::{
    Arc, Notify,
    atomic::{AtomicUsize, Ordering},
};

/// A waker of the driver's task.
#[derive(Clone)]
pub struct Parent(Arc<Task>);

struct Task {
    /// Wakes that no wait has taken.
    wakes: AtomicUsize,
    parked: Notify,
}

impl Parent {
    /// A task that nobody has woken.
    #[expect(clippy::new_without_default, reason = "each execution of a model makes its own")]
    pub fn new() -> Self {
        Self(Arc::new(Task { wakes: AtomicUsize::new(0), parked: Notify::new() }))
    }

    /// Wakes the task.
    pub fn wake(&self) {
        self.0.wakes.fetch_add(1, Ordering::Release);
        self.0.parked.notify();
    }

    /// Waits until the task was woken; all wakes so far count as one. Returns how many they were.
    pub fn wait(&self) -> usize {
        loop {
            match self.taken() {
                0 => self.0.parked.wait(),
                wakes => return wakes,
            }
        }
    }

    /// Takes the pending wakes, and returns their number.
    pub fn taken(&self) -> usize {
        self.0.wakes.swap(0, Ordering::AcqRel)
    }
}
