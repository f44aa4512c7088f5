//! Runs a handler until it returns, or until only an answer can wake it.
//!
//! ```text
//!  poll ──▶ ready ──▶ Returned
//!   ▲ │
//!   │ └─ pending: Leg::after_poll decides
//!   │      ├─ PollAgain, Yield ──────────────────────────────────────────▶ poll again
//!   │      ├─ PollTracked ──▶ from here on, and in later first legs of the
//!   │      │                  tool, each poll has a tracker ─────────────▶ poll again
//!   │      ├─ Wait ──▶ new questions are sent, if pushed; a wake ────────▶ poll again
//!   │      ├─ WaitAtMost ──▶ the same, for a bounded time ───────────────▶ decide again
//!   │      ├─ Suspend ──▶ the round leaves, the handler is dropped
//!   │      └─ End, EndAfterSteps, Cancelled, and the handler's time
//!   └────────────────────────────────────────────────────────────────────┘
//! ```

use crate::call::{
    ask::{Ask, InputRequired},
    check_elicit,
    ctx::Ctx,
    exchange::{Exchange, HandlerEnd},
    handler::{FinalOutcome, HandlerOutcome, IntoOutcome},
    leg_runtime::LegRuntime,
};
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

/// The number of polls per turn before other tasks on the thread run.
const POLLS_IN_A_ROW: u32 = 64;
/// The time for which a new question waits for recorded entries that were not replayed.
const NEW_ASK_GRACE: Duration = Duration::from_secs(1);
/// The time for which recorded entries wait for an earlier one, which is no step, while something else may wake the handler.
const REPLAY_GRACE: Duration = Duration::from_secs(1);
/// The time for which a new step waits for a refused question that the handler has not reached.
const REFUSAL_GRACE: Duration = Duration::from_secs(1);
/// The time for which a new step, or a recorded entry, waits for a recorded step that the handler has not reached. Longer than
/// [`REFUSAL_GRACE`], because more handlers have a lookup in front of a step, beside a new one.
const DIVERGENCE_GRACE: Duration = Duration::from_secs(10);
/// The time by which a bounded wait may end late. Beyond it, the process was stopped, or had no processor: what the handler waits for,
/// such as a lookup, had no time either, and the wait begins again.
const LATE: Duration = Duration::from_millis(250);
/// The maximum number of such times in a row, on a machine that is always late.
const MAX_LATE: u32 = 4;

/// The result of running a handler for one leg.
#[derive(Debug)]
pub(crate) enum DriveResult<T> {
    /// The handler returned a result. `None` if it never needed the leg.
    Returned(FinalOutcome<T>, Option<Box<LegOutput>>),
    /// The handler waits for answers, or the leg ends at a checkpoint.
    Round(Round, Box<LegOutput>),
    /// The leg ended without a result.
    Stopped(StopReason, Box<LegOutput>),
    /// The request was cancelled.
    Cancelled,
}

/// The questions that leave.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) requests: InputRequests,
    /// The other settings of returned questions; `None` if the questions were awaited.
    pub(crate) by_hand: Option<RoundByHand>,
}

/// The settings of questions that a handler returned.
#[derive(Debug)]
pub(crate) struct RoundByHand {
    /// The `elicitationId`s that the author set for URL questions, by key.
    pub(crate) ids: Vec<(String, String)>,
    /// True if a client of 2025-11-25 receives the error that names the URLs.
    pub(crate) urls_first: bool,
}

/// Runs a handler with this context. Callers pass a reference that they have pinned, since the handler would be here twice: as
/// an argument, and pinned.
pub(crate) async fn drive<T, R: IntoOutcome<T>>(
    ctx: &Ctx,
    handler: impl Future<Output = R>,
) -> DriveResult<T> {
    let runtime = ctx.leg_runtime();
    let mut handler = pin!(handler);
    let mut driver = Driver::new(runtime, ctx.promotes_after());
    let ended = poll_fn(|cx| driver.poll(cx, handler.as_mut())).await;
    let ended = driver.exchange.ended(ended);
    drop(driver);
    // Done before the handler is dropped, because dropping abandons what it awaits.
    let ran = match ended {
        HandlerEnd::Cancelled => DriveResult::Cancelled,
        HandlerEnd::Stopped => stopped(runtime),
        HandlerEnd::Suspended => suspended(runtime.with(antiphon_engine::Leg::suspend), None),
        HandlerEnd::Returned(result) => match runtime.with_begun(|leg| leg.stop_reason().is_some()) {
            Some(true) => stopped(runtime),
            Some(false) | None => returned(runtime, result.into_outcome()),
        },
    };
    runtime.end();
    ran
}

fn returned<T>(runtime: &LegRuntime, outcome: HandlerOutcome<T>) -> DriveResult<T> {
    let InputRequired { asks, state, urls_first } = match outcome.into_final() {
        Ok(outcome) => return DriveResult::Returned(outcome, runtime.finish()),
        Err(required) => required,
    };
    let faulty = asks.iter().find_map(|ask| {
        let InputRequest::Elicit(elicit) = ask.request() else { return None };
        check_elicit(elicit).err().map(|cause| format!("`{}`: {cause}", ask.key()))
    });
    if let Some(cause) = faulty {
        runtime.with(|leg| leg.stop(StopReason::Author(cause)));
        return stopped(runtime);
    }
    let id = |ask: &Ask| Some((ask.key().to_owned(), ask.elicitation_id.clone()?));
    let ids = asks.iter().filter_map(id).collect();
    let asks = asks.into_iter().map(Ask::into_parts).collect();
    let left = runtime.begun(|leg| leg.ask_by_hand(asks, state));
    suspended(left, Some(RoundByHand { ids, urls_first }))
}

fn suspended<T>(
    (round, left): (Result<InputRequests, StopReason>, Box<LegOutput>),
    by_hand: Option<RoundByHand>,
) -> DriveResult<T> {
    match round {
        Ok(requests) => DriveResult::Round(Round { requests, by_hand }, left),
        Err(stop) => DriveResult::Stopped(stop, left),
    }
}

fn stopped<T>(runtime: &LegRuntime) -> DriveResult<T> {
    runtime.with(|leg| match leg.stop_reason().cloned() {
        Some(stop) => DriveResult::Stopped(stop, leg.finish()),
        None => DriveResult::Cancelled,
    })
}

struct Driver<'f> {
    runtime: &'f LegRuntime,
    exchange: Exchange<'f>,
    /// True if the engine must know who keeps the waker: each poll then has a tracker.
    tracks: bool,
    wait: Option<BoundedWait>,
    /// The time after which the call becomes a task, until it does.
    promotes_after: Option<Duration>,
    promotion: Option<Pin<Box<Sleep>>>,
    /// The time limit of the handler.
    time: Option<Pin<Box<Sleep>>>,
    /// The time limit of steps that still run after the leg is over.
    step_grace: Option<Pin<Box<Sleep>>>,
}

/// A bounded wait.
struct BoundedWait {
    reason: GraceReason,
    /// The progress of the handler when it began.
    progress: u64,
    sleep: Pin<Box<Sleep>>,
    /// The number of times for which it ended late.
    late: u32,
}

impl<'f> Driver<'f> {
    fn new(runtime: &'f LegRuntime, promotes_after: Option<Duration>) -> Self {
        let exchange = Exchange::of(runtime);
        Self {
            runtime,
            exchange,
            // Saves a poll: without a tracker, the handler would be polled again with one.
            tracks: runtime.needs_tracker(),
            wait: None,
            time: None,
            step_grace: None,
            promotes_after,
            promotion: None,
        }
    }

    fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut handler: Pin<&mut impl Future<Output = R>>,
    ) -> Poll<HandlerEnd<R>> {
        for _ in 0..POLLS_IN_A_ROW {
            self.exchange.receive(cx);
            let mut tracker = self.tracks.then(|| WakeTracker::new(cx.waker()));
            if let Poll::Ready(ended) = self.poll_handler(cx, tracker.as_ref(), handler.as_mut()) {
                return Poll::Ready(ended);
            }
            let mut next = self.runtime.with(|leg| leg.after_poll(tracker.as_mut(), None));
            if let NextAction::WaitAtMost(reason) = next
                && self.has_waited(reason, cx)
            {
                // A wake may have arrived in between.
                next = self.runtime.with(|leg| leg.after_poll(tracker.as_mut(), Some(reason)));
            }
            match next {
                NextAction::PollAgain => continue,
                NextAction::PollTracked => {
                    self.tracks = true;
                    self.runtime.note_tracker();
                }
                NextAction::Yield => break,
                NextAction::Suspend => return Poll::Ready(HandlerEnd::Suspended),
                NextAction::End => return Poll::Ready(HandlerEnd::Stopped),
                NextAction::EndAfterSteps => {
                    let (grace, limit) = (&mut self.step_grace, self.runtime.limits().step_grace);
                    return after(grace, limit, cx).map(|()| HandlerEnd::Stopped);
                }
                NextAction::Cancelled => return Poll::Ready(HandlerEnd::Cancelled),
                NextAction::Wait | NextAction::WaitAtMost(_) => {
                    if !matches!(next, NextAction::WaitAtMost(_)) {
                        // The grace period counts only while no step runs.
                        self.wait = None;
                    }
                    if !self.exchange.send(cx) && !self.is_promoted(cx) && !self.is_out_of_time(cx) {
                        return Poll::Pending;
                    }
                }
            }
        }
        // The time limit also applies to a handler that never rests.
        self.is_out_of_time(cx);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Polls the handler once. A panic of the handler stops the leg.
    fn poll_handler<R>(
        &self,
        cx: &mut Context<'_>,
        tracker: Option<&WakeTracker>,
        handler: Pin<&mut impl Future<Output = R>>,
    ) -> Poll<HandlerEnd<R>> {
        let tracking = tracker.map(WakeTracker::waker);
        let waker = tracking.as_ref().unwrap_or(cx.waker());
        self.runtime.begin_poll(waker, cx.waker());
        let polled = {
            let _guard = self.runtime.enter_poll();
            let mut cx = Context::from_waker(waker);
            // The handler is not polled again after a panic, so no broken invariant is observed.
            catch_unwind(AssertUnwindSafe(|| handler.poll(&mut cx)))
        };
        self.runtime.end_poll();
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => Poll::Ready(HandlerEnd::Returned(result)),
            Err(panic) => {
                self.runtime.with(|leg| leg.stop_at_panic(text_of(&*panic)));
                Poll::Ready(HandlerEnd::Stopped)
            }
        }
    }

    /// Returns true if a bounded wait is over. The wait begins with the first call for it.
    fn has_waited(&mut self, reason: GraceReason, cx: &mut Context<'_>) -> bool {
        // The wait begins again when the handler makes progress.
        let progress = self.runtime.with(|leg| leg.progress(reason));
        let time = match reason {
            GraceReason::Ask => self.runtime.limits().grace,
            GraceReason::NewAsk => NEW_ASK_GRACE,
            GraceReason::Replay => REPLAY_GRACE,
            GraceReason::Refusal => REFUSAL_GRACE,
            GraceReason::Divergence => DIVERGENCE_GRACE,
        };
        let mut wait = match self.wait.take() {
            Some(wait) if (wait.reason, wait.progress) == (reason, progress) => wait,
            _ => BoundedWait { reason, progress, sleep: Box::pin(tokio::time::sleep(time)), late: 0 },
        };
        let mut is_over = wait.sleep.as_mut().poll(cx).is_ready();
        if is_over && wait.late < MAX_LATE && wait.sleep.deadline() + LATE < Instant::now() {
            wait.late += 1;
            wait.sleep.as_mut().reset(Instant::now() + time);
            is_over = wait.sleep.as_mut().poll(cx).is_ready();
        }
        if !is_over {
            self.wait = Some(wait);
        }
        is_over
    }

    /// Returns true if the time is over after which the call becomes a task, and ends the leg soon in that case.
    fn is_promoted(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(time) = self.promotes_after else { return false };
        let is_over = after(&mut self.promotion, time, cx).is_ready();
        if is_over {
            self.promotes_after = None;
            self.runtime.begun(antiphon_engine::Leg::end_soon);
        }
        is_over
    }

    /// Returns true if the handler's time is over, and stops the leg in that case.
    fn is_out_of_time(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(limit) = self.exchange.time_limit(self.runtime) else { return false };
        if self.exchange.waits_for_people(self.runtime)
            && let Some(time) = &mut self.time
        {
            time.as_mut().reset(Instant::now() + limit);
        }
        let is_over = after(&mut self.time, limit, cx).is_ready();
        if is_over {
            self.runtime.with(antiphon_engine::Leg::stop_at_timeout);
        }
        is_over
    }
}

/// Becomes ready when this time is over. The time begins with the first call.
fn after(timer: &mut Option<Pin<Box<Sleep>>>, time: Duration, cx: &mut Context<'_>) -> Poll<()> {
    timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(time))).as_mut().poll(cx)
}

/// Returns the text of a panic, if it has one.
fn text_of(panic: &(dyn Any + Send)) -> Option<String> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).map(ToOwned::to_owned)
}
