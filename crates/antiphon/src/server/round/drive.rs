//! Runs a handler until it returns, or until nothing but an answer can let it go on.
//!
//! ```text
//!  poll ──▶ ready ──▶ Returned
//!   ▲ │
//!   │ └─ pending: Leg::after_poll decides
//!   │      ├─ Again, Soon ───────────────────────────────────────────────▶ poll again
//!   │      ├─ Track ──▶ from here on each poll has a tracker ────────────▶ poll again
//!   │      ├─ Wait ──▶ what is asked is sent, where it can be; a wake ───▶ poll again
//!   │      ├─ Grace ─▶ the same, for a bounded time ─────────────────────▶ decide again
//!   │      ├─ Suspend ──▶ the round leaves, the handler is dropped
//!   │      └─ StopReason, Cancelled, and the handler's time
//!   └────────────────────────────────────────────────────────────────────┘
//! ```

use super::{carrier::Exchange, flow::Flow};
use crate::server::{Ask, Ctx, HandlerOutcome, InputRequired, IntoOutcome, round::check_elicit};
use antiphon_engine::{GraceReason, LegOutput, NextAction, StopReason, WakeTracker};
use antiphon_wire::{InputRequest, InputRequests};
use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep};

/// Polls per turn before others on the thread run.
const POLLS_IN_A_ROW: u32 = 64;
/// How long recorded entries wait for those before them while something else may wake the handler.
const REPLAY_PATIENCE: Duration = Duration::from_secs(1);

/// The result of running a handler for one leg.
#[derive(Debug)]
pub(crate) enum Ran<T> {
    /// It returned a result.
    Returned(HandlerOutcome<T>, Box<LegOutput>),
    /// It waits for answers, or wants to go on elsewhere.
    Round(Round, Box<LegOutput>),
    /// The leg ended without a result.
    Stopped(StopReason, Box<LegOutput>),
    /// Nobody waits for it any more.
    Cancelled,
}

/// The questions that leave.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) requests: InputRequests,
    /// The rest of what the handler returned, if it returned the questions.
    pub(crate) by_hand: Option<ByHand>,
}

/// What else a handler says of the questions that it returns.
#[derive(Debug)]
pub(crate) struct ByHand {
    /// The `elicitationId`s that its author gave to URL questions, by their keys.
    pub(crate) ids: Vec<(String, String)>,
    /// In a session of 2025-11-25: an error that names the URLs.
    pub(crate) urls_first: bool,
}

/// Runs a handler of this context.
pub(crate) async fn drive<T, R: IntoOutcome<T>>(ctx: &Ctx, handler: impl Future<Output = R>) -> Ran<T> {
    let flow = ctx.flow();
    let mut handler = pin!(handler);
    let mut driver = Driver::new(flow);
    let ended = poll_fn(|cx| driver.poll(cx, handler.as_mut())).await;
    let ended = driver.exchange.ended(ended);
    drop(driver);
    // Before the handler is dropped, which gives up what it waits for.
    let ran = match ended {
        Ended::Cancelled => Ran::Cancelled,
        Ended::Stopped => stopped(flow),
        Ended::Suspended => suspended(flow.with(antiphon_engine::Leg::suspend), None),
        Ended::Returned(result) => match flow.with(|leg| leg.stop_reason().cloned()) {
            Some(_) => stopped(flow),
            None => returned(flow, result.into_outcome()),
        },
    };
    flow.end();
    ran
}

fn returned<T>(flow: &Flow, outcome: HandlerOutcome<T>) -> Ran<T> {
    let HandlerOutcome::InputRequired(required) = outcome else {
        return Ran::Returned(outcome, Box::new(flow.with(antiphon_engine::Leg::finish)));
    };
    let InputRequired { asks, state, urls_first } = required;
    let faulty = asks.iter().find_map(|ask| {
        let InputRequest::Elicit(elicit) = ask.request() else { return None };
        check_elicit(elicit).err().map(|cause| format!("`{}`: {cause}", ask.key()))
    });
    if let Some(cause) = faulty {
        flow.with(|leg| leg.stop(StopReason::Author(cause)));
        return stopped(flow);
    }
    let id = |ask: &Ask| Some((ask.key().to_owned(), ask.elicitation_id.clone()?));
    let ids = asks.iter().filter_map(id).collect();
    let asks = asks.into_iter().map(Ask::into_parts).collect();
    let left = flow.begun(|leg| leg.ask_by_hand(asks, state));
    suspended(left, Some(ByHand { ids, urls_first }))
}

fn suspended<T>(
    (round, left): (Result<InputRequests, StopReason>, LegOutput),
    by_hand: Option<ByHand>,
) -> Ran<T> {
    match round {
        Ok(requests) => Ran::Round(Round { requests, by_hand }, Box::new(left)),
        Err(stop) => Ran::Stopped(stop, Box::new(left)),
    }
}

fn stopped<T>(flow: &Flow) -> Ran<T> {
    flow.with(|leg| match leg.stop_reason().cloned() {
        Some(stop) => Ran::Stopped(stop, Box::new(leg.finish())),
        None => Ran::Cancelled,
    })
}

/// How running a handler ended.
pub(super) enum Ended<R> {
    Returned(R),
    Suspended,
    Stopped,
    Cancelled,
}

struct Driver<'f> {
    flow: &'f Flow,
    exchange: Exchange<'f>,
    /// It matters who keeps the waker: from now on each poll has a tracker.
    tracks: bool,
    /// A bounded wait, and how much was delivered when it began.
    wait: Option<(GraceReason, u32, Pin<Box<Sleep>>)>,
    /// The handler's time.
    time: Option<Pin<Box<Sleep>>>,
    /// The time of the steps that run where the leg is over.
    step_grace: Option<Pin<Box<Sleep>>>,
}

impl<'f> Driver<'f> {
    fn new(flow: &'f Flow) -> Self {
        let exchange = flow.carrier().exchange(flow);
        Self { flow, exchange, tracks: false, wait: None, time: None, step_grace: None }
    }

    fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut handler: Pin<&mut impl Future<Output = R>>,
    ) -> Poll<Ended<R>> {
        for _ in 0..POLLS_IN_A_ROW {
            self.exchange.receive(cx);
            let mut tracker = self.tracks.then(|| WakeTracker::new(cx.waker()));
            if let Poll::Ready(ended) = self.poll_handler(cx, tracker.as_ref(), handler.as_mut()) {
                return Poll::Ready(ended);
            }
            let mut next = self.flow.with(|leg| leg.after_poll(tracker.as_mut(), None));
            if let NextAction::WaitAtMost(patience) = next
                && self.has_waited(patience, cx)
            {
                // A wake may have come in between.
                next = self.flow.with(|leg| leg.after_poll(tracker.as_mut(), Some(patience)));
            }
            match next {
                NextAction::PollAgain => continue,
                NextAction::PollTracked => self.tracks = true,
                NextAction::Yield => break,
                NextAction::Suspend => return Poll::Ready(Ended::Suspended),
                NextAction::End => return Poll::Ready(Ended::Stopped),
                NextAction::EndAfterSteps => {
                    let (grace, limit) = (&mut self.step_grace, self.flow.limits().step_grace);
                    return after(grace, limit, cx).map(|()| Ended::Stopped);
                }
                NextAction::Cancelled => return Poll::Ready(Ended::Cancelled),
                NextAction::Wait | NextAction::WaitAtMost(_) => {
                    if !matches!(next, NextAction::WaitAtMost(_)) {
                        // The grace counts while no step runs.
                        self.wait = None;
                    }
                    if !self.exchange.send(cx) && !self.is_out_of_time(cx) {
                        return Poll::Pending;
                    }
                }
            }
        }
        // Its time is over also where it never rests.
        self.is_out_of_time(cx);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Polls the handler once. A panic of it stops the leg.
    fn poll_handler<R>(
        &self,
        cx: &mut Context<'_>,
        tracker: Option<&WakeTracker>,
        handler: Pin<&mut impl Future<Output = R>>,
    ) -> Poll<Ended<R>> {
        let tracking = tracker.map(WakeTracker::waker);
        let waker = tracking.as_ref().unwrap_or(cx.waker());
        self.flow.with(|leg| leg.begin_poll(waker, cx.waker()));
        let polled = {
            let _here = self.flow.poll_here();
            let mut cx = Context::from_waker(waker);
            // It is not polled again, and nothing half-changed in it is seen again.
            catch_unwind(AssertUnwindSafe(|| handler.poll(&mut cx)))
        };
        // The identity of the waker is good only while it lives.
        self.flow.with(antiphon_engine::Leg::end_poll);
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => Poll::Ready(Ended::Returned(result)),
            Err(panic) => {
                self.flow.with(|leg| leg.stop_at_panic(text_of(&*panic)));
                Poll::Ready(Ended::Stopped)
            }
        }
    }

    /// Whether a bounded wait is over, which begins with the first call for it.
    fn has_waited(&mut self, patience: GraceReason, cx: &mut Context<'_>) -> bool {
        // That for the record begins anew with each entry that is met.
        let delivered = match patience {
            GraceReason::Ask => 0,
            GraceReason::Replay => self.flow.with(|leg| leg.delivered_entries()),
        };
        if self.wait.as_ref().is_none_or(|(of, at, _)| (*of, *at) != (patience, delivered)) {
            let time = match patience {
                GraceReason::Ask => self.flow.limits().grace,
                GraceReason::Replay => REPLAY_PATIENCE,
            };
            self.wait = Some((patience, delivered, Box::pin(tokio::time::sleep(time))));
        }
        let is_over = self.wait.as_mut().is_some_and(|(.., sleep)| sleep.as_mut().poll(cx).is_ready());
        if is_over {
            self.wait = None;
        }
        is_over
    }

    /// Whether the handler's time is over: then the leg is stopped.
    fn is_out_of_time(&mut self, cx: &mut Context<'_>) -> bool {
        let limit = self.flow.limits().handler_time;
        if self.exchange.waits_for_people(self.flow)
            && let Some(time) = &mut self.time
        {
            time.as_mut().reset(Instant::now() + limit);
        }
        let is_over = after(&mut self.time, limit, cx).is_ready();
        if is_over {
            self.flow.with(antiphon_engine::Leg::stop_at_timeout);
        }
        is_over
    }
}

/// Ready once this time is over, from the first call on.
fn after(timer: &mut Option<Pin<Box<Sleep>>>, time: Duration, cx: &mut Context<'_>) -> Poll<()> {
    timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(time))).as_mut().poll(cx)
}

/// The text of a panic, if it has one.
fn text_of(panic: &(dyn Any + Send)) -> Option<String> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).map(ToOwned::to_owned)
}
