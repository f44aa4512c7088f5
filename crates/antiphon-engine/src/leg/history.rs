//! The entries of a call and their delivery in order.
//!
//! ```text
//!   InOrder ── it is next, and its future is polled ──▶ delivered, the next entry follows
//!     │ ▲
//!     │ └ delivery waits here
//!     ├─ nothing can wake the handler ──▶ AnyTime: delivered when the handler reaches it
//!     └─ its question changed, or an answer of an earlier round was removed ──▶ Removed (steps: AnyTime)
//!   Last ─── all entries in order were delivered, and the handler is idle ──▶ AnyTime
//! ```
//!
//! `Last` are steps that ended, and whose outcome the handler has not received. Once the handler has reached such a step, it may
//! drop the step, and new steps need not wait for it. As a new outcome would, it comes after the handler has reached all that it can
//! reach: among several, the one that ended first.
//!
//! With a store, the deliveries of this leg are also written to the store, in their order: before each effect that may depend on
//! them, and up to the winner of a select before the select resolves.

mod stored;

use super::slot::{SlotId, Wake};
use crate::{
    CallSite,
    record::{Continuation, Entry, EntryBody, EntryKind, StepOutcome, Unwritten},
};
use antiphon_seal::Digest;
use std::{collections::HashMap, sync::Arc};

/// The maximum number of entries that are searched without an index.
const LINEAR_SEARCH_MAX: usize = 64;
/// The number of entries, from the one that is delivered next, that are searched first: handlers mostly await the
/// entries in their order.
const SEARCHED_FIRST: usize = 4;

/// The entries of earlier legs in their order, those of earlier runs of this leg, then those of this run.
#[derive(Debug, Default)]
pub(super) struct History {
    items: Vec<HistoryItem>,
    /// The number of entries that came with the state: the client has them.
    sealed_len: usize,
    /// The index of the last entry of each path. Built when a search among more than [`LINEAR_SEARCH_MAX`] entries needs
    /// it.
    last_of: HashMap<Arc<str>, usize>,
    /// The number of entries in `last_of`: all, or none.
    indexed: usize,
    /// The number of entries from earlier legs and earlier runs of this leg.
    old_len: usize,
    /// The index of the old entry that is delivered next.
    next: usize,
    delivered: u32,
    /// The number of old, valid steps that were not delivered.
    unreplayed_steps: usize,
    /// The number of old refusals that were not delivered.
    unreplayed_refusals: usize,
    size: usize,
    unwritten: Unwritten,
    /// The last attempts of steps that failed in earlier runs of this leg, by path.
    failed: Vec<(Arc<str>, u32)>,
}

#[derive(Debug)]
struct HistoryItem {
    entry: Entry,
    order: DeliveryOrder,
    /// The position in the order of delivery, and the location of the call that received the entry.
    delivered: Option<(u32, CallSite)>,
    /// The future that waits for the entry.
    waiting: Option<SlotId>,
    /// True if the handler need not reach the entry.
    optional: bool,
    /// True if the entry was recorded while the handler unwound.
    unwinding: bool,
    /// The entry that such a step has if the handler does not go on: its start, or its outcome that was not delivered.
    before: Option<Box<Entry>>,
    /// True if the end of the step is a record of its own in the store.
    is_stored: bool,
    /// The index of the entry before with the same path, once the path is in `last_of`.
    previous: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryOrder {
    InOrder,
    AnyTime,
    Last,
    Removed,
}

impl HistoryItem {
    fn is_abandoned(&self) -> bool {
        matches!(self.entry.body, EntryBody::Step { outcome: StepOutcome::Abandoned { .. }, .. })
    }

    fn is_unreplayed(&self) -> bool {
        self.delivered.is_none()
            && !self.optional
            && self.order != DeliveryOrder::Removed
            && !self.is_abandoned()
    }

    fn is_unreplayed_step(&self) -> bool {
        self.entry.kind() == EntryKind::Step && self.is_unreplayed()
    }

    fn is_unreplayed_refusal(&self) -> bool {
        matches!(self.entry.body, EntryBody::Answer { refusal: true, .. }) && self.is_unreplayed()
    }
}

impl History {
    /// Returns the history of a leg with these entries. `stored` are those of earlier runs of the leg; `is_written` is true if the
    /// deliveries of this run are written to the store.
    pub(super) fn of(entries: Vec<Entry>, stored: Option<Box<Continuation>>, is_written: bool) -> Self {
        let mut history = Self { items: Vec::with_capacity(entries.len() + 2), ..Self::default() };
        for entry in entries {
            history.push_old(entry);
        }
        history.sealed_len = history.items.len();
        let mut written = 0;
        if let Some(stored) = stored {
            let Continuation { entries, deliveries, failed } = *stored;
            for entry in entries {
                history.push_old(entry);
            }
            (written, history.failed) = (deliveries, failed);
        }
        history.unwritten = Unwritten::of(is_written, written);
        history.old_len = history.items.len();
        // No future waits yet.
        let _ = history.advance();
        history
    }

    fn push_old(&mut self, entry: Entry) {
        let (stale, undelivered) = match &entry.body {
            EntryBody::Step { stale, undelivered, .. } => (*stale, undelivered.is_some()),
            _ => (false, false),
        };
        self.push(entry, None);
        let Some(item) = self.items.last_mut() else { return };
        item.is_stored = undelivered;
        if stale || item.is_abandoned() {
            item.order = DeliveryOrder::AnyTime;
        } else if undelivered {
            item.order = DeliveryOrder::Last;
        }
        self.unreplayed_steps += usize::from(item.is_unreplayed_step());
        self.unreplayed_refusals += usize::from(item.is_unreplayed_refusal());
    }

    /// Records an outcome of this leg. The handler receives it now or never.
    pub(super) fn record(&mut self, entry: Entry, site: CallSite) {
        self.delivered += 1;
        self.unwritten.push(self.items.len());
        self.push(entry, Some((self.delivered, site)));
    }

    /// Records the outcome of a step that ran in this leg. With a store, its end is a record of its own.
    pub(super) fn record_end(&mut self, entry: Entry, site: CallSite) {
        self.record(entry, site);
        if let Some(item) = self.items.last_mut() {
            item.is_stored = self.unwritten.is_kept();
        }
    }

    /// Records a step that was dropped while the handler unwound. `before` is its entry without that.
    pub(super) fn record_unwinding(&mut self, entry: Entry, site: CallSite, before: Option<Entry>) {
        self.record(entry, site);
        if let Some(item) = self.items.last_mut() {
            (item.unwinding, item.before) = (true, before.map(Box::new));
        }
    }

    /// Records a step that the next run meets as it is: it has no outcome, or one that the handler has not received.
    pub(super) fn record_open(&mut self, entry: Entry) {
        self.push(entry, None);
    }

    /// Removes the steps that a panic of the handler dropped: as after a crash, they may run again, or are as they were before.
    pub(super) fn remove_unwound(&mut self) {
        for at in self.old_len..self.items.len() {
            if !self.items[at].unwinding {
                continue;
            }
            self.change(at, |item| item.order = DeliveryOrder::Removed);
            if let Some(before) = self.items[at].before.take() {
                self.record_open(*before);
            }
        }
    }

    fn push(&mut self, entry: Entry, delivered: Option<(u32, CallSite)>) {
        self.size += entry.size();
        let item = HistoryItem {
            entry,
            order: DeliveryOrder::InOrder,
            delivered,
            waiting: None,
            optional: false,
            unwinding: false,
            before: None,
            is_stored: false,
            previous: None,
        };
        self.items.push(item);
        if self.indexed > 0 {
            self.index();
        }
    }

    fn index(&mut self) {
        for at in self.indexed..self.items.len() {
            let item = &mut self.items[at];
            item.previous = self.last_of.insert(item.entry.path.clone(), at);
        }
        self.indexed = self.items.len();
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the index of the entry with this key, unless the entry was removed. There is at most one, because a call
    /// uses each key once.
    pub(super) fn find(&mut self, kind: EntryKind, path: &str) -> Option<usize> {
        let matches = |item: &HistoryItem| {
            item.order != DeliveryOrder::Removed && item.entry.kind() == kind && *item.entry.path == *path
        };
        let next = self.items.iter().skip(self.next).take(SEARCHED_FIRST);
        if let Some(after) = next.clone().position(matches) {
            return Some(self.next + after);
        }
        if self.items.len() <= LINEAR_SEARCH_MAX {
            return self.items.iter().position(matches);
        }
        self.index();
        let last = self.last_of.get(path).copied();
        std::iter::successors(last, |at| self.items[*at].previous).find(|at| matches(&self.items[*at]))
    }

    pub(super) fn entry(&self, at: usize) -> &Entry {
        &self.items[at].entry
    }

    /// Returns the location of the call that received the entry in this leg.
    pub(super) fn delivered_at(&self, at: usize) -> Option<CallSite> {
        self.items[at].delivered.map(|(_, site)| site)
    }

    pub(super) fn is_removed(&self, at: usize) -> bool {
        self.items[at].order == DeliveryOrder::Removed
    }

    /// Returns `true` if the entry may be delivered now.
    pub(super) fn is_due(&self, at: usize) -> bool {
        at == self.next || self.items[at].order == DeliveryOrder::AnyTime
    }

    /// Returns `true` if the entry is due when all entries in order were delivered and the handler is idle.
    pub(super) fn is_last(&self, at: usize) -> bool {
        self.items[at].order == DeliveryOrder::Last
    }

    /// Sets the future that is woken when the entry is due.
    pub(super) fn set_waiting(&mut self, at: usize, slot: Option<SlotId>) {
        self.change(at, |item| {
            item.waiting = slot;
            // The handler has reached the step, and is on the path of the run before. There it has not received the outcome
            // either.
            item.optional |= item.order == DeliveryOrder::Last;
        });
    }

    /// Notes that a question was dropped before it received its recorded answer. The handler has still asked it.
    pub(super) fn give_up(&mut self, at: usize) {
        self.change(at, |item| (item.waiting, item.optional) = (None, true));
    }

    /// Notes that the future that waited for the entry was dropped.
    fn stop_waiting(&mut self, at: usize) {
        self.items[at].waiting = None;
    }

    /// Lets an entry be delivered at any time. The handler need not reach it if `optional` is true.
    fn deliver_any_time(&mut self, at: usize, optional: bool) {
        self.change(at, |item| {
            item.order = DeliveryOrder::AnyTime;
            item.optional |= optional;
        });
    }

    /// Delivers an entry. [`advance`](Self::advance) moves to the next one.
    pub(super) fn deliver(&mut self, at: usize, site: CallSite) {
        self.delivered += 1;
        let delivered = Some((self.delivered, site));
        let is_new = self.change(at, |item| {
            (item.delivered, item.waiting) = (delivered, None);
            match &mut item.entry.body {
                EntryBody::Step { undelivered, .. } => undelivered.take().is_some(),
                _ => false,
            }
        });
        if is_new {
            self.unwritten.push(at);
        }
    }

    fn change<R>(&mut self, at: usize, change: impl FnOnce(&mut HistoryItem) -> R) -> R {
        let item = &mut self.items[at];
        let (size, steps, refusals) = (item.size(), item.is_unreplayed_step(), item.is_unreplayed_refusal());
        let result = change(item);
        self.size = self.size - size + item.size();
        if at < self.old_len {
            self.unreplayed_steps -= usize::from(steps && !item.is_unreplayed_step());
            self.unreplayed_refusals -= usize::from(refusals && !item.is_unreplayed_refusal());
        }
        result
    }

    /// Moves to the next entry that must be delivered in order. Returns the future that waits for the entry.
    pub(super) fn advance(&mut self) -> Wake {
        let before = self.next;
        while self.next < self.old_len && {
            let item = &self.items[self.next];
            item.delivered.is_some() || item.order != DeliveryOrder::InOrder
        } {
            self.next += 1;
        }
        let next = self.items[..self.old_len].get(self.next).filter(|_| self.next != before);
        Wake(next.and_then(|item| item.waiting))
    }

    /// Returns the number of entries that were delivered in this leg.
    pub(super) fn delivered(&self) -> u32 {
        self.delivered
    }

    /// Returns `true` if all entries that must be delivered in order were delivered.
    pub(super) fn is_replayed(&self) -> bool {
        self.next >= self.old_len
    }

    /// Returns `true` if the next entry that must be delivered in order is a step.
    pub(super) fn next_is_step(&self) -> bool {
        self.items[..self.old_len].get(self.next).is_some_and(|item| item.entry.kind() == EntryKind::Step)
    }

    /// Lets the next entry be delivered at any time, and moves to the one behind it.
    pub(super) fn skip_next(&mut self) -> Wake {
        if self.next < self.old_len {
            self.deliver_any_time(self.next, false);
        }
        self.advance()
    }

    /// Removes an entry.
    pub(super) fn remove_entry(&mut self, at: usize) {
        self.change(at, |item| item.order = DeliveryOrder::Removed);
    }

    /// Removes the answers and winners of later rounds, and marks their steps as stale. Returns the futures that wait
    /// for them, and `true` if any of them was delivered in this leg.
    pub(super) fn make_stale(&mut self, round: u32) -> (Vec<SlotId>, bool) {
        let (mut waiting, mut was_used) = (Vec::new(), false);
        for at in 0..self.items.len() {
            let item = &mut self.items[at];
            if item.entry.round <= round || item.order == DeliveryOrder::Removed {
                continue;
            }
            was_used |= item.delivered.is_some();
            match &mut item.entry.body {
                EntryBody::Step { stale, .. } => {
                    *stale = true;
                    item.order = DeliveryOrder::AnyTime;
                    waiting.extend(item.waiting);
                }
                // Its effect is as unknown as before.
                EntryBody::Open(_) => {}
                EntryBody::Answer { .. } | EntryBody::Select { .. } => {
                    waiting.extend(item.waiting.take());
                    self.remove_entry(at);
                }
                EntryBody::Checkpoint => {}
            }
        }
        (waiting, was_used)
    }

    /// Returns the digest of the input, the outcome if there is one, and the staleness of a step.
    pub(super) fn step(&self, at: usize) -> Option<(Option<Digest>, Option<&StepOutcome>, bool)> {
        match &self.items[at].entry.body {
            EntryBody::Step { input, outcome, stale, .. } => Some((*input, Some(outcome), *stale)),
            EntryBody::Open(open) => Some((open.input, None, false)),
            _ => None,
        }
    }

    pub(super) fn has_unreplayed_steps(&self) -> bool {
        self.unreplayed_steps > 0
    }

    pub(super) fn unreplayed_steps(&self) -> Vec<String> {
        let unreplayed = self.items[..self.old_len].iter().filter(|item| item.is_unreplayed_step());
        unreplayed.map(|item| item.entry.path.to_string()).collect()
    }

    /// Lets the handler end without reaching the remaining recorded steps.
    pub(super) fn make_steps_optional(&mut self) {
        for at in 0..self.old_len {
            if self.items[at].is_unreplayed_step() {
                self.change(at, |item| item.optional = true);
            }
        }
    }

    /// Returns the refusals that were not replayed, with their rounds.
    pub(super) fn unreplayed_refusals(&self) -> impl Iterator<Item = (&str, u32)> {
        let old = if self.unreplayed_refusals > 0 { self.old_len } else { 0 };
        let unreplayed = self.items[..old].iter().filter(|item| item.is_unreplayed_refusal());
        unreplayed.map(|item| (&*item.entry.path, item.entry.round))
    }

    /// Returns `true` if this leg has replayed the answer to a question that was open in this round, or a checkpoint at
    /// which that round ended.
    pub(super) fn has_replayed_answer_of(&self, round: u32) -> bool {
        self.items.iter().any(|item| {
            let is_one = match item.entry.body {
                EntryBody::Answer { first, .. } => (first..=item.entry.round).contains(&round),
                EntryBody::Checkpoint => item.entry.round == round,
                EntryBody::Step { .. } | EntryBody::Open(_) | EntryBody::Select { .. } => false,
            };
            is_one && item.delivered.is_some()
        })
    }
}

impl HistoryItem {
    fn size(&self) -> usize {
        if self.order == DeliveryOrder::Removed { 0 } else { self.entry.size() }
    }
}
