//! The beginning and the end of a poll, the context of the polled code, and the wakers of futures.

use super::{
    BranchId, EnclosingBody, Leg, PollContext,
    slot::{SlotId, SlotWaker, WakerId},
};
use std::task::Waker;

impl Leg {
    /// Begins a poll of the handler with `waker`. The driver itself was polled with `parent`.
    pub fn begin_poll(&mut self, waker: &Waker, parent: &Waker) {
        self.poll.number += 1;
        self.poll.is_replayed = self.history.is_replayed();
        (self.poll.is_active, self.poll.poll_again, self.poll.root) = (true, false, WakerId::of(waker));
        if !self.poll.parent.as_ref().is_some_and(|known| known.will_wake(parent)) {
            self.deferred.drops.extend(self.poll.parent.replace(parent.clone()));
        }
        self.context = PollContext::default();
        self.held_in_select.clear();
    }

    /// Ends the poll. The caller may drop the waker after this call.
    pub fn end_poll(&mut self) {
        self.poll.root = WakerId::default();
    }

    /// Enters a context for a part of the poll. Returns the context before, which the caller enters again afterwards,
    /// also after a panic.
    pub fn enter(&mut self, context: PollContext) -> PollContext {
        std::mem::replace(&mut self.context, context)
    }

    /// Returns the present context in this branch. If `holds_steps` is true, no new step begins there.
    pub fn in_branch(&self, branch: BranchId, holds_steps: bool) -> PollContext {
        PollContext { branch, holds_steps: self.context.holds_steps || holds_steps, ..self.context }
    }

    /// Returns the present context in the body of this step.
    pub fn in_step(&self, slot: SlotId) -> PollContext {
        PollContext { inside: Some(EnclosingBody::Step(slot)), ..self.context }
    }

    /// Returns the present context in the check of this URL question.
    pub fn in_check(&self, slot: SlotId) -> PollContext {
        PollContext { inside: Some(EnclosingBody::Check(slot)), ..self.context }
    }

    /// Keeps the waker of a future's poll.
    pub(super) fn register(&mut self, id: SlotId, waker: &Waker) {
        let root = WakerId::of(waker) == self.poll.root;
        let Some(slot) = self.slots.get_mut(id) else { return };
        let new = match &slot.waker {
            _ if root => SlotWaker::Root,
            SlotWaker::Foreign(known) if known.will_wake(waker) => return,
            _ => SlotWaker::Foreign(waker.clone()),
        };
        if let SlotWaker::Foreign(known) = std::mem::replace(&mut slot.waker, new) {
            self.deferred.drops.push(known);
        }
    }

    /// Wakes one future, and removes its waker.
    pub(super) fn wake(&mut self, id: SlotId) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        match std::mem::take(&mut slot.waker) {
            SlotWaker::None => {}
            SlotWaker::Foreign(waker) => self.deferred.wakes.push(waker),
            SlotWaker::Root if self.poll.is_active => self.poll.poll_again = true,
            SlotWaker::Root => self.deferred.wakes.extend(self.poll.parent.clone()),
        }
    }

    /// Moves to the next entry in order, and wakes the future that waits for it.
    pub(super) fn advance(&mut self) {
        if let Some(slot) = self.history.advance() {
            self.wake(slot);
        }
    }

    /// Wakes all futures that wait for the end of the replay, if all entries were replayed. Returns `true` if there
    /// were any.
    pub(super) fn wake_replayed(&mut self) -> bool {
        if !self.history.is_replayed() || self.after_replay.is_empty() {
            return false;
        }
        for slot in std::mem::take(&mut self.after_replay) {
            self.wake(slot);
        }
        true
    }
}
