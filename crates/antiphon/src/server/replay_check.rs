//! Whether a handler comes to the same again: looked for before a round leaves, told to the author, never to the caller.

use super::{
    Ctx, HandlerOutcome,
    admit::Admitted,
    leg::{self, Running},
    round::{Carrier, Ran},
    serve::Inner,
};
use antiphon_engine::{EntryKind, Leg, LegOutput, Purpose, StopReason};
use antiphon_seal::CallId;
use antiphon_wire::{AskSupport, InputRequests};
use futures_util::FutureExt as _;
use std::{fmt, panic::AssertUnwindSafe, sync::Arc, sync::atomic::Ordering, time::Duration};

/// How long a handler may take for its second run, within [`Limits::handler_time`](super::Limits::handler_time). One that
/// is not back at its questions by then is not reported.
const PATIENCE: Duration = Duration::from_secs(5);

/// With [`ReplayCheck::Sampled`], one call in so many.
const ONE_IN: u8 = 16;

/// Whether handlers are run twice, to see that they ask the same again.
///
/// A handler that asks runs again from its top with each request of its call. What it does before a question must lead to
/// the same question every time; what may not be done twice, or comes out differently, belongs in a
/// [`step`](super::Ctx::step). Before a round leaves, the check runs the handler once more, as the next request will, and
/// reports where it does not come to the same questions. No step runs in it and nothing is sent; but all else that the
/// handler does outside of steps is done once more, its input and output included. The reply is the same with it and
/// without.
///
/// What it finds is a [`ReplayFault`]. Questions that were asked by returning them are not checked, nor is how far other work
/// came beside a question that left at the end of its [`Limits::grace`](super::Limits::grace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayCheck {
    /// Never. The default in release builds.
    Off,
    /// In one of sixteen calls, which is chosen by the call's id: always the same on every instance.
    Sampled,
    /// In every call. The default in debug builds.
    Always,
}

impl Default for ReplayCheck {
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Always } else { Self::Off }
    }
}

impl ReplayCheck {
    /// `None` is a call that has not begun to ask.
    fn covers(self, call: Option<CallId>) -> bool {
        match self {
            Self::Off => false,
            Self::Sampled => call.is_some_and(|call| call.as_bytes()[0].is_multiple_of(ONE_IN)),
            Self::Always => true,
        }
    }
}

/// What is wrong with a handler that will run again. Shown, it is a sentence for the author, with keys and no values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayFault {
    /// Run again, it does not ask this question: something it did not record decides.
    AskMissing(FaultPlace),
    /// Run again, it asks this question in other words, or with another form: its answer would be dropped.
    AskChanged(FaultPlace),
    /// Run again, it asks this question too.
    AskAdded(FaultPlace),
    /// Run again, it would run this step, which it did not run before.
    StepAdded(FaultPlace),
    /// It gave this question up before it was answered, by `select!` or `timeout` perhaps: which of several came first is
    /// remembered by [`Ctx::select`](super::Ctx::select) only.
    AskDropped(FaultPlace),
    /// It gave this step up before it came to an outcome, by `select!` or `timeout` perhaps, or by `try_join!` when another
    /// step had failed.
    StepDropped(FaultPlace),
    /// This step runs before a question that a client may be unable to show: such a client is refused once the step is
    /// done. The tool should say what it `needs`. Reported once for each tool, prompt and resource.
    #[non_exhaustive]
    StepBeforeAsk {
        /// The step.
        step: FaultPlace,
        /// The key of the question.
        ask: String,
    },
    /// Run again, it takes another path than the one recorded, of which this is a part.
    Diverged(FaultPlace),
    /// Run again, it panics. The key is empty.
    Panicked(FaultPlace),
}

/// Where a fault was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultPlace {
    /// The name of the tool or prompt, or the URI of the resource.
    pub target: String,
    /// The key of the question or step, scopes included.
    pub key: String,
    /// The call's id in the log.
    pub call: Option<CallId>,
}

impl ReplayFault {
    /// Where it was found; the step, of [`StepBeforeAsk`](Self::StepBeforeAsk).
    pub fn place(&self) -> &FaultPlace {
        match self {
            Self::AskMissing(place)
            | Self::AskChanged(place)
            | Self::AskAdded(place)
            | Self::StepAdded(place)
            | Self::AskDropped(place)
            | Self::StepDropped(place)
            | Self::StepBeforeAsk { step: place, .. }
            | Self::Diverged(place)
            | Self::Panicked(place) => place,
        }
    }
}

impl fmt::Display for ReplayFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FaultPlace { target, key, call } = self.place();
        write!(f, "`{target}`")?;
        if let Some(call) = call {
            write!(f, " (call {call})")?;
        }
        match self {
            Self::AskMissing(_) => write!(
                f,
                " does not ask `{key}` when it runs again: what decides must be the same each time, or a step"
            ),
            Self::AskChanged(_) => write!(
                f,
                " asks `{key}` differently when it runs again: what the question is made of must be the same each time, or come from a step"
            ),
            Self::AskAdded(_) => write!(
                f,
                " asks `{key}` only when it runs again: what decides must be the same each time, or a step"
            ),
            Self::StepAdded(_) => write!(
                f,
                " comes to the step `{key}` only when it runs again: what decides must be the same each time, or a step"
            ),
            Self::AskDropped(_) => write!(
                f,
                " gave up the question `{key}`: use `.within(..)` instead of `timeout` or a timer, and `ctx.select` for what is raced"
            ),
            Self::StepDropped(_) => write!(
                f,
                " gave up the step `{key}`: use `join!` and then `?` instead of `try_join!`, `timeout` inside of the step, and `ctx.select` instead of `select!`"
            ),
            Self::StepBeforeAsk { ask, .. } => write!(
                f,
                " runs the step `{key}` before the question `{ask}`, which not every client can show: say that it needs it"
            ),
            Self::Diverged(_) => {
                write!(f, " takes another path than recorded when it runs again, at `{key}`")
            }
            Self::Panicked(_) => write!(f, " panics when it runs again"),
        }
    }
}

/// Whether to look, and whom to tell.
pub(super) struct Replay {
    pub(super) check: ReplayCheck,
    pub(super) report: Box<dyn Fn(&ReplayFault) + Send + Sync>,
    /// Hears what the log is told and the caller is not.
    pub(super) causes: Option<Box<dyn Fn(String) + Send + Sync>>,
}

impl Default for Replay {
    fn default() -> Self {
        let report = |fault: &ReplayFault| tracing::error!(%fault, "a handler does not repeat itself");
        Self { check: ReplayCheck::default(), report: Box::new(report), causes: None }
    }
}

impl Replay {
    pub(super) fn is_on(&self) -> bool {
        self.check != ReplayCheck::Off
    }

    /// Why a request fails, for whoever wants to know besides the log.
    pub(super) fn tell(&self, cause: impl FnOnce() -> String) {
        if let Some(hear) = &self.causes {
            hear(cause());
        }
    }
}

/// Looks at what a leg came to. Only the record's call is taken out of it, and put back.
pub(super) async fn check<T: Send + 'static>(
    server: &Inner,
    admitted: &Admitted<'_>,
    start: &impl Fn(Ctx) -> Result<Running<T>, String>,
    ran: &mut Ran<T>,
) {
    match ran {
        // Questions that are returned are not checked.
        Ran::Round(round, left) if round.by_hand.is_none() => {
            let Some(look) = Look::at(server, admitted, left) else { return };
            look.at_dropped(left);
            look.at_order(&round.requests, left);
            // Behind a checkpoint there is more to come, and a round of nothing to compare with.
            if !left.observations.at_checkpoint {
                look.again(start, left).await;
            }
        }
        // An error may give up what it likes: it is the end. But what ran has happened.
        Ran::Returned(outcome, left) => {
            let Some(look) = Look::at(server, admitted, left) else { return };
            if matches!(outcome, HandlerOutcome::Complete(_)) {
                look.at_dropped(left);
            } else {
                look.at_cut(left);
            }
        }
        Ran::Round(..) | Ran::Stopped(..) | Ran::Cancelled => {}
    }
}

/// One leg that is looked at.
struct Look<'a> {
    server: &'a Inner,
    admitted: &'a Admitted<'a>,
    call: Option<CallId>,
}

impl<'a> Look<'a> {
    fn at(server: &'a Inner, admitted: &'a Admitted<'a>, left: &LegOutput) -> Option<Self> {
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
    /// Which is told before the first line only of what a tool says it needs, and before a step of what was asked until then.
    fn at_order(&self, requests: &InputRequests, left: &LegOutput) {
        let Some(step) = &left.first_new_step else { return };
        // Whoever has looked decides by it.
        if left.record.has_ask_support() {
            return;
        }
        let settings = self.admitted.leg().settings;
        let is_unsaid = |request: &antiphon_wire::InputRequest| {
            settings.needs.and(left.observations.proven_support).missing(request.needs()) != AskSupport::NONE
        };
        let Some((ask, _)) = requests.iter().find(|(_, request)| is_unsaid(request)) else { return };
        if !settings.order_told.swap(true, Ordering::Relaxed) {
            let fault = ReplayFault::StepBeforeAsk { step: self.place(step), ask: ask.to_owned() };
            (self.server.replay.report)(&fault);
        }
    }

    /// Runs the handler once more, and compares.
    async fn again<T: Send + 'static>(
        &self,
        start: &impl Fn(Ctx) -> Result<Running<T>, String>,
        left: &mut LegOutput,
    ) {
        let Some(call) = left.call.take() else { return };
        let limits = &self.server.limits;
        let carrier = Carrier::Sealed;
        let setup = leg::setup(self.server, self.admitted, &carrier, Purpose::DryRun);
        let engine = Leg::dry_run(call, left.record.clone(), setup);
        let leg = self.admitted.leg_number().saturating_add(1);
        let shared = Arc::new(leg::surroundings(self.server, self.admitted, self.call, leg, engine, carrier));
        let ran = match start(Ctx::new(Arc::clone(&shared))) {
            Ok(handler) => {
                // Nothing half-changed in it is seen again.
                let handler = AssertUnwindSafe(handler).catch_unwind();
                tokio::time::timeout(limits.handler_time.min(PATIENCE), handler).await
            }
            // It was read from the same text before.
            Err(_) => Ok(Ok(Ran::Cancelled)),
        };
        left.call = match ran {
            Ok(Ok(Ran::Round(_, mut again) | Ran::Returned(_, mut again))) => {
                self.compare(left, &again);
                again.call.take()
            }
            Ok(Ok(Ran::Stopped(stop, mut again))) => {
                match (stop, &again.observations.would_run) {
                    // What it does not come to in its grace, it comes to another time.
                    (_, Some(_)) if left.observations.ended_early => {}
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
            Ok(Ok(Ran::Cancelled)) => None,
            Ok(Err(_panic)) => {
                self.report(ReplayFault::Panicked, "");
                None
            }
            Err(_elapsed) => {
                tracing::debug!(
                    target = self.admitted.leg().target,
                    "a handler takes too long to be checked"
                );
                None
            }
        };
        if left.call.is_none() {
            left.call = shared.flow.with(|leg| leg.finish().call);
        }
    }

    fn compare(&self, before: &LegOutput, again: &LegOutput) {
        // Where something beside the questions has a time of its own, the other run may have come further.
        let (was_cut, is_cut) = (before.observations.ended_early, again.observations.ended_early);
        let (before, again) = (&before.record, &again.record);
        let mut is_changed = false;
        for path in again.changed_asks(before) {
            is_changed = true;
            self.report(ReplayFault::AskChanged, path);
        }
        if is_changed {
            // The rest follows from that.
            return;
        }
        let asks = |record: &antiphon_engine::Record, path: &str| {
            record.asked().iter().any(|asked| asked.path() == path)
        };
        // The other run had a grace of its own, and came further: a timer was first in a `select`.
        let is_ahead = was_cut && again.has_new_selects_since(before);
        for was in before.asked().iter().filter(|was| !is_cut && !is_ahead && !asks(again, was.path())) {
            self.report(ReplayFault::AskMissing, was.path());
        }
        for now in again.asked().iter().filter(|now| !was_cut && !asks(before, now.path())) {
            self.report(ReplayFault::AskAdded, now.path());
        }
    }
}
