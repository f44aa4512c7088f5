//! The replay check: runs a handler a second time before a round leaves, and reports differences to the author, never
//! to the caller.

use crate::{
    call::{
        DriveResult,
        ctx::{Ctx, leg_context, setup},
        handler::FinalOutcome,
        leg_end::HandlerFuture,
        leg_runtime::LazyLeg,
    },
    request::admit::Admitted,
    runtime::{
        Runtime,
        replay::{FaultPlace, ReplayFault},
    },
};
use antiphon_engine::{EntryKind, Leg, LegOutput, Purpose, StopReason};
use antiphon_seal::CallId;
use antiphon_wire::{AskSupport, InputRequests, escaped};
use futures_util::FutureExt as _;
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// The time limit of the second run, within [`Limits::handler_timeout`](crate::Limits::handler_timeout). A handler that takes
/// longer is not reported.
const SECOND_RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks the result of a leg. The check takes the call out of the record, and puts it back.
pub(crate) async fn check<T: Send + 'static>(
    server: &Arc<Runtime>,
    admitted: &Admitted<'_>,
    start: &impl Fn(Ctx) -> Result<HandlerFuture<T>, String>,
    result: &mut DriveResult<T>,
) {
    match result {
        // Returned questions are not checked.
        DriveResult::Round(round, left) if round.by_hand.is_none() => {
            // A dry run cannot find out what an interrupted step has done.
            if left.record.has_open_steps() {
                return;
            }
            let Some(run) = ReplayRun::at(server, admitted, left) else { return };
            run.at_dropped(left);
            run.at_order(&round.requests, left);
            // After a checkpoint the handler would continue, and there is no round to compare with.
            if !left.observations.at_checkpoint {
                run.again(start, left).await;
            }
        }
        // A failed handler may drop questions. But a step that was dropped while it ran may have acted.
        DriveResult::Returned(outcome, Some(left)) => {
            let Some(run) = ReplayRun::at(server, admitted, left) else { return };
            if matches!(outcome, FinalOutcome::Complete(_)) {
                run.at_dropped(left);
            } else {
                run.at_cut(left);
            }
        }
        DriveResult::Returned(_, None)
        | DriveResult::Round(..)
        | DriveResult::Stopped(..)
        | DriveResult::Cancelled => {}
    }
}

/// The check of one leg.
struct ReplayRun<'a> {
    server: &'a Arc<Runtime>,
    admitted: &'a Admitted<'a>,
    call: Option<CallId>,
}

impl<'a> ReplayRun<'a> {
    fn at(server: &'a Arc<Runtime>, admitted: &'a Admitted<'a>, left: &LegOutput) -> Option<Self> {
        let call = left.call.as_ref().map(antiphon_seal::Call::id);
        server.replay.check.covers(call).then_some(Self { server, admitted, call })
    }

    fn place(&self, key: &str) -> FaultPlace {
        let target = self.admitted.leg().target.to_owned();
        FaultPlace { target, key: key.to_owned(), call: self.call }
    }

    fn report(&self, fault: fn(FaultPlace) -> ReplayFault, key: &str) {
        (self.server.replay.report)(&fault(self.place(key)));
    }

    fn at_cut(&self, left: &LegOutput) {
        for path in &left.observations.aborted_steps {
            self.report(ReplayFault::StepDropped, path);
        }
    }

    fn at_dropped(&self, left: &LegOutput) {
        self.at_cut(left);
        for (kind, path) in &left.observations.dropped {
            let fault =
                if *kind == EntryKind::Ask { ReplayFault::AskDropped } else { ReplayFault::StepDropped };
            self.report(fault, path);
        }
    }

    /// > A server **MUST NOT** rely on capabilities the client has not declared.
    ///
    /// A client's capabilities are checked before the handler runs only for the declared needs of a tool, and before a
    /// step only for earlier questions.
    fn at_order(&self, requests: &InputRequests, left: &LegOutput) {
        let Some(step) = &left.first_new_step else { return };
        // A handler that has read the capabilities decides by them.
        if left.record.has_ask_support() {
            return;
        }
        let settings = self.admitted.leg().settings;
        let is_unsaid = |request: &antiphon_wire::InputRequest| {
            settings.needs.and(left.observations.proven_support).missing(request.needs()) != AskSupport::NONE
        };
        let Some((ask, _)) = requests.iter().find(|(_, request)| is_unsaid(request)) else { return };
        if !settings.order_reported.swap(true, Ordering::Relaxed) {
            let fault = ReplayFault::StepBeforeAsk { step: self.place(step), ask: ask.to_owned() };
            (self.server.replay.report)(&fault);
        }
    }

    /// Runs the handler once more, and compares.
    async fn again<T: Send + 'static>(
        &self,
        start: &impl Fn(Ctx) -> Result<HandlerFuture<T>, String>,
        left: &mut LegOutput,
    ) {
        let Some(call) = left.call.take() else { return };
        let limits = &self.server.limits;
        let setup = setup(self.server, self.admitted, Purpose::DryRun, false);
        let engine = LazyLeg::begun(Leg::dry_run(call, left.record.clone(), setup));
        let leg = self.admitted.leg_number().saturating_add(1);
        let shared = Arc::new(leg_context(self.server, self.admitted, self.call, leg, engine, None));
        let result = match start(Ctx::new(Arc::clone(&shared))) {
            Ok(handler) => {
                // The handler is dropped after a panic, so no broken invariant is observed.
                let handler = AssertUnwindSafe(handler).catch_unwind();
                let limit = self.admitted.leg().settings.timeout.unwrap_or(limits.handler_timeout);
                tokio::time::timeout(limit.min(SECOND_RUN_TIMEOUT), handler).await
            }
            // The same text has decoded before.
            Err(_) => Ok(Ok(DriveResult::Cancelled)),
        };
        left.call = match result {
            Ok(Ok(DriveResult::Round(_, mut again) | DriveResult::Returned(_, Some(mut again)))) => {
                self.compare(left, &again);
                again.call.take()
            }
            Ok(Ok(DriveResult::Stopped(stop, mut again))) => {
                match (stop, &again.observations.would_run) {
                    // A leg that was cut short may reach this step later.
                    (_, Some(_)) if left.observations.ended_early => {}
                    // The leg ended in front of it, because the step runs in the next leg.
                    (_, Some(step)) if left.observations.anchored.contains(step) => {}
                    (_, Some(step)) => self.report(ReplayFault::StepAdded, step),
                    (StopReason::Panicked(_), None) => self.report(ReplayFault::Panicked, ""),
                    (StopReason::Diverged { path, .. }, None) => self.report(ReplayFault::Diverged, &path),
                    (stop, None) => {
                        tracing::debug!(?stop, "a handler that runs again is stopped");
                        self.report(ReplayFault::Diverged, "");
                    }
                }
                again.call.take()
            }
            Ok(Ok(DriveResult::Cancelled | DriveResult::Returned(_, None))) => None,
            Ok(Err(_panic)) => {
                self.report(ReplayFault::Panicked, "");
                None
            }
            Err(_elapsed) => {
                tracing::debug!(
                    target = ?escaped(self.admitted.leg().target),
                    "a handler takes too long to be checked"
                );
                None
            }
        };
        if left.call.is_none() {
            left.call = shared.runtime.with(|leg| leg.finish().call);
        }
    }

    fn compare(&self, before: &LegOutput, again: &LegOutput) {
        // If something beside the questions has a time limit of its own, the other run may have come further.
        let (was_cut, is_cut) = (before.observations.ended_early, again.observations.ended_early);
        let (before, again) = (&before.record, &again.record);
        let mut is_changed = false;
        for path in again.changed_asks(before) {
            is_changed = true;
            self.report(ReplayFault::AskChanged, path);
        }
        if is_changed {
            // The other differences follow from that one.
            return;
        }
        let asks = |record: &antiphon_engine::Record, path: &str| {
            record.asked().iter().any(|asked| asked.path() == path)
        };
        // The second run had its own grace period and came further: a timer was first in a `select`.
        let is_ahead = was_cut && again.has_new_selects_since(before);
        for was in before.asked().iter().filter(|was| !is_cut && !is_ahead && !asks(again, was.path())) {
            self.report(ReplayFault::AskMissing, was.path());
        }
        for now in again.asked().iter().filter(|now| !was_cut && !asks(before, now.path())) {
            self.report(ReplayFault::AskAdded, now.path());
        }
    }
}
