//! Wakers of a step's body with one fault each.

use crate::{
    TrackerModel, WakerModel, real_tracker,
    step_model::{BodyState, StepWakerModel},
};
use loom::sync::{Arc, Mutex};

/// Pending wakes are not counted, so a wake that has not arrived seems to have arrived.
pub const UNCOUNTED: u8 = 0;
/// The handler is woken before the body is marked as woken, so the next poll does not poll the body.
pub const PASSED_ON_FIRST: u8 = 1;
/// Later polls keep the waker of the first poll.
pub const FIRST_WAKER_ONLY: u8 = 2;

type Waker = <real_tracker::WakeTracker as TrackerModel>::Waker;

/// A waker with the fault of this number.
#[derive(Clone)]
pub struct Faulty<const FAULT: u8>(Arc<Mutex<Body>>);

struct Body {
    outer: Option<Waker>,
    woken: bool,
    pending_wakes: u32,
}

impl<const FAULT: u8> Faulty<FAULT> {
    fn with<R>(&self, act: impl FnOnce(&mut Body) -> R) -> R {
        act(&mut self.0.lock().expect("the lock is not poisoned"))
    }
}

impl<const FAULT: u8> StepWakerModel for Faulty<FAULT> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Body { outer: None, woken: true, pending_wakes: 0 })))
    }

    fn begin_poll(&self, waker: &Waker) -> bool {
        let (displaced, woken) = self.with(|body| {
            let keeps = FAULT == FIRST_WAKER_ONLY && body.outer.is_some();
            let displaced = if keeps { None } else { body.outer.replace(waker.clone()) };
            (displaced, std::mem::take(&mut body.woken))
        });
        drop(displaced);
        woken
    }

    fn wake(&self) {
        if FAULT == PASSED_ON_FIRST {
            let outer = self.with(|body| body.outer.clone());
            outer.inspect(WakerModel::wake_by_ref);
            self.with(|body| body.woken = true);
            return;
        }
        let outer = self.with(|body| {
            if std::mem::replace(&mut body.woken, true) {
                return None;
            }
            body.pending_wakes += u32::from(FAULT != UNCOUNTED);
            Some(body.outer.clone())
        });
        let Some(outer) = outer else { return };
        outer.inspect(WakerModel::wake_by_ref);
        self.with(|body| body.pending_wakes -= u32::from(FAULT != UNCOUNTED));
    }

    fn body_state(&self) -> BodyState {
        self.with(|body| match (body.woken, body.pending_wakes) {
            (false, 0) => BodyState::Waiting,
            (true, 0) => BodyState::Unpolled,
            _ => BodyState::WakePending,
        })
    }

    fn end(&self) {
        drop(self.with(|body| body.outer.take()));
    }
}
