//! The questions that wait for their answers now. They leave with the round, or are sent at once.

use super::{
    IncomingAnswer, Leg,
    slot::{AskPhase, Slot, SlotId, SlotState},
    slots::Counter,
};
use crate::{answer::with_reason, record::ReceivedAnswer};
use antiphon_seal::Digest;
use antiphon_wire::InputRequest;

/// A question that waits for its answer now.
#[derive(Clone, Debug)]
pub struct PendingAsk {
    /// The slot of the future that waits.
    pub slot: SlotId,
    /// The scopes and the key.
    pub path: String,
    /// The question, with the reason in its message if the question is asked again.
    pub request: InputRequest,
    /// The digest of the question, without a reason: [`Setup::shown`](super::Setup::shown).
    pub digest: Digest,
    /// The last second at which an answer counts, in Unix seconds.
    pub deadline: Option<u64>,
    /// The id that the author gave to a URL question.
    pub elicitation_id: Option<String>,
}

impl Leg {
    /// Receives an answer during this leg, or `None` if the person's time is over.
    pub fn receive_answer(&mut self, id: SlotId, answer: Option<String>) {
        let Some(asking) = self.ask_slot(id) else { return };
        let AskPhase::Asked { asked, .. } = &asking.phase else { return };
        let asked = asked.clone();
        asking.phase = AskPhase::Answered;
        self.uncount_asked(id);
        self.inbox.push(IncomingAnswer::from(ReceivedAnswer {
            asked,
            text: answer,
            response: None,
            at: Some(self.setup.now),
        }));
        // Later questions belong to a later round, because the person who reads them may know this answer.
        self.round = self.round.saturating_add(1);
        self.has_new_answers = true;
        self.wake(id);
    }

    fn uncount_asked(&mut self, id: SlotId) {
        if let Some(branch) = self.slots.get(id).map(|slot| slot.branch) {
            self.slots.branches().add(branch, Counter::Asking, -1);
            self.asks_version += 1;
        }
    }

    /// Returns a number that changes when a question is asked, answered or dropped.
    pub fn asks_version(&self) -> u64 {
        self.asks_version
    }

    /// Returns `true` if a question is asked, or a checkpoint is about to end the leg.
    pub fn waits_for_client(&self) -> bool {
        self.slots.asking() > 0 || self.ending_checkpoints > 0 || self.anchored > 0
    }

    /// Returns `true` if this future still asks.
    pub fn is_asking(&self, id: SlotId) -> bool {
        self.slots.get(id).is_some_and(|slot| self.asks_in(slot))
    }

    fn asks_in(&self, slot: &Slot) -> bool {
        matches!(&slot.state, SlotState::Ask(asking) if asking.is_asked())
            && !self.slots.has_lost(slot.branch)
    }

    /// Returns `true` if a question is asked that was not open in an earlier round.
    pub(super) fn asks_anew(&self) -> bool {
        let is_new = |slot: &Slot| matches!(&slot.state, SlotState::Ask(asking) if asking.first_round() == Some(self.round));
        self.slots.iter().any(|(_, slot)| self.asks_in(slot) && is_new(slot))
    }

    /// Returns the futures that ask, in the order of their first polls.
    pub fn asking_slots(&self) -> Vec<SlotId> {
        let asking = self.slots.iter().filter(|(_, slot)| self.asks_in(slot)).map(|(id, _)| id);
        let mut asking: Vec<SlotId> = asking.collect();
        asking.sort_unstable_by_key(|id| self.slots.get(*id).map(|slot| slot.order));
        asking
    }

    /// Returns the question of a future that asks, ready to send.
    pub fn pending_ask(&self, id: SlotId) -> Option<PendingAsk> {
        let SlotState::Ask(asking) = &self.slots.get(id)?.state else { return None };
        let AskPhase::Asked { asked, reason, .. } = &asking.phase else { return None };
        Some(PendingAsk {
            slot: id,
            path: asked.path.to_string(),
            request: with_reason(asking.question.request.clone(), reason.as_deref()),
            digest: asked.digest,
            deadline: asked.deadline,
            elicitation_id: asking.question.elicitation_id.as_deref().map(ToOwned::to_owned),
        })
    }

    /// Returns the id of a URL question to which the author gave none. The id is the same each time the question is
    /// asked.
    pub fn elicitation_id(&self, path: &str) -> Option<String> {
        // No scope can have this name, because `#` is not allowed in keys.
        Some(self.call.as_ref()?.secret().idempotency_key("#elicitation", path))
    }
}
