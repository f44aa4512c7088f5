//! The reply to a claim, from the columns of the function.

use std::time::Duration;

use tokio_postgres::Row;

use crate::claim::{Claim, Conflict, Fence, Unknown};
use crate::error::{StoreError, StoreErrorKind, Written};
use crate::key::CallKey;
use crate::step::StepAttempt;

/// Returns the claim of a row.
pub(super) fn claim(call: CallKey, row: &Row) -> Result<Claim, StoreError> {
    read(call, row)
        .map_err(|error| StoreError::new(StoreErrorKind::Corrupt, Written::Unknown, "claim", error))?
        .ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                Written::Unknown,
                "claim",
                "the function returned an unknown result",
            )
        })
}

fn read(call: CallKey, row: &Row) -> Result<Option<Claim>, tokio_postgres::Error> {
    Ok(Some(match row.try_get::<_, i16>("result")? {
        0 => Claim::Fresh(Fence::new(call, row.try_get("fence")?)),
        1 => {
            let micros: i64 = row.try_get("rest")?;
            Claim::InFlight { retry_after: Duration::from_micros(u64::try_from(micros).unwrap_or(0)) }
        }
        2 => Claim::Done(row.try_get("outcome")?),
        3 => Claim::Conflict(Conflict::EarlierLeg),
        4 => Claim::Conflict(Conflict::OtherAnswers),
        5 => Claim::Conflict(Conflict::OtherPredecessor),
        6 => {
            let (step, attempt) =
                (row.try_get::<_, Option<String>>("step")?, row.try_get::<_, Option<i64>>("attempt")?);
            let step =
                step.zip(attempt).map(|(step, attempt)| StepAttempt { step, attempt: number(attempt) });
            Claim::Unknown(Unknown { leg: number(row.try_get("unknown_leg")?), step })
        }
        _ => return Ok(None),
    }))
}

/// Returns a number of a `bigint` column, which this program wrote as a `u32`.
pub(super) fn number(column: i64) -> u32 {
    u32::try_from(column).unwrap_or(u32::MAX)
}
