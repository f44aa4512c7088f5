//! The slots of all awaited futures of a leg. A slot is changed here only, and so each state is counted.

use super::{
    poll::{Branches, Counter},
    slot::{
        AskPhase, BranchId, CheckpointPhase, Hold, RunningStep, SelectPhase, Slot, SlotId, SlotState,
        SlotWaker, StepPhase,
    },
};
use crate::{
    CallSite,
    record::{AskRecord, EntryKind},
};
use antiphon_wire::InputRequest;
use std::{collections::HashMap, mem, sync::Arc, task::Waker};

/// The maximum number of slots that are searched without an index.
const LINEAR_SEARCH_MAX: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Slots {
    entries: Vec<SlotEntry>,
    /// The first free entry. Each free entry has the index of the next one.
    free: Option<u32>,
    live: usize,
    /// The slots of each path, once there are more than [`LINEAR_SEARCH_MAX`] slots.
    by_path: HashMap<Arc<str>, Vec<SlotId>>,
    branches: Branches,
    order: u64,
    /// The number of slots in each of these states.
    counts: [u32; Counted::ALL],
}

/// A state of a slot that is counted for the whole leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// A step that ended in an earlier run, and whose outcome the handler receives when it is idle.
    Ended,
    /// A new step that begins when the handler is idle.
    HeldForIdle,
    /// A new step that begins when a running step has ended.
    HeldForSpace,
    /// A new step before which the leg ends.
    Anchored,
    /// A step that has begun in an earlier run, and begins again when the handler is idle.
    Interrupted,
    /// A step that waits because nobody can find out its effect.
    Unresolved,
    /// A step that an earlier leg has abandoned.
    Abandoned,
    /// A checkpoint that ends the leg.
    Ending,
}

impl Counted {
    const ALL: usize = Self::Ending as usize + 1;

    fn of(state: &SlotState) -> Option<Self> {
        match state {
            SlotState::Step { phase, .. } => match phase {
                StepPhase::Ended(_) => Some(Self::Ended),
                StepPhase::Held(Hold::Idle) => Some(Self::HeldForIdle),
                StepPhase::Held(Hold::Space) => Some(Self::HeldForSpace),
                StepPhase::Anchored => Some(Self::Anchored),
                StepPhase::Interrupted { may_begin: false, .. } => Some(Self::Interrupted),
                StepPhase::Unresolved(_) => Some(Self::Unresolved),
                StepPhase::Abandoned => Some(Self::Abandoned),
                StepPhase::Interrupted { may_begin: true, .. }
                | StepPhase::Recorded(_)
                | StepPhase::Released
                | StepPhase::Running(_) => None,
            },
            SlotState::Checkpoint(CheckpointPhase::Ending) => Some(Self::Ending),
            SlotState::Checkpoint(CheckpointPhase::Recorded(_))
            | SlotState::Ask(_)
            | SlotState::Select(_) => None,
        }
    }
}

/// Returns the counter of a state in its branch.
fn counter(state: &SlotState) -> Option<Counter> {
    match state {
        SlotState::Ask(asking) => asking.is_asked().then_some(Counter::Asking),
        SlotState::Step { phase: StepPhase::Running(_), .. } => Some(Counter::Running),
        SlotState::Step { phase: StepPhase::Interrupted { .. }, .. } => Some(Counter::Interrupted),
        SlotState::Step { .. } | SlotState::Select(_) | SlotState::Checkpoint(_) => None,
    }
}

#[derive(Debug)]
struct SlotEntry {
    generation: u32,
    next_free: Option<u32>,
    slot: Option<Slot>,
}

impl Slots {
    pub(super) fn add(
        &mut self,
        path: Arc<str>,
        site: CallSite,
        branch: BranchId,
        state: SlotState,
    ) -> SlotId {
        self.order += 1;
        self.count(branch, (counter(&state), Counted::of(&state)), 1);
        let slot = Slot { path, site, branch, order: self.order, waker: SlotWaker::None, state };
        let index = self.free.unwrap_or_else(|| {
            self.entries.push(SlotEntry { generation: 0, next_free: None, slot: None });
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        let entry = &mut self.entries[index as usize];
        self.free = entry.next_free.take();
        let id = SlotId { index, generation: entry.generation };
        entry.slot = Some(slot);
        self.live += 1;
        if self.live > LINEAR_SEARCH_MAX || !self.by_path.is_empty() {
            self.index(id);
        }
        id
    }

    fn index(&mut self, id: SlotId) {
        if self.by_path.is_empty() {
            let all: Vec<(Arc<str>, SlotId)> =
                self.iter().map(|(id, slot)| (slot.path.clone(), id)).collect();
            for (path, id) in all {
                self.by_path.entry(path).or_default().push(id);
            }
        } else if let Some(slot) = self.get(id) {
            let path = slot.path.clone();
            self.by_path.entry(path).or_default().push(id);
        }
    }

    /// Takes a question that leaves, without freeing its slot: no slot follows at the end of a leg.
    pub(super) fn take_asked(&mut self, id: SlotId) -> Option<(AskRecord, InputRequest, Option<String>)> {
        let entry =
            self.entries.get_mut(id.index as usize).filter(|entry| entry.generation == id.generation)?;
        match entry.slot.take()?.state {
            SlotState::Ask(asking) => asking.into_asked(),
            SlotState::Step { .. } | SlotState::Select(_) | SlotState::Checkpoint(_) => None,
        }
    }

    pub(super) fn remove(&mut self, id: SlotId) -> Option<Slot> {
        let entry =
            self.entries.get_mut(id.index as usize).filter(|entry| entry.generation == id.generation)?;
        let slot = entry.slot.take()?;
        entry.generation += 1;
        entry.next_free = self.free.replace(id.index);
        self.live -= 1;
        self.count(slot.branch, (counter(&slot.state), Counted::of(&slot.state)), -1);
        if let Some(ids) = self.by_path.get_mut(&slot.path) {
            ids.retain(|known| *known != id);
            if ids.is_empty() {
                self.by_path.remove(&slot.path);
            }
        }
        Some(slot)
    }

    pub(super) fn get(&self, id: SlotId) -> Option<&Slot> {
        let entry = self.entries.get(id.index as usize).filter(|entry| entry.generation == id.generation)?;
        entry.slot.as_ref()
    }

    fn get_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
        let entry =
            self.entries.get_mut(id.index as usize).filter(|entry| entry.generation == id.generation)?;
        entry.slot.as_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        let entries = (0_u32..).zip(&self.entries);
        entries.filter_map(|(index, entry)| {
            Some((SlotId { index, generation: entry.generation }, entry.slot.as_ref()?))
        })
    }

    /// Returns the awaited future with this key.
    pub(super) fn find(&self, kind: EntryKind, path: &str) -> Option<&Slot> {
        if self.by_path.is_empty() {
            return self.iter().map(|(_, slot)| slot).find(|slot| slot.kind() == kind && *slot.path == *path);
        }
        let ids = self.by_path.get(path)?.iter();
        ids.filter_map(|id| self.get(*id)).find(|slot| slot.kind() == kind)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns the number of futures that the handler has reached.
    pub(super) fn reached(&self) -> u64 {
        self.order
    }

    fn count(
        &mut self,
        branch: BranchId,
        (counter, counted): (Option<Counter>, Option<Counted>),
        change: i32,
    ) {
        if let Some(counter) = counter {
            self.branches.add(branch, counter, change);
        }
        if let Some(counted) = counted {
            let count = &mut self.counts[counted as usize];
            *count = count.saturating_add_signed(change);
        }
    }

    /// Changes the state of a slot.
    fn change(&mut self, id: SlotId, change: impl FnOnce(&mut SlotState)) {
        let Some(slot) = self.get_mut(id) else { return };
        let (branch, was) = (slot.branch, (counter(&slot.state), Counted::of(&slot.state)));
        change(&mut slot.state);
        let now = (counter(&slot.state), Counted::of(&slot.state));
        if was != now {
            self.count(branch, was, -1);
            self.count(branch, now, 1);
        }
    }

    pub(super) fn set_ask(&mut self, id: SlotId, new: AskPhase) {
        self.change(id, |state| {
            if let SlotState::Ask(asking) = state {
                asking.phase = new;
            }
        });
    }

    pub(super) fn set_step(&mut self, id: SlotId, new: StepPhase) {
        self.change(id, |state| {
            if let SlotState::Step { phase, .. } = state {
                *phase = new;
            }
        });
    }

    pub(super) fn set_select(&mut self, id: SlotId, new: SelectPhase) {
        self.change(id, |state| *state = SlotState::Select(new));
    }

    fn running_mut(&mut self, id: SlotId) -> Option<&mut RunningStep> {
        match &mut self.get_mut(id)?.state {
            SlotState::Step { phase: StepPhase::Running(running), .. } => Some(running),
            _ => None,
        }
    }

    /// Sets the number of the handler's poll that polls a running step, if that poll uses the handler's own waker.
    pub(super) fn set_root_poll(&mut self, id: SlotId, number: Option<u64>) {
        if let Some(running) = self.running_mut(id) {
            running.root_poll = number;
        }
    }

    /// Sets the number of the attempt of a running step whose start the store has.
    pub(super) fn set_started(&mut self, id: SlotId, attempt: Option<u32>) {
        if let Some(running) = self.running_mut(id) {
            running.started = attempt;
        }
    }

    /// Takes the question out of a slot that is removed next. Returns its path too.
    pub(super) fn take_question(&mut self, id: SlotId) -> Option<(Arc<str>, InputRequest)> {
        let slot = self.get_mut(id)?;
        let SlotState::Ask(asking) = &mut slot.state else { return None };
        let request = mem::replace(&mut asking.question.request, InputRequest::ListRoots { meta: None });
        Some((slot.path.clone(), request))
    }

    /// Keeps the waker of a future's poll. Returns the waker before, which the caller drops.
    pub(super) fn register(&mut self, id: SlotId, waker: &Waker, is_root: bool) -> Option<Waker> {
        let slot = self.get_mut(id)?;
        let new = match &slot.waker {
            _ if is_root => SlotWaker::Root,
            SlotWaker::Foreign(known) if known.will_wake(waker) => return None,
            _ => SlotWaker::Foreign(waker.clone()),
        };
        match mem::replace(&mut slot.waker, new) {
            SlotWaker::Foreign(known) => Some(known),
            SlotWaker::None | SlotWaker::Root => None,
        }
    }

    pub(super) fn take_waker(&mut self, id: SlotId) -> SlotWaker {
        self.get_mut(id).map(|slot| mem::take(&mut slot.waker)).unwrap_or_default()
    }

    pub(super) fn has_running_step_in(&self, branch: BranchId) -> bool {
        self.branches.count(branch, Counter::Running) > 0
    }

    pub(super) fn has_interrupted_step_in(&self, branch: BranchId) -> bool {
        self.branches.count(branch, Counter::Interrupted) > 0
    }

    pub(super) fn branches(&self) -> &Branches {
        &self.branches
    }

    pub(super) fn branches_mut(&mut self) -> &mut Branches {
        &mut self.branches
    }

    /// Returns the number of steps that run.
    pub(super) fn running(&self) -> usize {
        self.branches.count(BranchId::ROOT, Counter::Running) as usize
    }

    /// Returns the number of questions that are asked, without those in abandoned branches.
    pub(super) fn asking(&self) -> usize {
        self.branches.count(BranchId::ROOT, Counter::Asking) as usize
    }

    /// Returns `true` if a slot is in this state.
    pub(super) fn has(&self, counted: Counted) -> bool {
        self.counts[counted as usize] > 0
    }

    /// Returns the slots in this state, in the order of their first polls.
    pub(super) fn in_state(&self, counted: Counted) -> Vec<SlotId> {
        if !self.has(counted) {
            return Vec::new();
        }
        let found = self.iter().filter(|(_, slot)| Counted::of(&slot.state) == Some(counted));
        let mut found: Vec<(u64, SlotId)> = found.map(|(id, slot)| (slot.order, id)).collect();
        found.sort_unstable_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// Moves a future to the branch in which it is polled now.
    pub(super) fn move_to(&mut self, id: SlotId, branch: BranchId) {
        let Some(slot) = self.get_mut(id) else { return };
        let was = mem::replace(&mut slot.branch, branch);
        if was == branch {
            return;
        }
        if let Some(counter) = counter(&slot.state) {
            self.branches.add(was, counter, -1);
            self.branches.add(branch, counter, 1);
        }
    }
}
