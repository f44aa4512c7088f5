//! Questions that a handler awaits: recorded answers, new answers, and questions that are asked again.

use super::{
    AskDrop, Delivery, Leg, Recorded, Unanswered, UnansweredAsk,
    end::check_leg_limit,
    slot::{AskPhase, AskSlot, Question, Slot, SlotId, SlotState},
    slots::Counter,
};
use crate::{
    answer::{UNREADABLE, check},
    record::{AskRecord, Entry, EntryBody, EntryKind},
    stop::StopReason,
};
use antiphon_seal::{Call, Digest};
use antiphon_wire::{InputRequest, InputRequests};
use std::{borrow::Cow, sync::Arc, task::Waker};

/// The result of polling an awaited question.
#[derive(Debug)]
pub enum AskPoll<A> {
    /// The question has not resolved, and perhaps never will.
    Pending,
    /// The valid answer, decoded.
    Resolved(A),
    /// The person's time was over.
    Expired,
    /// The person agreed to open the URL, and the question waits until the action behind the URL is finished. The
    /// caller ends the wait with [`Leg::resolve_agreed`] or asks again with [`Leg::ask_again`].
    Agreed {
        /// True if the person agreed in an earlier leg, and this leg came without a new answer.
        in_earlier_leg: bool,
    },
}

/// Decodes an answer as the handler's type, and keeps it for the caller of [`Leg::poll_ask`].
type Decode<'d> = &'d mut dyn FnMut(&str) -> Result<(), String>;

impl Leg {
    /// Begins to await a question. Returns `None` if the question never resolves.
    pub fn ask(&mut self, question: Question) -> Option<SlotId> {
        let Recorded(recorded) = self.find_recorded(EntryKind::Ask, &question.path, question.site)?;
        let (path, site) = (question.path.clone(), question.site);
        self.dropped.retain(|(asked, _)| asked.path != path);
        let found = self.find_answer(&question, recorded);
        let phase = match found {
            AskLookup::Recorded(at) => AskPhase::Recorded(at),
            AskLookup::Answered => AskPhase::Answered,
            AskLookup::Agreed(asked) => AskPhase::Agreed(asked),
            AskLookup::NotAnswered(asked, cause) => self.asked_phase(asked, cause),
        };
        let state = SlotState::Ask(Box::new(AskSlot { question, phase }));
        let branch = self.context.branch;
        let id = self.slots.add(path, site, branch, state);
        match self.ask_slot(id).map(|asking| &mut asking.phase) {
            Some(AskPhase::Recorded(at)) => {
                let at = *at;
                self.history.set_waiting(at, Some(id));
            }
            Some(AskPhase::Asked { .. }) => {
                self.count_asked(id);
                self.check_asked(id);
            }
            _ => {}
        }
        Some(id)
    }

    /// Finds the answer to a question. If there is none, returns the record with which the question is asked.
    fn find_answer(&mut self, question: &Question, recorded: Option<usize>) -> AskLookup {
        if recorded.is_some() || self.incoming(&question.path).is_some() {
            // An earlier run of this leg has shown it.
            self.unanswered.retain(|open| open.asked.path != question.path);
        }
        if let Some(at) = recorded {
            let entry = self.history.entry(at);
            let (round, EntryBody::Answer { digest, times, .. }) = (entry.round, &entry.body) else {
                // `find` with `EntryKind::Ask` returns answers only.
                return AskLookup::NotAnswered(self.new_record(question), None);
            };
            if digest.matches(&question.digest) {
                return AskLookup::Recorded(at);
            }
            let times = times.saturating_add(1);
            self.history.remove_entry(at);
            self.make_stale(round);
            self.advance();
            return AskLookup::NotAnswered(AskRecord { times, ..self.new_record(question) }, None);
        }
        if let Some(at) = self.incoming(&question.path) {
            let asked = &self.inbox[at].received.asked;
            if asked.digest.matches(&question.digest) {
                self.inbox[at].given_up = false;
                return AskLookup::Answered;
            }
            let (round, times) = (asked.round, asked.times.saturating_add(1));
            self.inbox.remove(at);
            self.make_stale(round);
            return AskLookup::NotAnswered(AskRecord { times, ..self.new_record(question) }, None);
        }
        let Some(at) = self.unanswered.iter().position(|open| open.asked.path == question.path) else {
            return AskLookup::NotAnswered(self.new_record(question), None);
        };
        let UnansweredAsk { asked, cause } = self.unanswered.swap_remove(at);
        let is_about_it =
            |agreed: &Digest| question.until.as_ref().is_some_and(|about| about.matches(agreed));
        let is_invalid = matches!(cause, Unanswered::Invalid(_));
        if !is_invalid && asked.agreed.as_ref().is_some_and(is_about_it) {
            // The purpose is the same, although the URL may have a new reference.
            return AskLookup::Agreed(AskRecord { digest: question.digest, ..asked });
        }
        let is_same = asked.digest.matches(&question.digest);
        let is_again = !is_same || !matches!(cause, Unanswered::NotCounted);
        let times = asked.times.saturating_add(u8::from(is_again));
        let deadline = asked.deadline.filter(|_| is_same);
        let new = self.new_record(question);
        let first = if is_same { asked.first } else { new.first };
        let asked = AskRecord { times, first, deadline: deadline.or(new.deadline), ..new };
        AskLookup::NotAnswered(asked, is_same.then_some(cause))
    }

    /// Returns the record of a question that is asked for the first time.
    fn new_record(&self, question: &Question) -> AskRecord {
        let deadline = question.within.map(|within| self.setup.now.saturating_add(within));
        let within = self.slots.within(self.context.branch);
        AskRecord { deadline, within, ..AskRecord::new(question.path.clone(), question.digest, self.round) }
    }

    fn asked_phase(&self, asked: AskRecord, cause: Option<Unanswered>) -> AskPhase {
        let is_missing = matches!(cause, Some(Unanswered::Missing));
        let reason = match cause {
            Some(Unanswered::Invalid(reason)) => Some(Cow::Owned(reason)),
            _ => None,
        };
        AskPhase::Asked { asked: AskRecord { round: self.round, ..asked }, reason, is_missing }
    }

    fn count_asked(&mut self, id: SlotId) {
        if let Some(branch) = self.slots.get(id).map(|slot| slot.branch) {
            self.slots.branches().add(branch, Counter::Asking, 1);
            self.asks_version += 1;
        }
    }

    /// Stops the leg if the question was asked too often or the record is full. For a round that leaves, `suspend`
    /// checks that: a question that its handler drops first is not asked again.
    fn check_asked(&mut self, id: SlotId) {
        if self.setup.delivery == Delivery::NextLeg {
            return;
        }
        let limits = self.setup.limits;
        let Some(SlotState::Ask(asking)) = self.slots.get(id).map(|slot| &slot.state) else { return };
        let is_full = self.history.size() > limits.state;
        let is_full = is_full.then(|| {
            let path = &asking.question.path;
            let text = format!("The record of this call has no space for the question `{path}`");
            StopReason::Limit { name: "state", text }
        });
        if let Some(stop) = asking.asked_too_often(&limits).or(is_full) {
            self.stop(stop);
        }
    }

    pub(super) fn ask_slot(&mut self, id: SlotId) -> Option<&mut AskSlot> {
        match &mut self.slots.get_mut(id)?.state {
            SlotState::Ask(asking) => Some(asking),
            _ => None,
        }
    }

    /// Polls an awaited question. `decode` decodes a valid answer, given as JSON, as the handler's type; its error says
    /// why the answer does not decode, without the value. A type can have rules that a form cannot express: the person
    /// is asked again then.
    pub fn poll_ask<A>(
        &mut self,
        id: SlotId,
        waker: &Waker,
        decode: impl Fn(&str) -> Result<A, String>,
    ) -> AskPoll<A> {
        let mut answer = None;
        let polled = self.poll_ask_untyped(id, waker, &mut |text| {
            answer = Some(decode(text)?);
            Ok(())
        });
        match polled {
            AskPoll::Resolved(()) => answer.map_or(AskPoll::Pending, AskPoll::Resolved),
            AskPoll::Pending => AskPoll::Pending,
            AskPoll::Expired => AskPoll::Expired,
            AskPoll::Agreed { in_earlier_leg } => AskPoll::Agreed { in_earlier_leg },
        }
    }

    fn poll_ask_untyped(&mut self, id: SlotId, waker: &Waker, decode: Decode<'_>) -> AskPoll<()> {
        if self.is_over() {
            return AskPoll::Pending;
        }
        self.slots.move_to(id, self.context.branch);
        let is_replayed = self.poll.is_replayed;
        let Some(SlotState::Ask(asking)) = self.slots.get(id).map(|slot| &slot.state) else {
            return AskPoll::Pending;
        };
        match asking.phase {
            AskPhase::Recorded(at) if self.history.is_removed(at) => {
                return self.ask_stale_again(id, waker, decode);
            }
            AskPhase::Recorded(at) if self.history.is_due(at) => return self.deliver_answer(id, at, decode),
            AskPhase::Recorded(_) => {}
            AskPhase::Answered if !self.is_answered(id) => return self.ask_stale_again(id, waker, decode),
            AskPhase::Answered if is_replayed => return self.take_answer(id, waker, decode),
            AskPhase::Agreed(_) if is_replayed => {
                return AskPoll::Agreed { in_earlier_leg: !self.is_answered(id) };
            }
            AskPhase::Answered | AskPhase::Agreed(_) => self.wait_for_replay(id),
            // Nothing wakes the future during this leg, so its waker is not kept.
            AskPhase::Asked { .. } if self.setup.delivery == Delivery::NextLeg => return AskPoll::Pending,
            AskPhase::Asked { .. } => {}
        }
        self.register(id, waker);
        AskPoll::Pending
    }

    fn is_answered(&self, id: SlotId) -> bool {
        self.slots.get(id).is_some_and(|slot| self.incoming(&slot.path).is_some())
    }

    pub(super) fn wait_for_replay(&mut self, id: SlotId) {
        if !self.after_replay.contains(&id) {
            self.after_replay.push(id);
        }
    }

    /// Asks a question whose answer became stale. The number of times is not counted.
    fn ask_stale_again(&mut self, id: SlotId, waker: &Waker, decode: Decode<'_>) -> AskPoll<()> {
        let Some(SlotState::Ask(asking)) = self.slots.get(id).map(|slot| &slot.state) else {
            return AskPoll::Pending;
        };
        let asked = self.new_record(&asking.question);
        self.ask_now(id, asked, None);
        self.poll_ask_untyped(id, waker, decode)
    }

    /// Asks an awaited question.
    fn ask_now(&mut self, id: SlotId, asked: AskRecord, reason: Option<Cow<'static, str>>) {
        let asked = AskRecord { round: self.round, ..asked };
        let Some(asking) = self.ask_slot(id) else { return };
        asking.phase = AskPhase::Asked { asked, reason, is_missing: false };
        self.count_asked(id);
        self.check_asked(id);
    }

    /// Delivers a recorded answer.
    fn deliver_answer(&mut self, id: SlotId, at: usize, decode: Decode<'_>) -> AskPoll<()> {
        let Some(slot) = self.slots.get(id) else { return AskPoll::Pending };
        let (SlotState::Ask(asking), EntryBody::Answer { text, digest, times, first, .. }) =
            (&slot.state, &self.history.entry(at).body)
        else {
            return AskPoll::Pending;
        };
        let polled = if text.is_some() { AskPoll::Resolved(()) } else { AskPoll::Expired };
        if let Some(text) = text
            && let Err(cause) = decode(text)
        {
            // An older version recorded the answer and decoded it as another type.
            let asked = AskRecord {
                digest: *digest,
                times: times.saturating_add(1),
                first: *first,
                ..self.new_record(&asking.question)
            };
            let (path, round) = (slot.path.to_string(), self.history.entry(at).round);
            self.deferred.events.push(super::LogEvent::AnswerTypeMismatch { path, cause });
            self.history.remove_entry(at);
            self.make_stale(round);
            self.advance();
            self.ask_now(id, asked, Some(Cow::Borrowed(UNREADABLE)));
            return AskPoll::Pending;
        }
        let site = slot.site;
        self.observe_answer(id);
        self.history.deliver(at, site);
        self.remove(id);
        self.advance();
        polled
    }

    /// Takes an answer that has come, if it is valid.
    fn take_answer(&mut self, id: SlotId, waker: &Waker, decode: Decode<'_>) -> AskPoll<()> {
        let limits = self.setup.limits;
        let Some(slot) = self.slots.get(id) else { return AskPoll::Pending };
        let (SlotState::Ask(asking), Some(at)) = (&slot.state, self.incoming(&slot.path)) else {
            return AskPoll::Pending;
        };
        let question = &asking.question;
        let received = &self.inbox[at].received;
        let Some(text) = &received.text else { return self.resolve(id, None, false) };
        let path = Arc::clone(&slot.path);
        let checked = check(&question.request, text, &limits).and_then(|response| {
            let text = response.to_text()?;
            decode(&text).map_err(|cause| {
                let path = path.to_string();
                self.deferred.events.push(super::LogEvent::AnswerTypeMismatch { path, cause });
                UNREADABLE.to_owned()
            })?;
            Ok((response.is_refusal(), text))
        });
        match checked {
            Ok((false, _)) if question.until.is_some() => {
                let asked = received.asked.clone();
                if let Some(asking) = self.ask_slot(id) {
                    asking.phase = AskPhase::Agreed(asked);
                }
                AskPoll::Agreed { in_earlier_leg: false }
            }
            Ok((is_refusal, text)) => self.resolve(id, Some(text), is_refusal),
            Err(reason) => {
                // The deadline stays the same after an invalid answer.
                let received = self.inbox.remove(at).received;
                let times = received.asked.times.saturating_add(1);
                self.ask_now(id, AskRecord { times, ..received.asked }, Some(Cow::Owned(reason)));
                self.poll_ask_untyped(id, waker, decode)
            }
        }
    }

    /// Records the answer to a question, and resolves the question.
    fn resolve(&mut self, id: SlotId, text: Option<String>, refusal: bool) -> AskPoll<()> {
        let Some(slot) = self.slots.get(id) else { return AskPoll::Pending };
        let (path, site) = (slot.path.clone(), slot.site);
        let asked = match (self.incoming(&path), &slot.state) {
            (Some(at), _) => {
                let received = &self.inbox[at].received;
                Some((&received.asked, received.at))
            }
            (None, SlotState::Ask(asking)) => match &asking.phase {
                // The person agreed in an earlier leg, and the action behind the URL is finished now.
                AskPhase::Agreed(asked) => Some((asked, Some(self.setup.now))),
                _ => None,
            },
            _ => None,
        };
        let Some((&AskRecord { digest, times, round, first, .. }, at)) = asked else {
            return AskPoll::Pending;
        };
        // An answer to a question asked by hand stays, because the handler may read it again.
        self.inbox.retain(|incoming| {
            incoming.received.asked.path != path || incoming.received.asked.question.is_some()
        });
        self.observe_answer(id);
        self.remove(id);
        let polled = if text.is_some() { AskPoll::Resolved(()) } else { AskPoll::Expired };
        let body = EntryBody::Answer { digest, times, text, refusal, at, first };
        self.history.record(Entry { path, round, body }, site);
        polled
    }

    /// Resolves a question that the person agreed to. `is_finished` is false if the person's time was over.
    pub fn resolve_agreed(&mut self, id: SlotId, is_finished: bool) -> AskPoll<()> {
        if self.is_over() {
            return AskPoll::Pending;
        }
        let text = is_finished.then(|| r#"{"action":"accept"}"#.to_owned());
        self.resolve(id, text, false)
    }

    /// Asks a question again that the person agreed to, because the action behind its URL is not finished. `line` is
    /// appended to the message. The number of times is not counted. `deadline` is the last second at which an answer
    /// counts.
    pub fn ask_again(&mut self, id: SlotId, line: &'static str, deadline: Option<u64>) {
        let Some(SlotState::Ask(asking)) = self.slots.get(id).map(|slot| &slot.state) else { return };
        let AskPhase::Agreed(asked) = &asking.phase else { return };
        let agreed = asking.question.until;
        let asked = AskRecord { agreed, deadline: deadline.or(asked.deadline), ..asked.clone() };
        // With `Delivery::NextLeg`, each repetition is a leg of its own and is counted there.
        if self.setup.delivery == Delivery::ThisLeg {
            let mut request = InputRequests::new();
            let _ = request.insert(&*asked.path, asking.question.request.clone());
            if let Err(stop) = check_leg_limit(self.legs(), self.setup.limits.legs, &request) {
                return self.stop(stop);
            }
            self.call = self.call.take().and_then(Call::next_leg);
        }
        if let Some(at) = self.incoming(&asked.path) {
            self.inbox.remove(at);
        }
        self.ask_now(id, asked, Some(Cow::Borrowed(line)));
    }

    /// Returns `true` if the question with this path has an answer, or was agreed to in an earlier leg.
    pub fn has_answer(&mut self, path: &str) -> bool {
        self.history.find(EntryKind::Ask, path).is_some() || self.incoming(path).is_some()
    }

    /// Notes a question that is answered now. Its slot is removed next.
    fn observe_answer(&mut self, id: SlotId) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let SlotState::Ask(asking) = &mut slot.state else { return };
        self.observations.proven_support =
            self.observations.proven_support.and(asking.question.request.needs());
        let request = std::mem::replace(&mut asking.question.request, InputRequest::ListRoots { meta: None });
        self.shown.push((slot.path.clone(), request));
    }

    /// Releases the slot of a dropped question.
    pub(super) fn release_ask(&mut self, id: SlotId, slot: &Slot, asking: &AskSlot, unwinding: bool) {
        match &asking.phase {
            AskPhase::Recorded(at) => self.history.give_up(*at),
            AskPhase::Answered | AskPhase::Agreed(_) => {
                if let Some(at) = self.incoming(&slot.path) {
                    self.inbox[at].given_up = true;
                }
            }
            AskPhase::Asked { .. } => {
                self.slots.branches().add(slot.branch, Counter::Asking, -1);
                self.asks_version += 1;
                let has_lost = self.slots.has_lost(slot.branch);
                if !has_lost {
                    self.observations.note_dropped(EntryKind::Ask, &slot.path);
                }
                let dropped = match self.slots.is_abandoned_branch(slot.branch) {
                    true => Some(AskDrop::Race),
                    false => unwinding.then_some(AskDrop::Unwinding),
                };
                self.dropped.extend(asking.not_asked().zip(dropped));
            }
        }
        self.after_replay.retain(|waiting| *waiting != id);
    }
}

enum AskLookup {
    Recorded(usize),
    Answered,
    Agreed(AskRecord),
    /// No answer, and the cause if the same question was asked before.
    NotAnswered(AskRecord, Option<Unanswered>),
}
