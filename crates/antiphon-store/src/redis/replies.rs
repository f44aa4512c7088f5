//! Replies of the scripts: a word and its values.

use std::time::Duration;

use crate::claim::{Claim, Conflict, Fence, Unknown};
use crate::error::{StoreError, StoreErrorKind, Written};
use crate::key::CallKey;
use crate::step::{StepAttempt, StepEvent, StepRecord};

/// Returns the claim of a reply.
pub(super) fn claim(call: CallKey, mut reply: Vec<Vec<u8>>) -> Result<Claim, StoreError> {
    let claim = match (word(&reply), reply.len()) {
        ("fresh", 2) => number(&reply[1]).map(|fence| Claim::Fresh(Fence::new(call, fence))),
        ("in_flight", 2) => {
            number(&reply[1]).map(|micros| Claim::InFlight { retry_after: Duration::from_micros(micros) })
        }
        ("done", 2) => Some(Claim::Done(reply.swap_remove(1))),
        ("earlier", 1) => Some(Claim::Conflict(Conflict::EarlierLeg)),
        ("answers", 1) => Some(Claim::Conflict(Conflict::OtherAnswers)),
        ("predecessor", 1) => Some(Claim::Conflict(Conflict::OtherPredecessor)),
        ("unknown", 2) => number(&reply[1]).map(|leg| Claim::Unknown(Unknown { leg, step: None })),
        ("unknown", 4) => match (number(&reply[1]), number(&reply[2]), text(&reply[3])) {
            (Some(leg), Some(attempt), Some(step)) => {
                let step = Some(StepAttempt { step: step.to_owned(), attempt });
                Some(Claim::Unknown(Unknown { leg, step }))
            }
            _ => None,
        },
        _ => None,
    };
    claim.ok_or_else(|| wrong("claim"))
}

/// Returns the steps of a reply.
pub(super) fn steps(reply: &[Vec<u8>]) -> Result<Vec<StepRecord>, StoreError> {
    let record = |fields: &[Vec<u8>]| {
        let [event, step, value] = fields else { return None };
        Some(StepRecord::from_parts(text(step)?, StepEvent::from_number(number(event)?), value.as_slice()))
    };
    reply.chunks(3).map(|fields| record(fields).ok_or_else(|| wrong("load"))).collect()
}

/// Returns the first value, as text.
pub(super) fn word(reply: &[Vec<u8>]) -> &str {
    reply.first().and_then(|word| text(word)).unwrap_or("")
}

/// Returns the error of a reply that no script of this version sends.
pub(super) fn wrong(operation: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        Written::Unknown,
        operation,
        "the script returned an unknown reply",
    )
}

fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok()
}

fn number<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    text(value)?.parse().ok()
}
