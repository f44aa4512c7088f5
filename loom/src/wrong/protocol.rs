//! Written anew, each with one step out of order.

use crate::{Quiet, Tracking, Wakes, counted::Arc, parent::Parent};
use loom::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// Reads the flag before the reference count, so it misses a clone that wakes and is dropped in between.
pub const FLAG_FIRST: u8 = 0;
/// A wake by value gives its reference up before it sets the flag.
pub const DROPPED_FIRST: u8 = 1;
/// A wake is noted and not passed on.
pub const SILENT: u8 = 2;
/// The reference count is not checked.
pub const UNCOUNTED: u8 = 3;

/// A tracker with the fault of that number.
pub struct Faulty<const FAULT: u8> {
    parent: Parent,
    /// Apart from the count, so that it can outlive its reference.
    woken: Arc<AtomicBool>,
    count: Arc<()>,
}

/// Its waker.
#[derive(Clone)]
pub struct FaultyWaker<const FAULT: u8> {
    parent: Parent,
    woken: Arc<AtomicBool>,
    count: Option<Arc<()>>,
    /// True for a waker of the parent, which has no fault.
    straight: bool,
}

impl<const FAULT: u8> Tracking for Faulty<FAULT> {
    type Waker = FaultyWaker<FAULT>;

    fn parent(parent: &Parent) -> Self::Waker {
        FaultyWaker { straight: true, ..Self::new(parent).waker() }
    }

    fn new(parent: &Parent) -> Self {
        Self { parent: parent.clone(), woken: Arc::new(AtomicBool::new(false)), count: Arc::new(()) }
    }

    fn waker(&self) -> Self::Waker {
        let (parent, woken, count) = (self.parent.clone(), self.woken.clone(), Some(self.count.clone()));
        FaultyWaker { parent, woken, count, straight: false }
    }

    fn judge(&mut self) -> Quiet {
        let early = FAULT == FLAG_FIRST && self.woken.load(Acquire);
        let alone = FAULT == UNCOUNTED || Arc::get_mut(&mut self.count).is_some();
        let woken = if FAULT == FLAG_FIRST { early } else { self.woken.load(Acquire) };
        match (woken, alone) {
            (true, _) => Quiet::Woken,
            (false, true) => Quiet::Nobody,
            (false, false) => Quiet::Kept,
        }
    }
}

impl<const FAULT: u8> Wakes for FaultyWaker<FAULT> {
    fn wake(mut self) {
        if FAULT == DROPPED_FIRST {
            self.count = None;
        }
        self.wake_by_ref();
    }

    fn wake_by_ref(&self) {
        self.woken.store(true, Release);
        if self.straight || FAULT != SILENT {
            self.parent.wake();
        }
    }
}
