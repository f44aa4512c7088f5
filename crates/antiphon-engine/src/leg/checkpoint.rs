//! Checkpoints: points at which a leg may end with state only.

use super::{
    Delivery, Leg, Purpose, Recorded,
    slot::{CheckpointPhase, SlotId, SlotState},
};
use crate::{
    CallSite,
    record::{Entry, EntryBody, EntryKind},
};
use std::sync::Arc;
use std::task::Waker;

impl Leg {
    /// Begins to await a checkpoint. `wants_to_end` is true if the leg should end here and the client accepts results
    /// with state only. Returns `Ok` if the checkpoint is passed at once.
    ///
    /// # Errors
    /// The slot of a checkpoint that is not passed at once, or `None` if it never resolves.
    pub fn checkpoint(
        &mut self,
        path: Arc<str>,
        wants_to_end: bool,
        site: CallSite,
    ) -> Result<(), Option<SlotId>> {
        let Some(Recorded(recorded)) = self.find_recorded(EntryKind::Checkpoint, &path, site) else {
            return Err(None);
        };
        let branch = self.context.branch;
        if let Some(at) = recorded {
            let state = SlotState::Checkpoint(CheckpointPhase::Recorded(at));
            let id = self.slots.add(path, site, branch, state);
            self.history.set_waiting(at, Some(id));
            return Err(Some(id));
        }
        let may_end = self.setup.delivery == Delivery::NextLeg
            && self.setup.purpose != Purpose::DryRun
            && self.state_only < self.setup.limits.state_only
            // The client already has the record of everything up to here.
            && !self.is_repeating();
        if !wants_to_end || !may_end {
            return Ok(());
        }
        self.ending_checkpoints += 1;
        Err(Some(self.slots.add(path, site, branch, SlotState::Checkpoint(CheckpointPhase::Ending))))
    }

    /// Polls a checkpoint. Returns `true` if it is passed.
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
                self.remove(id);
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
