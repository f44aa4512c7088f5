//! Selects and checkpoints: the winner of a select and the branches that lose, and the points at which a leg may end.

use crate::{
    CallSite,
    leg::{
        Delivery, Leg, Purpose,
        context::Recorded,
        slot::{BranchId, CheckpointPhase, SelectPhase, SlotId, SlotState, SlotWaker},
    },
    record::{Entry, EntryBody, EntryKind},
};
use std::{sync::Arc, task::Waker};

impl Leg {
    /// Begins to await a `select` with this number of branches. Returns its slot and its first branch; the other
    /// branches follow. Returns `None` if the select never resolves.
    pub fn select(&mut self, path: Arc<str>, branches: usize, site: CallSite) -> Option<(SlotId, BranchId)> {
        let Recorded(recorded) = self.find_recorded(EntryKind::Select, &path, site)?;
        let winner = match recorded.map(|at| &self.replay.history().entry(at).body) {
            Some(EntryBody::Select { winner }) => Some(*winner),
            _ => None,
        };
        if winner.is_some_and(|winner| usize::from(winner) >= branches) {
            self.diverged(&path, "its recorded winner is a branch that does not exist any more");
            return None;
        }
        let phase = recorded.map_or(SelectPhase::Undecided, SelectPhase::Recorded);
        let branch = self.polls.branch();
        let select = path.clone();
        let id = self.replay.add(path, site, branch, SlotState::Select(phase));
        // A select has at most four branches.
        let branches = u8::try_from(branches).unwrap_or(u8::MAX);
        let all = self.replay.slots_mut().branches_mut();
        let first = all.add_below(branch, branches, &select);
        if let Some(winner) = winner {
            let losers = (0..branches).filter(|branch| *branch != winner);
            losers.for_each(|branch| all.lose(first.offset(branch.into())));
        }
        Some((id, first))
    }

    fn select_phase(&self, id: SlotId) -> Option<SelectPhase> {
        match self.replay.slots().get(id)?.state {
            // After the end of the leg the entry is gone.
            SlotState::Select(SelectPhase::Recorded(_)) if self.is_over() => None,
            SlotState::Select(SelectPhase::Recorded(at)) if self.replay.history().is_removed(at) => {
                Some(SelectPhase::Undecided)
            }
            SlotState::Select(phase) => Some(phase),
            _ => None,
        }
    }

    /// Returns the winner, if the select is decided.
    pub fn winner(&self, id: SlotId) -> Option<usize> {
        match self.select_phase(id)? {
            SelectPhase::Decided(winner, _) => Some(usize::from(winner)),
            SelectPhase::Recorded(_) | SelectPhase::Undecided => None,
        }
    }

    /// Returns the recorded winner, if its entry is due. The caller then polls only that branch.
    pub fn recorded_winner(&self, id: SlotId) -> Option<usize> {
        let SelectPhase::Recorded(at) = self.select_phase(id)? else { return None };
        let history = self.replay.history();
        let EntryBody::Select { winner } = history.entry(at).body else { return None };
        history.is_due(at).then_some(usize::from(winner))
    }

    /// Lets new steps in the branches of an undecided select begin, because no branch ended without them. Wakes the
    /// steps that a poll of the branches does not reach. Returns `true` if such steps exist.
    pub fn release_steps_of_select(&mut self) -> bool {
        if self.polls.holds_steps() {
            return false;
        }
        let held = self.steps.take_held_in_select();
        for id in &held {
            if let Some(SlotWaker::Foreign(_)) = self.replay.slots().get(*id).map(|slot| &slot.waker) {
                self.wake([*id]);
            }
        }
        !held.is_empty()
    }

    /// Decides a select, if possible, and returns the winner. `done` returns `true` for a branch that has ended. The other
    /// branches are then abandoned: nothing in them resolves.
    pub fn decide(
        &mut self,
        id: SlotId,
        first: BranchId,
        branches: usize,
        done: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        self.move_here(id);
        let (winner, at) = match self.select_phase(id)? {
            SelectPhase::Decided(winner, _) => return Some(usize::from(winner)),
            SelectPhase::Recorded(at) => {
                let winner = self.recorded_winner(id).filter(|winner| done(*winner))?;
                (winner, Some(at))
            }
            // Answers are taken before steps begin. The first branch in source order that has ended wins.
            SelectPhase::Undecided if self.polls.is_replayed() => {
                ((0..branches).find(|branch| done(*branch))?, None)
            }
            SelectPhase::Undecided => return None,
        };
        // A select has at most four branches.
        let number = u8::try_from(winner).unwrap_or(u8::MAX);
        self.replay.slots_mut().set_select(id, SelectPhase::Decided(number, at));
        if at.is_none() {
            // Code after a new decision has not run in an earlier leg.
            self.replay.pass_history();
        }
        for branch in (0..branches).filter(|branch| *branch != winner) {
            self.replay.slots_mut().branches_mut().abandon(first.offset(branch));
        }
        self.asks.note_change();
        Some(winner)
    }

    /// Keeps the waker of a select that waits for its entry or for the end of the replay. In all other cases a branch
    /// wakes the select.
    pub fn wait_for_select(&mut self, id: SlotId, waker: &Waker, is_done: bool) {
        match self.select_phase(id) {
            Some(SelectPhase::Recorded(at)) if !self.replay.history().is_due(at) => self.register(id, waker),
            Some(SelectPhase::Undecided) if is_done => {
                self.replay.wait(id);
                self.register(id, waker);
            }
            _ => {}
        }
    }

    /// Returns `true` if a step runs in this branch.
    pub fn has_running_step_in(&self, branch: BranchId) -> bool {
        self.replay.slots().has_running_step_in(branch)
    }

    /// Returns `true` if this branch waits for a step that has begun in an earlier run: the loser of a race runs to its end.
    pub fn has_interrupted_step_in(&self, branch: BranchId) -> bool {
        self.replay.slots().has_interrupted_step_in(branch)
    }

    /// Resolves a select. The entry is written now and not at the decision, because other entries may have been
    /// delivered since.
    pub fn end_select(&mut self, id: SlotId) {
        if self.is_over() {
            return;
        }
        let Some(slot) = self.remove(id) else { return };
        let SlotState::Select(SelectPhase::Decided(winner, at)) = slot.state else { return };
        let select = Arc::clone(&slot.path);
        match at {
            None => {
                let (round, body) = (self.asks.round(), EntryBody::Select { winner });
                self.replay.history_mut().record(Entry { path: slot.path, round, body }, slot.site);
                self.replay.history_mut().lose(&select);
            }
            Some(at) => {
                let next = self.replay.deliver_winner(at, &select, slot.site);
                self.wake(next);
            }
        }
    }

    /// Releases the slot of a dropped select.
    pub(super) fn release_select(&mut self, id: SlotId, phase: &SelectPhase) {
        if let SelectPhase::Recorded(at) = phase {
            self.replay.history_mut().set_waiting(*at, None);
        }
        self.replay.stop_waiting(id);
    }
}

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
