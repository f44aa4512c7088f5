//! The pushed carrier: in a session, what a handler asks is sent at once as a request of the server's, and the handler waits.
//!
//! ```text
//!  the handler is pending ──▶ asked, and not sent? ──▶ sent      sent, and asked no more? ──▶ cancelled
//!                                                       │
//!  the handler is polled ◀── the answer is delivered ◀──┘  checked by the same rules as one that came with a request
//! ```

use super::flow::Flow;
use crate::server::{
    legacy::{AskEnd, Live, Session, Wait, not_answered, too_late},
    outbox::Outbox,
};
use antiphon_engine::{PendingAsk, SlotId, StopReason};
use antiphon_wire::{AskSupport, InputRequest};
use std::{
    task::{Context, Poll},
    time::Duration,
};

/// How a leg reaches a client in a session.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) session: Session,
    /// The stream of the call.
    pub(crate) outbox: Outbox,
    /// How long an ask waits for its answer.
    pub(crate) wait: Wait,
    /// The scopes that an answer's sender must hold, as who began the call.
    pub(crate) scopes: Vec<String>,
}

impl Pushed {
    /// Ends the event stream of the call, where the client knows how to come back for the rest.
    pub(super) fn close_stream(&self) {
        if self.session.version().has_elicitation_modes() {
            self.outbox.close_stream();
        }
    }
}

/// The asks of one leg that are on their way.
pub(super) struct Pusher<'f> {
    flow: &'f Flow,
    pushed: &'f Pushed,
    sent: Vec<Sent>,
    /// The leg's asks that were looked at last.
    version: Option<u64>,
}

/// An ask that is on its way.
struct Sent {
    slot: SlotId,
    path: String,
    live: Live,
    /// Its time is the author's: then there is an answer, that it is over.
    expires: bool,
}

impl<'f> Pusher<'f> {
    pub(super) fn new(flow: &'f Flow, pushed: &'f Pushed) -> Self {
        Self { flow, pushed, sent: Vec::new(), version: None }
    }

    /// Delivers the answers that have come, and what is over. Whether there was any.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut received = false;
        let mut at = 0;
        while at < self.sent.len() {
            let Poll::Ready(end) = self.sent[at].live.poll(cx) else {
                at += 1;
                continue;
            };
            let Sent { slot, path, expires, .. } = self.sent.remove(at);
            self.flow.with(|leg| match end {
                AskEnd::Answer(Ok(text)) => leg.receive_answer(slot, Some(text.get().to_owned())),
                AskEnd::Answer(Err(error)) => leg.stop(StopReason::Client(not_answered(&path, &error))),
                AskEnd::SessionOver => {
                    leg.stop(StopReason::Client(format!("`{path}` was not answered: the session ended")));
                }
                AskEnd::TooLate(_) if expires => leg.receive_answer(slot, None),
                AskEnd::TooLate(waited) => {
                    leg.stop(StopReason::Limit { name: "answer_within", text: too_late(&path, waited) });
                }
            });
            received = true;
        }
        received
    }

    /// Sends what is asked now, and takes back what is asked no more. Whether the handler is to be polled again.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.flow.now();
        let (version, asking) = self.flow.with(|leg| {
            leg.set_now(now);
            let version = leg.asks_version();
            let is_new = self.version != Some(version) && !leg.is_cancelled();
            (version, is_new.then(|| leg.asking_slots()))
        });
        if let Some(asking) = asking {
            self.version = Some(version);
            self.sent.retain(|sent| asking.contains(&sent.slot));
            let unsent = asking.iter().filter(|slot| self.sent.iter().all(|sent| sent.slot != **slot));
            // The others when some of these are answered.
            let room = self.flow.limits().asks.saturating_sub(self.sent.len());
            let unsent: Vec<SlotId> = unsent.copied().take(room).collect();
            for slot in unsent {
                let Some(ask) = self.flow.with(|leg| leg.pending_ask(slot)) else { continue };
                match self.send_one(ask, now) {
                    Ok(sent) => self.sent.push(sent),
                    Err(stop) => {
                        self.flow.with(|leg| leg.stop(stop));
                        return true;
                    }
                }
            }
        }
        // What was just sent is polled once, so that its answer wakes this.
        self.receive(cx)
    }

    fn send_one(&self, ask: PendingAsk, now: u64) -> Result<Sent, StopReason> {
        let PendingAsk { slot, path, request, deadline, elicitation_id } = ask;
        // > A server **MUST NOT** send requests for capabilities that were not negotiated.
        let missing = self.pushed.session.missing(&request);
        if missing != AskSupport::NONE {
            return Err(StopReason::Capability { path, missing });
        }
        let id = elicitation_id.or_else(|| match &request {
            InputRequest::Elicit(elicit) if elicit.is_url() => {
                self.flow.with(|leg| leg.elicitation_id(&path))
            }
            _ => None,
        });
        let wait = match deadline {
            Some(deadline) => {
                Wait { limit: Duration::from_secs(deadline.saturating_sub(now)), at_most: None }
            }
            None => self.pushed.wait,
        };
        let live = Live::send(self.pushed, &request, id.as_deref(), wait).map_err(StopReason::Author)?;
        Ok(Sent { slot, path, live, expires: deadline.is_some() })
    }

    /// The call is over for the client: nothing more is sent.
    pub(super) fn forget(&mut self) {
        self.sent.drain(..).for_each(|sent| sent.live.forget());
    }
}
