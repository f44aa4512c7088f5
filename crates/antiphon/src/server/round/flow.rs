//! What a running handler, the futures it awaits, and its driver share.

use super::carrier::Carrier;
use crate::server::{AskError, Server, limits::Limits};
use antiphon_engine::{CallSite, DeferredWork, Leg, LogEvent, PollContext, SlotId, StopReason};
use antiphon_seal::{Call, CallSecret, Digest};
use std::{
    cell::Cell,
    panic::Location,
    sync::{Mutex, PoisonError},
    task::Waker,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::task::AbortHandle;

/// One leg while its handler runs.
pub(crate) struct Flow {
    leg: Mutex<Leg>,
    /// Tasks that end with the leg.
    tasks: Mutex<Vec<AbortHandle>>,
    /// The refusals that the handler has learned of.
    refusals: Mutex<Vec<AskError>>,
    server: Server,
    carrier: Carrier,
}

thread_local! {
    /// The leg that this thread polls.
    static POLLED: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, this thread polls a leg.
pub(super) struct PollGuard(usize);

impl Drop for PollGuard {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

/// While it lives, what is polled stands in another place of the leg. Dropped, the place before is put back, also where
/// that poll panicked.
pub(super) struct ScopeGuard<'f>(&'f Flow, PollContext);

impl Drop for ScopeGuard<'_> {
    fn drop(&mut self) {
        self.0.with(|leg| leg.enter(self.1));
    }
}

impl Flow {
    pub(crate) fn new(leg: Leg, server: Server, carrier: Carrier) -> Self {
        Self { leg: Mutex::new(leg), tasks: Mutex::default(), refusals: Mutex::default(), server, carrier }
    }

    pub(crate) fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// All access to the leg. Wakers are woken and dropped without its lock, for either may run foreign code.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Leg) -> R) -> R {
        let mut leg = self.leg.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut leg);
        let DeferredWork { wakes, drops, events } = leg.take_deferred_work();
        let call = (!events.is_empty()).then(|| leg.begun_call().map(|call| call.id().to_string()));
        drop(leg);
        wakes.into_iter().for_each(Waker::wake);
        drop(drops);
        events.iter().for_each(|event| log(event, call.as_ref().and_then(Option::as_deref)));
        result
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.server.0.limits
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The time, in Unix seconds.
    pub(super) fn now(&self) -> u64 {
        seconds(self.server.0.clock.now())
    }

    fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    pub(super) fn poll_here(&self) -> PollGuard {
        PollGuard(POLLED.replace(self.id()))
    }

    /// Takes a place for a part of a poll.
    pub(super) fn scope(&self, place: impl FnOnce(&Leg) -> PollContext) -> ScopeGuard<'_> {
        let before = self.with(|leg| {
            let scope = place(leg);
            leg.enter(scope)
        });
        ScopeGuard(self, before)
    }

    /// # Panics
    /// If another thread polls what belongs to this leg: there its answer would never be seen.
    pub(super) fn check_thread(&self) {
        if POLLED.get() == self.id() {
            return;
        }
        let advice = "what belongs to a call was polled outside of it: await questions and steps in the handler itself, \
                      not on another thread";
        // The panic may be caught by that thread, or come back without its text.
        tracing::error!("{advice}");
        panic!("{advice}");
    }

    /// The leg, with the call begun.
    pub(super) fn begun<R>(&self, act: impl FnOnce(&mut Leg) -> R) -> R {
        self.with(|leg| {
            let _ = leg.call(|| self.begin());
            act(leg)
        })
    }

    fn begin(&self) -> Result<Call, String> {
        let inner = &self.server.0;
        let now = inner.clock.now();
        // A deadline beyond all time is none.
        let deadline = inner.call_within.and_then(|time| now.checked_add(time));
        Call::begin(now, deadline).map_err(|fault| fault.to_string())
    }

    /// Whether nothing is sent: it was before, or nobody listens any more.
    pub(crate) fn is_silent(&self) -> bool {
        self.with(|leg| leg.suppresses_output())
    }

    /// Something made of the call, which begins with it; `None` if it cannot.
    pub(super) fn with_call<T>(&self, make: impl FnOnce(&Call) -> T) -> Option<T> {
        self.with(|leg| leg.call(|| self.begin()).map(make))
    }

    /// Something keyed by the call's secret.
    pub(super) fn keyed<T>(&self, derive: impl FnOnce(&CallSecret) -> T) -> Option<T> {
        self.with_call(|call| derive(call.secret()))
    }

    pub(super) fn digest(&self, text: &[u8]) -> Option<Digest> {
        self.keyed(|secret| secret.pin(text))
    }

    /// Keeps a refusal, for those who learn of it from the answer alone.
    pub(super) fn note_refusal(&self, refusal: AskError) {
        // What stands beside it goes with it, also where the author makes the error of it.
        self.with(Leg::note_refusal);
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(refusal);
    }

    /// The last refusal of a question below this scope.
    pub(crate) fn refused_below(&self, scope: &str) -> Option<AskError> {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.iter().rev().find(|refusal| refusal.key().starts_with(scope)).cloned()
    }

    /// When the call began.
    pub(super) fn born(&self) -> SystemTime {
        let born = self.with_call(Call::born).unwrap_or_default();
        UNIX_EPOCH + Duration::from_secs(born)
    }

    /// A mistake of the author's: the leg ends, and nothing resolves.
    pub(super) fn author_fault(&self, site: CallSite, fault: impl std::fmt::Display) {
        self.with(|leg| leg.stop(StopReason::Author(format!("{fault}, at {site}"))));
    }

    pub(super) fn end_with_leg(&self, task: AbortHandle) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// The leg is over: its tasks end.
    pub(super) fn end(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            task.abort();
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.end();
    }
}

fn log(event: &LogEvent, call: Option<&str>) {
    match event {
        LogEvent::AnswerTypeMismatch { path, cause } => {
            tracing::error!(call, %path, %cause, "an answer fits its form but not its type: it is asked again");
        }
        LogEvent::StepAborted { path } => tracing::warn!(
            call,
            path,
            "a step was dropped while it ran: it may have acted, and never runs again in this call"
        ),
        LogEvent::UnreplayedSteps { paths } => {
            tracing::warn!(call, steps = ?paths, "recorded steps were not replayed")
        }
    }
}

/// The place of one awaited future in its leg. Dropped, the future waits no more.
pub(super) struct Held<'a> {
    flow: &'a Flow,
    slot: Place,
}

#[derive(Clone, Copy)]
enum Place {
    /// Not polled yet.
    New,
    Waits(SlotId),
    /// It has resolved, or never will.
    Over,
}

impl<'a> Held<'a> {
    pub(super) fn new(flow: &'a Flow) -> Self {
        Self { flow, slot: Place::New }
    }

    pub(super) fn is_new(&self) -> bool {
        matches!(self.slot, Place::New)
    }

    /// The place; `begin` takes one at the first poll. `None` if the future does not resolve any more.
    pub(super) fn slot(&mut self, begin: impl FnOnce() -> Option<SlotId>) -> Option<SlotId> {
        if self.is_new() {
            self.slot = begin().map_or(Place::Over, Place::Waits);
        }
        match self.slot {
            Place::Waits(slot) => Some(slot),
            Place::New | Place::Over => None,
        }
    }

    /// The future has resolved.
    pub(super) fn end(&mut self) {
        self.slot = Place::Over;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Place::Waits(slot) = self.slot {
            let unwinding = std::thread::panicking();
            self.flow.with(|leg| leg.release(slot, unwinding));
        }
    }
}

/// Where the author called.
#[track_caller]
pub(super) fn here() -> CallSite {
    Location::caller()
}

/// Whole seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
