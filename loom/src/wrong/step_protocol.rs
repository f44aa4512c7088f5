//! The waker of a step's body, written anew, each with one fault.

use crate::{
    Tracking, Wakes, real,
    step::{Standing, Waking},
};
use loom::sync::{Arc, Mutex};

/// Wakes on their way are not counted: a wake that has not arrived is taken for one that has.
pub const UNCOUNTED: u8 = 0;
/// The handler is woken before the body counts as woken: the poll that follows passes the body by.
pub const PASSED_ON_FIRST: u8 = 1;
/// A later poll leaves the waker of the first one in its place.
pub const FIRST_WAKER_ONLY: u8 = 2;

type Waker = <real::WakeTracker as Tracking>::Waker;

/// A waker with the fault of that number.
#[derive(Clone)]
pub struct Faulty<const FAULT: u8>(Arc<Mutex<Body>>);

struct Body {
    outer: Option<Waker>,
    woken: bool,
    under_way: u32,
}

impl<const FAULT: u8> Faulty<FAULT> {
    fn with<R>(&self, act: impl FnOnce(&mut Body) -> R) -> R {
        act(&mut self.0.lock().expect("nobody panics with it"))
    }
}

impl<const FAULT: u8> Waking for Faulty<FAULT> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Body { outer: None, woken: true, under_way: 0 })))
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
            outer.inspect(Wakes::wake_by_ref);
            self.with(|body| body.woken = true);
            return;
        }
        let outer = self.with(|body| {
            if std::mem::replace(&mut body.woken, true) {
                return None;
            }
            body.under_way += u32::from(FAULT != UNCOUNTED);
            Some(body.outer.clone())
        });
        let Some(outer) = outer else { return };
        outer.inspect(Wakes::wake_by_ref);
        self.with(|body| body.under_way -= u32::from(FAULT != UNCOUNTED));
    }

    fn standing(&self) -> Standing {
        self.with(|body| match (body.woken, body.under_way) {
            (false, 0) => Standing::Waits,
            (true, 0) => Standing::Unpolled,
            _ => Standing::WakeUnderWay,
        })
    }

    fn end(&self) {
        drop(self.with(|body| body.outer.take()));
    }
}
