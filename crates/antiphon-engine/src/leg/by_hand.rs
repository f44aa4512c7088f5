//! Questions that a handler returns. They are entries of the same record, and have the same validation and limits as
//! awaited ones.
//!
//! The record holds the question itself. An answer is validated against the question that was asked, whichever version
//! of the handler runs now. A question with an invalid answer is asked again without its handler. An answer stays
//! available on each leg until the handler returns questions or state again.

use super::{
    Leg,
    end::{LegOutput, check_leg_limit},
};
use crate::{
    key::check_key,
    limits::{Limits, NO_ANSWER, StopReason, asked_too_often, check, too_long, with_reason},
    record::{AskRecord, CheckedAnswer, HandlerState, ReceivedAnswer, Record},
};
use antiphon_seal::Call;
use antiphon_wire::{InputRequest, InputRequests};

impl Leg {
    /// Ends the leg with questions that the handler returned, or with state only if `asks` is empty. Returns the round,
    /// or the reason why no round can leave, and the output of the leg.
    pub fn ask_by_hand(
        &mut self,
        asks: Vec<(String, InputRequest)>,
        state: Option<String>,
    ) -> (Result<InputRequests, StopReason>, Box<LegOutput>) {
        if self.asks.used_stale_answer() {
            // The handler returned a result of stale answers, so it starts again.
            return self.end_and_restart();
        }
        let round = self.round_by_hand(asks);
        if let Ok((_, asked)) = &round
            && let Some(round) = self.asks.inbox().first_changed_round(asked)
        {
            self.make_stale(round);
        }
        self.asks.inbox_mut().remove_by_hand();
        self.memory.set_state(state.map(|text| HandlerState { round: self.asks.round(), text }));
        match round {
            Ok((requests, asked)) => {
                if requests.is_empty() {
                    self.ending.count_state_only();
                }
                self.end_with_round(requests, asked)
            }
            Err(stop) => (Err(stop), self.finish()),
        }
    }

    fn round_by_hand(
        &self,
        asks: Vec<(String, InputRequest)>,
    ) -> Result<(InputRequests, Vec<AskRecord>), StopReason> {
        let limits = &self.setup.limits;
        if asks.len() > limits.asks {
            let text = format!("{} questions in one round; the limit is {}", asks.len(), limits.asks);
            return Err(StopReason::Author(text));
        }
        let (mut requests, mut asked) = (InputRequests::new(), Vec::with_capacity(asks.len()));
        for (key, request) in asks {
            check_key(&key).map_err(StopReason::Author)?;
            let text = json_text(&request).map_err(StopReason::Author)?;
            let Some(call) = &self.call else {
                return Err(StopReason::Author("the call has not begun".to_owned()));
            };
            let digest = call.secret().pin(text.as_bytes());
            // A question with the same key and another text was answered: the new text is asked.
            let before = self.asks.inbox().unread_by_hand(&key);
            let changed = before.filter(|asked| !asked.digest.matches(&digest));
            let times = changed.map_or(1, |asked| asked.times.saturating_add(1));
            if let Some(stop) = asked_too_often(&key, times, None, limits) {
                return Err(stop);
            }
            let new = AskRecord::new(key.as_str().into(), digest, self.asks.round());
            asked.push(AskRecord { times, question: Some(text.into()), ..new });
            // > `inputRequests` keys are server assigned identifiers and **MUST** be unique within the scope of the
            // > request.
            if !requests.insert(&*key, request) {
                return Err(StopReason::Author(format!("the key `{key}` is used twice in one round")));
            }
        }
        Ok((requests, asked))
    }
}

impl Record {
    /// Receives the answers to questions that a handler returned. `answer` returns the text under a key. Returns only
    /// the questions to ask again: none if every question has a valid answer.
    ///
    /// > If the client fails to send all the information requested in a previous `InputRequests` [...] the server **SHOULD**
    /// > respond with a new `InputRequiredResult` requesting the missing information again, rather than returning an error.
    ///
    /// # Errors
    /// If a question was asked as often as the limit allows, or the call has had as many legs as the limit allows.
    pub fn receive<'t>(
        &mut self,
        call: Option<&Call>,
        answer: impl Fn(&str) -> Option<&'t str>,
        limits: &Limits,
    ) -> Result<InputRequests, StopReason> {
        let mut again = InputRequests::new();
        let mut room = limits.state.saturating_sub(self.size());
        let checked = self.check_all(answer, limits)?;
        let has_answers =
            checked.iter().any(|(_, (_, it))| matches!(it, AnswerCheck::Valid(_) | AnswerCheck::Invalid(_)));
        let is_complete = checked.iter().all(|(_, (_, answer_check))| {
            matches!(answer_check, AnswerCheck::Valid(_) | AnswerCheck::AnsweredBefore)
        });
        for (at, (request, answer_check)) in checked {
            let reason = match answer_check {
                AnswerCheck::AnsweredBefore => continue,
                AnswerCheck::Missing if has_answers => {
                    // A client may answer one question at a time.
                    let _ = again.insert(&*self.asked[at].path, request);
                    continue;
                }
                AnswerCheck::Missing => None,
                AnswerCheck::Invalid(reason) => Some(reason),
                // An answer that waits for the others must fit into the record.
                AnswerCheck::Valid(answer) => match room.checked_sub(answer.text.len()) {
                    None if !is_complete => Some(too_long(room)),
                    rest => {
                        room = rest.unwrap_or_default();
                        self.asked[at].answer = Some(answer);
                        continue;
                    }
                },
            };
            let request = self.asked[at].again(request, reason, limits)?;
            // The keys were unique when the round left.
            let _ = again.insert(&*self.asked[at].path, request);
        }
        self.take_answered();
        if !again.is_empty() {
            check_leg_limit(call.map_or(1, Call::leg), limits.legs, &again)?;
            self.round = self.round.saturating_add(1);
            let round = self.round;
            self.asked.iter_mut().for_each(|asked| asked.round = round);
        }
        Ok(again)
    }

    /// Receives the answer to one question that a handler returned, or `None` if none came. Returns the question if it
    /// must be asked again.
    ///
    /// # Errors
    /// If the question was asked as often as the limit allows.
    pub fn receive_one(
        &mut self,
        path: &str,
        text: Option<&str>,
        limits: &Limits,
    ) -> Result<Option<InputRequest>, StopReason> {
        let Some(at) = self.asked.iter().position(|asked| *asked.path == *path) else { return Ok(None) };
        let again = match self.asked[at].check(text, limits)? {
            (_, AnswerCheck::AnsweredBefore) => None,
            (request, AnswerCheck::Missing) => Some(self.asked[at].again(request, None, limits)?),
            (request, AnswerCheck::Invalid(reason)) => {
                Some(self.asked[at].again(request, Some(reason), limits)?)
            }
            (_, AnswerCheck::Valid(answer)) => {
                self.asked[at].answer = Some(answer);
                None
            }
        };
        self.take_answered();
        Ok(again)
    }

    /// Checks each question that a handler returned, with its index.
    fn check_all<'t>(
        &self,
        answer: impl Fn(&str) -> Option<&'t str>,
        limits: &Limits,
    ) -> Result<Vec<(usize, CheckedAsk)>, StopReason> {
        let by_hand = self.asked.iter().enumerate().filter(|(_, asked)| asked.question.is_some());
        by_hand.map(|(at, asked)| Ok((at, asked.check(answer(&asked.path), limits)?))).collect()
    }

    /// Moves the answers to the inbox of the handler, in their order, once each question that a handler returned has
    /// one.
    fn take_answered(&mut self) {
        let mut by_hand = self.asked.iter().filter(|asked| asked.question.is_some()).peekable();
        if by_hand.peek().is_none() || by_hand.any(|asked| asked.answer.is_none()) {
            return;
        }
        let (by_hand, awaited): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.asked).into_iter().partition(|asked| asked.question.is_some());
        self.asked = awaited;
        self.received.extend(by_hand.into_iter().map(AskRecord::into_received));
    }
}

/// A question, and the check of its answer.
type CheckedAsk = (InputRequest, AnswerCheck);

/// The check of the answer to a question that a handler returned.
enum AnswerCheck {
    /// A valid answer came in an earlier round.
    AnsweredBefore,
    /// No answer came.
    Missing,
    Valid(CheckedAnswer),
    Invalid(String),
}

impl AskRecord {
    fn into_received(mut self) -> ReceivedAnswer {
        let (text, response) =
            self.answer.take().map(|CheckedAnswer { text, response }| (text, response)).unzip();
        ReceivedAnswer { asked: self, text, response: response.flatten(), at: None }
    }

    fn check(&self, text: Option<&str>, limits: &Limits) -> Result<CheckedAsk, StopReason> {
        let question = self.question.as_deref().unwrap_or_default();
        let Ok(request) = InputRequest::from_text(question) else {
            // This crate wrote the text, and the seal protects it.
            return Err(StopReason::Author(format!("the question `{}` cannot be read again", self.path)));
        };
        let answer_check = match (&self.answer, text) {
            (Some(_), _) => AnswerCheck::AnsweredBefore,
            (None, None) => AnswerCheck::Missing,
            (None, Some(text)) => {
                let checked = check(&request, text, limits).and_then(|response| {
                    Ok(CheckedAnswer { text: response.to_text()?, response: Some(response) })
                });
                checked.map_or_else(AnswerCheck::Invalid, AnswerCheck::Valid)
            }
        };
        Ok((request, answer_check))
    }

    /// Returns the question with the reason, if it may be asked once more.
    fn again(
        &mut self,
        request: InputRequest,
        reason: Option<String>,
        limits: &Limits,
    ) -> Result<InputRequest, StopReason> {
        self.times = self.times.saturating_add(1);
        let cause = reason.as_deref().unwrap_or(NO_ANSWER);
        if let Some(stop) = asked_too_often(&self.path, self.times, Some(cause), limits) {
            return Err(stop);
        }
        Ok(with_reason(request, reason.as_deref()))
    }
}

/// Returns a question as JSON text.
fn json_text(request: &InputRequest) -> Result<String, String> {
    // Most questions fit without a second allocation.
    let mut text = Vec::with_capacity(512);
    serde_json::to_writer(&mut text, request).map_err(|fault| fault.to_string())?;
    String::from_utf8(text).map_err(|fault| fault.to_string())
}
