//! Stale entries: consent is valid only for the answers that were shown. Entries that follow a removed answer are not
//! valid either.

use super::Leg;
use crate::record::EntryKind;
use std::sync::Arc;

impl Leg {
    /// Makes everything stale that followed an answer of this round, because the answer was removed. People and code of
    /// later rounds knew that answer. Questions of later rounds are asked again, also those with a new answer. Selects
    /// are decided again. Steps stay valid only if their input has the same digest. Answers of the same round stay,
    /// because they were given without knowledge of the removed answer.
    pub(super) fn make_stale(&mut self, round: u32) {
        let (waiting, was_used) = self.history.make_stale(round);
        let history = &mut self.history;
        self.slots.branches().decide_again(|select| history.find(EntryKind::Select, select).is_some());
        self.asks_version += 1;
        let mut asked: Vec<Arc<str>> = Vec::new();
        self.inbox.retain(|incoming| {
            let is_stale = incoming.received.asked.round > round;
            if is_stale {
                asked.push(incoming.received.asked.path.clone());
            }
            !is_stale
        });
        // A future that waits for one of these answers asks again at its next poll.
        let asks = |path: &str| asked.iter().any(|stale| **stale == *path);
        let in_slots: Vec<_> = match asked.is_empty() {
            true => Vec::new(),
            false => self.slots.iter().filter(|(_, slot)| asks(&slot.path)).map(|(id, _)| id).collect(),
        };
        // The handler's own state holds what it learned by hand, so it becomes stale too.
        let is_state_stale = self.state.as_ref().is_some_and(|state| state.round > round);
        if is_state_stale {
            self.state = None;
        }
        // The handler has continued with a stale value, so it does nothing new in this leg.
        self.used_stale_answer |= was_used || is_state_stale;
        for slot in waiting.into_iter().chain(in_slots) {
            self.wake(slot);
        }
    }
}
