//! Questions that a handler awaits: recorded answers, new answers, and questions that are asked again.

use super::{
    Delivery, Leg, LogEvent,
    asks::{AskDrop, Come, Unanswered},
    context::Recorded,
    end::check_leg_limit,
    slot::{AskPhase, AskSlot, Question, Slot, SlotId, SlotState},
};
use crate::{
    limits::{StopReason, UNREADABLE, check},
    record::{AskRecord, Entry, EntryBody, EntryKind},
};
use antiphon_wire::InputRequests;
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
        self.asks.forget_dropped(&path);
        let phase = self.find_answer(&question, recorded);
        let is_asked = matches!(phase, AskPhase::Asked { .. });
        let state = SlotState::Ask(Box::new(AskSlot { question, phase }));
        let id = self.replay.add(path, site, self.polls.branch(), state);
        if is_asked {
            self.asks.note_change();
            self.check_asked(id);
        }
        Some(id)
    }

    /// Finds the answer to a question. If there is none, the question is asked.
    fn find_answer(&mut self, question: &Question, recorded: Option<usize>) -> AskPhase {
        if let Some(at) = recorded {
            self.asks.close(&question.path);
            return self.find_recorded_answer(question, at);
        }
        match self.asks.find_come(question) {
            Some(Come::Fits) => return AskPhase::Answered,
            Some(Come::Changed { round, times }) => {
                self.make_stale(round);
                return self.asked(AskRecord { times, ..self.new_record(question) }, None);
            }
            None => {}
        }
        let Some(open) = self.asks.take_open(&question.path) else {
            return self.asked(self.new_record(question), None);
        };
        if open.has_agreed(question) {
            return AskPhase::Agreed(open.into_agreed(question.digest));
        }
        let (asked, cause) = open.again(self.new_record(question));
        self.asked(asked, cause)
    }

    /// Returns the recorded answer to a question, if the question is the same.
    fn find_recorded_answer(&mut self, question: &Question, at: usize) -> AskPhase {
        let entry = self.replay.history().entry(at);
        let (round, EntryBody::Answer { digest, times, .. }) = (entry.round, &entry.body) else {
            // `find` with `EntryKind::Ask` returns answers only.
            return self.asked(self.new_record(question), None);
        };
        if digest.matches(&question.digest) {
            return AskPhase::Recorded(at);
        }
        let times = times.saturating_add(1);
        self.remove_answer(at, round);
        self.asked(AskRecord { times, ..self.new_record(question) }, None)
    }

    /// Removes a recorded answer of this round, and all that followed it.
    fn remove_answer(&mut self, at: usize, round: u32) {
        self.replay.history_mut().remove_entry(at);
        self.make_stale(round);
        let next = self.replay.history_mut().advance();
        self.wake(next);
    }

    /// Makes everything stale that followed an answer of this round, because the answer was removed. People and code of
    /// later rounds knew that answer. Questions of later rounds are asked again, also those with a new answer. Selects
    /// are decided again. Steps stay valid only if their input has the same digest. Answers of the same round stay,
    /// because they were given without knowledge of the removed answer.
    pub(super) fn make_stale(&mut self, round: u32) {
        let (waiting, was_used) = self.replay.make_stale(round);
        self.asks.note_change();
        let asked = self.asks.inbox_mut().remove_after(round);
        // A future that waits for one of these answers asks again at its next poll.
        let asks = |path: &str| asked.iter().any(|stale| **stale == *path);
        let in_slots: Vec<SlotId> = match asked.is_empty() {
            true => Vec::new(),
            false => {
                let slots = self.replay.slots().iter();
                slots.filter(|(_, slot)| asks(&slot.path)).map(|(id, _)| id).collect()
            }
        };
        let was_state_used = self.memory.forget_after(round);
        // The handler has continued with a stale value, so it does nothing new in this leg.
        self.asks.note_stale(was_used || was_state_used);
        self.wake(waiting);
        self.wake(in_slots);
    }

    /// Returns the record of a question that is asked for the first time.
    fn new_record(&self, question: &Question) -> AskRecord {
        let deadline = question.within.map(|within| self.setup.now.saturating_add(within));
        let within = self.replay.slots().branches().within(self.polls.branch());
        let round = self.asks.round();
        AskRecord { deadline, within, ..AskRecord::new(question.path.clone(), question.digest, round) }
    }

    fn asked(&self, asked: AskRecord, cause: Option<Unanswered>) -> AskPhase {
        let is_missing = matches!(cause, Some(Unanswered::Missing));
        let reason = match cause {
            Some(Unanswered::Invalid(reason)) => Some(Cow::Owned(reason)),
            _ => None,
        };
        AskPhase::Asked { asked: AskRecord { round: self.asks.round(), ..asked }, reason, is_missing }
    }

    /// Asks an awaited question. `reason` is the text for the person, if the question is asked again.
    fn ask_now(&mut self, id: SlotId, asked: AskRecord, reason: Option<Cow<'static, str>>) {
        let asked = AskRecord { round: self.asks.round(), ..asked };
        self.replay.slots_mut().set_ask(id, AskPhase::Asked { asked, reason, is_missing: false });
        self.asks.note_change();
        self.check_asked(id);
    }

    /// Stops the leg if the question was asked too often or the record is full. For a round that leaves, `suspend`
    /// checks that: a question that its handler drops first is not asked again.
    fn check_asked(&mut self, id: SlotId) {
        if self.setup.delivery == Delivery::NextLeg {
            return;
        }
        let limits = self.setup.limits;
        let Some(asking) = self.asking(id) else { return };
        let is_full = self.replay.history().size() > limits.state;
        let is_full = is_full.then(|| {
            let path = &asking.question.path;
            let text = format!("The record of this call has no space for the question `{path}`");
            StopReason::Limit { name: "state", text }
        });
        if let Some(stop) = asking.asked_too_often(&limits).or(is_full) {
            self.stop(stop);
        }
    }

    /// Returns the question of a future that awaits one.
    pub(super) fn asking(&self, id: SlotId) -> Option<&AskSlot> {
        self.replay.slots().get(id)?.ask()
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
        self.move_here(id);
        let is_replayed = self.polls.is_replayed();
        let history = self.replay.history();
        let Some(asking) = self.asking(id) else { return AskPoll::Pending };
        match asking.phase {
            AskPhase::Recorded(at) if history.is_removed(at) => {
                return self.ask_stale_again(id, waker, decode);
            }
            AskPhase::Recorded(at) if history.is_due(at) => return self.deliver_answer(id, at, decode),
            AskPhase::Recorded(_) => {}
            AskPhase::Answered if !self.is_answered(id) => return self.ask_stale_again(id, waker, decode),
            AskPhase::Answered if is_replayed => return self.take_answer(id, waker, decode),
            AskPhase::Agreed(_) if is_replayed => {
                return AskPoll::Agreed { in_earlier_leg: !self.is_answered(id) };
            }
            AskPhase::Answered | AskPhase::Agreed(_) => self.replay.wait(id),
            // Nothing wakes the future during this leg, so its waker is not kept.
            AskPhase::Asked { .. } if self.setup.delivery == Delivery::NextLeg => return AskPoll::Pending,
            AskPhase::Asked { .. } => {}
        }
        self.register(id, waker);
        AskPoll::Pending
    }

    fn is_answered(&self, id: SlotId) -> bool {
        self.replay.slots().get(id).is_some_and(|slot| self.asks.inbox().find(&slot.path).is_some())
    }

    /// Asks a question whose answer became stale. The number of times is not counted.
    fn ask_stale_again(&mut self, id: SlotId, waker: &Waker, decode: Decode<'_>) -> AskPoll<()> {
        let Some(asking) = self.asking(id) else { return AskPoll::Pending };
        let asked = self.new_record(&asking.question);
        self.ask_now(id, asked, None);
        self.poll_ask_untyped(id, waker, decode)
    }

    /// Delivers a recorded answer.
    fn deliver_answer(&mut self, id: SlotId, at: usize, decode: Decode<'_>) -> AskPoll<()> {
        let Some(slot) = self.replay.slots().get(id) else { return AskPoll::Pending };
        let entry = self.replay.history().entry(at);
        let (Some(asking), EntryBody::Answer { text, digest, times, first, .. }) = (slot.ask(), &entry.body)
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
            let (path, round) = (slot.path.to_string(), entry.round);
            self.polls.log(LogEvent::AnswerTypeMismatch { path, cause });
            self.remove_answer(at, round);
            self.ask_now(id, asked, Some(Cow::Borrowed(UNREADABLE)));
            return AskPoll::Pending;
        }
        let site = slot.site;
        self.note_answer(id);
        self.remove(id);
        let next = self.replay.deliver(at, site);
        self.wake(next);
        polled
    }

    /// Takes an answer that has come, if it is valid.
    fn take_answer(&mut self, id: SlotId, waker: &Waker, decode: Decode<'_>) -> AskPoll<()> {
        let limits = self.setup.limits;
        let Some(slot) = self.replay.slots().get(id) else { return AskPoll::Pending };
        let (Some(asking), Some(received)) = (slot.ask(), self.asks.inbox().find(&slot.path)) else {
            return AskPoll::Pending;
        };
        let question = &asking.question;
        let Some(text) = &received.text else { return self.resolve(id, None, false) };
        let path = Arc::clone(&slot.path);
        let checked = check(&question.request, text, &limits).and_then(|response| {
            let text = response.to_text()?;
            decode(&text).map_err(|cause| {
                self.polls.log(LogEvent::AnswerTypeMismatch { path: path.to_string(), cause });
                UNREADABLE.to_owned()
            })?;
            Ok((response.is_refusal(), text))
        });
        match checked {
            Ok((false, _)) if question.until.is_some() => {
                let asked = received.asked.clone();
                self.replay.slots_mut().set_ask(id, AskPhase::Agreed(asked));
                AskPoll::Agreed { in_earlier_leg: false }
            }
            Ok((is_refusal, text)) => self.resolve(id, Some(text), is_refusal),
            Err(reason) => {
                // The deadline stays the same after an invalid answer.
                let Some(received) = self.asks.inbox_mut().take(&path) else { return AskPoll::Pending };
                let times = received.asked.times.saturating_add(1);
                self.ask_now(id, AskRecord { times, ..received.asked }, Some(Cow::Owned(reason)));
                self.poll_ask_untyped(id, waker, decode)
            }
        }
    }

    /// Records the answer to a question, and resolves the question.
    fn resolve(&mut self, id: SlotId, text: Option<String>, refusal: bool) -> AskPoll<()> {
        let Some(slot) = self.replay.slots().get(id) else { return AskPoll::Pending };
        let (path, site) = (slot.path.clone(), slot.site);
        let asked = match (self.asks.inbox().find(&path), slot.ask().map(|asking| &asking.phase)) {
            (Some(received), _) => Some((&received.asked, received.at)),
            // The person agreed in an earlier leg, and the action behind the URL is finished now.
            (None, Some(AskPhase::Agreed(asked))) => Some((asked, Some(self.setup.now))),
            (None, _) => None,
        };
        let Some((&AskRecord { digest, times, round, first, .. }, at)) = asked else {
            return AskPoll::Pending;
        };
        self.asks.inbox_mut().remove_awaited(&path);
        self.note_answer(id);
        self.remove(id);
        let polled = if text.is_some() { AskPoll::Resolved(()) } else { AskPoll::Expired };
        let body = EntryBody::Answer { digest, times, text, refusal, at, first };
        self.replay.history_mut().record(Entry { path, round, body }, site);
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
        let Some(asking) = self.asking(id) else { return };
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
            self.count_leg();
        }
        self.asks.inbox_mut().take(&asked.path);
        self.ask_now(id, asked, Some(Cow::Borrowed(line)));
    }

    /// Notes a question that is answered now. Its slot is removed next.
    fn note_answer(&mut self, id: SlotId) {
        if let Some((path, question)) = self.replay.slots_mut().take_question(id) {
            self.observations.note_answer(&question);
            self.asks.show(path, question);
        }
    }

    /// Releases the slot of a dropped question.
    pub(super) fn release_ask(&mut self, id: SlotId, slot: &Slot, asking: &AskSlot, unwinding: bool) {
        match &asking.phase {
            AskPhase::Recorded(at) => self.replay.history_mut().give_up(*at),
            AskPhase::Answered | AskPhase::Agreed(_) => {
                self.asks.inbox_mut().set_given_up(&slot.path, true);
            }
            AskPhase::Asked { .. } => {
                let branches = self.replay.slots().branches();
                if !branches.has_lost(slot.branch) {
                    self.observations.note_dropped(EntryKind::Ask, &slot.path);
                }
                let reason = match branches.is_abandoned(slot.branch) {
                    true => Some(AskDrop::Race),
                    false => unwinding.then_some(AskDrop::Unwinding),
                };
                self.asks.keep_dropped(asking, reason);
            }
        }
        self.replay.stop_waiting(id);
    }
}
