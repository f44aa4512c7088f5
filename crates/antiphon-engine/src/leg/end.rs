//! The end of a leg: the questions that wait, the round that leaves, and the output for the next leg.

use crate::{
    CallSite,
    leg::{
        Delivery, Leg, Observations, Purpose, Status,
        slot::{AskPhase, Slot, SlotId},
        slots::Counted,
    },
    limits::{Limits, StopReason, with_reason},
    record::{AskRecord, EntryKind, Record},
};
use antiphon_seal::{Call, Digest};
use antiphon_wire::{InputRequest, InputRequests};
use std::sync::Arc;

/// The estimated size of a record without its entries, in bytes.
const FRAME_SIZE: usize = 32;

/// The output of a leg.
#[derive(Debug, Default)]
pub struct LegOutput {
    /// The call, if it has begun.
    pub call: Option<Call>,
    /// The record for the next leg.
    pub record: Record,
    /// The number of legs that count for the limit, with this one.
    legs: u16,
    /// True if this leg has recorded an entry.
    pub has_new_entries: bool,
    /// The path of the first step that this leg has recorded.
    pub first_new_step: Option<Arc<str>>,
    /// The paths of all steps that have a result, of all legs.
    pub steps_done: Vec<String>,
    /// The path of a step that has begun, has no outcome, and whose effect is unknown. A result cannot leave then.
    pub unknown_step: Option<String>,
    /// The paths of recorded steps that this leg did not reach.
    pub unreplayed_steps: Vec<String>,
    /// The observations of the handler.
    pub observations: Observations,
    /// True if [`Leg::end_soon`] ended the leg.
    pub was_ended: bool,
}

impl LegOutput {
    /// Returns `true` if this leg has recorded a step.
    pub fn has_new_step(&self) -> bool {
        self.first_new_step.is_some()
    }

    /// Decides if the new entries of a failed leg leave first, with state only, so that nothing runs twice. If so, the
    /// result is counted. The last result of this kind is reserved for a leg that has recorded a step.
    pub fn suspend_before_error(&mut self, limits: &Limits) -> bool {
        let kept = u8::from(!self.has_new_step());
        let is_unlimited = limits.state_only_legs == u8::MAX;
        let may_leave = self.has_new_entries
            && (is_unlimited || self.record.state_only_count.saturating_add(kept) < limits.state_only_legs)
            && check_leg_limit(self.legs, limits.legs, &InputRequests::new()).is_ok();
        self.record.state_only_count = self.record.state_only_count.saturating_add(u8::from(may_leave));
        may_leave
    }
}

impl Leg {
    /// Ends the leg as soon as no step runs, with the questions that are asked then. No new step begins. The driver polls
    /// once more.
    pub fn end_soon(&mut self) {
        self.ending.end_soon();
    }

    /// Ends the leg as [`end_soon`](Self::end_soon) does, as soon as it has recorded something new.
    pub fn end_after_next_entry(&mut self) {
        self.ending.end_after_next_entry();
    }

    /// Ends the leg as [`end_soon`](Self::end_soon) does, from a future of the handler. The leg stops with an error if the future
    /// is inside of a step.
    pub fn end_for_task(&mut self, site: CallSite) {
        if !self.is_in_step(EntryKind::Checkpoint, "into_task", site) && !self.is_over() {
            self.end_soon();
        }
    }

    /// Returns `true` if the leg ends as soon as no step runs.
    pub fn ends_soon(&self) -> bool {
        self.ending.is_soon(|| self.replay.history().has_new_entries())
    }

    /// Ends the leg. Returns the round, in the order in which the questions were asked, or the reason why no round can
    /// leave, and the output of the leg.
    pub fn suspend(&mut self) -> (Result<InputRequests, StopReason>, Box<LegOutput>) {
        if self.setup.delivery == Delivery::ThisLeg {
            return self.end_and_restart();
        }
        let slots = self.replay.slots();
        let has_held = slots.has(Counted::HeldForIdle) || slots.has(Counted::HeldForSpace);
        self.observations.note_end(slots.has(Counted::Ending), has_held);
        if self.is_at_rest() {
            // The handler asks them no more, except for those of an earlier run of this leg.
            self.asks.close_earlier_rounds();
        }
        self.record_checkpoints();
        let limits = self.setup.limits;
        let asking = self.leaving_slots();
        if let Some(stop) = self.asked_too_often(&asking) {
            return (Err(stop), self.finish());
        }
        let mut requests = InputRequests::new();
        let mut asked = self.take_unreached();
        let kept: usize = asked.iter().map(AskRecord::size).sum();
        let mut room = limits.state.saturating_sub(self.replay.history().size() + FRAME_SIZE + kept);
        // The questions above the limit are asked in the next round. The entries of this leg leave in any case.
        for id in asking {
            let Some((record, request, text)) = self.replay.slots_mut().take_asked(id) else { continue };
            let size = record.size();
            if size > room && !requests.is_empty() {
                break;
            }
            room = room.saturating_sub(size);
            // A call uses each key once, so no key is present twice.
            let _ = requests.insert_with_text(&*record.path, request, text);
            asked.push(record);
        }
        if requests.is_empty() {
            self.ending.count_state_only();
        }
        self.end_with_round(requests, asked)
    }

    /// Returns `true` if only answers could continue the handler: the questions that it has reached do not depend on time.
    fn is_at_rest(&self) -> bool {
        !self.observations.ended_early
            && !self.observations.at_checkpoint
            && !self.ends_soon()
            && !self.replay.slots().has(Counted::Anchored)
    }

    /// Returns the futures whose questions leave, as many as a round may have.
    fn leaving_slots(&self) -> Vec<SlotId> {
        let (mut asking, mut limit) = (self.asking_slots(), self.setup.limits.asks);
        if self.setup.in_task {
            // One at least leaves, so that the task waits.
            limit = limit.saturating_sub(self.asks.open()).max(1);
            if asking.len() > limit {
                // Questions that are open already stay open.
                asking.sort_by_key(|id| self.asking(*id)?.first_round());
            }
        }
        asking.truncate(limit);
        asking
    }

    /// Returns the reason to stop if a question that would leave was asked too often.
    fn asked_too_often(&self, asking: &[SlotId]) -> Option<StopReason> {
        if self.setup.purpose == Purpose::DryRun {
            return None;
        }
        let limits = &self.setup.limits;
        asking.iter().find_map(|id| self.asking(*id)?.asked_too_often(limits))
    }

    /// Ends a leg whose handler starts again, with the entries that are still valid.
    pub(super) fn end_and_restart(&mut self) -> (Result<InputRequests, StopReason>, Box<LegOutput>) {
        self.ending.count_state_only();
        let legs = self.legs();
        let left = self.finish();
        let round = check_leg_limit(legs, self.setup.limits.legs, &InputRequests::new());
        (round.map(|()| InputRequests::new()), left)
    }

    /// Ends a leg that has a successor. No other function enforces the limit of legs.
    pub(super) fn end_with_round(
        &mut self,
        requests: InputRequests,
        asked: Vec<AskRecord>,
    ) -> (Result<InputRequests, StopReason>, Box<LegOutput>) {
        let legs = self.legs();
        let left = self.take_output(asked);
        let round = check_leg_limit(legs, self.setup.limits.legs, &requests).map(|()| requests);
        (round, left)
    }

    /// Returns the number of legs that count for the limit, with this one.
    pub(super) fn legs(&self) -> u16 {
        let leg = self.call.as_ref().map_or(1, Call::leg);
        match self.setup.delivery {
            Delivery::NextLeg => leg,
            // Within one request, a leg without a question costs the client nothing.
            Delivery::ThisLeg => leg.saturating_sub(self.ending.state_only_count().into()),
        }
    }

    /// Ends the leg after the handler returned a result, or after an error.
    pub fn finish(&mut self) -> Box<LegOutput> {
        let asking = self.asking_slots();
        let mut asked: Vec<AskRecord> =
            asking.into_iter().filter_map(|id| self.asking(id)?.not_asked()).collect();
        if let Status::Stopping(reason) = &self.status {
            asked.extend(self.asks.take_dropped(reason, &self.replay));
        }
        asked.append(&mut self.take_unreached());
        self.take_output(asked)
    }

    /// Takes the questions of a task's last round that this leg has not reached.
    fn take_unreached(&mut self) -> Vec<AskRecord> {
        match self.setup.in_task {
            true => self.asks.take_unreached(&self.replay),
            false => Vec::new(),
        }
    }

    fn take_output(&mut self, asked: Vec<AskRecord>) -> Box<LegOutput> {
        self.keep_started_steps();
        let (legs, was_ended) = (self.legs(), self.ends_soon());
        let call = self.close();
        let history = self.replay.take_history();
        let (notes, state) = self.memory.take();
        // The box is made first, so that the output is made in it: it is large.
        let place = Box::new_uninit();
        let output = LegOutput {
            legs,
            call,
            was_ended,
            has_new_entries: history.has_new_entries(),
            first_new_step: history.first_new_step().map(Into::into),
            steps_done: history.steps_done().map(ToOwned::to_owned).collect(),
            unknown_step: history.unknown_step().map(ToOwned::to_owned),
            unreplayed_steps: history.unreplayed_steps(),
            observations: std::mem::take(&mut self.observations),
            record: Record {
                state,
                entries: history.into_entries(),
                received: self.asks.inbox_mut().take_all(),
                asked,
                notes,
                round: self.asks.round(),
                state_only_count: self.ending.state_only_count(),
                ..Record::default()
            },
        };
        Box::write(place, output)
    }
}

/// Checks that one more leg may follow this number of legs. No other function enforces the limit of legs.
///
/// # Errors
/// The reason to stop, if the call has had as many legs as the limit allows. Its questions are not sent, because no leg
/// would receive their answers.
pub(super) fn check_leg_limit(legs: u16, limit: u16, requests: &InputRequests) -> Result<(), StopReason> {
    if legs < limit {
        return Ok(());
    }
    let what = match (requests.iter().next(), requests.len()) {
        (None, _) => "it cannot go on".to_owned(),
        (Some((key, _)), 1) => format!("`{key}` cannot be asked"),
        (Some((key, _)), several) => format!("`{key}` and {} more cannot be asked", several - 1),
    };
    let text = format!("This call has had {limit} requests, as many as the limit `legs` allows: {what}");
    Err(StopReason::Limit { name: "legs", text })
}

/// A question that waits for its answer now.
#[derive(Clone, Debug)]
pub struct PendingAsk {
    /// The slot of the future that waits.
    pub slot: SlotId,
    /// The scopes and the key.
    pub path: String,
    /// The question, with the reason in its message if the question is asked again.
    pub request: InputRequest,
    /// The digest of the question, without a reason: [`Setup::shown`](crate::leg::Setup::shown).
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
