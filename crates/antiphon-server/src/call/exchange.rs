//! The driver's exchange with the client while a handler runs, by carrier: sealed, pushed on a session, or with a task; and with the
//! store of a claimed leg, which notes steps and the order of deliveries.
//!
//! In a session, each question is sent at once as a request of the server, and the handler waits:
//!
//! ```text
//!  the handler is pending ──▶ asked, and not sent? ──▶ sent      sent, and asked no more? ──▶ cancelled
//!                                                       │
//!  the handler is polled ◀── the answer is delivered ◀──┘  checked by the same rules as one that came with a request
//! ```

use crate::{
    at_most_once::ClaimedLeg,
    call::leg_runtime::LegRuntime,
    errors::refusal::NOT_APPROVER,
    request::carrier::{LegCarrier, Pushed},
    session::{AnswerTimeout, AskEnd, OutboundRequest, Question, not_answered, too_late},
    task_registry::leg::TaskLeg,
};
use antiphon_engine::{Leg, PendingAsk, SlotId, StopReason, WriteAhead};
use antiphon_store::LegStop;
use antiphon_wire::{AskSupport, InputRequest};
use futures_util::future::BoxFuture;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// The end of a run of a handler.
pub(crate) enum HandlerEnd<R> {
    Returned(R),
    Suspended,
    Stopped,
    Cancelled,
}

/// The messages to and from the client while a handler runs.
pub(crate) enum Exchange<'f> {
    Sealed,
    Pushed(PushedAsks<'f>),
    Task(TaskExchange<'f>),
}

impl<'f> Exchange<'f> {
    /// Returns the exchange for the carrier of this leg.
    pub(crate) fn of(runtime: &'f LegRuntime) -> Self {
        match runtime.carrier() {
            LegCarrier::Sealed => Self::Sealed,
            LegCarrier::Pushed(pushed) => Self::Pushed(PushedAsks::new(runtime, pushed)),
            LegCarrier::Task(task) => Self::Task(TaskExchange::new(runtime, task)),
        }
    }

    /// Delivers answers that have arrived. Returns true if there were any.
    pub(crate) fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(asks) => asks.receive(cx),
            Self::Task(task) => {
                task.receive(cx);
                false
            }
        }
    }

    /// Sends new questions, and withdraws those that are not asked any more. Returns true if the handler must be polled
    /// again.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(asks) => asks.send(cx),
            Self::Task(task) => task.send(cx),
        }
    }

    /// Returns true while people have time to answer, which does not count as the handler's time.
    pub(crate) fn waits_for_people(&self, runtime: &LegRuntime) -> bool {
        match self {
            Self::Sealed | Self::Task(_) => false,
            Self::Pushed(_) => runtime.with(|leg| leg.waits_for_client()),
        }
    }

    /// Returns the time limit of the handler. Without a limit of its own, a task has as much time as it exists.
    pub(crate) fn time_limit(&self, runtime: &LegRuntime) -> Option<Duration> {
        runtime.timeout().or_else(|| match self {
            Self::Sealed | Self::Pushed(_) => Some(runtime.limits().handler_timeout),
            Self::Task(_) => None,
        })
    }

    /// Discards unsent messages if the call was cancelled, and stores the end for a task.
    pub(crate) fn ended<R>(&mut self, ended: HandlerEnd<R>) -> HandlerEnd<R> {
        match (self, &ended) {
            (Self::Pushed(asks), HandlerEnd::Cancelled) => asks.forget(),
            (Self::Task(task), _) => task.ended(),
            _ => {}
        }
        ended
    }
}

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

/// The time for which a cancelled task waits for its handler, which awaits something that is not recorded, to reach its next step or
/// question. Many handlers have a lookup in front of a step; and a person waits for the end.
const CANCELLATION_GRACE: Duration = Duration::from_secs(2);

/// The exchange of one leg with its task.
pub(crate) struct TaskExchange<'f> {
    runtime: &'f LegRuntime,
    task: &'f TaskLeg,
    /// The version of the leg's questions that were sent to the runner.
    version: Option<u64>,
    /// The operation of the store before questions are sent to the runner.
    order: Option<StoreOrder<'f>>,
    /// The time until a handler that has not met the cancellation is dropped.
    grace: Option<Pin<Box<Sleep>>>,
    /// True if that time is over.
    is_grace_over: bool,
}

impl<'f> TaskExchange<'f> {
    pub(crate) fn new(runtime: &'f LegRuntime, task: &'f TaskLeg) -> Self {
        Self { runtime, task, version: None, order: None, grace: None, is_grace_over: false }
    }

    /// Ends the leg soon, if the runner requires it. Nothing is delivered: answers come with the next leg.
    pub(crate) fn receive(&self, cx: &Context<'_>) {
        match self.task.poll_stop(cx) {
            LegStop::No => {}
            LegStop::AfterNextEntry => self.runtime.with(Leg::end_after_next_entry),
            LegStop::Soon => self.runtime.with(Leg::end_soon),
        }
    }

    /// Sends to the runner whether the handler has met the cancellation of the task, and the ids of the questions that leave.
    pub(crate) fn ended(&self) {
        let (is_met, asking) = self.runtime.with(|leg| (leg.has_met_cancellation(), asking(leg)));
        self.task.report(|news| {
            news.is_cancellation_unmet = !is_met;
            news.is_grace_over = self.is_grace_over;
            news.elicitation_ids = elicitation_ids(&asking);
        });
    }

    /// Returns true once the store has the order in which the handler received everything up to here: the questions that a client
    /// sees are then asked again after a crash.
    fn is_order_stored(&mut self, cx: &mut Context<'_>) -> bool {
        // The start of a step is being stored with them.
        if self.order.is_none() && self.runtime.with(|leg| leg.is_written_soon()) {
            return false;
        }
        let Some(order) = self.order.take().or_else(|| StoreOrder::begin(self.runtime)) else { return true };
        match self.order.insert(order).poll(cx) {
            Poll::Ready(is_stored) => {
                self.order = None;
                is_stored
            }
            Poll::Pending => false,
        }
    }

    /// Ends the leg if its handler waits too long for something that is not recorded, and so does not meet the cancellation. Returns
    /// true if it has.
    fn ends_by_cancellation(&mut self, cx: &mut Context<'_>) -> bool {
        let waits = self
            .runtime
            .with(|leg| !leg.has_met_cancellation() && !leg.ends_soon() && !leg.has_running_step());
        if !waits {
            self.grace = None;
            return false;
        }
        let grace = self.grace.get_or_insert_with(|| Box::pin(sleep(CANCELLATION_GRACE)));
        self.is_grace_over = grace.as_mut().poll(cx).is_ready();
        if self.is_grace_over {
            self.runtime.with(Leg::end_soon);
        }
        self.is_grace_over
    }

    /// Sends new questions to the runner, while a step runs. Returns true if the handler must be polled again.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.runtime.now();
        let version = self.runtime.with(|leg| leg.has_running_step().then(|| leg.asks_version()));
        let may_send =
            version.is_some_and(|version| self.version != Some(version)) && self.is_order_stored(cx);
        let ended = self.ends_by_cancellation(cx);
        let questions = self.runtime.with(|leg| {
            leg.set_now(now);
            let version = leg.asks_version();
            let is_new = self.version != Some(version) && leg.has_running_step();
            (is_new && may_send).then(|| {
                self.version = Some(version);
                asking(leg)
            })
        });
        if let Some(questions) = questions {
            // A question that the client does not support ends the leg, once its steps have ended.
            let supported = |request: &InputRequest| self.task.asks.covers(request.needs());
            let questions = questions.into_iter().filter(|ask| supported(&ask.request));
            // As many as a round has.
            let questions = questions.take(self.runtime.limits().engine.asks);
            let questions: Vec<PendingAsk> = questions.collect();
            self.task.report(|news| {
                news.elicitation_ids = elicitation_ids(&questions);
                news.questions = Some(questions);
            });
        }
        ended
    }
}

fn asking(leg: &Leg) -> Vec<PendingAsk> {
    leg.asking_slots().into_iter().filter_map(|slot| leg.pending_ask(slot)).collect()
}

fn elicitation_ids(asks: &[PendingAsk]) -> Vec<(String, String)> {
    asks.iter().filter_map(|ask| Some((ask.path.clone(), ask.elicitation_id.clone()?))).collect()
}

/// The operation of the store. The leg does not end while it runs.
pub(crate) struct StoreOrder<'l> {
    runtime: &'l LegRuntime,
    /// `None` once the operation has ended.
    operation: Option<BoxFuture<'static, Result<(), StopReason>>>,
    ahead: WriteAhead,
}

impl<'l> StoreOrder<'l> {
    /// Begins to store the deliveries up to here. `None` if the leg has no store, or the store has them all.
    pub(crate) fn begin(runtime: &'l LegRuntime) -> Option<Self> {
        let claim = runtime.claim().filter(|claim| claim.writes_ahead())?;
        let ahead = runtime.with(|leg| {
            let ahead = leg.write_ahead()?;
            leg.store_operation(true);
            Some(ahead)
        })?;
        let operation = Some(claim.store_order(&ahead));
        Some(Self { runtime, operation, ahead })
    }

    /// Returns true once the deliveries are stored, or false if they are not: the leg then ends.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(operation) = &mut self.operation else { return Poll::Ready(false) };
        let stored = ready!(operation.as_mut().poll(cx));
        self.operation = None;
        Poll::Ready(self.runtime.with(|leg| {
            leg.store_operation(false);
            match stored {
                Ok(()) => {
                    leg.written(&self.ahead);
                    !leg.is_over()
                }
                Err(reason) => {
                    leg.stop(reason);
                    false
                }
            }
        }))
    }
}

impl Drop for StoreOrder<'_> {
    fn drop(&mut self) {
        if self.operation.is_some() {
            self.runtime.with(|leg| leg.store_operation(false));
        }
    }
}

/// A guard: a step of a claimed leg runs. A step that is dropped while its leg goes on is in the record, as abandoned;
/// one that is dropped with its leg is interrupted.
pub(crate) struct OpenStep<'a> {
    leg: &'a LegRuntime,
    claim: &'a ClaimedLeg,
    ended: bool,
}

impl<'a> OpenStep<'a> {
    pub(crate) fn new(leg: &'a LegRuntime, claim: &'a ClaimedLeg) -> Self {
        claim.step_began();
        Self { leg, claim, ended: false }
    }

    /// Notes that the step has an outcome.
    pub(crate) fn end(mut self) {
        self.ended = true;
    }

    /// Notes that the step has no outcome, and may run again.
    pub(crate) fn fail(mut self) {
        self.ended = true;
        self.claim.step_failed();
    }
}

impl Drop for OpenStep<'_> {
    fn drop(&mut self) {
        if !self.ended && !self.leg.with(|leg| leg.may_attempt_step()) {
            self.claim.step_interrupted();
        }
    }
}
