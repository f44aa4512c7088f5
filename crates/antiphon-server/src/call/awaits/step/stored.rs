//! A step whose start and end are stored: `write_ahead`.
//!
//! ```text
//!  new ────────────────────────────────────▶ start stored ─▶ body ─▶ end stored ─▶ outcome
//!  begun in an earlier run, which died
//!      ├─ `rerun_after_crash` ─────────────▶ start stored ─▶ body ─▶ end stored ─▶ outcome
//!      └─ `reconcile`: it did not happen ──▶ start stored ─▶ body ─▶ end stored ─▶ outcome
//!                      it happened ──────────────────────────────▶ end stored ─▶ outcome
//! ```
//!
//! A start holds everything that the handler has received before it. A step that ended in an earlier run is in the record of the
//! leg, and is none of these. One that was interrupted, and has neither of the two, never begins again.

use super::body::{Ended, NoOutcome, of_body};
use crate::{
    at_most_once::{ClaimedLeg, StartStored},
    call::leg_runtime::LegRuntime,
    errors::Error,
};
use antiphon_engine::{StepBegin, StopReason, WriteAhead};
use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// The author's function that asks a provider whether an interrupted step had its effect.
pub(super) type Reconcile<'a, T> =
    Box<dyn FnOnce(String) -> BoxFuture<'a, Result<Option<T>, Error>> + Send + 'a>;

/// The stored records of one step while it runs.
pub(super) struct StoredStep<'a, T> {
    runtime: &'a LegRuntime,
    claim: Arc<ClaimedLeg>,
    path: Arc<str>,
    key: String,
    attempt: u32,
    reconcile: Option<Reconcile<'a, T>>,
    phase: Phase<'a, T>,
}

enum Phase<'a, T> {
    Begin(BoxFuture<'static, StartStored>, Option<WriteAhead>),
    Reconcile(BoxFuture<'a, Result<Option<T>, Error>>),
    Body,
    /// The end, with the text of the start if it has none of its own.
    End(BoxFuture<'static, Result<(), StopReason>>, Result<Ended<T>, NoOutcome>, Option<WriteAhead>),
    Over,
}

/// The next action of a step whose start is stored.
pub(super) enum Begun<T> {
    /// The body runs.
    Run { attempt: u32 },
    /// The body has ended before, and its end is being stored.
    BodyEnded,
    /// The step is over without its body.
    Ended(Result<Ended<T>, NoOutcome>),
}

impl<'a, T: Serialize + DeserializeOwned> StoredStep<'a, T> {
    /// Stores the start of a step, if the server does; or finds out first whether an interrupted attempt had its effect.
    pub(super) fn begin(
        runtime: &'a LegRuntime,
        claim: &Arc<ClaimedLeg>,
        path: Arc<str>,
        begin: &StepBegin,
        reconcile: Option<Reconcile<'a, T>>,
    ) -> Option<Self> {
        if !claim.writes_ahead() {
            return None;
        }
        let mut step = Self {
            runtime,
            claim: Arc::clone(claim),
            path,
            key: begin.key.clone(),
            attempt: begin.attempts,
            reconcile,
            phase: Phase::Over,
        };
        match step.reconcile.take().filter(|_| begin.is_interrupted && !claim.reruns()) {
            Some(find) => step.phase = Phase::Reconcile(find(step.key.clone())),
            None => step.begin_again(begin.attempts + 1),
        }
        Some(step)
    }

    /// Stores the start of the next attempt.
    pub(super) fn begin_again(&mut self, attempt: u32) {
        self.attempt = attempt;
        let ahead = self.runtime.with(|leg| leg.write_ahead_of_step(&self.path, attempt));
        self.phase = Phase::Begin(self.claim.start_step(&self.path, attempt, ahead.as_ref()), ahead);
    }

    /// Polls until the start is stored and the body may run. `limit` is that of an outcome, in bytes.
    pub(super) fn poll_begin(&mut self, cx: &mut Context<'_>, limit: usize) -> Poll<Begun<T>> {
        loop {
            match &mut self.phase {
                Phase::Begin(storing, ahead) => match ready!(storing.as_mut().poll(cx)) {
                    StartStored::Run => {
                        ahead.iter().for_each(|ahead| self.runtime.with(|leg| leg.written(ahead)));
                        self.phase = Phase::Body;
                    }
                    StartStored::Stop(reason) => return self.stop(reason),
                },
                Phase::Reconcile(finding) => match ready!(finding.as_mut().poll(cx)) {
                    Ok(Some(value)) => {
                        // The step may have begun in an earlier leg, so that this one has no record of its start.
                        let start =
                            self.runtime.with(|leg| leg.write_ahead_of_step(&self.path, self.attempt));
                        self.end(of_body(Ok(value), limit), start);
                    }
                    Ok(None) => self.begin_again(self.attempt + 1),
                    Err(error) => {
                        let cause = format!("it could not be reconciled: {error}");
                        return self.stop(StopReason::StepFailed { path: self.path.to_string(), cause });
                    }
                },
                Phase::Body => return Poll::Ready(Begun::Run { attempt: self.attempt }),
                Phase::End(..) | Phase::Over => return Poll::Ready(Begun::BodyEnded),
            }
        }
    }

    fn stop(&mut self, reason: StopReason) -> Poll<Begun<T>> {
        self.phase = Phase::Over;
        Poll::Ready(Begun::Ended(Err(NoOutcome::NotBegun(reason))))
    }

    /// Stores the end of the body.
    pub(super) fn body_ended(&mut self, result: Result<Ended<T>, NoOutcome>) {
        self.end(result, None);
    }

    fn end(&mut self, result: Result<Ended<T>, NoOutcome>, start: Option<WriteAhead>) {
        let storing = match &result {
            Ok(ended) => self.claim.end_step(&self.path, &ended.outcome, start.as_ref()),
            Err(_no_outcome) => {
                self.runtime.with(|leg| leg.attempt_failed(&self.path));
                self.claim.fail_attempt(&self.path, self.attempt)
            }
        };
        self.phase = Phase::End(storing, result, start);
    }

    /// Polls until the end is stored, and returns the result.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ended<T>, NoOutcome>> {
        let Phase::End(storing, ..) = &mut self.phase else { return Poll::Pending };
        let stored = ready!(Pin::as_mut(storing).poll(cx));
        let Phase::End(_, result, start) = mem::replace(&mut self.phase, Phase::Over) else {
            return Poll::Pending;
        };
        Poll::Ready(match stored {
            Ok(()) => {
                start.iter().for_each(|start| self.runtime.with(|leg| leg.written(start)));
                result
            }
            Err(reason) => Err(NoOutcome::NotStored(reason)),
        })
    }
}
