//! Steps: recorded outcomes, new steps that wait, and running steps.

use super::{
    Delivery, Leg, LogEvent, Purpose,
    asks::RESERVED_SPACE,
    context::Recorded,
    slot::{Hold, RunningStep, Slot, SlotId, SlotState, StepPhase},
    slots::Counted,
};
use crate::{
    CallSite,
    key::split_scope,
    limits::StopReason,
    record::{Entry, EntryBody, EntryKind, StepFailure, StepOutcome},
    step_waker::StepWaker,
};
use antiphon_seal::Digest;
use std::{sync::Arc, task::Waker};

/// The result of polling a step that does not run yet.
#[derive(Debug)]
pub enum StepPoll {
    /// The step has not resolved, and perhaps never will.
    Pending,
    /// The recorded outcome of an earlier leg, or of a step that does not run because the task was cancelled.
    Recorded(StepOutcome),
    /// The step begins.
    Run(StepBegin),
}

/// A step that begins.
#[derive(Debug)]
pub struct StepBegin {
    /// The waker with which the caller polls the body.
    pub wake: Arc<StepWaker>,
    /// The idempotency key.
    pub key: String,
    /// The number of attempts that have begun before.
    pub attempts: u32,
    /// True if nobody knows whether the last of these attempts had its effect. The caller finds out before the body runs, or runs
    /// it again.
    pub is_interrupted: bool,
}

impl Leg {
    /// Begins to await a step. Returns `None` if the step never resolves.
    pub fn step(&mut self, path: Arc<str>, input: Option<Digest>, site: CallSite) -> Option<SlotId> {
        let Recorded(recorded) = self.find_recorded(EntryKind::Step, &path, site)?;
        let history = self.replay.history();
        let phase = match recorded.and_then(|at| Some((at, history.step(at)?))) {
            None => StepPhase::Held(Hold::Idle),
            Some((_, (_, Some(StepOutcome::Abandoned { .. }), _))) => StepPhase::Abandoned,
            Some((at, (recorded, _, is_stale))) => {
                let fits = match (recorded, &input) {
                    (None, None) => !is_stale,
                    (Some(recorded), Some(now)) => recorded.matches(now),
                    _ => false,
                };
                if !fits {
                    let why = if is_stale {
                        "it depends on an answer that has changed"
                    } else {
                        "its input has changed"
                    };
                    self.diverged(&path, why);
                    return None;
                }
                StepPhase::Recorded(at)
            }
        };
        Some(self.replay.add(path, site, self.polls.branch(), SlotState::Step { input, phase }))
    }

    /// Polls a step that does not run yet. `can_resolve` is true if the caller can find out whether an interrupted attempt had its
    /// effect, or may run the step again.
    pub fn poll_step(&mut self, id: SlotId, waker: &Waker, can_resolve: bool) -> StepPoll {
        self.move_here(id);
        let is_over = self.is_over();
        let Some(slot) = self.replay.slots().get(id) else { return StepPoll::Pending };
        let Some(phase) = slot.step() else { return StepPoll::Pending };
        if is_over {
            return match *phase {
                // The loser of a race that an earlier run has begun: it runs to its end.
                StepPhase::Interrupted { at, .. } if self.is_running() => {
                    self.begin_step(id, waker, Some(at))
                }
                _ => StepPoll::Pending,
            };
        }
        let may_begin = || self.may_begin(&slot.path, self.polls.is_replayed());
        match *phase {
            StepPhase::Recorded(at) | StepPhase::Ended(at) if self.replay.history().is_due(at) => {
                return self.deliver_step(id, at, waker, can_resolve);
            }
            StepPhase::Recorded(at) if self.replay.history().is_last(at) => {
                self.replay.slots_mut().set_step(id, StepPhase::Ended(at));
            }
            StepPhase::Held(_) | StepPhase::Released if may_begin() => {
                if !self.polls.holds_steps() {
                    return self.begin_step(id, waker, None);
                }
                self.steps.hold_in_select(id);
            }
            StepPhase::Released => self.replay.slots_mut().set_step(id, StepPhase::Held(Hold::Idle)),
            StepPhase::Interrupted { at, may_begin: true } => return self.begin_step(id, waker, Some(at)),
            StepPhase::Recorded(_)
            | StepPhase::Ended(_)
            | StepPhase::Interrupted { .. }
            | StepPhase::Held(_)
            | StepPhase::Anchored
            | StepPhase::Running(_)
            | StepPhase::Unresolved(_)
            | StepPhase::Abandoned => {}
        }
        self.register(id, waker);
        StepPoll::Pending
    }

    /// Delivers a recorded outcome, or begins a step again that has none.
    fn deliver_step(&mut self, id: SlotId, at: usize, waker: &Waker, can_resolve: bool) -> StepPoll {
        let outcome = match self.replay.history().step(at) {
            Some((_, Some(outcome), _)) => outcome.clone(),
            Some((_, None, _)) if can_resolve => return self.interrupt(id, at, waker),
            Some((_, None, _)) => return self.leave_open(id, at, waker),
            None => return StepPoll::Pending,
        };
        let Some(slot) = self.remove(id) else { return StepPoll::Pending };
        self.observations.note_outcome(&outcome);
        let next = self.replay.deliver(at, slot.site);
        self.wake(next);
        StepPoll::Recorded(outcome)
    }

    /// Returns `true` if a new step may begin: all entries were replayed, and new answers were taken.
    fn may_begin(&self, path: &str, is_replayed: bool) -> bool {
        let is_due = is_replayed && !self.blocks_new_steps();
        let is_added = || self.setup.migration.adds(path) && !self.asks.used_stale_answer();
        !self.asks.has_new_answers() && (is_due || is_added())
    }

    /// Returns `true` if no new step may begin: an entry was not replayed or became stale.
    pub(super) fn blocks_new_steps(&self) -> bool {
        self.asks.used_stale_answer()
            || self.replay.history().has_unreplayed_steps()
            || self.asks.unreplayed_refusal(&self.replay).is_some()
    }

    /// Begins a new step, or one again that has begun in an earlier run: `open` is its entry.
    fn begin_step(&mut self, id: SlotId, waker: &Waker, open: Option<usize>) -> StepPoll {
        let Some(slot) = self.replay.slots().get(id) else { return StepPoll::Pending };
        let path = slot.path.clone();
        if self.setup.purpose == Purpose::DryRun {
            self.observations.note_unrun(&path);
            self.stop(StopReason::Author(format!("the step `{path}` does not run in a dry run")));
            return StepPoll::Pending;
        }
        if self.steps.refuses() && open.is_none() {
            return self.refuse_step(id);
        }
        if (self.ending.anchors() || self.ends_soon()) && self.setup.delivery == Delivery::NextLeg {
            // The step runs in the next leg, whose state tells it from a second delivery of the same request.
            self.observations.note_anchored(path);
            self.replay.slots_mut().set_step(id, StepPhase::Anchored);
            self.register(id, waker);
            return StepPoll::Pending;
        }
        if !self.has_space_for_step() {
            if open.is_some() {
                let text = format!("The record of this call has no space for the step `{path}`");
                self.stop(StopReason::Limit { name: "state", text });
                return StepPoll::Pending;
            }
            // A running step that ends frees its reserved space.
            self.replay.slots_mut().set_step(id, StepPhase::Held(Hold::Space));
            self.register(id, waker);
            return StepPoll::Pending;
        }
        let Some(call) = &self.call else { return StepPoll::Pending };
        let history = self.replay.history();
        let entry = open.and_then(|at| history.open_step(at));
        let (attempts, is_interrupted) = match entry {
            Some(open) => (open.attempt, true),
            None => (history.failed_attempts(&path), false),
        };
        let (scope, key) = split_scope(entry.map_or(&path, |open| &open.key_path));
        let key = call.secret().idempotency_key(scope, key);
        let wake = StepWaker::new();
        let round = self.asks.round();
        let running = RunningStep { wake: Arc::clone(&wake), round, root_poll: None, open, started: None };
        self.replay.slots_mut().set_step(id, StepPhase::Running(running));
        self.steps.note_begin(id);
        self.replay.pass_history();
        StepPoll::Run(StepBegin { wake, key, attempts, is_interrupted })
    }

    /// Returns `true` if the record has space for the outcome of one more step. The space is reserved before the effect, because
    /// the outcome must fit afterwards.
    fn has_space_for_step(&self) -> bool {
        let limits = self.setup.limits;
        let steps = self.replay.slots().running() + 1;
        let reserved = steps.saturating_mul(limits.step_result).saturating_add(RESERVED_SPACE);
        self.replay.history().size().saturating_add(reserved) <= limits.state
    }

    /// Records that a step did not run, because the task was cancelled. Later steps run: they compensate.
    fn refuse_step(&mut self, id: SlotId) -> StepPoll {
        self.steps.note_refused();
        let Some(slot) = self.remove(id) else { return StepPoll::Pending };
        let SlotState::Step { input, .. } = slot.state else { return StepPoll::Pending };
        let outcome = StepOutcome::Failed(StepFailure::cancellation());
        self.observations.note_outcome(&outcome);
        self.replay.pass_history();
        let body = EntryBody::Step { input, stale: false, undelivered: None, outcome: outcome.clone() };
        let entry = Entry { path: slot.path, round: self.asks.round(), body };
        self.replay.history_mut().record(entry, slot.site);
        StepPoll::Recorded(outcome)
    }

    /// Notes that a running step is polled now.
    pub fn note_step_poll(&mut self, id: SlotId, waker: &Waker) {
        self.move_here(id);
        let number = self.polls.is_root(waker).then_some(self.polls.number());
        self.replay.slots_mut().set_root_poll(id, number);
    }

    /// Returns `true` if another attempt of a step may begin. That is also the case in an abandoned branch, but not
    /// after the end of the leg.
    pub fn may_attempt_step(&self) -> bool {
        self.is_running()
    }

    /// Records the outcome of a step. Returns `true` if the handler receives the outcome.
    pub fn end_step(&mut self, id: SlotId, outcome: StepOutcome) -> bool {
        let goes_on = !self.is_over();
        let Some(Stopped { slot, input, round, open, .. }) = self.stop_running(id) else { return false };
        self.remove_open(open);
        self.observations.note_outcome(&outcome);
        let branches = self.replay.slots().branches();
        // The handler never receives this outcome in this leg, so later legs must not deliver it either.
        let outcome = if branches.is_abandoned(slot.branch) { outcome.abandoned() } else { outcome };
        let undelivered = (!goes_on).then(|| branches.within(slot.branch));
        let body = EntryBody::Step { input, stale: false, undelivered, outcome };
        self.replay.history_mut().record_end(Entry { path: slot.path, round, body }, slot.site);
        goes_on
    }

    /// Stops the leg because a step ended without an outcome.
    pub fn fail_step(&mut self, id: SlotId, cause: String) {
        if let Some(Stopped { slot, open, .. }) = self.stop_running(id) {
            // The attempt that was interrupted has had no effect, as this one.
            self.remove_open(open);
            self.stop(StopReason::StepFailed { path: slot.path.to_string(), cause });
        }
    }

    /// Stops the leg for this reason, which a step met while it ran.
    pub fn stop_in_step(&mut self, id: SlotId, reason: StopReason) {
        if self.stop_running(id).is_some() {
            self.stop(reason);
        }
    }

    /// Stops the leg because the recorded outcome of a step does not decode as its type.
    pub fn reject_step_result(&mut self, path: &str) {
        self.diverged(path, "its recorded result does not decode as its present type");
    }

    /// Removes the entry of a step that has begun in an earlier run too, and has ended now.
    fn remove_open(&mut self, open: Option<usize>) {
        open.into_iter().for_each(|at| self.replay.history_mut().remove_entry(at));
    }

    fn stop_running(&mut self, id: SlotId) -> Option<Stopped> {
        let slot = self.remove(id)?;
        let (input, RunningStep { wake, round, open, started, .. }) = slot.running_step()?;
        let (round, open, started) = (*round, *open, *started);
        self.polls.drop_later(wake.end());
        self.steps.note_end(id);
        // The space of the step that ended is free again.
        let slots = self.replay.slots_mut();
        for waiting in slots.in_state(Counted::HeldForSpace) {
            slots.set_step(waiting, StepPhase::Held(Hold::Idle));
        }
        Some(Stopped { slot, input, round, open, started })
    }

    /// Releases the slot of a future that resolved or was dropped. `unwinding` is true if the handler panics.
    pub fn release(&mut self, id: SlotId, unwinding: bool) {
        if self.replay.slots().get(id).is_some_and(|slot| slot.running_step().is_some()) {
            return self.abort_step(id, unwinding);
        }
        let Some(slot) = self.remove(id) else { return };
        if self.is_ended() {
            return;
        }
        match &slot.state {
            SlotState::Ask(asking) => self.release_ask(id, &slot, asking, unwinding),
            SlotState::Step { phase, .. } => self.release_step(&slot, phase, unwinding),
            SlotState::Select(phase) => self.release_select(id, phase),
            SlotState::Checkpoint(phase) => self.release_checkpoint(phase),
        }
    }

    /// Records a step that was dropped while it ran. The step may have had its effect, and the handler does not receive
    /// the outcome.
    fn abort_step(&mut self, id: SlotId, unwinding: bool) {
        let Some(stopped) = self.stop_running(id) else { return };
        let is_running = self.is_running();
        if !is_running && stopped.open.is_some() {
            // It has its entry, or the record is gone.
            return;
        }
        let started = self.started_step(&stopped);
        let Stopped { slot, input, round, open, .. } = stopped;
        let path = slot.path;
        let started = started.map(|open| Entry { path: path.clone(), round, body: EntryBody::Open(open) });
        if !is_running {
            return started.into_iter().for_each(|entry| self.replay.history_mut().record_open(entry));
        }
        self.remove_open(open);
        let outcome = StepOutcome::Abandoned { is_done: false };
        let body = EntryBody::Step { input, stale: false, undelivered: None, outcome };
        let entry = Entry { path: path.clone(), round, body };
        if unwinding {
            return self.replay.history_mut().record_unwinding(entry, slot.site, started);
        }
        self.replay.history_mut().record(entry, slot.site);
        self.observations.note_aborted(&path);
        self.polls.log(LogEvent::StepAborted { path: path.to_string() });
    }

    /// Releases the slot of a dropped step that does not run.
    fn release_step(&mut self, slot: &Slot, phase: &StepPhase, unwinding: bool) {
        match phase {
            StepPhase::Recorded(at) | StepPhase::Ended(at) => {
                self.give_up_step(*at, slot, unwinding);
                let next = self.replay.history_mut().advance();
                self.wake(next);
            }
            StepPhase::Interrupted { at, .. } | StepPhase::Unresolved(at) => {
                self.give_up_step(*at, slot, unwinding);
            }
            StepPhase::Held(_) | StepPhase::Released => {
                // A branch that loses its select is dropped intentionally.
                if !self.replay.slots().branches().is_abandoned(slot.branch) {
                    self.observations.note_dropped(EntryKind::Step, &slot.path);
                }
            }
            StepPhase::Abandoned | StepPhase::Anchored | StepPhase::Running(_) => {}
        }
    }

    /// Wakes the new steps that may begin. Returns `true` if there are any.
    pub(super) fn release_steps(&mut self) -> bool {
        self.asks.note_idle();
        let is_replayed = self.replay.history().is_replayed();
        let mut released = self.replay.slots().in_state(Counted::HeldForIdle);
        released.retain(|id| {
            let slot = self.replay.slots().get(*id);
            slot.is_some_and(|slot| self.may_begin(&slot.path, is_replayed))
        });
        let is_any = !released.is_empty();
        for id in &released {
            self.replay.slots_mut().set_step(*id, StepPhase::Released);
        }
        self.wake(released);
        is_any
    }
}

/// A step that does not run any more.
pub(super) struct Stopped {
    pub(super) slot: Slot,
    pub(super) input: Option<Digest>,
    round: u32,
    /// The entry of the step, if it has begun in an earlier run too.
    pub(super) open: Option<usize>,
    /// The number of the attempt that ran, if the store has its start.
    pub(super) started: Option<u32>,
}
