//! Steps that earlier runs of the leg have begun or ended. The handler receives them when it has reached all that it can reach.
//!
//! ```text
//!  ended, not delivered ── reached ──▶ idle: the first one that ended ──▶ delivered, as a new outcome
//!  begun, no outcome ── its turn ─┬─ can be found out ──▶ idle ──▶ begins again
//!                                 └─ cannot ───────────▶ waits: `outcome_unknown`, if the handler needs it
//! ```

use super::{
    Leg, StepPoll,
    slot::{Slot, SlotId, SlotState, StepPhase},
    slots::Counted,
    steps::{release_ended, release_interrupted},
};
use crate::record::{Entry, EntryBody, StepOutcome};
use std::task::Waker;

impl Leg {
    /// Waits without an end for a step whose effect nobody can find out.
    pub(super) fn leave_open(&mut self, id: SlotId, at: usize, waker: &Waker) -> StepPoll {
        self.replay.slots_mut().set_step(id, StepPhase::Unresolved(at));
        let next = self.replay.history_mut().pass(at);
        self.wake(next);
        self.register(id, waker);
        StepPoll::Pending
    }

    /// Waits until the handler has reached all that it can reach, and then begins a step again: what it finds out may end the
    /// branches beside it. The entries behind the step may be delivered meanwhile, as in the run before.
    pub(super) fn interrupt(&mut self, id: SlotId, at: usize, waker: &Waker) -> StepPoll {
        let Some(site) = self.replay.slots().get(id).map(|slot| slot.site) else {
            return StepPoll::Pending;
        };
        let next = self.replay.deliver(at, site);
        self.wake(next);
        self.replay.slots_mut().set_step(id, StepPhase::Interrupted { at, may_begin: false });
        self.register(id, waker);
        StepPoll::Pending
    }

    /// Notes that a step was dropped which an earlier run has begun or ended. If the handler has not received its outcome, the step is
    /// abandoned from here on, as one that is dropped while it runs: on a later leg, the handler may drop it before it reaches it.
    pub(super) fn give_up_step(&mut self, at: usize, slot: &Slot, unwinding: bool) {
        let SlotState::Step { input, .. } = slot.state else { return };
        let is_running = self.is_running();
        let history = self.replay.history_mut();
        if !is_running || !history.is_unfinished(at) {
            return history.give_up_step(at);
        }
        let round = history.entry(at).round;
        let unfinished = history.take(at);
        let outcome = StepOutcome::Abandoned { is_done: unfinished.body.is_done() };
        let body = EntryBody::Step { input, stale: false, undelivered: None, outcome };
        let abandoned = Entry { path: slot.path.clone(), round, body };
        match unwinding {
            true => history.record_unwinding(abandoned, slot.site, Some(unfinished)),
            false => history.record(abandoned, slot.site),
        }
    }

    /// Returns the path of a step whose effect nobody can find out, and for which the handler waits.
    pub(super) fn unresolved_step(&self) -> Option<String> {
        let slots = self.replay.slots();
        if !slots.has(Counted::Unresolved) {
            return None;
        }
        let waits = |slot: &&Slot| matches!(slot.step(), Some(StepPhase::Unresolved(_)));
        slots.iter().map(|(_, slot)| slot).find(waits).map(|slot| slot.path.to_string())
    }

    /// Returns `true` if a step of an earlier run waits until the handler has reached the others.
    pub(super) fn waits_for_earlier_steps(&self) -> bool {
        self.steps.waits_for_earlier(&self.replay)
    }

    /// Lets futures continue that waited until the handler is idle: outcomes of earlier runs, then steps that such runs have begun, then
    /// new steps. Returns `true` if there are any. `may_reach` is true if other code may still reach more.
    pub(super) fn release_waiting(&mut self, may_reach: bool) -> bool {
        let waits = may_reach && self.waits_for_earlier_steps();
        !waits && (self.release_ended() || self.release_interrupted()) || self.release_steps()
    }

    /// Wakes the step that the handler has reached and that was the first to end in an earlier run. Returns `true` if there is one.
    fn release_ended(&mut self) -> bool {
        let ended = release_ended(&mut self.replay);
        let is_any = ended.is_any();
        self.wake(ended);
        is_any
    }

    /// Wakes the steps that begin again. Returns `true` if there are any.
    fn release_interrupted(&mut self) -> bool {
        let released = release_interrupted(&mut self.replay);
        let is_any = !released.is_empty();
        self.wake(released);
        is_any
    }
}
