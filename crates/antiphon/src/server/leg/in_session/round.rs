//! The questions that a handler returned, on their way to a client in a session.

use super::Ids;
use crate::server::{
    legacy::{AskEnd, Live, not_answered, too_late},
    round::Pushed,
};
use antiphon_engine::{Limits, Record, StopReason};
use antiphon_wire::{InputRequest, InputRequests};
use std::{
    future::poll_fn,
    task::{Context, Poll},
};

/// One round. Each answer is checked when it comes: one that does not fit is dropped, and its question goes out again at
/// once, whatever the others wait for.
pub(super) struct Round<'a> {
    pushed: &'a Pushed,
    ids: &'a Ids,
    waiting: Vec<(String, Live)>,
}

impl<'a> Round<'a> {
    /// Sends them all.
    pub(super) fn send(
        pushed: &'a Pushed,
        ids: &'a Ids,
        requests: &InputRequests,
    ) -> Result<Self, StopReason> {
        let mut round = Self { pushed, ids, waiting: Vec::with_capacity(requests.len()) };
        for (key, request) in requests.iter() {
            round.put(key, request)?;
        }
        Ok(round)
    }

    fn put(&mut self, key: &str, request: &InputRequest) -> Result<(), StopReason> {
        let live = Live::send(self.pushed, request, self.ids.get(key), self.pushed.wait);
        self.waiting.push((key.to_owned(), live.map_err(StopReason::Author)?));
        Ok(())
    }

    /// Waits until the record has an answer to each.
    pub(super) async fn answered(mut self, record: &mut Record, limits: Limits) -> Result<(), StopReason> {
        poll_fn(|cx| self.poll(cx, record, &limits)).await
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        record: &mut Record,
        limits: &Limits,
    ) -> Poll<Result<(), StopReason>> {
        let mut at = 0;
        while let Some((_, live)) = self.waiting.get_mut(at) {
            if let Poll::Ready(end) = live.poll(cx) {
                let (key, _) = self.waiting.remove(at);
                let text = text_of(&key, end)?;
                if let Some(again) = record.receive_one(&key, Some(text.get()), limits)? {
                    self.put(&key, &again)?;
                }
            } else {
                at += 1;
            }
        }
        if self.waiting.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
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
            Err(StopReason::Limit { name: "answer_within", text: too_late(key, waited) })
        }
    }
}
