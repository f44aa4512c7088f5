//! The questions that wait for their answers now. They leave with the round, or are sent at once.

use super::{
    Leg,
    slot::{AskPhase, Slot, SlotId},
    slots::Counted,
};
use crate::answer::with_reason;
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
        let Some(asking) = self.asking(id) else { return };
        let AskPhase::Asked { asked, .. } = &asking.phase else { return };
        let asked = asked.clone();
        self.replay.slots_mut().set_ask(id, AskPhase::Answered);
        self.asks.receive(asked, answer, self.setup.now);
        self.wake([id]);
    }

    /// Returns a number that changes when a question is asked, answered or dropped.
    pub fn asks_version(&self) -> u64 {
        self.asks.version()
    }

    /// Returns `true` if a question is asked, or a checkpoint is about to end the leg.
    pub fn waits_for_client(&self) -> bool {
        let slots = self.replay.slots();
        slots.asking() > 0 || slots.has(Counted::Ending) || slots.has(Counted::Anchored)
    }

    /// Returns `true` if this future still asks.
    pub fn is_asking(&self, id: SlotId) -> bool {
        self.replay.slots().get(id).is_some_and(|slot| self.asks_in(slot))
    }

    fn asks_in(&self, slot: &Slot) -> bool {
        slot.ask().is_some_and(|asking| asking.is_asked())
            && !self.replay.slots().branches().has_lost(slot.branch)
    }

    /// Returns `true` if a question is asked that was not open in an earlier round.
    pub(super) fn asks_anew(&self) -> bool {
        let round = Some(self.asks.round());
        let is_new = |slot: &Slot| slot.ask().is_some_and(|asking| asking.first_round() == round);
        self.replay.slots().iter().any(|(_, slot)| self.asks_in(slot) && is_new(slot))
    }

    /// Returns the futures that ask, in the order of their first polls.
    pub fn asking_slots(&self) -> Vec<SlotId> {
        let slots = self.replay.slots();
        let asking = slots.iter().filter(|(_, slot)| self.asks_in(slot)).map(|(id, _)| id);
        let mut asking: Vec<SlotId> = asking.collect();
        asking.sort_unstable_by_key(|id| slots.get(*id).map(|slot| slot.order));
        asking
    }

    /// Returns the question of a future that asks, ready to send.
    pub fn pending_ask(&self, id: SlotId) -> Option<PendingAsk> {
        let asking = self.asking(id)?;
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
}
