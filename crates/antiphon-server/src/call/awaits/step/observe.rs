//! The spans and counts of steps that run here.

use super::body::{Ended, NoOutcome};
use crate::metrics::{Meters, StepEnd};
use antiphon_engine::StepOutcome;
use antiphon_wire::escaped;
use tracing::{Level, Span, enabled, field::Empty};

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
