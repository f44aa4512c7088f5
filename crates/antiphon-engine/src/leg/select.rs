//! Selects: which branch came first, and what becomes of the others.

use super::{
    Leg,
    slots::{BranchId, SlotId, SlotState, SlotWaker},
};
use crate::{
    CallSite,
    record::{Entry, EntryBody, EntryKind},
};
use std::{sync::Arc, task::Waker};

/// How a `select` stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum SelectPhase {
    /// Its winner is in the record, at this place.
    Recorded(usize),
    Undecided,
    /// The others come to the end of their steps. With the place of its record, if it has one.
    Decided(u8, Option<usize>),
}

impl Leg {
    /// A `select` of so many branches is awaited for the first time: its place, and its first branch; the others follow.
    /// `None`: it never resolves.
    pub fn select(&mut self, path: Arc<str>, branches: usize, site: CallSite) -> Option<(SlotId, BranchId)> {
        if !self.may_await(EntryKind::Select, &path, site) {
            return None;
        }
        let recorded = self.history.find(EntryKind::Select, &path);
        if let Some(EntryBody::Select { winner }) = recorded.map(|at| &self.history.entry(at).body)
            && usize::from(*winner) >= branches
        {
            self.diverged(&path, "the branch that came first is not there any more");
            return None;
        }
        let phase = recorded.map_or(SelectPhase::Undecided, SelectPhase::Recorded);
        let branch = self.context.branch;
        let id = self.slots.add(path, site, branch, SlotState::Select(phase));
        if let Some(at) = recorded {
            self.history.set_waiting(at, Some(id));
        }
        Some((id, self.slots.branches().add_below(branch, branches)))
    }

    fn select_phase(&self, id: SlotId) -> Option<SelectPhase> {
        match self.slots.get(id)?.state {
            // What was recorded is gone.
            SlotState::Select(SelectPhase::Recorded(_)) if self.is_over() => None,
            SlotState::Select(SelectPhase::Recorded(at)) if self.history.is_removed(at) => {
                Some(SelectPhase::Undecided)
            }
            SlotState::Select(phase) => Some(phase),
            _ => None,
        }
    }

    /// The winner, if the select is decided.
    pub fn winner(&self, id: SlotId) -> Option<usize> {
        match self.select_phase(id)? {
            SelectPhase::Decided(winner, _) => Some(usize::from(winner)),
            SelectPhase::Recorded(_) | SelectPhase::Undecided => None,
        }
    }

    /// The branch that is to be polled alone: the recorded winner, once it is the select's turn.
    pub fn recorded_winner(&self, id: SlotId) -> Option<usize> {
        let SelectPhase::Recorded(at) = self.select_phase(id)? else { return None };
        let EntryBody::Select { winner } = self.history.entry(at).body else { return None };
        self.history.is_due(at).then_some(usize::from(winner))
    }

    /// Returns whether new steps in the branches of an undecided select wait for nothing but it, and may begin now that no branch
    /// came to its end without them. Those that polling the branches does not reach are woken.
    pub fn release_steps_of_select(&mut self) -> bool {
        if self.context.holds_steps || self.held_in_select.is_empty() {
            return false;
        }
        for id in std::mem::take(&mut self.held_in_select) {
            if let Some(SlotWaker::Foreign(_)) = self.slots.get(id).map(|slot| &slot.waker) {
                self.wake(id);
            }
        }
        true
    }

    /// Decides a select, if it can be: `done` says which branches have come to their end. From then on the other branches
    /// have lost, and nothing in them resolves. The winner.
    pub fn decide(
        &mut self,
        id: SlotId,
        first: BranchId,
        branches: usize,
        done: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        self.slots.move_to(id, self.context.branch);
        let (winner, at) = match self.select_phase(id)? {
            SelectPhase::Decided(winner, _) => return Some(usize::from(winner)),
            SelectPhase::Recorded(at) => {
                let winner = self.recorded_winner(id).filter(|winner| done(*winner))?;
                (winner, Some(at))
            }
            // Answers that have come are taken before steps begin: in source order, the first that is done wins.
            SelectPhase::Undecided if self.poll.is_replayed => {
                ((0..branches).find(|branch| done(*branch))?, None)
            }
            SelectPhase::Undecided => return None,
        };
        // There are four branches at most.
        let number = u8::try_from(winner).unwrap_or(u8::MAX);
        if let Some(slot) = self.slots.get_mut(id) {
            slot.state = SlotState::Select(SelectPhase::Decided(number, at));
        }
        // What comes behind a new decision was never sent before.
        self.is_past_history |= at.is_none();
        for branch in (0..branches).filter(|branch| *branch != winner) {
            self.slots.branches().abandon(first.offset(branch));
        }
        self.asks_version += 1;
        Some(winner)
    }

    /// A select waits: for its turn or the end of the record. Otherwise a branch of it wakes it.
    pub fn wait_for_select(&mut self, id: SlotId, waker: &Waker, is_done: bool) {
        match self.select_phase(id) {
            Some(SelectPhase::Recorded(at)) if !self.history.is_due(at) => self.register(id, waker),
            Some(SelectPhase::Undecided) if is_done => {
                self.wait_for_replay(id);
                self.register(id, waker);
            }
            _ => {}
        }
    }

    /// Returns whether a step runs in this branch.
    pub fn has_running_step_in(&self, branch: BranchId) -> bool {
        self.slots.has_running_step_in(branch)
    }

    /// A select resolves. Its entry is written now, not when it was decided: others may have been delivered since.
    pub fn end_select(&mut self, id: SlotId) {
        if self.is_over() {
            return;
        }
        let Some(slot) = self.remove(id, true) else { return };
        match slot.state {
            SlotState::Select(SelectPhase::Decided(winner, None)) => {
                let entry = Entry { path: slot.path, round: self.round, body: EntryBody::Select { winner } };
                self.history.record(entry, slot.site);
            }
            SlotState::Select(SelectPhase::Decided(_, Some(at))) => {
                self.history.deliver(at, slot.site);
                self.advance();
            }
            _ => {}
        }
    }

    /// A waiting select is dropped.
    pub(super) fn release_select(&mut self, id: SlotId, phase: &SelectPhase) {
        if let SelectPhase::Recorded(at) = phase {
            self.history.set_waiting(*at, None);
        }
        self.after_replay.retain(|waiting| *waiting != id);
    }
}
