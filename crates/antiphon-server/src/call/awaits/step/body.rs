//! The outcome of a step's body, as it is recorded, counted and shown in its span.

use crate::{
    errors::{
        Error,
        awaited::{StepError, Unrecordable},
    },
    metrics::{Meters, StepEnd},
};
use antiphon_engine::{StepOutcome, StopReason};
use antiphon_wire::escaped;
use serde::{Serialize, de::DeserializeOwned};
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
