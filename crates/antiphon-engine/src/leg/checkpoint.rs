//! Checkpoints: places at which a leg may end with state only.

use super::{
    Delivery, Leg, Purpose,
    slots::{SlotId, SlotState},
};
use crate::{
    CallSite,
    record::{Entry, EntryBody, EntryKind},
};
use std::sync::Arc;
use std::task::Waker;

/// How a waiting checkpoint stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum CheckpointPhase {
    /// It ended an earlier leg, as the record says at this place.
    Recorded(usize),
    /// It ends this leg.
    Ending,
}

impl Leg {
    /// A checkpoint is awaited for the first time. `wants_to_end`: the leg is to end here if it may, and the client takes results that hold state only. `Ok` where it is passed
    /// at once; its place where it is waited for, if it ever resolves.
    ///
    /// # Errors
    /// The place of a checkpoint that is not passed at once.
    pub fn checkpoint(
        &mut self,
        path: Arc<str>,
        wants_to_end: bool,
        site: CallSite,
    ) -> Result<(), Option<SlotId>> {
        if !self.may_await(EntryKind::Checkpoint, &path, site) {
            return Err(None);
        }
        let branch = self.context.branch;
        if let Some(at) = self.history.find(EntryKind::Checkpoint, &path) {
            let state = SlotState::Checkpoint(CheckpointPhase::Recorded(at));
            let id = self.slots.add(path, site, branch, state);
            self.history.set_waiting(at, Some(id));
            return Err(Some(id));
        }
        let may_end = self.setup.delivery == Delivery::NextLeg
            && self.setup.purpose != Purpose::DryRun
            && self.state_only < self.setup.limits.state_only
            // What was done is with the client already.
            && !self.is_repeating();
        if !wants_to_end || !may_end {
            return Ok(());
        }
        self.ending_checkpoints += 1;
        Err(Some(self.slots.add(path, site, branch, SlotState::Checkpoint(CheckpointPhase::Ending))))
    }

    /// Returns whether a checkpoint is passed.
    pub fn poll_checkpoint(&mut self, id: SlotId, waker: &Waker) -> bool {
        if self.is_over() {
            return false;
        }
        self.slots.move_to(id, self.context.branch);
        let Some(slot) = self.slots.get(id) else { return false };
        let SlotState::Checkpoint(phase) = &slot.state else { return false };
        match phase {
            CheckpointPhase::Recorded(at) if self.history.is_due(*at) => {
                let (at, site) = (*at, slot.site);
                self.history.deliver(at, site);
                self.remove(id, true);
                self.advance();
                true
            }
            CheckpointPhase::Recorded(_) => {
                self.register(id, waker);
                false
            }
            CheckpointPhase::Ending => false,
        }
    }

    pub(super) fn release_checkpoint(&mut self, phase: &CheckpointPhase) {
        match phase {
            CheckpointPhase::Recorded(at) => self.history.set_waiting(*at, None),
            CheckpointPhase::Ending => self.ending_checkpoints = self.ending_checkpoints.saturating_sub(1),
        }
    }

    /// Records the checkpoints at which the leg ends.
    pub(super) fn record_checkpoints(&mut self) {
        let is_ending = |state: &SlotState| matches!(state, SlotState::Checkpoint(CheckpointPhase::Ending));
        let ending: Vec<(Arc<str>, CallSite)> = self
            .slots
            .iter()
            .filter(|(_, slot)| is_ending(&slot.state) && !self.slots.is_abandoned_branch(slot.branch))
            .map(|(_, slot)| (slot.path.clone(), slot.site))
            .collect();
        for (path, site) in ending {
            self.history.record(Entry { path, round: self.round, body: EntryBody::Checkpoint }, site);
        }
    }
}
