//! A poll of the handler: its beginning and end, the place of what is polled, and who is woken.

use super::{
    BranchId, EnclosingBody, Leg, PollContext,
    slots::{SlotId, SlotWaker, WakerId},
};
use std::task::Waker;

impl Leg {
    /// The handler is polled with `waker`, by a driver that was polled with `parent`.
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

    /// The handler was polled; its waker may be dropped behind this.
    pub fn end_poll(&mut self) {
        self.poll.root = WakerId::default();
    }

    /// Takes this place for a part of the poll. The place before, to be put back, panic or not.
    pub fn enter(&mut self, scope: PollContext) -> PollContext {
        std::mem::replace(&mut self.context, scope)
    }

    /// The present place in this branch. `holds_steps`: no new step begins there.
    pub fn in_branch(&self, branch: BranchId, holds_steps: bool) -> PollContext {
        PollContext { branch, holds_steps: self.context.holds_steps || holds_steps, ..self.context }
    }

    /// The present place in the body of this step.
    pub fn in_step(&self, slot: SlotId) -> PollContext {
        PollContext { inside: Some(EnclosingBody::Step(slot)), ..self.context }
    }

    /// The present place in the check of what happens behind the URL of this question.
    pub fn in_check(&self, slot: SlotId) -> PollContext {
        PollContext { inside: Some(EnclosingBody::Check(slot)), ..self.context }
    }

    /// Keeps the waker that a future was polled with.
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

    /// Wakes one future and nobody else. Its waker is drops.
    pub(super) fn wake(&mut self, id: SlotId) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        match std::mem::take(&mut slot.waker) {
            SlotWaker::None => {}
            SlotWaker::Foreign(waker) => self.deferred.wakes.push(waker),
            SlotWaker::Root if self.poll.is_active => self.poll.poll_again = true,
            SlotWaker::Root => self.deferred.wakes.extend(self.poll.parent.clone()),
        }
    }

    /// Passes the turn on, and wakes the one future that has it.
    pub(super) fn advance(&mut self) {
        if let Some(slot) = self.history.advance() {
            self.wake(slot);
        }
    }

    /// Wakes all that waited for the end of the record, if that was reached. Whether there was any.
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
