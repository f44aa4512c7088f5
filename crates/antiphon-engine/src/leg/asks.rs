//! The questions of a call: their answers, those that are still open, and those that the handler has dropped.

use super::{
    replay::{Inbox, Replay},
    slot::{AskSlot, Question},
};
use crate::{
    limits::{StopReason, read_answer, too_long},
    record::{AskRecord, EntryBody, EntryKind, ReceivedAnswer},
};
use antiphon_seal::Digest;
use antiphon_wire::{InputRequest, InputResponses};
use std::{borrow::Cow, sync::Arc};

/// The space that the record keeps free before a step runs, in bytes, besides the space for its outcome: one question
/// must still fit after the step.
pub(super) const RESERVED_SPACE: usize = 512;

/// The questions of a call, without those that futures ask now.
#[derive(Debug)]
pub(super) struct Asks {
    inbox: Inbox,
    /// Questions of the last round without an answer.
    unanswered: Vec<UnansweredAsk>,
    /// The questions that were dropped while the handler unwound, and those that a race has dropped.
    dropped: Vec<(AskRecord, AskDrop)>,
    /// The questions whose answers the handler has received, in that order.
    shown: Vec<(Arc<str>, InputRequest)>,
    round: u32,
    /// A number that changes when a question is asked, answered or dropped.
    version: u64,
    /// True if answers have come and the handler was not idle since: the handler takes the answers before a step
    /// begins.
    has_new_answers: bool,
    /// True if the handler used an answer in this leg that became stale: no new step begins.
    used_stale_answer: bool,
}

/// The reason for which a question was dropped that may be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskDrop {
    /// The handler unwound.
    Unwinding,
    /// Another branch of a race has ended.
    Race,
}

/// A question of the last round without a valid answer.
#[derive(Debug)]
pub(super) struct UnansweredAsk {
    asked: AskRecord,
    cause: Unanswered,
}

/// The cause for which a question of the last round has no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The question did not leave, because its leg failed; or this leg brings answers to others of its round.
    NotCounted,
    /// This leg answers no question of its round.
    Missing,
    /// The fault of the answer that came, as text for the person.
    Invalid(String),
}

/// The answer that has come to a question which a future begins to await.
pub(super) enum Come {
    /// An answer to the same text.
    Fits,
    /// An answer to another text, asked in this round. The number of times counts the present text too. The answer is removed.
    Changed { round: u32, times: u8 },
}

/// An answered question of the call, as far as the handler has come.
#[derive(Clone, Debug)]
pub struct AnsweredQuestion<'l> {
    /// The scopes and the key.
    pub path: Arc<str>,
    /// The round in which the question was asked.
    pub round: u32,
    /// The question as JSON, as the handler renders it: the text of a question that is asked again follows it.
    pub question: Cow<'l, str>,
    /// The valid answer as JSON, or `None` if the person's time was over.
    pub answer: Option<Cow<'l, str>>,
    /// The time at which the answer came, in Unix seconds, if it was recorded.
    pub at: Option<u64>,
}

impl UnansweredAsk {
    /// Returns `true` if the person has agreed to the purpose of this question, although its URL may have a new reference.
    pub(super) fn has_agreed(&self, question: &Question) -> bool {
        let is_about_it =
            |agreed: &Digest| question.until.as_ref().is_some_and(|about| about.matches(agreed));
        let is_invalid = matches!(self.cause, Unanswered::Invalid(_));
        !is_invalid && self.asked.agreed.as_ref().is_some_and(is_about_it)
    }

    /// Returns the record of a question to whose purpose the person has agreed, with the digest of its present text.
    pub(super) fn into_agreed(self, digest: Digest) -> AskRecord {
        AskRecord { digest, ..self.asked }
    }

    /// Returns the record with which the question is asked again, and the cause if it is the same question. `new` is its record
    /// if it were a new one.
    pub(super) fn again(self, new: AskRecord) -> (AskRecord, Option<Unanswered>) {
        let Self { asked, cause } = self;
        let is_same = asked.digest.matches(&new.digest);
        let is_again = !is_same || !matches!(cause, Unanswered::NotCounted);
        let times = asked.times.saturating_add(u8::from(is_again));
        let deadline = asked.deadline.filter(|_| is_same);
        let first = if is_same { asked.first } else { new.first };
        let asked = AskRecord { times, first, deadline: deadline.or(new.deadline), ..new };
        (asked, is_same.then_some(cause))
    }
}

/// The answers that come with the request of a leg.
pub(super) struct Incoming<'r> {
    pub(super) responses: Option<&'r InputResponses>,
    /// The number of bytes of answers that fit into the record.
    pub(super) room: usize,
    /// The present time, in Unix seconds.
    pub(super) now: u64,
    /// True in a task: questions stay open from leg to leg.
    pub(super) in_task: bool,
}

impl Asks {
    /// Returns the questions of the first round. `shown` are those that an earlier run of the leg has shown.
    pub(super) fn begin(shown: Vec<(Arc<str>, Digest)>) -> Self {
        let mut asks = Self {
            inbox: Inbox::default(),
            unanswered: Vec::new(),
            dropped: Vec::new(),
            shown: Vec::new(),
            round: 1,
            version: 0,
            has_new_answers: false,
            used_stale_answer: false,
        };
        asks.reopen(shown);
        asks
    }

    /// Continues with the questions of an earlier leg: their answers, and those that are still open. The round is the one after
    /// `round`. [`Record::receive`](crate::Record::receive) has received the answers to questions asked by hand.
    pub(super) fn resume(
        &mut self,
        round: u32,
        received: Vec<ReceivedAnswer>,
        asked: Vec<AskRecord>,
        incoming: Incoming<'_>,
    ) {
        self.inbox = Inbox::of(received, asked.len());
        self.round = round.saturating_add(1);
        self.has_new_answers = incoming.responses.is_some() || !self.inbox.is_empty();
        self.receive_responses(asked, incoming);
    }

    /// Receives the answers to the awaited questions of the last round.
    fn receive_responses(&mut self, asked_before: Vec<AskRecord>, incoming: Incoming<'_>) {
        let Incoming { responses, mut room, now, in_task } = incoming;
        let answers = |asked: &AskRecord| responses.is_some_and(|all| all.get(&asked.path).is_some());
        let has_answers = asked_before.iter().any(answers);
        for mut asked in asked_before {
            let sent = responses.and_then(|responses| responses.get(&asked.path)).map(|text| text.get());
            // A task shows a question while the leg runs, so a question that did not leave may have an answer.
            let is_answered = in_task && sent.is_some();
            if let Some(reason) = asked.not_asked.take().filter(|_| !is_answered) {
                let cause = match &*reason {
                    "" => Unanswered::NotCounted,
                    _ => Unanswered::Invalid(reason.into()),
                };
                self.unanswered.push(UnansweredAsk { asked, cause });
                continue;
            }
            let is_over = asked.deadline.is_some_and(|deadline| now > deadline);
            match sent {
                _ if is_over => {
                    self.inbox.push(ReceivedAnswer { asked, text: None, response: None, at: None });
                }
                None => {
                    let is_counted = !has_answers && !in_task;
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
                    self.inbox.remove(&asked.path);
                    let text = Some(text.to_owned());
                    self.inbox.push(ReceivedAnswer { asked, text, response: None, at: Some(now) });
                }
            }
        }
    }

    /// Opens the questions that an earlier run of the leg has shown, as questions of this round.
    pub(super) fn reopen(&mut self, shown: Vec<(Arc<str>, Digest)>) {
        for (path, digest) in shown {
            if self.unanswered.iter().all(|open| open.asked.path != path) {
                let asked = AskRecord::new(path, digest, self.round);
                self.unanswered.push(UnansweredAsk { asked, cause: Unanswered::NotCounted });
            }
        }
    }

    pub(super) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    pub(super) fn inbox_mut(&mut self) -> &mut Inbox {
        &mut self.inbox
    }

    pub(super) fn round(&self) -> u32 {
        self.round
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Notes that a question is asked, answered or dropped.
    pub(super) fn note_change(&mut self) {
        self.version += 1;
    }

    /// Returns `true` if answers have come and the handler was not idle since.
    pub(super) fn has_new_answers(&self) -> bool {
        self.has_new_answers
    }

    /// Notes that the handler is idle: it has taken the answers that have come.
    pub(super) fn note_idle(&mut self) {
        self.has_new_answers = false;
    }

    /// Returns `true` if the handler used an answer in this leg that became stale.
    pub(super) fn used_stale_answer(&self) -> bool {
        self.used_stale_answer
    }

    /// Notes whether the handler has used an answer, or its own state, that became stale.
    pub(super) fn note_stale(&mut self, was_used: bool) {
        self.used_stale_answer |= was_used;
    }

    /// Returns `true` if a question of the last round may wait for its future.
    pub(super) fn has_awaited(&self) -> bool {
        !self.unanswered.is_empty() || self.inbox.has_awaited()
    }

    /// Finds the answer that has come to a question which a future begins to await. The question is not open any more then.
    pub(super) fn find_come(&mut self, question: &Question) -> Option<Come> {
        let path = &*question.path;
        let asked = &self.inbox.find(path)?.asked;
        let is_same = asked.digest.matches(&question.digest);
        let (round, times) = (asked.round, asked.times.saturating_add(1));
        self.close(path);
        if is_same {
            self.inbox.set_given_up(path, false);
            return Some(Come::Fits);
        }
        self.inbox.take(path);
        Some(Come::Changed { round, times })
    }

    /// Takes the question with this path, if it is open from the last round.
    pub(super) fn take_open(&mut self, path: &str) -> Option<UnansweredAsk> {
        let at = self.unanswered.iter().position(|open| *open.asked.path == *path)?;
        Some(self.unanswered.swap_remove(at))
    }

    /// Notes that a question is not open any more: an earlier run of this leg has shown it, and it has an answer.
    pub(super) fn close(&mut self, path: &str) {
        self.unanswered.retain(|open| *open.asked.path != *path);
    }

    /// Receives an answer during the leg, or `None` if the person's time is over.
    pub(super) fn receive(&mut self, asked: AskRecord, text: Option<String>, now: u64) {
        self.inbox.push(ReceivedAnswer { asked, text, response: None, at: Some(now) });
        // Later questions belong to a later round, because the person who reads them may know this answer.
        self.round = self.round.saturating_add(1);
        self.has_new_answers = true;
        self.note_change();
    }

    /// Notes a question whose answer the handler receives.
    pub(super) fn show(&mut self, path: Arc<str>, question: InputRequest) {
        self.shown.push((path, question));
    }

    /// Keeps a question that was dropped, if it was asked and may be asked again.
    pub(super) fn keep_dropped(&mut self, asking: &AskSlot, reason: Option<AskDrop>) {
        self.note_change();
        self.dropped.extend(asking.not_asked().zip(reason));
    }

    /// Notes that a question is awaited again.
    pub(super) fn forget_dropped(&mut self, path: &str) {
        self.dropped.retain(|(asked, _)| *asked.path != *path);
    }

    /// Takes the questions that are still open when the leg stops for this reason: they were asked when the handler panicked, or
    /// their race is not decided, because it waited for a step that failed.
    pub(super) fn take_dropped(
        &mut self,
        reason: &StopReason,
        replay: &Replay,
    ) -> impl Iterator<Item = AskRecord> {
        let dropped = std::mem::take(&mut self.dropped).into_iter();
        let open = dropped.filter(|(asked, drop)| match drop {
            AskDrop::Unwinding => matches!(reason, StopReason::Panicked(_)),
            AskDrop::Race => !replay.history().has_lost(&asked.within),
        });
        open.map(|(asked, _)| asked)
    }

    /// Closes the questions of earlier rounds: the handler asks them no more.
    pub(super) fn close_earlier_rounds(&mut self) {
        self.unanswered.retain(|open| open.asked.round == self.round);
    }

    /// Returns the number of questions of the last round without an answer.
    pub(super) fn open(&self) -> usize {
        self.unanswered.len()
    }

    /// Takes the questions of a task's last round that this leg has not reached. They stay open in the task until a leg
    /// comes to rest without them, or another branch wins a race around them.
    pub(super) fn take_unreached(&mut self, replay: &Replay) -> Vec<AskRecord> {
        let round = self.round;
        let unreached = std::mem::take(&mut self.unanswered).into_iter();
        let unreached = unreached.filter(|open| !replay.history().has_lost(&open.asked.within));
        let unreached = unreached.map(|UnansweredAsk { asked, cause }| {
            let not_asked = match cause {
                Unanswered::Invalid(reason) => Some(reason.into()),
                Unanswered::NotCounted | Unanswered::Missing => None,
            };
            // A person who answers it now knows the answers of this round.
            AskRecord { round, not_asked, ..asked }
        });
        unreached.collect()
    }

    /// Returns the path of a refusal that the handler has not reached, if it has not received the answer to another
    /// question that was open in the same round either. A version that no longer asks would otherwise do what the person refused.
    pub(super) fn unreplayed_refusal(&self, replay: &Replay) -> Option<String> {
        let history = replay.history();
        let is_reached = |round| history.has_replayed_answer_of(round) || self.inbox.has_read_of(round);
        let mut unreplayed = history.unreplayed_refusals().chain(self.inbox.unread_refusals(history));
        let (path, _) = unreplayed.find(|(_, round)| !is_reached(*round))?;
        Some(path.to_owned())
    }

    /// Returns the questions whose answers the handler has received, in the order in which it received them.
    pub(super) fn answered<'l>(&'l self, replay: &'l mut Replay) -> Vec<AnsweredQuestion<'l>> {
        let mut places = Vec::with_capacity(self.shown.len());
        for (at, (path, _)) in self.shown.iter().enumerate() {
            places.extend(replay.history_mut().find(EntryKind::Ask, path).map(|entry| (at, entry)));
        }
        let by_hand = self.inbox.iter().filter_map(|received| {
            let question = received.asked.question.as_deref()?;
            let request: InputRequest = serde_json::from_str(question).ok()?;
            let response = read_answer(&request, received.text.as_deref()?).ok()?;
            Some(AnsweredQuestion {
                path: received.asked.path.clone(),
                round: received.asked.round,
                question: Cow::Borrowed(question),
                answer: Some(Cow::Owned(response.to_text().ok()?)),
                at: received.at,
            })
        });
        let history = replay.history();
        let awaited = places.into_iter().filter_map(|(shown, entry)| {
            let (path, request): &(Arc<str>, InputRequest) = &self.shown[shown];
            let entry = history.entry(entry);
            let EntryBody::Answer { text, at, .. } = &entry.body else { return None };
            Some(AnsweredQuestion {
                path: path.clone(),
                round: entry.round,
                question: Cow::Owned(serde_json::to_string(request).ok()?),
                answer: text.as_deref().map(Cow::Borrowed),
                at: *at,
            })
        });
        awaited.chain(by_hand).collect()
    }
}
