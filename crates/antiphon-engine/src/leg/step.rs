//! Steps: recorded outcomes, new steps that wait, and running steps.

use super::{
    Delivery, Leg, Purpose, RESERVED_SPACE, Recorded, Status,
    slot::{Slot, SlotId, SlotState, SlotWaker, StepPhase, WakerId},
    slots::Counter,
};
use crate::{
    CallSite,
    key::split_scope,
    record::{Entry, EntryBody, EntryKind, StepFailure, StepOutcome},
    step_waker::{BodyState, StepWaker},
    stop::StopReason,
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
        let phase = match recorded.and_then(|at| Some((at, self.history.step(at)?))) {
            None => StepPhase::Held,
            Some((_, (_, Some(StepOutcome::Abandoned { .. }), _))) => {
                self.awaited_abandoned_steps += 1;
                StepPhase::Abandoned
            }
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
        let recorded = if let StepPhase::Recorded(at) = phase { Some(at) } else { None };
        let is_new = matches!(phase, StepPhase::Held);
        let id = self.slots.add(path, site, self.context.branch, SlotState::Step { input, phase });
        if let Some(at) = recorded {
            self.history.set_waiting(at, Some(id));
        }
        if is_new {
            self.held.push(id);
        }
        Some(id)
    }

    /// Polls a step that does not run yet. `can_resolve` is true if the caller can find out whether an interrupted attempt had its
    /// effect, or may run the step again.
    pub fn poll_step(&mut self, id: SlotId, waker: &Waker, can_resolve: bool) -> StepPoll {
        self.slots.move_to(id, self.context.branch);
        let Some(slot) = self.slots.get(id) else { return StepPoll::Pending };
        let SlotState::Step { phase, .. } = &slot.state else { return StepPoll::Pending };
        if self.is_over() {
            return match *phase {
                // The loser of a race that an earlier run has begun: it runs to its end.
                StepPhase::Interrupted { at, .. } if matches!(self.status, Status::Running) => {
                    self.begin_again(id, at, waker)
                }
                _ => StepPoll::Pending,
            };
        }
        match phase {
            StepPhase::Recorded(at) if self.history.is_due(*at) => {
                let (at, site) = (*at, slot.site);
                let outcome = match self.history.step(at) {
                    Some((_, Some(outcome), _)) => outcome.clone(),
                    Some((_, None, _)) if can_resolve => return self.interrupt(id, at, waker),
                    Some((_, None, _)) => return self.leave_open(id, at, waker),
                    None => return StepPoll::Pending,
                };
                self.observations.note_outcome(&outcome);
                self.history.deliver(at, site);
                self.remove(id);
                self.advance();
                return StepPoll::Recorded(outcome);
            }
            StepPhase::Held | StepPhase::Released
                if self.context.holds_steps && self.may_begin(&slot.path, self.poll.is_replayed) =>
            {
                self.held_in_select.push(id);
            }
            StepPhase::Held if self.may_begin(&slot.path, self.poll.is_replayed) => {
                self.held.retain(|held| *held != id);
                return self.begin_step(id, waker, None);
            }
            StepPhase::Released if self.may_begin(&slot.path, self.poll.is_replayed) => {
                return self.begin_step(id, waker, None);
            }
            StepPhase::Released => {
                self.set_phase(id, StepPhase::Held);
                self.held.push(id);
            }
            StepPhase::Recorded(at) if self.history.is_last(*at) => {
                if !self.ended.contains(&id) {
                    self.ended.push(id);
                }
            }
            StepPhase::Interrupted { at, may_begin: true } => {
                let at = *at;
                return self.begin_again(id, at, waker);
            }
            StepPhase::Recorded(_)
            | StepPhase::Interrupted { .. }
            | StepPhase::Held
            | StepPhase::Anchored
            | StepPhase::Running { .. }
            | StepPhase::Unresolved(_)
            | StepPhase::Abandoned => {}
        }
        self.register(id, waker);
        StepPoll::Pending
    }

    /// Returns `true` if a new step may begin: all entries were replayed, and new answers were taken.
    fn may_begin(&self, path: &str, is_replayed: bool) -> bool {
        let is_due = is_replayed && !self.blocks_new_steps();
        !self.has_new_answers && (is_due || self.setup.migration.adds(path) && !self.used_stale_answer)
    }

    /// Returns `true` if no new step may begin: an entry was not replayed or became stale.
    pub(super) fn blocks_new_steps(&self) -> bool {
        self.used_stale_answer || self.history.has_unreplayed_steps() || self.unreplayed_refusal().is_some()
    }

    /// Returns the path of a refusal that the handler has not reached, if it has not received the answer to another
    /// question that was open in the same round either. A version that no longer asks would otherwise do what the person refused.
    /// A question in a branch that has lost its race need not be reached: it was answered too late.
    pub(super) fn unreplayed_refusal(&self) -> Option<String> {
        let recorded = self.history.unreplayed_refusals();
        // A question that was dropped before it took its answer was still asked.
        let is_unreplayed = |incoming: &&super::IncomingAnswer| !incoming.was_read && !incoming.given_up;
        let come = self.inbox.iter().filter(is_unreplayed).filter(|incoming| incoming.is_refusal());
        let come = come.filter(|incoming| !self.history.has_lost(&incoming.received.asked.within));
        let come = come.map(|incoming| (&*incoming.received.asked.path, incoming.received.asked.round));
        let mut unreplayed = recorded.chain(come);
        let (path, _) = unreplayed.find(|(_, round)| !self.has_replayed_answer_of(*round))?;
        Some(path.to_owned())
    }

    fn has_replayed_answer_of(&self, round: u32) -> bool {
        let read = |incoming: &super::IncomingAnswer| {
            incoming.was_read && incoming.received.asked.was_open_in(round)
        };
        self.history.has_replayed_answer_of(round) || self.inbox.iter().any(read)
    }

    /// Begins a new step, or one again that has begun in an earlier run: `open` is its entry.
    pub(super) fn begin_step(&mut self, id: SlotId, waker: &Waker, open: Option<usize>) -> StepPoll {
        let Some(slot) = self.slots.get(id) else { return StepPoll::Pending };
        let path = slot.path.clone();
        if self.setup.purpose == Purpose::DryRun {
            self.observations.would_run.get_or_insert_with(|| path.clone());
            self.stop(StopReason::Author(format!("the step `{path}` does not run in a dry run")));
            return StepPoll::Pending;
        }
        if self.setup.refuse_step && open.is_none() {
            return self.refuse_step(id);
        }
        if self.setup.anchor && self.setup.delivery == Delivery::NextLeg {
            // The step runs in the next leg, whose state tells it from a second delivery of the same request.
            self.observations.anchored.push(path);
            self.set_phase(id, StepPhase::Anchored);
            self.anchored += 1;
            self.register(id, waker);
            return StepPoll::Pending;
        }
        // The space is reserved before the effect, because the outcome must fit afterwards.
        let limits = self.setup.limits;
        let reserved =
            (self.slots.running() + 1).saturating_mul(limits.step_result).saturating_add(RESERVED_SPACE);
        if self.history.size().saturating_add(reserved) > limits.state {
            if open.is_some() {
                let text = format!("The record of this call has no space for the step `{path}`");
                self.stop(StopReason::Limit { name: "state", text });
                return StepPoll::Pending;
            }
            // A running step that ends frees its reserved space.
            self.set_phase(id, StepPhase::Held);
            self.held_for_space.push(id);
            self.register(id, waker);
            return StepPoll::Pending;
        }
        let Some(call) = &self.call else { return StepPoll::Pending };
        let entry = open.and_then(|at| self.history.open_step(at));
        let (attempts, is_interrupted) = match entry {
            Some(open) => (open.attempt, true),
            None => (self.history.failed_attempts(&path), false),
        };
        let (scope, key) = split_scope(entry.map_or(&path, |open| &open.key_path));
        let key = call.secret().idempotency_key(scope, key);
        let wake = StepWaker::new();
        self.set_phase(
            id,
            StepPhase::Running {
                wake: Arc::clone(&wake),
                round: self.round,
                root_poll: None,
                open,
                started: None,
            },
        );
        let branch = self.context.branch;
        self.slots.branches().add(branch, Counter::Running, 1);
        self.running.push(id);
        self.is_past_history = true;
        StepPoll::Run(StepBegin { wake, key, attempts, is_interrupted })
    }

    /// Records that a step did not run, because the task was cancelled. Later steps run: they compensate.
    fn refuse_step(&mut self, id: SlotId) -> StepPoll {
        self.setup.refuse_step = false;
        let Some(slot) = self.remove(id) else { return StepPoll::Pending };
        let SlotState::Step { input, .. } = &slot.state else { return StepPoll::Pending };
        let outcome = StepOutcome::Failed(StepFailure::cancellation());
        self.observations.note_outcome(&outcome);
        self.is_past_history = true;
        let (input, round) = (*input, self.round);
        let body = EntryBody::Step { input, stale: false, undelivered: None, outcome: outcome.clone() };
        self.history.record(Entry { path: slot.path, round, body }, slot.site);
        StepPoll::Recorded(outcome)
    }

    pub(super) fn set_phase(&mut self, id: SlotId, new: StepPhase) {
        if let Some(SlotState::Step { phase, .. }) = self.slots.get_mut(id).map(|slot| &mut slot.state) {
            *phase = new;
        }
    }

    /// Notes that a running step is polled now.
    pub fn note_step_poll(&mut self, id: SlotId, waker: &Waker) {
        self.slots.move_to(id, self.context.branch);
        let (is_root, number) = (WakerId::of(waker) == self.poll.root, self.poll.number);
        let Some(slot) = self.slots.get_mut(id) else { return };
        if let SlotState::Step { phase: StepPhase::Running { root_poll, .. }, .. } = &mut slot.state {
            *root_poll = is_root.then_some(number);
        }
    }

    /// Returns `true` if another attempt of a step may begin. That is also the case in an abandoned branch, but not
    /// after the end of the leg.
    pub fn may_attempt_step(&self) -> bool {
        matches!(self.status, Status::Running)
    }

    /// Records the outcome of a step. Returns `true` if the handler receives the outcome.
    pub fn end_step(&mut self, id: SlotId, outcome: StepOutcome) -> bool {
        let goes_on = !self.is_over();
        let Some(Stopped { slot, input, round, open, .. }) = self.stop_running(id) else { return false };
        open.into_iter().for_each(|at| self.history.remove_entry(at));
        self.observations.note_outcome(&outcome);
        // The handler never receives this outcome in this leg, so later legs must not deliver it either.
        let outcome = if self.slots.is_abandoned_branch(slot.branch) { outcome.abandoned() } else { outcome };
        let undelivered = (!goes_on).then(|| self.slots.within(slot.branch));
        let body = EntryBody::Step { input, stale: false, undelivered, outcome };
        self.history.record_end(Entry { path: slot.path, round, body }, slot.site);
        goes_on
    }

    /// Stops the leg because a step ended without an outcome.
    pub fn fail_step(&mut self, id: SlotId, cause: String) {
        if let Some(Stopped { slot, open, .. }) = self.stop_running(id) {
            // The attempt that was interrupted has had no effect, as this one.
            open.into_iter().for_each(|at| self.history.remove_entry(at));
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

    fn stop_running(&mut self, id: SlotId) -> Option<Stopped> {
        let slot = self.remove(id)?;
        let SlotState::Step { input, phase: StepPhase::Running { wake, round, open, started, .. } } =
            &slot.state
        else {
            return None;
        };
        let (input, round, open, started) = (*input, *round, *open, *started);
        self.deferred.drops.extend(wake.end());
        self.slots.branches().add(slot.branch, Counter::Running, -1);
        self.running.retain(|running| *running != id);
        // The space of the step that ended is free again.
        self.held.append(&mut self.held_for_space);
        Some(Stopped { slot, input, round, open, started })
    }

    /// Releases the slot of a future that resolved or was dropped. `unwinding` is true if the handler panics.
    pub fn release(&mut self, id: SlotId, unwinding: bool) {
        let is_running = matches!(
            self.slots.get(id).map(|slot| &slot.state),
            Some(SlotState::Step { phase: StepPhase::Running { .. }, .. })
        );
        if is_running {
            return self.abort_step(id, unwinding);
        }
        let Some(slot) = self.remove(id) else { return };
        if matches!(self.status, Status::Ended) {
            return;
        }
        match &slot.state {
            SlotState::Ask(asking) => self.release_ask(id, &slot, asking, unwinding),
            SlotState::Step { phase, .. } => self.release_step(id, &slot, phase, unwinding),
            SlotState::Select(phase) => self.release_select(id, phase),
            SlotState::Checkpoint(phase) => self.release_checkpoint(phase),
        }
    }

    /// Records a step that was dropped while it ran. The step may have had its effect, and the handler does not receive
    /// the outcome.
    fn abort_step(&mut self, id: SlotId, unwinding: bool) {
        let Some(stopped) = self.stop_running(id) else { return };
        if !matches!(self.status, Status::Running) {
            // One that has begun in an earlier run too has its entry, or the record is gone.
            if stopped.open.is_none()
                && let Some(started) = self.started_step(&stopped)
            {
                let Stopped { slot, round, .. } = stopped;
                self.history.record_open(Entry { path: slot.path, round, body: EntryBody::Open(started) });
            }
            return;
        }
        let started = self.started_step(&stopped);
        let Stopped { slot, input, round, open, .. } = stopped;
        open.into_iter().for_each(|at| self.history.remove_entry(at));
        let path = slot.path.to_string();
        let outcome = StepOutcome::Abandoned { is_done: false };
        let body = EntryBody::Step { input, stale: false, undelivered: None, outcome };
        let entry = Entry { path: slot.path, round, body };
        if unwinding {
            let round = entry.round;
            let started =
                started.map(|open| Entry { path: entry.path.clone(), round, body: EntryBody::Open(open) });
            self.history.record_unwinding(entry, slot.site, started);
            return;
        }
        self.history.record(entry, slot.site);
        self.observations.note_aborted(&path);
        self.deferred.events.push(super::LogEvent::StepAborted { path });
    }

    /// Takes a slot out.
    pub(super) fn remove(&mut self, id: SlotId) -> Option<Slot> {
        let mut slot = self.slots.remove(id)?;
        if let SlotWaker::Foreign(waker) = std::mem::take(&mut slot.waker) {
            self.deferred.drops.push(waker);
        }
        Some(slot)
    }

    fn release_step(&mut self, id: SlotId, slot: &Slot, phase: &StepPhase, unwinding: bool) {
        match phase {
            StepPhase::Recorded(at) => {
                self.ended.retain(|ended| *ended != id);
                self.give_up_step(*at, slot, unwinding);
                self.advance();
            }
            StepPhase::Interrupted { at, .. } => {
                self.interrupted.retain(|waiting| *waiting != id);
                self.slots.branches().add(slot.branch, Counter::Interrupted, -1);
                self.give_up_step(*at, slot, unwinding);
            }
            StepPhase::Unresolved(at) => {
                self.unresolved = self.unresolved.saturating_sub(1);
                self.give_up_step(*at, slot, unwinding);
            }
            StepPhase::Abandoned => {
                self.awaited_abandoned_steps = self.awaited_abandoned_steps.saturating_sub(1)
            }
            StepPhase::Held | StepPhase::Released => {
                self.held.retain(|held| *held != id);
                self.held_for_space.retain(|held| *held != id);
                // A branch that loses its select is dropped intentionally.
                if !self.slots.is_abandoned_branch(slot.branch) {
                    self.observations.note_dropped(EntryKind::Step, &slot.path);
                }
            }
            StepPhase::Anchored => self.anchored = self.anchored.saturating_sub(1),
            StepPhase::Running { .. } => {}
        }
    }

    /// Wakes the new steps that may begin. Returns `true` if there are any.
    pub(super) fn release_steps(&mut self) -> bool {
        self.has_new_answers = false;
        let mut held = std::mem::take(&mut self.held);
        let is_replayed = self.history.is_replayed();
        let mut released = Vec::new();
        held.retain(|id| {
            let path = self.slots.get(*id).map(|slot| &slot.path);
            let is_free = path.is_some_and(|path| self.may_begin(path, is_replayed));
            if is_free {
                released.push(*id);
            }
            !is_free
        });
        self.held = held;
        for id in &released {
            self.set_phase(*id, StepPhase::Released);
            self.wake(*id);
        }
        !released.is_empty()
    }

    /// Returns the common state of the running steps. The first step that is polled properly decides.
    pub(super) fn running_steps(&self) -> RunningSteps {
        let mut stalled = RunningSteps::None;
        for id in &self.running {
            let Some(slot) = self.slots.get(*id) else { continue };
            let SlotState::Step { phase: StepPhase::Running { wake, root_poll, .. }, .. } = &slot.state
            else {
                continue;
            };
            let body_state = match root_poll {
                // Nothing between the step and the handler keeps wakers, and the handler was polled without polling the
                // step.
                Some(poll) if *poll < self.poll.number => BodyState::Unpolled,
                _ => wake.body_state(),
            };
            match body_state {
                BodyState::Waiting => return RunningSteps::Polled,
                BodyState::WakePending => return RunningSteps::WakePending,
                BodyState::Unpolled => stalled = RunningSteps::Stalled(slot.path.to_string(), slot.site),
            }
        }
        stalled
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

/// The common state of the running steps of a leg.
#[derive(Debug)]
pub(super) enum RunningSteps {
    None,
    Polled,
    WakePending,
    Stalled(String, CallSite),
}
