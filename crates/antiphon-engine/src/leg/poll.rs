//! The polls of the handler: the context of the polled code, the branches of all `select`s of a leg, with the numbers that are counted
//! for each, and the work that waits until the leg is unlocked.

use super::slot::{BranchId, SlotId, SlotWaker, WakerId};
use crate::record::Within;
use std::{sync::Arc, task::Waker};

/// The number of polls in a row in which the handler may wake itself before new steps begin.
const BUSY_POLLS: u32 = 64;

/// The present poll of the handler, and what it leaves to do.
#[derive(Debug, Default)]
pub(super) struct Polls {
    number: u64,
    /// The identity of the waker of the handler's poll.
    root: WakerId,
    /// True from the beginning of the poll until the driver waits.
    is_active: bool,
    /// True if all recorded entries were replayed before the poll began. New outcomes are delivered only in such a
    /// poll, in its order.
    is_replayed: bool,
    /// True if a future that the handler's poll reaches may continue.
    poll_again: bool,
    /// The waker of the driver's task.
    parent: Option<Waker>,
    /// The number of polls in a row in which the handler woke itself.
    self_wakes: u32,
    /// True if the poll only shows which steps are still polled.
    is_probe: bool,
    context: PollContext,
    deferred: DeferredWork,
}

/// The context of the code that is polled now: its branch, and the step or check around it.
/// [`Leg::enter`](super::Leg::enter) sets the context for a part of a poll.
#[derive(Clone, Copy, Debug, Default)]
pub struct PollContext {
    branch: BranchId,
    inside: Option<EnclosingBody>,
    /// True if a `select` polls its branches to see if one ends without a new step: no new step begins.
    holds_steps: bool,
}

/// The body around the code that is polled now. No future of the leg may be awaited in it.
#[derive(Clone, Copy, Debug)]
pub(super) enum EnclosingBody {
    Step(SlotId),
    Check(SlotId),
}

/// The wakers and log events that the caller handles after it has unlocked the leg.
#[derive(Debug, Default)]
pub struct DeferredWork {
    /// The wakers to wake.
    pub wakes: Vec<Waker>,
    /// The wakers to drop. Dropping a waker may run foreign code.
    pub drops: Vec<Waker>,
    /// The events for the log.
    pub events: Vec<LogEvent>,
}

/// An event for the log.
#[derive(Clone, Debug)]
pub enum LogEvent {
    /// An answer is valid for its form, but does not decode as the handler's type. The question is asked again.
    AnswerTypeMismatch {
        /// The path of the question.
        path: String,
        /// The cause, without the value.
        cause: String,
    },
    /// A step was dropped while it ran. The step may have had its effect, and never runs again in this call.
    StepAborted {
        /// The path of the step.
        path: String,
    },
    /// The handler did not reach recorded steps, and the settings permit that.
    UnreplayedSteps {
        /// The paths of the steps.
        paths: Vec<String>,
    },
}

impl PollContext {
    pub(super) fn in_branch(self, branch: BranchId, holds_steps: bool) -> Self {
        Self { branch, holds_steps: self.holds_steps || holds_steps, ..self }
    }

    pub(super) fn inside(self, body: EnclosingBody) -> Self {
        Self { inside: Some(body), ..self }
    }
}

impl Polls {
    pub(super) fn begin(&mut self, waker: &Waker, parent: &Waker, is_replayed: bool) {
        self.number += 1;
        self.is_replayed = is_replayed;
        (self.is_active, self.poll_again, self.root) = (true, false, WakerId::of(waker));
        if !self.parent.as_ref().is_some_and(|known| known.will_wake(parent)) {
            self.deferred.drops.extend(self.parent.replace(parent.clone()));
        }
        self.context = PollContext::default();
    }

    pub(super) fn end(&mut self) {
        self.root = WakerId::default();
    }

    pub(super) fn enter(&mut self, context: PollContext) -> PollContext {
        std::mem::replace(&mut self.context, context)
    }

    pub(super) fn context(&self) -> PollContext {
        self.context
    }

    /// Returns the branch of the code that is polled now.
    pub(super) fn branch(&self) -> BranchId {
        self.context.branch
    }

    /// Returns the step or check around the code that is polled now.
    pub(super) fn enclosing_body(&self) -> Option<EnclosingBody> {
        self.context.inside
    }

    /// Returns `true` if no new step begins in this part of the poll.
    pub(super) fn holds_steps(&self) -> bool {
        self.context.holds_steps
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns `true` if all recorded entries were replayed before the poll began.
    pub(super) fn is_replayed(&self) -> bool {
        self.is_replayed
    }

    /// Returns `true` if this is the waker of the handler's poll.
    pub(super) fn is_root(&self, waker: &Waker) -> bool {
        WakerId::of(waker) == self.root
    }

    /// Wakes a future by its waker.
    pub(super) fn wake(&mut self, waker: SlotWaker) {
        match waker {
            SlotWaker::None => {}
            SlotWaker::Foreign(waker) => self.deferred.wakes.push(waker),
            SlotWaker::Root if self.is_active => self.poll_again = true,
            SlotWaker::Root => self.deferred.wakes.extend(self.parent.clone()),
        }
    }

    /// Drops a waker when the leg is unlocked.
    pub(super) fn drop_later(&mut self, waker: Option<Waker>) {
        self.deferred.drops.extend(waker);
    }

    pub(super) fn log(&mut self, event: LogEvent) {
        self.deferred.events.push(event);
    }

    /// Takes the work that must be done without the lock; `None` if there is none, as nearly always.
    pub(super) fn take_deferred_work(&mut self) -> Option<DeferredWork> {
        let DeferredWork { wakes, drops, events } = &self.deferred;
        let is_empty = wakes.is_empty() && drops.is_empty() && events.is_empty();
        (!is_empty).then(|| std::mem::take(&mut self.deferred))
    }

    /// Returns `true` if a future that the handler's poll reaches may continue.
    pub(super) fn has_more(&self) -> bool {
        self.poll_again
    }

    /// Returns `true` if the waker of a combinator is woken when the leg is unlocked.
    pub(super) fn wakes_others(&self) -> bool {
        !self.deferred.wakes.is_empty()
    }

    /// Notes the decision after a poll. If the driver waits, a wake goes to the driver from now on.
    pub(super) fn go_on(&mut self, polls_again: bool) {
        self.is_active = polls_again;
    }

    /// Makes the next poll one that only shows which steps are still polled.
    pub(super) fn probe(&mut self) {
        self.is_probe = true;
    }

    /// Returns `true` if the poll only showed which steps are still polled.
    pub(super) fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.is_probe)
    }

    /// Notes that the handler woke itself. Returns `true` if it did so in too many polls in a row.
    pub(super) fn count_self_wake(&mut self) -> bool {
        self.self_wakes += 1;
        self.self_wakes > BUSY_POLLS
    }

    /// Notes that the handler is idle, or that steps have begun.
    pub(super) fn forget_self_wakes(&mut self) {
        self.self_wakes = 0;
    }
}

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
