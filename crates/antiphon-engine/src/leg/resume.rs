//! The beginning of a later leg: the answers that came with its request, and the questions that are still open.

use super::{IncomingAnswer, Leg, RESERVED_SPACE, Setup, Unanswered, UnansweredAsk, history::History};
use crate::{
    answer::too_long,
    record::{AskRecord, ReceivedAnswer, Record},
};
use antiphon_seal::{Call, Digest};
use antiphon_wire::InputResponses;
use std::sync::Arc;

impl Leg {
    /// Begins a later leg, with the answers to awaited questions. [`Record::receive`] has received the answers to
    /// questions asked by hand.
    ///
    /// The leg is made in its box: it is large.
    pub fn resume(
        call: Call,
        record: Record,
        responses: Option<&InputResponses>,
        mut setup: Setup,
    ) -> Box<Self> {
        let shown = std::mem::take(&mut setup.shown);
        let room = setup
            .limits
            .state
            .saturating_sub(record.size())
            .saturating_sub(record.stored.as_ref().map_or(0, |stored| stored.size()))
            .saturating_sub(setup.limits.step_result)
            .saturating_sub(RESERVED_SPACE);
        let place = Box::new_uninit();
        let mut leg = Box::write(place, Self::begin(setup));
        leg.call = Some(call);
        leg.setup.refuse_step &= !record.stored.as_ref().is_some_and(|stored| stored.has_refused_step());
        leg.history = History::of(record.entries, record.stored, leg.setup.writes_ahead);
        leg.written_notes = record.notes.len();
        leg.inbox.reserve_exact(record.received.len() + record.asked.len());
        leg.inbox.extend(record.received.into_iter().map(IncomingAnswer::from));
        (leg.notes, leg.state) = (record.notes, record.state);
        (leg.round, leg.state_only) = (record.round.saturating_add(1), record.state_only);
        leg.has_new_answers = responses.is_some() || !leg.inbox.is_empty();
        leg.receive_responses(record.asked, responses, room);
        for question in Self::shown_questions(shown, leg.round) {
            if leg.unanswered.iter().all(|open| open.asked.path != question.asked.path) {
                leg.unanswered.push(question);
            }
        }
        leg
    }

    /// Receives the answers to the awaited questions of the last round, of which `room` bytes fit.
    fn receive_responses(
        &mut self,
        asked_before: Vec<AskRecord>,
        responses: Option<&InputResponses>,
        mut room: usize,
    ) {
        let now = self.setup.now;
        let answers = |asked: &AskRecord| responses.is_some_and(|all| all.get(&asked.path).is_some());
        let has_answers = asked_before.iter().any(answers);
        for mut asked in asked_before {
            let sent = responses.and_then(|responses| responses.get(&asked.path)).map(|text| text.get());
            // A task shows a question while the leg runs, so a question that did not leave may have an answer.
            let is_answered = self.setup.in_task && sent.is_some();
            if let Some(reason) = asked.not_asked.take().filter(|_| !is_answered) {
                let cause = match &*reason {
                    "" => Unanswered::NotCounted,
                    _ => Unanswered::Invalid(reason.into()),
                };
                self.unanswered.push(UnansweredAsk { asked, cause });
                continue;
            }
            let is_over = asked.deadline.is_some_and(|deadline| self.setup.now > deadline);
            match sent {
                _ if is_over => {
                    self.inbox.push(ReceivedAnswer { asked, text: None, response: None, at: None }.into())
                }
                None => {
                    let is_counted = !has_answers && !self.setup.in_task;
                    let cause = if is_counted { Unanswered::Missing } else { Unanswered::NotCounted };
                    self.unanswered.push(UnansweredAsk { asked, cause });
                }
                // `RESERVED_SPACE` is always accepted, so that a short answer to a full record is not rejected.
                Some(text) if text.len() > room.max(RESERVED_SPACE) => {
                    let cause = Unanswered::Invalid(too_long(room.max(RESERVED_SPACE)));
                    self.unanswered.push(UnansweredAsk { asked, cause });
                }
                Some(text) => {
                    room = room.saturating_sub(text.len());
                    // An answer that was not valid, to the same question.
                    self.inbox.retain(|incoming| incoming.received.asked.path != asked.path);
                    self.inbox.push(
                        ReceivedAnswer { asked, text: Some(text.to_owned()), response: None, at: Some(now) }
                            .into(),
                    );
                }
            }
        }
    }

    /// Returns the questions that an earlier run of a leg has shown, as questions of this round.
    pub(super) fn shown_questions(
        shown: Vec<(Arc<str>, Digest)>,
        round: u32,
    ) -> impl Iterator<Item = UnansweredAsk> {
        shown.into_iter().map(move |(path, digest)| UnansweredAsk {
            asked: AskRecord::new(path, digest, round),
            cause: Unanswered::NotCounted,
        })
    }
}
