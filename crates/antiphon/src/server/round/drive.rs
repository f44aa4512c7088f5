//! Runs a handler until it returns, or until nothing but an answer can let it go on.
//!
//! ```text
//!  poll ──▶ ready ──▶ Returned
//!   ▲ │
//!   │ └─ pending ─┬─ something held may go on ──────────────────────────────▶ poll again
//!   │             ├─ a step runs, or nothing is asked ──▶ wait for a wake ──▶ poll again
//!   │             └─ asked: is there a waker left that could wake the handler?
//!   │                  ├─ none ───────────────────────▶ Suspended: the round leaves, the handler is dropped
//!   │                  └─ some ─▶ wait, for `grace` ──▶ Suspended
//!   └────────────────────────────────┘ woken meanwhile
//! ```

use super::{
    flow::Flow,
    machine::{Kept, Next, Quiet, Stop},
    push::Pusher,
    tracker::{self, Tracker},
};
use crate::server::{Ctx, HandlerOutcome, IntoOutcome};
use antiphon_wire::InputRequests;
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Sleep;

/// So often a handler that wakes itself is polled before others on the thread are.
pub(super) const POLLS_IN_A_ROW: u32 = 64;
/// So long recorded entries wait for those before them where a waker is kept that may never wake.
const ORDER_PATIENCE: Duration = Duration::from_secs(1);

/// What running a handler came to.
#[derive(Debug)]
pub(crate) enum Ran<T> {
    /// It returned.
    Returned(HandlerOutcome<T>, Box<Kept>),
    /// It waits for answers, or wants to go on elsewhere.
    Suspended(InputRequests, Box<Kept>),
    /// The leg ended without it.
    Stopped(Stop, Box<Kept>),
    /// Nobody waits for it any more.
    Cancelled,
}

impl<T> Ran<T> {
    /// Whether this leg has recorded a new step.
    pub(crate) fn ran_a_step(&self) -> bool {
        match self {
            Self::Returned(_, kept) | Self::Suspended(_, kept) | Self::Stopped(_, kept) => {
                kept.witness.first_step.is_some()
            }
            Self::Cancelled => false,
        }
    }
}

/// Runs a handler of this context.
pub(crate) async fn drive<T, R: IntoOutcome<T>>(ctx: &Ctx, handler: impl Future<Output = R>) -> Ran<T> {
    let flow = ctx.flow();
    let mut handler = pin!(handler);
    let ended = match flow.push() {
        None => {
            let mut driver =
                Driver { flow, tracks: false, grace: None, order: None, stopping: Stopping::default() };
            poll_fn(|cx| driver.poll(cx, handler.as_mut())).await
        }
        Some(push) => {
            let mut pusher = Pusher::new(flow, push);
            poll_fn(|cx| pusher.poll(cx, handler.as_mut())).await
        }
    };
    // Before the handler is dropped, which withdraws what it asks.
    let mut machine = flow.machine();
    let ran = match (ended, machine.take_stop()) {
        (Ended::Cancelled, _) => Ran::Cancelled,
        (_, Some(stop)) => Ran::Stopped(stop, Box::new(machine.finish())),
        (Ended::Returned(result), None) => {
            let kept = Box::new(machine.finish());
            drop(machine);
            flow.end();
            return Ran::Returned(result.into_outcome(), kept);
        }
        (Ended::Suspended | Ended::Stopped, None) => {
            let (requests, kept) = machine.suspend(flow.limits());
            Ran::Suspended(requests, Box::new(kept))
        }
    };
    drop(machine);
    flow.end();
    ran
}

/// How running it ended.
pub(super) enum Ended<R> {
    Returned(R),
    Suspended,
    Stopped,
    Cancelled,
}

struct Driver<'f> {
    flow: &'f Flow,
    /// Something was asked: from now on each poll has a tracker.
    tracks: bool,
    grace: Option<Pin<Box<Sleep>>>,
    order: Option<Pin<Box<Sleep>>>,
    stopping: Stopping,
}

/// How long the steps that run are waited for where the leg is over.
#[derive(Default)]
pub(super) struct Stopping(Option<Pin<Box<Sleep>>>);

impl Stopping {
    /// Ready once they have had their time.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, flow: &Flow) -> Poll<()> {
        let grace = flow.limits().step_grace;
        self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep(grace))).as_mut().poll(cx)
    }
}

impl Driver<'_> {
    fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut handler: Pin<&mut impl Future<Output = R>>,
    ) -> Poll<Ended<R>> {
        for _ in 0..POLLS_IN_A_ROW {
            let epoch = self.flow.machine().epoch();
            let mut tracker = self.tracks.then(|| Tracker::new(cx.waker()));
            let polled = {
                let _here = self.flow.enter();
                match &tracker {
                    None => handler.as_mut().poll(cx),
                    Some(tracker) => {
                        let waker = tracker.waker();
                        let polled = handler.as_mut().poll(&mut Context::from_waker(&waker));
                        self.flow.forget_reached(&waker);
                        polled
                    }
                }
            };
            if let Poll::Ready(result) = polled {
                return Poll::Ready(Ended::Returned(result));
            }
            let next = self.flow.machine().after_poll(epoch);
            match next {
                Next::Stop => return Poll::Ready(Ended::Stopped),
                Next::StopSoon => return self.stopping.poll(cx, self.flow).map(|()| Ended::Stopped),
                Next::Cancelled => return Poll::Ready(Ended::Cancelled),
                Next::Again => self.flow.wake_held(),
                Next::Wait => {
                    // The grace counts while no step runs.
                    self.grace = None;
                    return Poll::Pending;
                }
                Next::Judge => match &mut tracker {
                    // From here on it matters who keeps the waker.
                    None => self.tracks = true,
                    Some(tracker) => match self.judge(cx, tracker.judge()) {
                        Poll::Ready(Some(ended)) => return Poll::Ready(ended),
                        Poll::Ready(None) => {}
                        Poll::Pending => return Poll::Pending,
                    },
                },
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The end of the leg; nothing to poll again; pending to wait.
    fn judge<R>(&mut self, cx: &mut Context<'_>, wakers: tracker::Quiet) -> Poll<Option<Ended<R>>> {
        let mut machine = self.flow.machine();
        if wakers == tracker::Quiet::Nobody {
            let quiet = machine.quiet();
            drop(machine);
            return self.act(quiet);
        }
        if machine.asks_or_pauses() {
            let grace = self.flow.limits().grace;
            let timer = self.grace.get_or_insert_with(|| Box::pin(tokio::time::sleep(grace)));
            if timer.as_mut().poll(cx).is_ready() {
                let quiet = machine.grace_is_over();
                drop(machine);
                return self.act(quiet);
            }
        } else if machine.waits_for_order() {
            let timer = self.order.get_or_insert_with(|| Box::pin(tokio::time::sleep(ORDER_PATIENCE)));
            if timer.as_mut().poll(cx).is_ready() {
                machine.order_is_over();
                drop(machine);
                return self.act(Quiet::Again);
            }
        }
        if wakers == tracker::Quiet::Woken { Poll::Ready(None) } else { Poll::Pending }
    }

    fn act<R>(&self, quiet: Quiet) -> Poll<Option<Ended<R>>> {
        match quiet {
            Quiet::Again => {
                self.flow.wake_held();
                Poll::Ready(None)
            }
            Quiet::Suspend => Poll::Ready(Some(Ended::Suspended)),
            Quiet::Stop => Poll::Ready(Some(Ended::Stopped)),
            Quiet::Wait => Poll::Pending,
        }
    }
}
