//! The state that a running handler, its futures and its driver share: the engine's leg, which begins when it is needed.

use crate::{
    at_most_once::ClaimedLeg,
    errors::awaited::AskError,
    in_place::boxed,
    options::{limits::Limits, seconds},
    request::carrier::LegCarrier,
    runtime::Runtime,
};
use antiphon_engine::{
    CallSite, DeferredWork, Leg, LegOutput, LogEvent, PollContext, Setup, SlotId, StopReason,
};
use antiphon_seal::{Call, CallSecret, Digest};
use antiphon_wire::{escaped, lock::Lock};
use std::{
    cell::Cell,
    panic::Location,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::task::AbortHandle;

/// One leg while its handler runs.
pub(crate) struct LegRuntime {
    leg: Lock<LazyLeg>,
    /// Tasks that end with the leg.
    tasks: Lock<Vec<AbortHandle>>,
    /// The refusals that the handler has received.
    refusals: Lock<Vec<AskError>>,
    server: Arc<Runtime>,
    carrier: LegCarrier,
    /// The claim of this leg in the server's store, if it has one.
    claim: Option<Arc<ClaimedLeg>>,
    /// The flag of the tool, in a first leg: true if an earlier first leg needed a tracker.
    needs_tracker: Option<Arc<AtomicBool>>,
    /// The time of the handler, if its definition sets one.
    timeout: Option<Duration>,
}

thread_local! {
    /// The leg that this thread polls, by address.
    static POLLED: Cell<usize> = const { Cell::new(0) };
}

/// A guard: while it exists, this thread polls a leg.
pub(crate) struct PollGuard(usize);

impl Drop for PollGuard {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

/// A guard: while it exists, the poll is in another scope of the leg. Dropping it restores the previous scope, even
/// after a panic.
pub(crate) struct ScopeGuard<'f>(&'f LegRuntime, PollContext);

impl Drop for ScopeGuard<'_> {
    fn drop(&mut self) {
        self.0.with(|leg| leg.enter(self.1));
    }
}

impl LegRuntime {
    pub(crate) fn new(
        leg: LazyLeg,
        server: Arc<Runtime>,
        carrier: LegCarrier,
        claim: Option<Arc<ClaimedLeg>>,
        needs_tracker: Option<Arc<AtomicBool>>,
        timeout: Option<Duration>,
    ) -> Self {
        Self {
            leg: Lock::new(leg),
            tasks: Lock::default(),
            refusals: Lock::default(),
            server,
            carrier,
            claim,
            needs_tracker,
            timeout,
        }
    }

    /// Returns true if the handler probably needs a tracker, as in an earlier call.
    pub(crate) fn needs_tracker(&self) -> bool {
        self.needs_tracker.as_ref().is_some_and(|needs_tracker| needs_tracker.load(Ordering::Relaxed))
    }

    /// Remembers that the handler needs a tracker.
    pub(crate) fn note_tracker(&self) {
        if let Some(needs_tracker) =
            self.needs_tracker.as_ref().filter(|needs_tracker| !needs_tracker.load(Ordering::Relaxed))
        {
            needs_tracker.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn claim(&self) -> Option<&Arc<ClaimedLeg>> {
        self.claim.as_ref()
    }

    pub(crate) fn carrier(&self) -> &LegCarrier {
        &self.carrier
    }

    /// Gives access to the leg. Wakers are woken and dropped outside of its lock, because either may run foreign code.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Leg) -> R) -> R {
        let mut leg = self.lock();
        let result = act(leg.leg());
        do_deferred(leg);
        result
    }

    /// Gives access to the leg, if it has begun.
    pub(crate) fn with_begun<R>(&self, act: impl FnOnce(&mut Leg) -> R) -> Option<R> {
        let mut leg = self.lock();
        let result = leg.get().map(act);
        do_deferred(leg);
        result
    }

    fn lock(&self) -> MutexGuard<'_, LazyLeg> {
        self.leg.lock()
    }

    /// Begins a poll of the handler with `waker`. The driver itself was polled with `parent`.
    pub(crate) fn begin_poll(&self, waker: &Waker, parent: &Waker) {
        let mut leg = self.lock();
        if let Some(leg) = leg.begin_poll(waker, parent) {
            leg.begin_poll(waker, parent);
        }
        do_deferred(leg);
    }

    /// Ends the poll of the handler. The identity of its waker is valid only during the poll.
    pub(crate) fn end_poll(&self) {
        let mut leg = self.lock();
        if let Some(leg) = leg.end_poll() {
            leg.end_poll();
        }
        do_deferred(leg);
    }

    /// Ends the leg after the handler returned a result. `None` if the handler never needed the leg.
    pub(crate) fn finish(&self) -> Option<Box<LegOutput>> {
        let mut leg = self.lock();
        let left = leg.finish();
        do_deferred(leg);
        left
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.server.limits
    }

    /// Returns the time of the handler that its definition sets.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) fn server(&self) -> &Arc<Runtime> {
        &self.server
    }

    /// Returns the time, in Unix seconds.
    pub(crate) fn now(&self) -> u64 {
        seconds(self.server.clock.now())
    }

    fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    pub(crate) fn enter_poll(&self) -> PollGuard {
        PollGuard(POLLED.replace(self.id()))
    }

    /// Enters a scope for a part of a poll.
    pub(crate) fn scope(&self, place: impl FnOnce(&Leg) -> PollContext) -> ScopeGuard<'_> {
        let before = self.with(|leg| {
            let scope = place(leg);
            leg.enter(scope)
        });
        ScopeGuard(self, before)
    }

    /// # Panics
    /// If another thread polls a future of this leg: that thread would never see the answer.
    pub(crate) fn check_thread(&self) {
        if POLLED.get() == self.id() {
            return;
        }
        let advice = "a future of a call was polled outside of the call: await questions and steps in the handler itself, \
                      not on another thread";
        // That thread may catch the panic, or report it without its text.
        // own: the advice is a text of this function.
        tracing::error!("{advice}");
        panic!("{advice}");
    }

    /// Gives access to the leg after beginning the call.
    pub(crate) fn begun<R>(&self, act: impl FnOnce(&mut Leg) -> R) -> R {
        self.with(|leg| {
            let _ = self.call(leg);
            act(leg)
        })
    }

    /// Returns the call, and begins it if necessary: at the time of the leg. `None` if it cannot begin.
    fn call<'l>(&self, leg: &'l mut Leg) -> Option<&'l Call> {
        let began = UNIX_EPOCH + Duration::from_secs(leg.began());
        leg.call(|| {
            let known = self.claim.as_ref().and_then(|claim| claim.take_first_call());
            known.map_or_else(|| self.server.begin_call(began).map_err(|fault| fault.to_string()), Ok)
        })
    }

    /// Returns true if output is suppressed: an earlier leg already sent it, or the request was cancelled.
    pub(crate) fn is_silent(&self) -> bool {
        self.with_begun(|leg| leg.suppresses_output()).unwrap_or(false)
    }

    /// Derives a value from the call, and begins the call if necessary; `None` if it cannot begin.
    pub(crate) fn with_call<T>(&self, make: impl FnOnce(&Call) -> T) -> Option<T> {
        self.with(|leg| self.call(leg).map(make))
    }

    /// Derives a value from the call's secret.
    pub(crate) fn keyed<T>(&self, derive: impl FnOnce(&CallSecret) -> T) -> Option<T> {
        self.with_call(|call| derive(call.secret()))
    }

    pub(crate) fn digest(&self, text: &[u8]) -> Option<Digest> {
        self.keyed(|secret| secret.pin(text))
    }

    /// Stores a refusal, for resolvers whose value is an answer.
    pub(crate) fn note_refusal(&self, refusal: AskError) {
        // Concurrent futures may be dropped because of the refusal, even if the author makes the error of it.
        self.with(Leg::note_refusal);
        self.refusals.lock().push(refusal);
    }

    /// Returns the last refusal of a question with this prefix.
    pub(crate) fn refused_below(&self, scope: &str) -> Option<AskError> {
        let refusals = self.refusals.lock();
        refusals.iter().rev().find(|refusal| refusal.key().starts_with(scope)).cloned()
    }

    /// Returns the time at which the call began.
    pub(crate) fn born(&self) -> SystemTime {
        let born = self.with_call(Call::born).unwrap_or_default();
        UNIX_EPOCH + Duration::from_secs(born)
    }

    /// Reports a mistake of the author: the leg ends, and no future resolves.
    pub(crate) fn author_fault(&self, site: CallSite, fault: impl std::fmt::Display) {
        self.with(|leg| leg.stop(StopReason::Author(format!("{fault}, at {site}"))));
    }

    pub(crate) fn end_with_leg(&self, task: AbortHandle) {
        let mut tasks = self.tasks.lock();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// Aborts the leg's tasks.
    pub(crate) fn end(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.abort();
        }
    }
}

impl Drop for LegRuntime {
    fn drop(&mut self) {
        self.end();
    }
}

/// Unlocks the leg, and does the work that it has left for this moment.
fn do_deferred(mut leg: MutexGuard<'_, LazyLeg>) {
    let Some(begun) = leg.get() else { return };
    let Some(DeferredWork { wakes, drops, events }) = begun.take_deferred_work() else { return };
    let call = (!events.is_empty()).then(|| begun.begun_call().map(|call| call.id().to_string()));
    drop(leg);
    wakes.into_iter().for_each(Waker::wake);
    drop(drops);
    events.iter().for_each(|event| log(event, call.as_ref().and_then(Option::as_deref)));
}

fn log(event: &LogEvent, call: Option<&str>) {
    match event {
        LogEvent::AnswerTypeMismatch { path, cause } => {
            tracing::error!(call, path = %escaped(&path), cause = %escaped(&cause), "an answer fits its form but not its type: it is asked again");
        }
        LogEvent::StepAborted { path } => tracing::warn!(
            call,
            path,
            "a step was dropped while it ran: it may have acted, and never runs again in this call"
        ),
        LogEvent::UnreplayedSteps { paths } => {
            tracing::warn!(call, steps = ?paths, "recorded steps were not reached")
        }
    }
}

/// The slot of one awaited future in its leg. Dropping the handle ends the wait.
pub(crate) struct SlotHandle<'a> {
    runtime: &'a LegRuntime,
    slot: SlotState,
}

#[derive(Clone, Copy)]
enum SlotState {
    /// Not polled yet.
    New,
    Waits(SlotId),
    /// The future has resolved, or never will.
    Over,
}

impl<'a> SlotHandle<'a> {
    pub(crate) fn new(runtime: &'a LegRuntime) -> Self {
        Self { runtime, slot: SlotState::New }
    }

    pub(crate) fn is_new(&self) -> bool {
        matches!(self.slot, SlotState::New)
    }

    /// Returns the slot; `begin` takes one at the first poll. `None` if the future will not resolve.
    pub(crate) fn slot(&mut self, begin: impl FnOnce() -> Option<SlotId>) -> Option<SlotId> {
        if self.is_new() {
            self.slot = begin().map_or(SlotState::Over, SlotState::Waits);
        }
        match self.slot {
            SlotState::Waits(slot) => Some(slot),
            SlotState::New | SlotState::Over => None,
        }
    }

    /// Marks the future as resolved.
    pub(crate) fn end(&mut self) {
        self.slot = SlotState::Over;
    }
}

impl Drop for SlotHandle<'_> {
    fn drop(&mut self) {
        if let SlotState::Waits(slot) = self.slot {
            let unwinding = std::thread::panicking();
            self.runtime.with(|leg| leg.release(slot, unwinding));
        }
    }
}

/// Returns the author's line of code.
#[track_caller]
pub(crate) fn call_site() -> CallSite {
    Location::caller()
}

/// The engine's leg of a request. A first leg begins when the handler asks, runs a step, or waits: a handler that only returns
/// a result never needs one.
pub(crate) struct LazyLeg {
    begun: Option<Box<Leg>>,
    /// The settings of a leg that has not begun.
    setup: Setup,
    /// The waker of the driver's task, once a poll of the handler has begun.
    parent: Option<Waker>,
    /// The waker of the present poll of the handler, if it is another one. It ends with the poll, because a clone that is
    /// alive afterwards counts as one that other code holds.
    tracking: Option<Waker>,
    /// True during a poll of the handler.
    is_polled: bool,
    /// True if the handler has returned.
    has_ended: bool,
}

impl LazyLeg {
    /// Returns a first leg, which begins later.
    pub(crate) fn first(setup: Setup) -> Self {
        Self { begun: None, setup, parent: None, tracking: None, is_polled: false, has_ended: false }
    }

    /// Returns a leg that has begun.
    pub(crate) fn begun(leg: Box<Leg>) -> Self {
        Self { begun: Some(leg), ..Self::first(Setup::default()) }
    }

    /// Returns the leg, if it has begun.
    pub(crate) fn get(&mut self) -> Option<&mut Leg> {
        self.begun.as_deref_mut()
    }

    /// Returns the leg, and begins it first if necessary: with the poll in which it is needed.
    pub(crate) fn leg(&mut self) -> &mut Leg {
        self.begun.get_or_insert_with(|| {
            let setup = std::mem::take(&mut self.setup);
            let mut leg = boxed(|| Leg::begin(setup));
            if let Some(parent) = self.parent.take() {
                leg.begin_poll(self.tracking.take().as_ref().unwrap_or(&parent), &parent);
                if !self.is_polled {
                    leg.end_poll();
                }
            }
            if self.has_ended {
                drop(leg.finish());
            }
            leg
        })
    }

    /// Begins a poll of the handler with `waker`; the driver itself was polled with `parent`. Returns the leg if it has begun,
    /// whose `begin_poll` the caller then calls.
    pub(crate) fn begin_poll(&mut self, waker: &Waker, parent: &Waker) -> Option<&mut Leg> {
        if self.begun.is_none() {
            (self.parent, self.is_polled) = (Some(parent.clone()), true);
            self.tracking = (!waker.will_wake(parent)).then(|| waker.clone());
        }
        self.get()
    }

    /// Ends the poll. Returns the leg if it has begun, whose `end_poll` the caller then calls.
    pub(crate) fn end_poll(&mut self) -> Option<&mut Leg> {
        self.is_polled = false;
        self.tracking = None;
        self.get()
    }

    /// Ends the leg after the handler returned a result. `None` if the leg has never begun: then there is nothing to keep.
    pub(crate) fn finish(&mut self) -> Option<Box<LegOutput>> {
        self.has_ended = true;
        self.get().map(Leg::finish)
    }
}
