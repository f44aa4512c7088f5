//! The branches of all `select`s of a leg, with the numbers that are counted for each branch.

use super::slot::BranchId;
use crate::record::Within;
use std::sync::Arc;

/// A number that is counted for each branch and includes the branches below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Branch {
    fn is_out(&self) -> bool {
        self.abandoned || self.lost
    }

    /// Returns the number of questions, as a change of a counter.
    fn questions(&self) -> i32 {
        i32::try_from(self.asking).unwrap_or(i32::MAX)
    }
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

    /// Returns the selects around a branch, from the outside in, each with the number of its branch.
    pub(super) fn within(&self, mut id: BranchId) -> Within {
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

    pub(super) fn count(&self, id: BranchId, counter: Counter) -> u32 {
        let branch = self.get(id);
        match counter {
            Counter::Running => branch.running,
            Counter::Asking => branch.asking,
            Counter::Interrupted => branch.interrupted,
        }
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
            let stops = branch.is_out() && matches!(counter, Counter::Asking);
            if id == BranchId::ROOT || stops {
                return;
            }
            id = branch.parent;
        }
    }

    pub(super) fn is_abandoned(&self, id: BranchId) -> bool {
        self.any_around(id, |branch| branch.abandoned)
    }

    /// Returns `true` if nobody needs the answers to the questions of a branch.
    pub(super) fn has_lost(&self, id: BranchId) -> bool {
        self.any_around(id, Branch::is_out)
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

    /// Another branch of the select has won: nothing in this one resolves.
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
        if !branch.is_out() && id != BranchId::ROOT {
            self.add(branch.parent, Counter::Asking, -branch.questions());
        }
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
                let (parent, asking) = (branch.parent, branch.questions());
                self.add(parent, Counter::Asking, asking);
            }
        }
    }
}
