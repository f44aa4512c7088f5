//! A step whose start and end are stored: `write_ahead`.
//!
//! ```text
//!  start stored ─┬─ first ───────────────────────────────▶ body ─▶ end stored ─▶ outcome
//!                ├─ ended in an earlier run ───────────────────────────────────▶ outcome
//!                └─ begun in an earlier run, which died
//!                      ├─ `rerun_after_crash` ───────────▶ body, the next attempt
//!                      ├─ `reconcile`: it happened ────────────▶ end stored ─▶ outcome
//!                      │              it did not ────────▶ body, the next attempt
//!                      └─ else ──▶ the leg ends: `outcome_unknown`
//! ```

use super::body::{Ended, NoOutcome, of_body};
use crate::{
    Error,
    at_most_once::{ClaimedLeg, StepBegin},
};
use antiphon_engine::StopReason;
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
    claim: Arc<ClaimedLeg>,
    path: Arc<str>,
    key: String,
    attempt: u32,
    reconcile: Option<Reconcile<'a, T>>,
    phase: Phase<'a, T>,
}

enum Phase<'a, T> {
    Begin(BoxFuture<'static, StepBegin>),
    Reconcile(BoxFuture<'a, Result<Option<T>, Error>>),
    Body,
    End(BoxFuture<'static, Result<(), StopReason>>, Result<Ended<T>, NoOutcome>),
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
    /// Stores the start of a step, if the server does.
    pub(super) fn begin(
        claim: &Arc<ClaimedLeg>,
        path: Arc<str>,
        key: String,
        reconcile: Option<Reconcile<'a, T>>,
    ) -> Option<Self> {
        let phase = Phase::Begin(claim.writes_ahead().then(|| claim.begin_step(&path))?);
        Some(Self { claim: Arc::clone(claim), path, key, attempt: 1, reconcile, phase })
    }

    /// Stores the start of the next attempt.
    pub(super) fn begin_again(&mut self, attempt: u32) {
        self.phase = Phase::Begin(self.claim.next_attempt(&self.path, attempt));
    }

    /// Polls until the start is stored and the body may run. `limit` is that of an outcome, in bytes.
    pub(super) fn poll_begin(&mut self, cx: &mut Context<'_>, limit: usize) -> Poll<Begun<T>> {
        loop {
            match &mut self.phase {
                Phase::Begin(storing) => match ready!(storing.as_mut().poll(cx)) {
                    StepBegin::Run { attempt } => {
                        self.attempt = attempt;
                        self.phase = Phase::Body;
                    }
                    StepBegin::Recorded(outcome) => {
                        self.phase = Phase::Over;
                        return Poll::Ready(Begun::Ended(Ok(Ended { outcome, value: None })));
                    }
                    StepBegin::Interrupted { attempt } => {
                        self.attempt = attempt;
                        let Some(find) = self.reconcile.take() else {
                            return self.stop(StopReason::OutcomeUnknown { path: self.path.to_string() });
                        };
                        self.phase = Phase::Reconcile(find(self.key.clone()));
                    }
                    StepBegin::Stop(reason) => return self.stop(reason),
                },
                Phase::Reconcile(finding) => match ready!(finding.as_mut().poll(cx)) {
                    Ok(Some(value)) => {
                        self.claim.resolve_step(&self.path);
                        self.body_ended(of_body(Ok(value), limit));
                    }
                    Ok(None) => {
                        self.claim.resolve_step(&self.path);
                        self.begin_again(self.attempt + 1);
                    }
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
        let storing = match &result {
            Ok(ended) => self.claim.end_step(&self.path, &ended.outcome),
            Err(_no_outcome) => self.claim.fail_attempt(&self.path, self.attempt),
        };
        self.phase = Phase::End(storing, result);
    }

    /// Polls until the end is stored, and returns the result.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ended<T>, NoOutcome>> {
        let Phase::End(storing, _) = &mut self.phase else { return Poll::Pending };
        let stored = ready!(Pin::as_mut(storing).poll(cx));
        let Phase::End(_, result) = mem::replace(&mut self.phase, Phase::Over) else { return Poll::Pending };
        Poll::Ready(match stored {
            Ok(()) => result,
            Err(reason) => Err(NoOutcome::NotStored(reason)),
        })
    }
}
