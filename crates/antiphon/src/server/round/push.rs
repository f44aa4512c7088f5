//! Runs a handler in a session: what it asks is sent at once, as a request of ours, and the handler waits.
//!
//! ```text
//!  poll ──▶ ready ──▶ Returned                    what is no longer asked is taken back
//!   ▲ │
//!   │ └─ pending ──▶ asked now, and not sent? ──▶ sent      sent, and asked no more? ──▶ cancelled
//!   │                                   │
//!   └──── an answer has come ◀──────────┘  it is recorded, and judged where it is waited for
//! ```
//!
//! The record is the same as ever, but it stays here: an answer counts by the same rules as one that came with a request.

use super::{
    drive::{Ended, POLLS_IN_A_ROW, Stopping},
    flow::Flow,
    machine::{Machine, Next, Stop, seconds},
};
use crate::server::{
    legacy::{AskEnd, Live, Session, Wait, not_answered, too_late},
    outbox::Outbox,
};
use antiphon_wire::{AskSupport, InputRequest};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// How a leg reaches a client in a session.
#[derive(Debug)]
pub(crate) struct Push {
    pub(crate) session: Session,
    /// The stream of the call.
    pub(crate) outbox: Outbox,
    /// How long an ask waits for its answer.
    pub(crate) wait: Wait,
    /// What an answer's sender must hold, as who began the call.
    pub(crate) scopes: Vec<String>,
}

/// The driver of one leg in a session.
pub(super) struct Pusher<'f> {
    flow: &'f Flow,
    push: &'f Push,
    sent: Vec<Sent>,
    stopping: Stopping,
}

/// An ask that is on its way.
struct Sent {
    order: u64,
    path: Box<str>,
    live: Live,
    /// Its time is the author's: then there is an answer, that it is over.
    expires: bool,
}

impl<'f> Pusher<'f> {
    pub(super) fn new(flow: &'f Flow, push: &'f Push) -> Self {
        Self { flow, push, sent: Vec::new(), stopping: Stopping::default() }
    }

    pub(super) fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut handler: Pin<&mut impl Future<Output = R>>,
    ) -> Poll<Ended<R>> {
        for _ in 0..POLLS_IN_A_ROW {
            self.take_arrived(cx);
            let epoch = self.flow.machine().epoch();
            let polled = {
                let _here = self.flow.enter();
                handler.as_mut().poll(cx)
            };
            self.flow.forget_reached(cx.waker());
            if let Poll::Ready(result) = polled {
                return Poll::Ready(Ended::Returned(result));
            }
            let next = self.flow.machine().after_poll(epoch);
            match next {
                Next::Stop => return Poll::Ready(Ended::Stopped),
                Next::StopSoon => return self.stopping.poll(cx, self.flow).map(|()| Ended::Stopped),
                Next::Cancelled => {
                    self.forget();
                    return Poll::Ready(Ended::Cancelled);
                }
                Next::Again => {
                    self.flow.wake_held();
                    continue;
                }
                Next::Wait | Next::Judge => {}
            }
            let settled = self.settle();
            if let Err(stop) = settled {
                // The next poll sees to what still runs.
                self.flow.machine().stop(stop);
                continue;
            }
            if !self.take_arrived(cx) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Records the answers that have come, and what is over. Whether there was any.
    fn take_arrived(&mut self, cx: &mut Context<'_>) -> bool {
        let mut arrived = false;
        let mut at = 0;
        while at < self.sent.len() {
            let Poll::Ready(end) = self.sent[at].live.poll(cx) else {
                at += 1;
                continue;
            };
            let sent = self.sent.remove(at);
            let mut machine = self.flow.machine();
            match end {
                AskEnd::Answer(Ok(text)) => machine.arrive(sent.order, Some(text.get().to_owned())),
                AskEnd::Answer(Err(error)) => machine.stop(Stop::Client(not_answered(&sent.path, &error))),
                AskEnd::SessionOver => {
                    machine.stop(Stop::Client(format!("`{}` was not answered: the session ended", sent.path)))
                }
                AskEnd::TooLate(_) if sent.expires => machine.arrive(sent.order, None),
                AskEnd::TooLate(waited) => {
                    machine.stop(Stop::Limit { name: "answer_within", text: too_late(&sent.path, waited) })
                }
            }
            arrived = true;
        }
        if arrived {
            self.flow.wake_held();
        }
        arrived
    }

    /// Sends what is asked now, and takes back what is asked no more.
    fn settle(&mut self) -> Result<(), Stop> {
        let now = seconds(self.flow.server().0.clock.now());
        let mut machine = self.flow.machine();
        machine.set_now(now);
        if machine.is_cancelled() {
            drop(machine);
            self.forget();
            return Ok(());
        }
        self.sent.retain(|sent| machine.asks(sent.order));
        let mut unsent: Vec<u64> = machine
            .pending_orders()
            .filter(|order| self.sent.iter().all(|sent| sent.order != *order))
            .collect();
        unsent.sort_unstable();
        // The others when some of these are answered.
        unsent.truncate(self.flow.limits().asks.saturating_sub(self.sent.len()));
        for order in unsent {
            self.sent.push(self.send(&machine, order, now)?);
        }
        Ok(())
    }

    fn send(&self, machine: &Machine, order: u64, now: u64) -> Result<Sent, Stop> {
        let Some(asked) = machine.pending(order) else {
            return Err(Stop::Author("an ask is gone".to_owned()));
        };
        // > A server **MUST NOT** send requests for capabilities that were not negotiated.
        let missing = self.push.session.missing(asked.request);
        if missing != AskSupport::NONE {
            return Err(Stop::Capability { path: asked.path.into(), missing });
        }
        let id = asked.elicitation_id.map(ToOwned::to_owned).or_else(|| match asked.request {
            InputRequest::Elicit(elicit) if elicit.is_url() => machine.elicitation_id(asked.path),
            _ => None,
        });
        let wait = match asked.deadline {
            Some(deadline) => {
                Wait { limit: Duration::from_secs(deadline.saturating_sub(now)), at_most: None }
            }
            None => self.push.wait,
        };
        let live = Live::send(self.push, asked.request, id.as_deref(), wait).map_err(Stop::Author)?;
        Ok(Sent { order, path: asked.path.into(), live, expires: asked.deadline.is_some() })
    }

    /// The call is over for the client: nothing more is sent.
    fn forget(&mut self) {
        self.sent.drain(..).for_each(|sent| sent.live.forget());
    }
}
