//! Returned questions that wait for a client in a session.

use crate::{
    call::in_session::ids::ElicitationIds,
    request::carrier::Pushed,
    session::{AskEnd, OutboundRequest, Question, not_answered, too_late},
};
use antiphon_engine::{Limits, Record, StopReason};
use antiphon_wire::{InputRequest, InputRequests};
use std::{
    future::poll_fn,
    task::{Context, Poll},
};

/// One round. Each answer is checked when it arrives. A bad answer is dropped, and its question is sent again at once,
/// while the others still wait.
pub(crate) struct PendingRound<'a> {
    pushed: &'a Pushed,
    ids: &'a ElicitationIds,
    pending: Vec<(String, OutboundRequest)>,
}

impl<'a> PendingRound<'a> {
    /// Sends all questions.
    pub(crate) fn send(
        pushed: &'a Pushed,
        ids: &'a ElicitationIds,
        requests: &InputRequests,
    ) -> Result<Self, StopReason> {
        let mut round = Self { pushed, ids, pending: Vec::with_capacity(requests.len()) };
        for (key, request) in requests.iter() {
            round.put(key, request)?;
        }
        Ok(round)
    }

    fn put(&mut self, key: &str, request: &InputRequest) -> Result<(), StopReason> {
        let question = Question { key, request, elicitation_id: self.ids.get(key), related_task: None };
        self.pending.push((key.to_owned(), self.pushed.send(&question, self.pushed.wait)?));
        Ok(())
    }

    /// Waits until the record has an answer to each question.
    pub(crate) async fn answered(mut self, record: &mut Record, limits: Limits) -> Result<(), StopReason> {
        poll_fn(|cx| self.poll(cx, record, &limits)).await
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        record: &mut Record,
        limits: &Limits,
    ) -> Poll<Result<(), StopReason>> {
        let mut at = 0;
        while let Some((_, outbound)) = self.pending.get_mut(at) {
            if let Poll::Ready(end) = outbound.poll(cx) {
                let (key, _) = self.pending.remove(at);
                let text = text_of(&key, end)?;
                if let Some(again) = record.receive_one(&key, Some(text.get()), limits)? {
                    self.put(&key, &again)?;
                }
            } else {
                at += 1;
            }
        }
        if self.pending.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

fn text_of(key: &str, end: AskEnd) -> Result<Box<serde_json::value::RawValue>, StopReason> {
    match end {
        AskEnd::Answer(Ok(text)) => Ok(text),
        AskEnd::Answer(Err(error)) => Err(StopReason::Client(not_answered(key, &error))),
        AskEnd::SessionOver => {
            Err(StopReason::Client(format!("`{key}` was not answered: the session ended")))
        }
        AskEnd::TooLate(waited) => {
            Err(StopReason::Limit { name: "answer_timeout", text: too_late(key, waited) })
        }
    }
}
