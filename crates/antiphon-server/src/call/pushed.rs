//! The pushed carrier: in a session, each question is sent at once as a request of the server, and the handler waits.
//!
//! ```text
//!  the handler is pending ──▶ asked, and not sent? ──▶ sent      sent, and asked no more? ──▶ cancelled
//!                                                       │
//!  the handler is polled ◀── the answer is delivered ◀──┘  checked by the same rules as one that came with a request
//! ```

use crate::{
    call::leg_runtime::LegRuntime,
    errors::refusal::NOT_APPROVER,
    request::carrier::Pushed,
    session::{AnswerTimeout, AskEnd, OutboundRequest, Question, not_answered, too_late},
};
use antiphon_engine::{PendingAsk, SlotId, StopReason};
use antiphon_wire::{AskSupport, InputRequest};
use std::{
    task::{Context, Poll},
    time::Duration,
};

/// The questions of one leg that were sent and have no answer yet.
pub(crate) struct PushedAsks<'f> {
    runtime: &'f LegRuntime,
    pushed: &'f Pushed,
    sent: Vec<SentAsk>,
    /// The version of the leg's questions at the last look.
    version: Option<u64>,
}

/// A question that was sent.
struct SentAsk {
    slot: SlotId,
    path: String,
    outbound: OutboundRequest,
    /// True if the author set the time limit: the question then resolves as expired.
    expires: bool,
}

impl<'f> PushedAsks<'f> {
    pub(crate) fn new(runtime: &'f LegRuntime, pushed: &'f Pushed) -> Self {
        Self { runtime, pushed, sent: Vec::new(), version: None }
    }

    /// Delivers answers and expirations. Returns true if there were any.
    pub(crate) fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut received = false;
        let mut at = 0;
        while at < self.sent.len() {
            let Poll::Ready(end) = self.sent[at].outbound.poll(cx) else {
                at += 1;
                continue;
            };
            let SentAsk { slot, path, expires, .. } = self.sent.remove(at);
            let now = self.runtime.now();
            self.runtime.with(|leg| match end {
                AskEnd::Answer(Ok(text)) => {
                    leg.set_now(now);
                    leg.receive_answer(slot, Some(text.get().to_owned()));
                }
                AskEnd::Answer(Err(error)) => leg.stop(StopReason::Client(not_answered(&path, &error))),
                AskEnd::SessionOver => {
                    leg.stop(StopReason::Client(format!("`{path}` was not answered: the session ended")));
                }
                AskEnd::TooLate(_) if expires => leg.receive_answer(slot, None),
                AskEnd::TooLate(waited) => {
                    leg.stop(StopReason::Limit { name: "answer_timeout", text: too_late(&path, waited) });
                }
            });
            received = true;
        }
        received
    }

    /// Sends new questions, and withdraws those that are not asked any more. Returns true if the handler must be polled
    /// again.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.runtime.now();
        let (version, asking) = self.runtime.with(|leg| {
            leg.set_now(now);
            let version = leg.asks_version();
            let is_new = self.version != Some(version) && !leg.is_cancelled();
            (version, is_new.then(|| leg.asking_slots()))
        });
        if let Some(asking) = asking {
            self.version = Some(version);
            self.sent.retain(|sent| asking.contains(&sent.slot));
            let unsent = asking.iter().filter(|slot| self.sent.iter().all(|sent| sent.slot != **slot));
            // The other questions are sent when some of these are answered.
            let room = self.runtime.limits().engine.asks.saturating_sub(self.sent.len());
            let unsent: Vec<SlotId> = unsent.copied().take(room).collect();
            for slot in unsent {
                let Some(ask) = self.runtime.with(|leg| leg.pending_ask(slot)) else { continue };
                match self.send_one(ask, now) {
                    Ok(sent) => self.sent.push(sent),
                    Err(stop) => {
                        self.runtime.with(|leg| leg.stop(stop));
                        return true;
                    }
                }
            }
        }
        // A question that was just sent is polled once, so that its answer wakes this task.
        self.receive(cx)
    }

    fn send_one(&self, ask: PendingAsk, now: u64) -> Result<SentAsk, StopReason> {
        let PendingAsk { slot, path, request, deadline, elicitation_id, digest: _ } = ask;
        if !self.pushed.may_answer && matches!(request, InputRequest::Elicit(_)) {
            return Err(StopReason::Client(NOT_APPROVER.to_owned()));
        }
        // > A server **MUST NOT** send requests for capabilities that were not negotiated.
        let missing = self.pushed.missing(&request);
        if missing != AskSupport::NONE {
            return Err(StopReason::Capability { path, missing });
        }
        let id = elicitation_id.or_else(|| match &request {
            InputRequest::Elicit(elicit) if elicit.is_url() => {
                self.runtime.with(|leg| leg.elicitation_id(&path))
            }
            _ => None,
        });
        let wait = match deadline {
            Some(deadline) => {
                AnswerTimeout { limit: Duration::from_secs(deadline.saturating_sub(now)), at_most: None }
            }
            None => self.pushed.wait,
        };
        let (elicitation_id, related_task) = (id.as_deref(), None);
        let question = Question { key: &path, request: &request, elicitation_id, related_task };
        let outbound = self.pushed.send(&question, wait)?;
        Ok(SentAsk { slot, path, outbound, expires: deadline.is_some() })
    }

    /// Discards the sent questions without a cancellation: the call is over for the client.
    pub(crate) fn forget(&mut self) {
        self.sent.drain(..).for_each(|sent| sent.outbound.forget());
    }
}
