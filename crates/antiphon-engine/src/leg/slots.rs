//! The futures that wait, one slot each, with the waker of each; and the branches of `select` they stand in.

use super::{ask::Asking, checkpoint::CheckpointPhase, select::SelectPhase, step::StepPhase};
use crate::{CallSite, record::EntryKind};
use antiphon_seal::Digest;
use std::{collections::HashMap, mem, sync::Arc, task::Waker};

/// Up to so many slots are searched one by one.
const FEW: usize = 32;

/// The name of one waiting future. It is never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotId {
    index: u32,
    generation: u32,
}

/// A branch of a `select`, or the handler itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchId(u32);

impl BranchId {
    pub(super) const ROOT: Self = Self(0);

    /// The branch that stands so many behind this one.
    pub fn offset(self, branches: usize) -> Self {
        Self(self.0.saturating_add(u32::try_from(branches).unwrap_or(u32::MAX)))
    }
}

/// One waiting future.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) path: Arc<str>,
    pub(super) site: CallSite,
    pub(super) branch: BranchId,
    /// In the order of the first polls.
    pub(super) order: u64,
    pub(super) waker: SlotWaker,
    pub(super) state: State,
}

/// What waits, and for what.
#[derive(Debug)]
pub(super) enum State {
    Ask(Box<Asking>),
    Step { input: Option<Digest>, phase: StepPhase },
    Select(SelectPhase),
    Checkpoint(CheckpointPhase),
}

impl Slot {
    pub(super) fn kind(&self) -> EntryKind {
        match self.state {
            State::Ask(_) => EntryKind::Ask,
            State::Step { .. } => EntryKind::Step,
            State::Select(_) => EntryKind::Select,
            State::Checkpoint(_) => EntryKind::Checkpoint,
        }
    }
}

/// How a waiting future is woken.
#[derive(Debug, Default)]
pub(super) enum SlotWaker {
    #[default]
    None,
    /// It was polled with the waker of the handler's poll: to poll the handler is to poll it. No clone is kept, so that a
    /// clone that is alive belongs to somebody else.
    Root,
    /// It was polled with the waker of a combinator.
    Foreign(Waker),
}

/// The identity of a waker, without a clone. Two are equal only for clones of one waker while one of them is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WakerId(usize, usize);

impl WakerId {
    pub(super) fn of(waker: &Waker) -> Self {
        Self(waker.data() as usize, std::ptr::from_ref(waker.vtable()) as usize)
    }
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    places: Vec<Place>,
    /// The first place that is free; each names the next one.
    free: Option<u32>,
    live: usize,
    /// The slots of each path, once there are more than [`FEW`].
    by_path: HashMap<Arc<str>, Vec<SlotId>>,
    branches: Branches,
    order: u64,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    next_free: Option<u32>,
    slot: Option<Slot>,
}

impl Slots {
    pub(super) fn add(&mut self, path: Arc<str>, site: CallSite, branch: BranchId, state: State) -> SlotId {
        self.order += 1;
        let slot = Slot { path, site, branch, order: self.order, waker: SlotWaker::None, state };
        let index = self.free.unwrap_or_else(|| {
            self.places.push(Place { generation: 0, next_free: None, slot: None });
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let place = &mut self.places[index as usize];
        self.free = place.next_free.take();
        let id = SlotId { index, generation: place.generation };
        place.slot = Some(slot);
        self.live += 1;
        if self.live > FEW || !self.by_path.is_empty() {
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

    /// Takes a slot out where no other follows: the leg is over.
    pub(super) fn take(&mut self, id: SlotId) -> Option<Slot> {
        let place =
            self.places.get_mut(id.index as usize).filter(|place| place.generation == id.generation)?;
        place.slot.take()
    }

    pub(super) fn remove(&mut self, id: SlotId) -> Option<Slot> {
        let place =
            self.places.get_mut(id.index as usize).filter(|place| place.generation == id.generation)?;
        let slot = place.slot.take()?;
        place.generation += 1;
        place.next_free = self.free.replace(id.index);
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
        let place = self.places.get(id.index as usize).filter(|place| place.generation == id.generation)?;
        place.slot.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
        let place =
            self.places.get_mut(id.index as usize).filter(|place| place.generation == id.generation)?;
        place.slot.as_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        let places = (0_u32..).zip(&self.places);
        places.filter_map(|(index, place)| {
            Some((SlotId { index, generation: place.generation }, place.slot.as_ref()?))
        })
    }

    /// The waiting future of this key.
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

    pub(super) fn branches(&mut self) -> &mut Branches {
        &mut self.branches
    }

    pub(super) fn is_lost(&self, branch: BranchId) -> bool {
        self.branches.is_lost(branch)
    }

    pub(super) fn has_running_step_in(&self, branch: BranchId) -> bool {
        self.branches.get(branch).running > 0
    }

    /// The number of steps that run.
    pub(super) fn running(&self) -> usize {
        self.branches.root.running as usize
    }

    /// The number of questions that are asked, but for those of branches that have lost.
    pub(super) fn asking(&self) -> usize {
        self.branches.root.asking as usize
    }

    /// Notes that a future is polled in this branch, and with this waker.
    pub(super) fn move_to(&mut self, id: SlotId, branch: BranchId) {
        let Some(slot) = self.get_mut(id) else { return };
        let was = mem::replace(&mut slot.branch, branch);
        if was == branch {
            return;
        }
        let counted = match &slot.state {
            State::Ask(asking) if asking.is_asked() => Some(Counted::Asking),
            State::Step { phase: StepPhase::Running { .. }, .. } => Some(Counted::Running),
            _ => None,
        };
        if let Some(counted) = counted {
            self.branches.add(was, counted, -1);
            self.branches.add(branch, counted, 1);
        }
    }
}

/// What is counted for each branch, those below it included.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counted {
    Running,
    Asking,
}

/// The branches of all `select`s of a leg. A branch that has lost is taken out of the counts of those above it, but for
/// steps: these run to their end.
#[derive(Debug, Default)]
pub(super) struct Branches {
    root: Branch,
    inner: Vec<Branch>,
}

#[derive(Debug, Default)]
struct Branch {
    parent: BranchId,
    lost: bool,
    running: u32,
    asking: u32,
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

    /// So many new branches below this one. The first.
    pub(super) fn below(&mut self, parent: BranchId, count: usize) -> BranchId {
        let first = BranchId(u32::try_from(self.inner.len() + 1).unwrap_or(u32::MAX));
        // A branch stands below one that was there before it, so every way up ends.
        let parent = if parent.0 < first.0 { parent } else { BranchId::ROOT };
        self.inner.extend((0..count).map(|_| Branch { parent, ..Branch::default() }));
        first
    }

    pub(super) fn add(&mut self, mut id: BranchId, counted: Counted, change: i32) {
        loop {
            let branch = self.get_mut(id);
            let count = match counted {
                Counted::Running => &mut branch.running,
                Counted::Asking => &mut branch.asking,
            };
            *count = count.saturating_add_signed(change);
            let stops = branch.lost && matches!(counted, Counted::Asking);
            if id == BranchId::ROOT || stops {
                return;
            }
            id = branch.parent;
        }
    }

    fn is_lost(&self, mut id: BranchId) -> bool {
        while id != BranchId::ROOT {
            let branch = self.get(id);
            if branch.lost {
                return true;
            }
            id = branch.parent;
        }
        false
    }

    pub(super) fn lose(&mut self, id: BranchId) {
        let branch = self.get(id);
        if branch.lost || id == BranchId::ROOT {
            return;
        }
        let (parent, asking) = (branch.parent, i32::try_from(branch.asking).unwrap_or(i32::MAX));
        self.get_mut(id).lost = true;
        self.add(parent, Counted::Asking, -asking);
    }
}
