//! Checkpoints: points at which a leg may end with state only.

use super::{
    Delivery, Leg, Purpose,
    context::Recorded,
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
        let branch = self.polls.branch();
        if let Some(at) = recorded {
            let state = SlotState::Checkpoint(CheckpointPhase::Recorded(at));
            return Err(Some(self.replay.add(path, site, branch, state)));
        }
        let may_end = self.setup.delivery == Delivery::NextLeg
            && self.setup.purpose != Purpose::DryRun
            && self.ending.state_only_count() < self.setup.limits.state_only_legs
            // The client already has the record of everything up to here.
            && !self.is_repeating();
        if !wants_to_end || !may_end {
            return Ok(());
        }
        let state = SlotState::Checkpoint(CheckpointPhase::Ending);
        Err(Some(self.replay.add(path, site, branch, state)))
    }

    /// Polls a checkpoint. Returns `true` if it is passed.
    pub fn poll_checkpoint(&mut self, id: SlotId, waker: &Waker) -> bool {
        if self.is_over() {
            return false;
        }
        self.move_here(id);
        let Some(slot) = self.replay.slots().get(id) else { return false };
        let SlotState::Checkpoint(phase) = slot.state else { return false };
        match phase {
            CheckpointPhase::Recorded(at) if self.replay.history().is_due(at) => {
                let site = slot.site;
                self.remove(id);
                let next = self.replay.deliver(at, site);
                self.wake(next);
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
        if let CheckpointPhase::Recorded(at) = phase {
            self.replay.history_mut().set_waiting(*at, None);
        }
    }

    /// Records the checkpoints at which the leg ends.
    pub(super) fn record_checkpoints(&mut self) {
        let is_ending = |state: &SlotState| matches!(state, SlotState::Checkpoint(CheckpointPhase::Ending));
        let (slots, round) = (self.replay.slots(), self.asks.round());
        let ending: Vec<(Arc<str>, CallSite)> = slots
            .iter()
            .filter(|(_, slot)| is_ending(&slot.state) && !slots.branches().is_abandoned(slot.branch))
            .map(|(_, slot)| (slot.path.clone(), slot.site))
            .collect();
        for (path, site) in ending {
            self.replay.history_mut().record(Entry { path, round, body: EntryBody::Checkpoint }, site);
        }
    }
}
