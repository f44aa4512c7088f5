//! What the history hands on at the end of a leg.

use super::{DeliveryOrder, History, HistoryItem};
use crate::record::{Entry, EntryBody, EntryKind, StepOutcome};

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
