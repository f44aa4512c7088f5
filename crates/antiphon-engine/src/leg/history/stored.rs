//! The part of the history that is in the store, or goes there.

use super::{DeliveryOrder, History};
use crate::{
    leg::slot::Wake,
    record::{Delivered, Entry, EntryBody, OpenStep, Within},
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
