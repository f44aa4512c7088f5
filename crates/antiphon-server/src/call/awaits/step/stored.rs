//! The outcome of a step's body, as it is recorded, counted and shown in its span; and a step whose start and end are stored:
//! `write_ahead`.
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

use crate::{
    at_most_once::{ClaimedLeg, StartStored},
    call::leg_runtime::LegRuntime,
    errors::{
        Error,
        awaited::{StepError, Unrecordable},
    },
    metrics::{Meters, StepEnd},
};
use antiphon_engine::{StepBegin, StepOutcome, StopReason, WriteAhead};
use antiphon_wire::escaped;
use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tracing::{Level, Span, enabled, field::Empty};

/// The reason for which a step has no outcome.
#[derive(Debug)]
pub(super) enum NoOutcome {
    /// An attempt failed, with this cause.
    Failed(String),
    /// The leg ends before the body of the step has begun.
    NotBegun(StopReason),
    /// The leg ends, because the end of the step is not stored.
    NotStored(StopReason),
}

/// A step that ended.
pub(super) struct Ended<T> {
    pub(super) outcome: StepOutcome,
    /// The recorded value, read again: the handler receives in every leg what the record gives.
    pub(super) value: Option<T>,
}

/// Returns the outcome that the body of a step gives, or the cause for which it may run again.
pub(super) fn of_body<T: Serialize + DeserializeOwned>(
    result: Result<T, Error>,
    limit: usize,
) -> Result<Ended<T>, NoOutcome> {
    match result {
        Ok(value) => Ok(recorded(&value, limit)),
        Err(error) => of_error(error, limit),
    }
}

/// Returns the outcome of a body that failed, or the cause for which it may run again.
pub(super) fn of_error<T>(error: Error, limit: usize) -> Result<Ended<T>, NoOutcome> {
    match StepError::of(error) {
        Ok(error) => Ok(Ended { outcome: failed(error, limit), value: None }),
        Err(again) => Err(NoOutcome::Failed(again.to_string())),
    }
}

/// Returns a value as it is recorded, if it can be written as JSON and read again.
fn recorded<T: Serialize + DeserializeOwned>(value: &T, limit: usize) -> Ended<T> {
    match written(value, limit) {
        Ok((text, value)) => Ended { outcome: StepOutcome::Done(text.into()), value: Some(value) },
        Err(cause) => {
            Ended { outcome: StepOutcome::Failed(StepError::unrecordable(&cause).recorded()), value: None }
        }
    }
}

/// Returns a value as JSON, and read again.
pub(super) fn written<T: Serialize + DeserializeOwned>(
    value: &T,
    limit: usize,
) -> Result<(String, T), Unrecordable> {
    let text = serde_json::to_string(value).map_err(|fault| Unrecordable::NotJson(fault.to_string()))?;
    if text.len() > limit {
        return Err(Unrecordable::TooLarge { bytes: text.len(), limit });
    }
    match serde_json::from_str(&text) {
        Ok(value) => Ok((text, value)),
        Err(fault) => {
            let fault = crate::call::ctx::without_value(&fault);
            Err(Unrecordable::NotJson(format!("it cannot be read again: {fault}")))
        }
    }
}

fn failed(error: StepError, limit: usize) -> StepOutcome {
    let failure = error.recorded();
    if failure.size() <= limit {
        return StepOutcome::Failed(failure);
    }
    let cause = Unrecordable::ErrorTooLarge { bytes: failure.size(), limit };
    StepOutcome::Failed(StepError::unrecordable(&cause).recorded())
}

/// Returns the span of a step that runs now. A step whose outcome is recorded has none.
pub(super) fn span(path: impl FnOnce() -> String) -> Span {
    if !enabled!(Level::INFO) {
        return Span::none();
    }
    let path = path();
    let path = escaped(&path);
    tracing::info_span!(
        "step",
        otel.name = format!("step {path}"),
        antiphon.step = %path,
        error.r#type = Empty,
        otel.status_code = Empty,
    )
}

/// Counts a step that ended, and notes an error in its span. The text of the error is the author's: it stays out.
pub(super) fn ended<T>(meters: &Meters, span: &Span, end: &Result<Ended<T>, NoOutcome>) {
    let (end, error) = match end {
        Ok(Ended { outcome: StepOutcome::Done(_), .. }) => (StepEnd::Done, None),
        Ok(_) => (StepEnd::Error, Some("step_error")),
        Err(_) => (StepEnd::NoOutcome, Some("no_outcome")),
    };
    meters.step(end);
    if let Some(error) = error {
        span.record("error.type", error);
        span.record("otel.status_code", "ERROR");
    }
}

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
