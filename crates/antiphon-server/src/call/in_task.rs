//! The exchange of a leg with its task: the questions that are asked beside a running step, and the end of the leg.

use crate::{
    call::{leg_runtime::LegRuntime, store_order::StoreOrder},
    task_registry::leg::TaskLeg,
};
use antiphon_engine::{Leg, PendingAsk};
use antiphon_wire::InputRequest;
use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

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
        if self.task.poll_ends(cx) {
            self.runtime.with(Leg::end_soon);
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
