//! Steps that earlier runs of the leg have begun or ended. The handler receives them when it has reached all that it can reach.
//!
//! ```text
//!  ended, not delivered ── reached ──▶ idle: the first one that ended ──▶ delivered, as a new outcome
//!  begun, no outcome ── its turn ─┬─ can be found out ──▶ idle ──▶ begins again
//!                                 └─ cannot ───────────▶ waits: `outcome_unknown`, if the handler needs it
//! ```

use super::{
    Leg, Status, StepPoll,
    slot::{Slot, SlotId, SlotState, StepPhase},
    slots::Counter,
};
use crate::record::{Entry, EntryBody, StepOutcome};
use std::task::Waker;

impl Leg {
    /// Waits without an end for a step whose effect nobody can find out.
    pub(super) fn leave_open(&mut self, id: SlotId, at: usize, waker: &Waker) -> StepPoll {
        self.set_phase(id, StepPhase::Unresolved(at));
        self.unresolved += 1;
        self.history.pass(at);
        self.advance();
        self.register(id, waker);
        StepPoll::Pending
    }

    /// Waits until the handler has reached all that it can reach, and then begins a step again: what it finds out may end the
    /// branches beside it. The entries behind the step may be delivered meanwhile, as in the run before.
    pub(super) fn interrupt(&mut self, id: SlotId, at: usize, waker: &Waker) -> StepPoll {
        let Some((site, branch)) = self.slots.get(id).map(|slot| (slot.site, slot.branch)) else {
            return StepPoll::Pending;
        };
        self.history.deliver(at, site);
        self.advance();
        self.set_phase(id, StepPhase::Interrupted { at, may_begin: false });
        self.slots.branches().add(branch, Counter::Interrupted, 1);
        self.interrupted.push(id);
        self.register(id, waker);
        StepPoll::Pending
    }

    pub(super) fn begin_again(&mut self, id: SlotId, at: usize, waker: &Waker) -> StepPoll {
        self.leave_interrupted(id);
        self.begin_step(id, waker, Some(at))
    }

    fn leave_interrupted(&mut self, id: SlotId) {
        self.interrupted.retain(|waiting| *waiting != id);
        if let Some(branch) = self.slots.get(id).map(|slot| slot.branch) {
            self.slots.branches().add(branch, Counter::Interrupted, -1);
        }
    }

    /// Notes that a step was dropped which an earlier run has begun or ended. If the handler has not received its outcome, the step is
    /// abandoned from here on, as one that is dropped while it runs: on a later leg, the handler may drop it before it reaches it.
    pub(super) fn give_up_step(&mut self, at: usize, slot: &Slot, unwinding: bool) {
        let SlotState::Step { input, .. } = &slot.state else { return };
        if !matches!(self.status, Status::Running) || !self.history.is_unfinished(at) {
            return self.history.give_up_step(at);
        }
        let (input, round) = (*input, self.history.entry(at).round);
        let unfinished = self.history.take(at);
        let outcome = StepOutcome::Abandoned { is_done: unfinished.body.is_done() };
        let body = EntryBody::Step { input, stale: false, undelivered: None, outcome };
        let abandoned = Entry { path: slot.path.clone(), round, body };
        match unwinding {
            true => self.history.record_unwinding(abandoned, slot.site, Some(unfinished)),
            false => self.history.record(abandoned, slot.site),
        }
    }

    /// Returns the path of a step whose effect nobody can find out, and for which the handler waits.
    pub(super) fn unresolved_step(&self) -> Option<String> {
        if self.unresolved == 0 {
            return None;
        }
        let waits =
            |slot: &&Slot| matches!(slot.state, SlotState::Step { phase: StepPhase::Unresolved(_), .. });
        self.slots.iter().map(|(_, slot)| slot).find(waits).map(|slot| slot.path.to_string())
    }

    /// Lets futures continue that waited until the handler is idle: outcomes of earlier runs, then steps that such runs have begun, then
    /// new steps. Returns `true` if there are any. `may_reach` is true if other code may still reach more.
    pub(super) fn release_waiting(&mut self, may_reach: bool) -> bool {
        let waits = may_reach && self.waits_for_earlier_steps();
        !waits && (self.release_ended() || self.release_interrupted()) || self.release_steps()
    }

    /// Returns `true` if a step of an earlier run waits until the handler has reached the others. In a set of futures, the outcome of
    /// one may lead to code that does not poll the rest, which then could not be reached any more.
    pub(super) fn waits_for_earlier_steps(&self) -> bool {
        let waits = !self.ended.is_empty() || !self.interrupted.is_empty();
        waits
            && !self.gives_up_earlier_steps
            && self.history.is_replayed()
            && self.history.has_unreplayed_steps()
    }

    /// Wakes the step that the handler has reached and that was the first to end in an earlier run. Returns `true` if there is one.
    pub(super) fn release_ended(&mut self) -> bool {
        if self.ended.is_empty() || !self.history.is_replayed() {
            return false;
        }
        let entry = |id: &SlotId| match self.slots.get(*id).map(|slot| &slot.state) {
            Some(SlotState::Step { phase: StepPhase::Recorded(at), .. }) => Some((*at, *id)),
            _ => None,
        };
        let first = self.ended.iter().filter_map(entry).min_by_key(|(at, _)| *at);
        let Some((at, id)) = first else { return false };
        self.ended.retain(|ended| *ended != id);
        self.history.make_due(at);
        self.wake(id);
        true
    }

    /// Wakes the steps that begin again.
    fn release_interrupted(&mut self) -> bool {
        if !self.history.is_replayed() {
            return false;
        }
        let released = std::mem::take(&mut self.interrupted);
        for id in &released {
            if let Some(SlotState::Step { phase: StepPhase::Interrupted { may_begin, .. }, .. }) =
                self.slots.get_mut(*id).map(|slot| &mut slot.state)
            {
                *may_begin = true;
            }
            self.wake(*id);
        }
        !released.is_empty()
    }
}
