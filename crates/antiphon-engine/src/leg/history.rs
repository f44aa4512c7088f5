//! The entries of a call, and whose turn it is: history comes back in its own order.
//!
//! ```text
//!   InTurn ──its turn, and its future is polled──▶ delivered, the turn passes on
//!     │ ▲
//!     │ └ the turn stops here
//!     ├─ nothing can wake the handler ──▶ Free: delivered whenever it is met
//!     ├─ a step that was never delivered is dropped ──▶ Free, and need not be met
//!     └─ its question changed, or an answer of an earlier round was dropped ──▶ Gone (steps: Free)
//! ```

use super::slots::SlotId;
use crate::record::{Body, Entry, EntryKind, StepOutcome};
use antiphon_seal::Digest;
use std::collections::HashMap;
use std::sync::Arc;

use crate::CallSite;

/// Up to so many entries are searched one by one.
const FEW: usize = 32;

/// Old entries first, in their order; then those of this leg.
#[derive(Debug, Default)]
pub(super) struct History {
    kept: Vec<Kept>,
    /// The places of each path, once there are more than [`FEW`] entries.
    places: HashMap<Arc<str>, Vec<usize>>,
    /// The number of entries from earlier legs.
    old: usize,
    /// The old entry that is delivered next.
    turn: usize,
    delivered: u32,
    /// Old steps that count and were not delivered.
    unmet_steps: usize,
    /// Old refusals that were not delivered.
    unmet_refusals: usize,
    size: usize,
}

#[derive(Debug)]
struct Kept {
    entry: Entry,
    order: Order,
    /// In which place of the order, and for which call.
    delivered: Option<(u32, CallSite)>,
    /// The future that waits for it.
    waits: Option<SlotId>,
    /// It need not be met.
    excused: bool,
    /// It was recorded while the handler unwound.
    unwinding: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    InTurn,
    Free,
    Gone,
}

impl Kept {
    fn is_abandoned(&self) -> bool {
        matches!(self.entry.body, Body::Step { outcome: StepOutcome::Abandoned, .. })
    }

    fn is_unmet(&self) -> bool {
        self.delivered.is_none() && !self.excused && self.order != Order::Gone && !self.is_abandoned()
    }

    fn is_unmet_step(&self) -> bool {
        self.entry.kind() == EntryKind::Step && self.is_unmet()
    }

    fn is_unmet_refusal(&self) -> bool {
        matches!(self.entry.body, Body::Answer { refusal: true, .. }) && self.is_unmet()
    }
}

impl History {
    pub(super) fn of(entries: Vec<Entry>) -> Self {
        let mut history = Self { kept: Vec::with_capacity(entries.len() + 8), ..Self::default() };
        for entry in entries {
            let stale = matches!(entry.body, Body::Step { stale: true, .. });
            history.push(entry, None);
            if let Some(kept) = history.kept.last_mut() {
                if stale || kept.is_abandoned() {
                    kept.order = Order::Free;
                }
                history.unmet_steps += usize::from(kept.is_unmet_step());
                history.unmet_refusals += usize::from(kept.is_unmet_refusal());
            }
        }
        history.old = history.kept.len();
        history.advance();
        history
    }

    /// Records something that the handler learns now, or never.
    pub(super) fn record(&mut self, entry: Entry, site: CallSite) {
        self.delivered += 1;
        self.push(entry, Some((self.delivered, site)));
    }

    /// Records a step that was dropped while the handler unwound.
    pub(super) fn record_unwinding(&mut self, entry: Entry, site: CallSite) {
        self.record(entry, site);
        if let Some(kept) = self.kept.last_mut() {
            kept.unwinding = true;
        }
    }

    /// The handler's panic has reached its driver: the steps that it dropped are as those of a crash, and may run again.
    pub(super) fn forget_unwound(&mut self) {
        for at in self.old..self.kept.len() {
            if self.kept[at].unwinding {
                self.change(at, |kept| kept.order = Order::Gone);
            }
        }
    }

    fn push(&mut self, entry: Entry, delivered: Option<(u32, CallSite)>) {
        self.size += entry.size();
        let kept =
            Kept { entry, order: Order::InTurn, delivered, waits: None, excused: false, unwinding: false };
        self.kept.push(kept);
        let unplaced = match self.kept.len() {
            ..=FEW => return,
            many if many == FEW + 1 => 0,
            many => many - 1,
        };
        for (at, kept) in self.kept.iter().enumerate().skip(unplaced) {
            self.places.entry(kept.entry.path.clone()).or_default().push(at);
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The entry of this key, if it still counts.
    pub(super) fn find(&self, kind: EntryKind, path: &str) -> Option<usize> {
        let is_it = |at: &usize| {
            let kept = &self.kept[*at];
            kept.order != Order::Gone && kept.entry.kind() == kind && *kept.entry.path == *path
        };
        if self.kept.len() <= FEW {
            return (0..self.kept.len()).find(is_it);
        }
        self.places.get(path)?.iter().copied().find(is_it)
    }

    pub(super) fn entry(&self, at: usize) -> &Entry {
        &self.kept[at].entry
    }

    /// The call that this entry was delivered to in this leg.
    pub(super) fn delivered_at(&self, at: usize) -> Option<CallSite> {
        self.kept[at].delivered.map(|(_, site)| site)
    }

    pub(super) fn is_gone(&self, at: usize) -> bool {
        self.kept[at].order == Order::Gone
    }

    /// Returns whether the entry may be delivered now.
    pub(super) fn is_due(&self, at: usize) -> bool {
        at == self.turn || self.kept[at].order == Order::Free
    }

    /// Has this future woken when the entry is due; nobody, if it is `None`.
    pub(super) fn wait_for(&mut self, at: usize, slot: Option<SlotId>) {
        self.kept[at].waits = slot;
    }

    /// A question was dropped before it took its recorded answer: it was asked all the same.
    pub(super) fn give_up(&mut self, at: usize) {
        self.change(at, |kept| (kept.waits, kept.excused) = (None, true));
    }

    /// A step was dropped before it received its recorded outcome. That is the same path only where the handler has never
    /// received the outcome: two steps that ended behind the end of a leg were delivered to nobody, and the first of them
    /// may be what makes the handler drop the second.
    pub(super) fn give_up_step(&mut self, at: usize) {
        self.change(at, |kept| {
            kept.waits = None;
            if matches!(kept.entry.body, Body::Step { undelivered: true, .. }) {
                (kept.excused, kept.order) = (true, Order::Free);
            }
        });
    }

    /// Delivers an entry. The turn passes on with [`advance`](Self::advance).
    pub(super) fn deliver(&mut self, at: usize, site: CallSite) {
        self.delivered += 1;
        let delivered = Some((self.delivered, site));
        self.change(at, |kept| {
            (kept.delivered, kept.waits) = (delivered, None);
            if let Body::Step { undelivered, .. } = &mut kept.entry.body {
                *undelivered = false;
            }
        });
    }

    fn change<R>(&mut self, at: usize, change: impl FnOnce(&mut Kept) -> R) -> R {
        let kept = &mut self.kept[at];
        let (size, steps, refusals) = (kept.size(), kept.is_unmet_step(), kept.is_unmet_refusal());
        let result = change(kept);
        self.size = self.size - size + kept.size();
        if at < self.old {
            self.unmet_steps -= usize::from(steps && !kept.is_unmet_step());
            self.unmet_refusals -= usize::from(refusals && !kept.is_unmet_refusal());
        }
        result
    }

    /// Passes the turn on to the next entry that must be met in its place. The future that waits for it.
    pub(super) fn advance(&mut self) -> Option<SlotId> {
        let before = self.turn;
        while self.turn < self.old && {
            let kept = &self.kept[self.turn];
            kept.delivered.is_some() || kept.order != Order::InTurn
        } {
            self.turn += 1;
        }
        self.kept[..self.old].get(self.turn).filter(|_| self.turn != before)?.waits
    }

    /// The number of entries that were delivered in this leg.
    pub(super) fn delivered(&self) -> u32 {
        self.delivered
    }

    /// Returns whether all that must be met in its place was met.
    pub(super) fn is_replayed(&self) -> bool {
        self.turn >= self.old
    }

    /// No longer waits for the entry whose turn it is: it is delivered whenever it is met.
    pub(super) fn pass_over(&mut self) {
        if self.turn < self.old {
            self.kept[self.turn].order = Order::Free;
        }
    }

    /// Drops an entry.
    pub(super) fn drop_entry(&mut self, at: usize) {
        self.change(at, |kept| kept.order = Order::Gone);
    }

    /// Drops the answers and winners of later rounds, and marks their steps as stale. The futures that wait for them, and
    /// whether any was delivered in this leg.
    pub(super) fn make_stale(&mut self, round: u32) -> (Vec<SlotId>, bool) {
        let (mut waiting, mut was_used) = (Vec::new(), false);
        for at in 0..self.kept.len() {
            let kept = &mut self.kept[at];
            if kept.entry.round <= round || kept.order == Order::Gone {
                continue;
            }
            was_used |= kept.delivered.is_some();
            match &mut kept.entry.body {
                Body::Step { stale, .. } => {
                    *stale = true;
                    kept.order = Order::Free;
                    waiting.extend(kept.waits);
                }
                Body::Answer { .. } | Body::Select { .. } => {
                    waiting.extend(kept.waits.take());
                    self.drop_entry(at);
                }
                Body::Checkpoint => {}
            }
        }
        (waiting, was_used)
    }

    /// The digest of the input, the outcome and the staleness of a step.
    pub(super) fn step(&self, at: usize) -> Option<(Option<Digest>, &StepOutcome, bool)> {
        match &self.kept[at].entry.body {
            Body::Step { input, outcome, stale, .. } => Some((*input, outcome, *stale)),
            _ => None,
        }
    }

    pub(super) fn has_unmet_steps(&self) -> bool {
        self.unmet_steps > 0
    }

    pub(super) fn unmet_steps(&self) -> Vec<String> {
        let unmet = self.kept[..self.old].iter().filter(|kept| kept.is_unmet_step());
        unmet.map(|kept| kept.entry.path.to_string()).collect()
    }

    /// Recorded steps need not be met.
    pub(super) fn excuse_steps(&mut self) {
        for at in 0..self.old {
            if self.kept[at].is_unmet_step() {
                self.change(at, |kept| kept.excused = true);
            }
        }
    }

    /// The refusals that were not met, with their rounds.
    pub(super) fn unmet_refusals(&self) -> impl Iterator<Item = (&str, u32)> {
        let old = if self.unmet_refusals > 0 { self.old } else { 0 };
        let unmet = self.kept[..old].iter().filter(|kept| kept.is_unmet_refusal());
        unmet.map(|kept| (&*kept.entry.path, kept.entry.round))
    }

    /// Returns whether an answer of this round was met in this leg, or a checkpoint at which that round left.
    pub(super) fn has_met_answer_of(&self, round: u32) -> bool {
        self.kept.iter().any(|kept| {
            let is_one = matches!(kept.entry.kind(), EntryKind::Ask | EntryKind::Checkpoint);
            is_one && kept.entry.round == round && kept.delivered.is_some()
        })
    }

    /// Returns whether this leg has recorded anything.
    pub(super) fn has_new_entries(&self) -> bool {
        self.kept[self.old..].iter().any(|kept| kept.order != Order::Gone)
    }

    /// The paths of the steps that count, of all legs: of those that have an outcome.
    pub(super) fn steps_done(&self) -> impl Iterator<Item = &str> {
        let done = self.kept.iter().filter(|kept| {
            kept.order != Order::Gone && kept.entry.kind() == EntryKind::Step && !kept.is_abandoned()
        });
        done.map(|kept| &*kept.entry.path)
    }

    /// The path of the first step that this leg recorded.
    pub(super) fn first_new_step(&self) -> Option<&str> {
        let new = self.kept[self.old..].iter().filter(|kept| kept.order != Order::Gone);
        new.map(|kept| &kept.entry).find(|entry| entry.kind() == EntryKind::Step).map(|entry| &*entry.path)
    }

    /// The path that was taken, for the log: keys and digests, no values.
    pub(super) fn in_words(&self) -> String {
        let words = self.kept.iter().map(|kept| {
            let Entry { path, body, .. } = &kept.entry;
            let is_stale = matches!(body, Body::Step { stale: true, .. });
            let mark = match (kept.order, kept.delivered.is_some(), is_stale) {
                (Order::Gone, ..) => "dropped",
                (_, true, _) => "met",
                (_, _, true) => "stale",
                _ => "not met",
            };
            match body {
                Body::Answer { digest, .. } => format!("answer {path} {digest:?} {mark}"),
                Body::Step { input: Some(input), .. } => format!("step {path} {input:?} {mark}"),
                Body::Step { .. } => format!("step {path} {mark}"),
                Body::Select { winner } => format!("select {path} branch {winner} {mark}"),
                Body::Checkpoint => format!("checkpoint {path} {mark}"),
            }
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// The entries that count: those of this leg in the order in which they were delivered, behind them those that were not.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        let mut kept = self.kept;
        kept.retain(|kept| kept.order != Order::Gone);
        let place = |kept: &Kept| kept.delivered.map_or(u32::MAX, |(place, _)| place);
        if !kept.is_sorted_by_key(place) {
            kept.sort_by_key(place);
        }
        kept.into_iter().map(|kept| kept.entry).collect()
    }
}

impl Kept {
    fn size(&self) -> usize {
        if self.order == Order::Gone { 0 } else { self.entry.size() }
    }
}
