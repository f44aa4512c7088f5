//! Trackers with one fault each.

use crate::{TrackerModel, WakerModel, WakerState, counted_arc::Arc, parent::Parent};
use loom::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// Reads the flag before the references, and misses a clone that wakes and is dropped in between.
pub const FLAG_FIRST: u8 = 0;
/// A wake by value drops its reference before it sets the flag.
pub const DROPPED_FIRST: u8 = 1;
/// A wake sets the flag and does not wake the parent.
pub const SILENT: u8 = 2;
/// The references are not counted.
pub const UNCOUNTED: u8 = 3;

/// A tracker with the fault of this number.
pub struct Faulty<const FAULT: u8> {
    parent: Parent,
    /// Separate from the count, so that the flag can outlive the reference.
    woken: Arc<AtomicBool>,
    count: Arc<()>,
}

/// The waker of a faulty tracker.
#[derive(Clone)]
pub struct FaultyWaker<const FAULT: u8> {
    parent: Parent,
    woken: Arc<AtomicBool>,
    count: Option<Arc<()>>,
    /// True for a waker of the parent, which has no fault.
    straight: bool,
}

impl<const FAULT: u8> TrackerModel for Faulty<FAULT> {
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

    fn waker_state(&mut self) -> WakerState {
        let early = FAULT == FLAG_FIRST && self.woken.load(Acquire);
        let alone = FAULT == UNCOUNTED || Arc::get_mut(&mut self.count).is_some();
        let woken = if FAULT == FLAG_FIRST { early } else { self.woken.load(Acquire) };
        match (woken, alone) {
            (true, _) => WakerState::Woken,
            (false, true) => WakerState::Released,
            (false, false) => WakerState::Held,
        }
    }
}

impl<const FAULT: u8> WakerModel for FaultyWaker<FAULT> {
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
