//! Checks of the values that every store accepts, before the store is asked.

use std::time::Duration;

use crate::claim::ClaimRequest;
use crate::error::{StoreError, StoreErrorKind};
use crate::step::StepRecord;
use crate::task::{NewTask, TaskNext, TaskUpdate};

/// The maximum length of a step's name, in bytes.
pub const MAX_STEP_NAME: usize = 256;
/// The maximum size of an outcome, of a step's value and of a blob, in bytes: 16 MiB.
pub const MAX_VALUE: usize = 16 * 1024 * 1024;

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
const LONGEST_KEEP: Duration = Duration::from_secs(400 * 24 * 60 * 60);

pub(crate) fn claim(request: &ClaimRequest) -> Result<(), StoreError> {
    lease("claim", request.lease)?;
    keep("claim", request.keep)
}

pub(crate) fn lease(operation: &'static str, lease: Duration) -> Result<(), StoreError> {
    within(operation, "lease", lease, LONGEST_LEASE)
}

pub(crate) fn keep(operation: &'static str, keep: Duration) -> Result<(), StoreError> {
    within(operation, "keeping time", keep, LONGEST_KEEP)
}

pub(crate) fn record(record: &StepRecord) -> Result<(), StoreError> {
    let name = record.step();
    if name.is_empty() || name.len() > MAX_STEP_NAME || name.chars().any(char::is_control) {
        return Err(invalid(
            "append",
            format!("a step's name has 1 to {MAX_STEP_NAME} bytes and no control characters"),
        ));
    }
    if record.event() == (crate::step::StepEvent::Started { attempt: 0 }) {
        return Err(invalid("append", "attempts count from 1".to_owned()));
    }
    value("append", record.value())
}

pub(crate) fn value(operation: &'static str, value: &[u8]) -> Result<(), StoreError> {
    if value.len() > MAX_VALUE {
        return Err(invalid(operation, format!("{} bytes; the maximum is {MAX_VALUE}", value.len())));
    }
    Ok(())
}

pub(crate) fn new_task(task: &NewTask) -> Result<(), StoreError> {
    task.ttl.map_or(Ok(()), |ttl| keep("create", ttl))?;
    value("create", &task.snapshot)
}

pub(crate) fn task_update(update: &TaskUpdate) -> Result<(), StoreError> {
    match update.next {
        TaskNext::Final(time) => keep("update", time)?,
        TaskNext::Waits(Some(time)) if time > LONGEST_KEEP => keep("update", time)?,
        TaskNext::Pauses(time) if time > LONGEST_KEEP => keep("update", time)?,
        TaskNext::Pauses(_) | TaskNext::Waits(_) | TaskNext::Runs => {}
    }
    value("update", &update.snapshot)
}

pub(crate) fn full(operation: &'static str, what: &str, limit: usize) -> StoreError {
    StoreError::read(StoreErrorKind::Full, operation, format!("{what}: the maximum is {limit}"))
}

fn within(operation: &'static str, what: &str, is: Duration, longest: Duration) -> Result<(), StoreError> {
    if is < SHORTEST || is > longest {
        return Err(invalid(
            operation,
            format!("a {what} of {is:?} is not within {SHORTEST:?} and {longest:?}"),
        ));
    }
    Ok(())
}

fn invalid(operation: &'static str, cause: String) -> StoreError {
    StoreError::read(StoreErrorKind::Invalid, operation, cause)
}
