//! The entries of the record, the futures that the handler awaits, and the order in which the one reaches the other.

use super::{
    history::History,
    slot::{BranchId, SlotId, SlotState, Wake},
    slots::Slots,
};
use crate::{
    CallSite,
    record::{Continuation, Entry, EntryKind},
};
use std::sync::Arc;

/// The entries of a call, the futures of its handler, and the connection between the two.
#[derive(Debug, Default)]
pub(super) struct Replay {
    history: History,
    slots: Slots,
    /// Futures that continue when all recorded entries were replayed.
    after_replay: Vec<SlotId>,
    /// True if a new step has begun or a `select` was decided: what follows has never happened before.
    is_past_history: bool,
}

/// The use of a key so far.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyUse {
    /// No code has awaited it in this leg. Its entry has this index, if there is one.
    Free(Option<usize>),
    /// The call at this location has awaited it.
    Used(CallSite),
}

impl Replay {
    /// Returns the replay of these entries: those of the state, and those of earlier runs of the leg. `is_written` is true if the
    /// deliveries of this run are written to a store.
    pub(super) fn of(entries: Vec<Entry>, stored: Option<Box<Continuation>>, is_written: bool) -> Self {
        Self { history: History::of(entries, stored, is_written), ..Self::default() }
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// Takes the entries for the next leg.
    pub(super) fn take_history(&mut self) -> History {
        std::mem::take(&mut self.history)
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    pub(super) fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// Returns the use of a key that is awaited now.
    pub(super) fn key_use(&mut self, kind: EntryKind, path: &str) -> KeyUse {
        let waiting = self.slots.find(kind, path).map(|slot| slot.site);
        let recorded = self.history.find(kind, path);
        let first = waiting.or_else(|| self.history.delivered_at(recorded?));
        first.map_or(KeyUse::Free(recorded), KeyUse::Used)
    }

    /// Adds an awaited future. The future is woken when the entry that its state names is due.
    pub(super) fn add(
        &mut self,
        path: Arc<str>,
        site: CallSite,
        branch: BranchId,
        state: SlotState,
    ) -> SlotId {
        let recorded = state.entry();
        let id = self.slots.add(path, site, branch, state);
        if let Some(at) = recorded {
            self.history.set_waiting(at, Some(id));
        }
        id
    }

    /// Delivers an entry to the call at this location, and moves to the next one in order.
    pub(super) fn deliver(&mut self, at: usize, site: CallSite) -> Wake {
        self.history.deliver(at, site);
        self.history.advance()
    }

    /// Delivers the winner of a select: what its other branches did need not be reached. Moves to the next entry in order.
    pub(super) fn deliver_winner(&mut self, at: usize, select: &str, site: CallSite) -> Wake {
        self.history.deliver(at, site);
        self.history.lose(select);
        self.history.advance()
    }

    /// Returns `true` if this leg has begun a new step or decided a `select`.
    pub(super) fn is_past_history(&self) -> bool {
        self.is_past_history
    }

    /// Notes that code which follows has not run in an earlier leg.
    pub(super) fn pass_history(&mut self) {
        self.is_past_history = true;
    }

    /// Returns `true` if a future may wait for an entry that was not replayed.
    pub(super) fn waits_for_entry(&self) -> bool {
        !self.history.is_replayed() && !self.slots.is_empty()
    }

    /// Lets a future wait until all recorded entries were replayed.
    pub(super) fn wait(&mut self, id: SlotId) {
        if !self.after_replay.contains(&id) {
            self.after_replay.push(id);
        }
    }

    /// Notes that the future does not wait any more.
    pub(super) fn stop_waiting(&mut self, id: SlotId) {
        self.after_replay.retain(|waiting| *waiting != id);
    }

    /// Takes the futures that wait until all recorded entries were replayed, if that is so.
    #[must_use]
    pub(super) fn take_waiting(&mut self) -> Vec<SlotId> {
        match self.history.is_replayed() {
            true => std::mem::take(&mut self.after_replay),
            false => Vec::new(),
        }
    }

    /// Removes the entries of later rounds than this one; steps become stale. Selects are decided again. Returns the futures that
    /// wait for these entries, and `true` if an entry was delivered in this leg.
    #[must_use]
    pub(super) fn make_stale(&mut self, round: u32) -> (Vec<SlotId>, bool) {
        let stale = self.history.make_stale(round);
        let history = &mut self.history;
        self.slots.branches_mut().decide_again(|select| history.find(EntryKind::Select, select).is_some());
        stale
    }
}
