//! The part of the history that goes to a store, or leaves at the end of a leg.

use crate::{
    leg::{
        history::{DeliveryOrder, History, HistoryItem},
        slot::Wake,
    },
    record::{Delivered, Entry, EntryBody, EntryKind, OpenStep, StepOutcome, Within},
};

impl History {
    /// Returns the step at this place, if it has begun and has no outcome.
    pub(in crate::leg) fn open_step(&self, at: usize) -> Option<&OpenStep> {
        match &self.items[at].entry.body {
            EntryBody::Open(open) => Some(open),
            _ => None,
        }
    }

    /// Notes that a step was dropped before it received its recorded outcome. The path is the same only if the handler never received
    /// the outcome: of two steps that ended and were not delivered, the outcome of the first one may make the handler drop the second.
    pub(in crate::leg) fn give_up_step(&mut self, at: usize) {
        self.stop_waiting(at);
        if self.is_unfinished(at) {
            self.deliver_any_time(at, true);
        }
    }

    /// Returns `true` if the entry is a step without an outcome, or with one that the handler has not received.
    pub(in crate::leg) fn is_unfinished(&self, at: usize) -> bool {
        let body = &self.items[at].entry.body;
        matches!(body, EntryBody::Step { undelivered: Some(_), .. } | EntryBody::Open(_))
    }

    /// Removes an entry, and returns it.
    pub(in crate::leg) fn take(&mut self, at: usize) -> Entry {
        self.remove_entry(at);
        self.items[at].entry.clone()
    }

    /// Lets the entries behind an open step be delivered, although the step does not begin again.
    pub(in crate::leg) fn pass(&mut self, at: usize) -> Wake {
        self.stop_waiting(at);
        self.deliver_any_time(at, true);
        self.advance()
    }

    /// Lets an entry be delivered now.
    pub(in crate::leg) fn make_due(&mut self, at: usize) {
        self.deliver_any_time(at, false);
    }

    /// Returns the last attempt of a step that failed in an earlier run of this leg.
    pub(in crate::leg) fn failed_attempts(&self, path: &str) -> u32 {
        self.failed.iter().find(|(of, _)| **of == *path).map_or(0, |(_, attempt)| *attempt)
    }

    /// Returns the deliveries of this leg that the store does not have.
    pub(in crate::leg) fn unwritten(&self) -> impl ExactSizeIterator<Item = Delivered<'_>> {
        self.unwritten.deliveries().iter().map(|at| {
            let item = &self.items[*at];
            match item.order {
                DeliveryOrder::Removed => Delivered::Removed,
                // The record of its end has its outcome.
                _ if item.is_stored && !item.is_abandoned() && *at >= self.sealed_len => {
                    Delivered::Step(&item.entry.path)
                }
                _ => Delivered::Entry(&item.entry),
            }
        })
    }

    /// Returns the number of deliveries of this leg that the store has.
    pub(in crate::leg) fn written(&self) -> u32 {
        self.unwritten.written()
    }

    /// Returns `true` if all deliveries up to here are in texts of which some are not in the store yet.
    pub(in crate::leg) fn is_written_soon(&self) -> bool {
        self.unwritten.is_submitted()
    }

    /// Notes that a text has all deliveries up to here. Returns their number.
    pub(in crate::leg) fn submit(&mut self) -> u32 {
        self.unwritten.submit()
    }

    /// Notes that this number of deliveries is in the store.
    pub(in crate::leg) fn note_written(&mut self, deliveries: u32) {
        self.unwritten.note_written(deliveries);
    }

    /// Returns a step that has begun, has no outcome, and whose effect somebody may still need: no select has dropped its branch.
    pub(in crate::leg) fn unknown_step(&self) -> Option<&str> {
        let unknown = self.items.iter().enumerate().find(|(at, item)| {
            let is_open = matches!(item.entry.body, EntryBody::Open(_));
            is_open && item.order != DeliveryOrder::Removed && !self.is_lost(*at)
        });
        unknown.map(|(_, item)| &*item.entry.path)
    }

    /// Returns an open step that the handler has not reached.
    pub(in crate::leg) fn unreached_open_step(&self) -> Option<&str> {
        let open = self.items[..self.old_len].iter().filter(|item| item.is_unreplayed_step());
        open.map(|item| &item.entry)
            .find(|entry| matches!(entry.body, EntryBody::Open(_)))
            .map(|entry| &*entry.path)
    }

    /// Notes that a select is over. What an earlier leg or run has done in a branch that lost need not be reached.
    pub(in crate::leg) fn lose(&mut self, select: &str) {
        for at in 0..self.old_len {
            let is_within = match &self.items[at].entry.body {
                EntryBody::Step { undelivered: Some(within), .. } => {
                    within.iter().any(|(of, _)| **of == *select)
                }
                _ => false,
            };
            // One that its branch has given up already stays removed: the entry that says so is another one.
            if is_within && !self.is_removed(at) && self.is_lost(at) {
                self.deliver_any_time(at, true);
            }
        }
    }

    /// Returns `true` if another branch has won one of these selects.
    pub(in crate::leg) fn has_lost(&self, within: &Within) -> bool {
        within.iter().any(|(path, branch)| {
            let selects = self.items.iter().filter(|item| item.order != DeliveryOrder::Removed);
            selects
                .filter_map(|item| item.entry.winner())
                .any(|(of, winner)| of == *path && winner != *branch)
        })
    }

    /// Returns `true` if another branch has won a select around the step.
    pub(super) fn is_lost(&self, at: usize) -> bool {
        match &self.items[at].entry.body {
            EntryBody::Open(open) => self.has_lost(&open.within),
            EntryBody::Step { undelivered: Some(within), .. } => self.has_lost(within),
            _ => false,
        }
    }
}

impl History {
    /// Returns `true` if this leg, in any of its runs, has recorded an outcome: the client does not have it.
    pub(in crate::leg) fn has_new_entries(&self) -> bool {
        let is_outcome = |item: &HistoryItem| !matches!(item.entry.body, EntryBody::Open(_));
        let new = &self.items[self.sealed_len..];
        new.iter().any(|item| item.order != DeliveryOrder::Removed && is_outcome(item))
    }

    /// Returns the paths of the valid steps of all legs that have a result.
    pub(in crate::leg) fn steps_done(&self) -> impl Iterator<Item = &str> {
        let done = self
            .items
            .iter()
            .filter(|item| item.order != DeliveryOrder::Removed && item.entry.body.is_done());
        done.map(|item| &*item.entry.path)
    }

    /// Returns the path of the first step that this leg, in any of its runs, has recorded.
    pub(in crate::leg) fn first_new_step(&self) -> Option<&str> {
        let new = self.items[self.sealed_len..].iter().filter(|item| item.order != DeliveryOrder::Removed);
        new.map(|item| &item.entry).find(|entry| entry.kind() == EntryKind::Step).map(|entry| &*entry.path)
    }

    /// Describes the entries for the log: keys and digests, no values.
    pub(in crate::leg) fn describe(&self) -> String {
        let words = self.items.iter().map(|item| {
            let Entry { path, body, .. } = &item.entry;
            let is_stale = matches!(body, EntryBody::Step { stale: true, .. });
            let state = match (item.order, item.delivered.is_some(), is_stale) {
                (DeliveryOrder::Removed, ..) => "removed",
                (_, true, _) => "replayed",
                (_, _, true) => "stale",
                _ => "not replayed",
            };
            match body {
                EntryBody::Answer { digest, .. } => format!("answer {path} {digest:?} {state}"),
                EntryBody::Step { input: Some(input), .. } => format!("step {path} {input:?} {state}"),
                EntryBody::Step { .. } => format!("step {path} {state}"),
                EntryBody::Open(_) => format!("step {path} without an outcome {state}"),
                EntryBody::Select { winner } => format!("select {path} branch {winner} {state}"),
                EntryBody::Checkpoint => format!("checkpoint {path} {state}"),
            }
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// Returns the valid entries: the delivered ones in the order of delivery, then the others. No entry is forgotten, whether the
    /// handler has reached it or not.
    pub(in crate::leg) fn into_entries(mut self) -> Vec<Entry> {
        for at in 0..self.old_len {
            let item = &self.items[at];
            let is_stored_open = matches!(item.entry.body, EntryBody::Open(_)) && at >= self.sealed_len;
            let is_undelivered = matches!(item.entry.body, EntryBody::Step { undelivered: Some(_), .. });
            if (is_stored_open || is_undelivered) && self.is_lost(at) {
                self.items[at].abandon();
            }
        }
        let mut items = self.items;
        items.retain(|item| item.order != DeliveryOrder::Removed);
        let place = |item: &HistoryItem| item.delivered.map_or(u32::MAX, |(place, _)| place);
        if !items.is_sorted_by_key(place) {
            items.sort_by_key(place);
        }
        items.into_iter().map(|item| item.entry).collect()
    }
}

impl HistoryItem {
    /// Makes a step abandoned that has no outcome, or whose outcome was not delivered.
    fn abandon(&mut self) {
        let input = match &self.entry.body {
            EntryBody::Step { input, .. } => *input,
            EntryBody::Open(open) => open.input,
            _ => return,
        };
        let outcome = StepOutcome::Abandoned { is_done: self.entry.body.is_done() };
        self.entry.body = EntryBody::Step { input, stale: false, undelivered: None, outcome };
    }
}
