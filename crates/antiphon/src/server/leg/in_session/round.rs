//! The questions that a handler returned, on their way to a client in a session.

use super::Ids;
use crate::server::{
    Limits,
    legacy::{Arrived, Live, not_answered},
    refusal::Refusal,
    round::{Answered, Asked, JudgedOne, Push, judge_one},
};
use antiphon_wire::{InputRequest, InputRequests};
use std::{
    future::{Future as _, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::time::{Sleep, sleep};

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
    over: Pin<Box<Sleep>>,
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
        let Push { session, outbox, wait } = self.push;
        let live = Live::send(session, outbox, request, self.ids.get(&asked.key)).map_err(|cause| {
            tracing::error!(%cause, "an ask cannot be sent");
            Refusal::Internal
        })?;
        self.waiting.push(Waiting { place, asked, live, over: Box::pin(sleep(*wait)) });
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
            if let Poll::Ready(arrived) = waiting.live.poll(cx) {
                let waiting = self.waiting.remove(at);
                self.take(waiting, arrived)?;
            } else if waiting.over.as_mut().poll(cx).is_ready() {
                let (key, wait) = (&waiting.asked.key, self.push.wait.as_secs());
                let text = format!("`{key}` was not answered within {wait} seconds");
                return Poll::Ready(Err(Refusal::Limit { name: "answer_within", text }));
            } else {
                at += 1;
            }
        }
        if self.waiting.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn take(&mut self, waiting: Waiting, arrived: Option<Arrived>) -> Result<(), Refusal> {
        let Waiting { place, asked, .. } = waiting;
        let text = match arrived {
            Some(Ok(text)) => text,
            Some(Err(error)) => return Err(Refusal::Told(not_answered(&asked.key, &error))),
            None => {
                return Err(Refusal::Told(format!("`{}` was not answered: the session ended", asked.key)));
            }
        };
        match judge_one(asked, text.get(), self.limits)? {
            JudgedOne::Counts(answered) => self.answered.push((place, answered)),
            JudgedOne::AskAgain(asked, request) => self.put(place, asked, &request)?,
        }
        Ok(())
    }
}
