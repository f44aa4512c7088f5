//! Consent stays with what was shown: what came after an answer that does not count any more does not count either.

use super::Leg;
use std::sync::Arc;

impl Leg {
    /// An answer of this round was dropped: what was asked, decided or begun in later rounds was so by people and programs
    /// that knew of it. Answers are asked again, also those that have just come; winners are decided again; steps count
    /// only where their pinned input still fits. Answers of the same round were given without knowledge of it, and stay.
    pub(super) fn make_stale(&mut self, round: u32) {
        let (waiting, was_used) = self.history.make_stale(round);
        let mut asked: Vec<Arc<str>> = Vec::new();
        self.inbox.retain(|incoming| {
            let is_stale = incoming.received.asked.round > round;
            if is_stale {
                asked.push(incoming.received.asked.path.clone());
            }
            !is_stale
        });
        // A future that waits for one of these asks again when it is polled.
        let asks = |path: &str| asked.iter().any(|stale| **stale == *path);
        let in_slots: Vec<_> = match asked.is_empty() {
            true => Vec::new(),
            false => self.slots.iter().filter(|(_, slot)| asks(&slot.path)).map(|(id, _)| id).collect(),
        };
        // So is the handler's own state, in which it keeps what it learned by hand.
        let is_state_stale = self.state.as_ref().is_some_and(|state| state.round > round);
        if is_state_stale {
            self.state = None;
        }
        // The handler has gone on with something that does not count: it does nothing new in this leg.
        self.used_stale_answer |= was_used || is_state_stale;
        for slot in waiting.into_iter().chain(in_slots) {
            self.wake(slot);
        }
    }
}
