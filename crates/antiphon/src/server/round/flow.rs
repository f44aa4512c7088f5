//! What a running handler and its driver share.

use super::{
    machine::{Machine, Place, Stop},
    push::Push,
};
use crate::server::{AskError, Server, limits::Limits};
use antiphon_seal::{Call, CallSecret, Digest};
use std::{
    cell::Cell,
    panic::Location,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
    time::{Duration, SystemTime},
};
use tokio::task::AbortHandle;

/// One leg while its handler runs.
pub(crate) struct Flow {
    machine: Mutex<Machine>,
    /// Whoever is held, and cannot be reached by polling the handler alone.
    held: Mutex<Vec<Waker>>,
    /// Tasks that end with the leg.
    tasks: Mutex<Vec<AbortHandle>>,
    /// What the person refused, as far as the handler has learned of it.
    refusals: Mutex<Vec<AskError>>,
    server: Server,
    /// How what is asked reaches a client in a session; `None` where a round leaves instead.
    push: Option<Push>,
}

thread_local! {
    /// The leg that this thread polls.
    static POLLED: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, this thread polls a leg.
pub(super) struct Here(usize);

impl Drop for Here {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

impl Flow {
    pub(crate) fn new(mut machine: Machine, server: Server, push: Option<Push>) -> Self {
        if push.is_some() {
            machine.stay();
        }
        Self {
            machine: Mutex::new(machine),
            held: Mutex::default(),
            tasks: Mutex::default(),
            refusals: Mutex::default(),
            server,
            push,
        }
    }

    pub(crate) fn push(&self) -> Option<&Push> {
        self.push.as_ref()
    }

    /// How long a check of what happens behind a URL is called before the URL is asked again: where nobody waits for a
    /// response to a request, as long as for an answer.
    pub(super) fn until(&self) -> Duration {
        let limits = self.limits();
        self.push.as_ref().map_or(limits.until, |push| push.wait.limit.min(limits.handler_time / 2))
    }

    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.server.0.limits
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    pub(super) fn enter(&self) -> Here {
        Here(POLLED.replace(self.id()))
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

    /// The machine, with the call begun.
    pub(super) fn begun(&self) -> MutexGuard<'_, Machine> {
        let mut machine = self.machine();
        let _ = machine.call(|| self.begin());
        machine
    }

    fn begin(&self) -> Result<Call, String> {
        let inner = &self.server.0;
        let now = inner.clock.now();
        // A deadline beyond all time is none.
        let deadline = inner.call_within.and_then(|time| now.checked_add(time));
        Call::begin(now, deadline).map_err(|fault| fault.to_string())
    }

    /// Nothing is sent: it was before, or nobody listens any more.
    pub(crate) fn is_silent(&self) -> bool {
        self.machine().is_silent()
    }

    /// Something made of the call, which begins with it; `None` if it cannot.
    pub(super) fn with_call<T>(&self, make: impl FnOnce(&Call) -> T) -> Option<T> {
        self.machine().call(|| self.begin()).map(make)
    }

    /// Something keyed by the call's secret.
    pub(super) fn keyed<T>(&self, derive: impl FnOnce(&CallSecret) -> T) -> Option<T> {
        self.with_call(|call| derive(call.secret()))
    }

    pub(super) fn pin(&self, text: &[u8]) -> Option<Digest> {
        self.keyed(|secret| secret.pin(text))
    }

    /// Keeps who refused what, for those who learn it from the answer alone.
    pub(super) fn note_refusal(&self, refusal: AskError) {
        // What stands beside it goes with it, also where the author makes the error of it.
        self.machine().refused();
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(refusal);
    }

    /// The last refusal of a question below this scope.
    pub(crate) fn refused_below(&self, scope: &str) -> Option<AskError> {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.iter().rev().find(|refusal| refusal.key().starts_with(scope)).cloned()
    }

    /// When the call began.
    pub(super) fn born(&self) -> SystemTime {
        let born = self.machine().call(|| self.begin()).map_or(0, Call::born);
        SystemTime::UNIX_EPOCH + Duration::from_secs(born)
    }

    /// The author's mistake: the leg ends, and nothing resolves.
    pub(super) fn author_fault(&self, place: Place, fault: impl std::fmt::Display) {
        self.machine().stop(Stop::Author(format!("{fault}, at {place}")));
    }

    /// Has whoever is polled now polled again once it may go on.
    pub(super) fn wait_held(&self, cx: &Context<'_>) {
        let mut held = self.wakers();
        if !held.iter().any(|waker| waker.will_wake(cx.waker())) {
            held.push(cx.waker().clone());
        }
    }

    /// Forgets those that are reached by polling the handler with this waker.
    pub(super) fn forget_reached(&self, waker: &Waker) {
        self.wakers().retain(|held| !held.will_wake(waker));
    }

    pub(super) fn wake_held(&self) {
        let held = std::mem::take(&mut *self.wakers());
        held.into_iter().for_each(Waker::wake);
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Where the author called.
#[track_caller]
pub(super) fn here() -> Place {
    Location::caller()
}
