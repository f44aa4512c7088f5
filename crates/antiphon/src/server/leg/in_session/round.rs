//! The questions that a handler returned, on their way to a client in a session.

use super::Ids;
use crate::server::{
    Limits,
    legacy::{AskEnd, Live, not_answered, too_late},
    refusal::Refusal,
    round::{Answered, Asked, JudgedOne, Push, judge_one},
};
use antiphon_wire::{InputRequest, InputRequests};
use std::{
    future::poll_fn,
    task::{Context, Poll},
};

/// One round. Each answer is judged when it comes: one that does not fit is dropped, and its question goes out again at
/// once, whatever the others wait for.
pub(super) struct Round<'a> {
    push: &'a Push,
    ids: &'a Ids,
    limits: &'a Limits,
    waiting: Vec<Waiting>,
    /// Each with its place in the round.
    answered: Vec<(usize, Answered)>,
}

struct Waiting {
    place: usize,
    asked: Asked,
    live: Live,
}

impl<'a> Round<'a> {
    /// Sends them all. `asked` and `requests` are the same questions, in the same order.
    pub(super) fn send(
        push: &'a Push,
        ids: &'a Ids,
        limits: &'a Limits,
        asked: Vec<Asked>,
        requests: &InputRequests,
    ) -> Result<Self, Refusal> {
        let waiting = Vec::with_capacity(asked.len());
        let mut round = Self { push, ids, limits, waiting, answered: Vec::new() };
        for (place, (asked, (_, request))) in asked.into_iter().zip(requests.iter()).enumerate() {
            round.put(place, asked, request)?;
        }
        Ok(round)
    }

    fn put(&mut self, place: usize, asked: Asked, request: &InputRequest) -> Result<(), Refusal> {
        let live = Live::send(self.push, request, self.ids.get(&asked.key), self.push.wait);
        let live = live.map_err(|cause| {
            tracing::error!(%cause, "an ask cannot be sent");
            Refusal::Internal
        })?;
        self.waiting.push(Waiting { place, asked, live });
        Ok(())
    }

    /// All answers, in the order of the questions.
    pub(super) async fn answered(mut self) -> Result<Vec<Answered>, Refusal> {
        poll_fn(|cx| self.poll(cx)).await?;
        self.answered.sort_by_key(|(place, _)| *place);
        Ok(self.answered.into_iter().map(|(_, answered)| answered).collect())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        let mut at = 0;
        while let Some(waiting) = self.waiting.get_mut(at) {
            if let Poll::Ready(end) = waiting.live.poll(cx) {
                let waiting = self.waiting.remove(at);
                self.take(waiting, end)?;
            } else {
                at += 1;
            }
        }
        if self.waiting.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn take(&mut self, waiting: Waiting, end: AskEnd) -> Result<(), Refusal> {
        let Waiting { place, asked, .. } = waiting;
        let text = match end {
            AskEnd::Answer(Ok(text)) => text,
            AskEnd::Answer(Err(error)) => return Err(Refusal::Told(not_answered(&asked.key, &error))),
            AskEnd::SessionOver => {
                return Err(Refusal::Told(format!("`{}` was not answered: the session ended", asked.key)));
            }
            AskEnd::TooLate(waited) => {
                let text = too_late(&asked.key, waited);
                return Err(Refusal::Limit { name: "answer_within", text });
            }
        };
        match judge_one(asked, text.get(), self.limits)? {
            JudgedOne::Counts(answered) => self.answered.push((place, answered)),
            JudgedOne::AskAgain(asked, request) => self.put(place, asked, &request)?,
        }
        Ok(())
    }
}
