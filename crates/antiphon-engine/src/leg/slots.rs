//! The slots of all awaited futures of a leg, and the branches of `select`.

use super::slot::{BranchId, Slot, SlotId, SlotState, SlotWaker, StepPhase};
use crate::{
    CallSite,
    record::{EntryKind, Within},
};
use std::{collections::HashMap, mem, sync::Arc};

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

    /// Takes a slot out without freeing its entry, because no slot follows at the end of a leg.
    pub(super) fn take(&mut self, id: SlotId) -> Option<Slot> {
        let entry =
            self.entries.get_mut(id.index as usize).filter(|entry| entry.generation == id.generation)?;
        entry.slot.take()
    }

    pub(super) fn remove(&mut self, id: SlotId) -> Option<Slot> {
        let entry =
            self.entries.get_mut(id.index as usize).filter(|entry| entry.generation == id.generation)?;
        let slot = entry.slot.take()?;
        entry.generation += 1;
        entry.next_free = self.free.replace(id.index);
        self.live -= 1;
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

    pub(super) fn get_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
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

    pub(super) fn branches(&mut self) -> &mut Branches {
        &mut self.branches
    }

    pub(super) fn is_abandoned_branch(&self, branch: BranchId) -> bool {
        self.branches.any_around(branch, |branch| branch.abandoned)
    }

    /// Returns `true` if nobody needs the answers to the questions of a branch.
    pub(super) fn has_lost(&self, branch: BranchId) -> bool {
        self.branches.any_around(branch, |branch| branch.abandoned || branch.lost)
    }

    pub(super) fn has_running_step_in(&self, branch: BranchId) -> bool {
        self.branches.get(branch).running > 0
    }

    pub(super) fn has_interrupted_step_in(&self, branch: BranchId) -> bool {
        self.branches.get(branch).interrupted > 0
    }

    /// Returns the selects around a branch, from the outside in, each with the number of its branch.
    pub(super) fn within(&self, branch: BranchId) -> Within {
        self.branches.within(branch)
    }

    /// Returns the number of steps that run.
    pub(super) fn running(&self) -> usize {
        self.branches.root.running as usize
    }

    /// Returns the number of questions that are asked, without those in abandoned branches.
    pub(super) fn asking(&self) -> usize {
        self.branches.root.asking as usize
    }

    /// Moves a future to the branch in which it is polled now.
    pub(super) fn move_to(&mut self, id: SlotId, branch: BranchId) {
        let Some(slot) = self.get_mut(id) else { return };
        let was = mem::replace(&mut slot.branch, branch);
        if was == branch {
            return;
        }
        let counter = match &slot.state {
            SlotState::Ask(asking) if asking.is_asked() => Some(Counter::Asking),
            SlotState::Step { phase: StepPhase::Running { .. }, .. } => Some(Counter::Running),
            SlotState::Step { phase: StepPhase::Interrupted { .. }, .. } => Some(Counter::Interrupted),
            _ => None,
        };
        if let Some(counter) = counter {
            self.branches.add(was, counter, -1);
            self.branches.add(branch, counter, 1);
        }
    }
}

/// A number that is counted for each branch and includes the branches below it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counter {
    Running,
    Asking,
    Interrupted,
}

/// The branches of all `select`s of a leg. The questions of a branch that is abandoned or lost do not count for the branches above it:
/// nobody needs their answers. Its steps count, because they run to their end.
#[derive(Debug, Default)]
pub(super) struct Branches {
    root: Branch,
    inner: Vec<Branch>,
}

#[derive(Debug, Default)]
struct Branch {
    parent: BranchId,
    /// The path of the select, and the number of the branch in it.
    of: Option<(Arc<str>, u8)>,
    abandoned: bool,
    /// True if the record has another winner, which the handler has not reached yet.
    lost: bool,
    running: u32,
    asking: u32,
    interrupted: u32,
}

impl Branches {
    fn get(&self, id: BranchId) -> &Branch {
        match id.0.checked_sub(1) {
            Some(at) => self.inner.get(at as usize).unwrap_or(&self.root),
            None => &self.root,
        }
    }

    fn get_mut(&mut self, id: BranchId) -> &mut Branch {
        match id.0.checked_sub(1) {
            Some(at) => self.inner.get_mut(at as usize).unwrap_or(&mut self.root),
            None => &mut self.root,
        }
    }

    fn within(&self, mut id: BranchId) -> Within {
        let mut within = Vec::new();
        while id != BranchId::ROOT {
            let branch = self.get(id);
            within.extend(branch.of.clone());
            id = branch.parent;
        }
        within.reverse();
        within.into()
    }

    /// Adds the branches of a select below a branch: at most 255. Returns the first one.
    pub(super) fn add_below(&mut self, parent: BranchId, count: u8, select: &Arc<str>) -> BranchId {
        let first = BranchId(u32::try_from(self.inner.len() + 1).unwrap_or(u32::MAX));
        // A parent always has a lower number, so every path to the root ends.
        let parent = if parent.0 < first.0 { parent } else { BranchId::ROOT };
        let branch = |number| Branch { parent, of: Some((select.clone(), number)), ..Branch::default() };
        self.inner.extend((0..count).map(branch));
        first
    }

    pub(super) fn add(&mut self, mut id: BranchId, counter: Counter, change: i32) {
        loop {
            let branch = self.get_mut(id);
            let count = match counter {
                Counter::Running => &mut branch.running,
                Counter::Asking => &mut branch.asking,
                Counter::Interrupted => &mut branch.interrupted,
            };
            *count = count.saturating_add_signed(change);
            let stops = (branch.abandoned || branch.lost) && matches!(counter, Counter::Asking);
            if id == BranchId::ROOT || stops {
                return;
            }
            id = branch.parent;
        }
    }

    /// Returns `true` if this holds for the branch, or for one around it.
    fn any_around(&self, mut id: BranchId, holds: impl Fn(&Branch) -> bool) -> bool {
        while id != BranchId::ROOT {
            let branch = self.get(id);
            if holds(branch) {
                return true;
            }
            id = branch.parent;
        }
        false
    }

    pub(super) fn abandon(&mut self, id: BranchId) {
        self.stop_asking(id);
        self.get_mut(id).abandoned |= id != BranchId::ROOT;
    }

    /// Another branch of the select wins by the record.
    pub(super) fn lose(&mut self, id: BranchId) {
        self.stop_asking(id);
        self.get_mut(id).lost |= id != BranchId::ROOT;
    }

    fn stop_asking(&mut self, id: BranchId) {
        let branch = self.get(id);
        if branch.abandoned || branch.lost || id == BranchId::ROOT {
            return;
        }
        let (parent, asking) = (branch.parent, i32::try_from(branch.asking).unwrap_or(i32::MAX));
        self.add(parent, Counter::Asking, -asking);
    }

    /// Lets the branches ask again whose select is not in the record any more.
    pub(super) fn decide_again(&mut self, mut is_recorded: impl FnMut(&str) -> bool) {
        for at in 0..self.inner.len() {
            let branch = &mut self.inner[at];
            if !branch.lost || branch.of.as_ref().is_some_and(|(select, _)| is_recorded(select)) {
                continue;
            }
            branch.lost = false;
            if !branch.abandoned {
                let (parent, asking) = (branch.parent, i32::try_from(branch.asking).unwrap_or(i32::MAX));
                self.add(parent, Counter::Asking, asking);
            }
        }
    }
}
